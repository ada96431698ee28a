"""Charts: a frame in, an Axes out. Nothing here shows or saves, and no style of the session is changed."""

from __future__ import annotations

from mcplab.plots.breaches import findings
from mcplab.plots.changes import drift
from mcplab.plots.delays import latency
from mcplab.plots.ladder import sequence
from mcplab.plots.matrix import declarations, read_declarations
from mcplab.plots.paper import alt_text
from mcplab.plots.revisions import versions
from mcplab.plots.stages import negotiation
from mcplab.plots.timelines import timeline

__all__ = [
    "alt_text",
    "declarations",
    "drift",
    "findings",
    "latency",
    "negotiation",
    "read_declarations",
    "sequence",
    "timeline",
    "versions",
]
