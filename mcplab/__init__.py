"""mcplab: what did this MCP client and this server tell each other they can do, and did they keep to it?

Names load on first use: ``import mcplab`` alone loads none of pandas, matplotlib, IPython or the SDK.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "ABSENT": "model",
    "UNKNOWN": "model",
    "JsonText": "model",
    "MCPLabError": "model",
    "TraceError": "model",
    "HandshakeError": "model",
    "GateError": "model",
    "ClaimsError": "model",
    "SpecError": "model",
    "DrawError": "model",
    "ExportError": "model",
    "Trace": "traces",
    "Traces": "traces",
    "read_trace": "traces",
    "read_traces": "traces",
    "make_trace": "traces",
    "load": "sources",
    "claims": "published",
    "compare": "tiers",
    "statements": "tiers",
    "contradictions": "disputes",
    "variance": "varying",
    "promises": "keeping",
    "caption": "provenance",
    "methods": "provenance",
    "observed": "feed",
    "publish": "publication",
    "diff": "comparison",
    "reach": "comparison",
    "timeline": "bins",
    "check": "rulebook",
    "rules": "rulebook",
    "explain": "rulebook",
    "exercised": "rulebook",
    "what_if": "rulebook",
    "gate": "gating",
    "guarded": "live.guard",
    "observe": "live.observing",
    "handshake": "live.handshakes",
    "handshake_async": "live.handshakes",
    "DEMO": "live.server.demo",
    "export": "exports",
    "plots": "plots",
    "panel": "widgets",
    "watch": "widgets",
    "spec": "spec",
    "data": "data",
    "corpus": "corpus",
}
"""Public name -> the module that holds it; a name that is a module stands for itself."""

__all__ = sorted([*_HOME, "__version__"], key=str.casefold)


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'mcplab' has no attribute {name!r}")
    module = import_module(f"mcplab.{home}")
    value = module if name == home else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
