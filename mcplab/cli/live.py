"""Commands that make their own evidence: ``handshake`` and ``demo``. What they do is in ``mcplab.live.commands``."""

from __future__ import annotations

from mcplab.live.commands import register

__all__ = ["register"]
