"""The protocol as data: revisions and eras, capability paths, methods and what gates them.

Everything here is looked up in the TOML files of this folder, which follow the specification revision by revision.
Nothing reads, writes or judges a trace.
"""

from __future__ import annotations

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
    "Era",
    "capability_level",
    "era",
    "is_revision",
    "join",
    "parent",
    "spec_url",
    "split",
]
