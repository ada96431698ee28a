"""The transport display, as text and HTML: who spoke to whom in which protocol, what each channel carried."""

from __future__ import annotations

from mcplab.render.arrows import Arrow, Step, arrows, mermaid, steps
from mcplab.render.facts import Facts, facts
from mcplab.render.page import html
from mcplab.render.plain import text
from mcplab.render.segments import Segments, merge, segments, within

__all__ = [
    "Arrow", "Facts", "Segments", "Step", "arrows", "facts", "html", "merge", "mermaid", "segments", "steps", "text",
    "within",
]  # fmt: skip
