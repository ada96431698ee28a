"""The transport display, as text and HTML: who spoke to whom in which protocol, what each channel carried."""

from __future__ import annotations

from mcplab.render.facts import Facts, facts
from mcplab.render.page import html
from mcplab.render.plain import text
from mcplab.render.segments import Segments, merge, segments

__all__ = ["Facts", "Segments", "facts", "html", "merge", "segments", "text"]
