"""Panels for a notebook: a capture to look into, and one to watch while it grows. Needs ``mcplab[lab]``."""

from __future__ import annotations

from mcplab.widgets.browser import Panel
from mcplab.widgets.watching import Watch, watch

__all__ = ["Panel", "Watch", "panel", "watch"]


def panel(traces: object) -> Panel:
    """A panel on a Trace or Traces: strips of an instance, and each event's own text on a click.

    A click on a segment lists what fell into it and shows the event that its symbol stands for. Steps and their length,
    channels and methods can be chosen; the counts are always those of the whole instance.

    Raises:
        TraceError: there is no capture, or it holds nothing.
    """
    return Panel(traces)
