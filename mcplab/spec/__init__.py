"""The protocol as data: revisions and eras, capability paths, methods and what gates them.

Everything here is looked up in the TOML files of this folder, which follow the specification revision by revision.
Nothing reads, writes or judges a trace.
"""

from __future__ import annotations

from mcplab.spec.capability_paths import Capability, capabilities, capability, path_key, path_order
from mcplab.spec.conditions import Condition, MemberTest
from mcplab.spec.paths import ROOT, join, parent, split
from mcplab.spec.revisions import (
    LATEST_LEGACY,
    META_CAPABILITIES,
    META_CLIENT_INFO,
    META_LOG_LEVEL,
    META_SERVER_INFO,
    META_SUBSCRIPTION_ID,
    META_VERSION,
    REVISIONS,
    Era,
    capability_level,
    era,
    is_revision,
    spec_url,
)
from mcplab.spec.traffic import Gate, Method, Variant, eras_of, gates, method, method_names, methods

__all__ = [
    "LATEST_LEGACY",
    "META_CAPABILITIES",
    "META_CLIENT_INFO",
    "META_LOG_LEVEL",
    "META_SERVER_INFO",
    "META_SUBSCRIPTION_ID",
    "META_VERSION",
    "REVISIONS",
    "ROOT",
    "Capability",
    "Condition",
    "Era",
    "Gate",
    "MemberTest",
    "Method",
    "Variant",
    "capabilities",
    "capability",
    "capability_level",
    "era",
    "eras_of",
    "gates",
    "is_revision",
    "join",
    "method",
    "method_names",
    "methods",
    "parent",
    "path_key",
    "path_order",
    "spec_url",
    "split",
]
