"""The panel: strips of one instance with filters, and the list of its events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from datetime import datetime
from html import escape
from typing import Any, Final

import msgspec
import numpy as np

from mcplab.model import MCPLabError, TraceError
from mcplab.render import Segments, segments
from mcplab.render.page import block, framed
from mcplab.render.plain import clock
from mcplab.told import safe
from mcplab.widgets.view import View

try:
    import ipywidgets as ui
except ImportError as error:
    raise MCPLabError("panels need ipywidgets, which is not installed: pip install 'mcplab[lab]'") from error

PAGE: Final = 200
"""Events listed at a time: a browser slows down with more."""
LONGEST: Final = 20_000
"""Characters of a message that are shown."""


_CLICK: Final = """
var i = event.target.closest('.strip i');
var to = i && this.closest('.mcplab-panel')?.querySelector('.mcplab-pick input');
if (to) {
  to.value = i.parentNode.dataset.row + ':' + Array.prototype.indexOf.call(i.parentNode.children, i);
  to.dispatchEvent(new Event('input', {bubbles: true}));
  to.dispatchEvent(new Event('change', {bubbles: true}));
}"""
"""Tells the hidden field which segment was clicked: its channel's number and its own."""
_PICKS: Final = f' onclick="{escape(_CLICK)}"'


class Panel(ui.VBox):
    """Strips of one instance of a capture, with filters; an event that is clicked shows its text.

    A click on a segment lists what fell into it and shows the event that its symbol stands for; ``pick`` does the same.

    ``trace``, ``instance``, ``steps``, ``seconds``, ``channels``, ``methods``, ``page``, ``events``: the controls
    (ipywidgets), which code may set too. ``display_html`` and ``raw_html`` hold what is shown.
    """

    def __init__(self, traces: Any, *, end: Any = None) -> None:
        captures = [traces] if hasattr(traces, "raw") else list(traces)
        if not captures:
            raise TraceError("no capture to show")
        self._captures = captures
        self._views: dict[int, View] = {}
        self._quiet = False
        self.end = end
        self.picked: tuple[str, Any, float | None] | None = None
        self._strip: Segments | None = None
        wide = ui.Layout(width="46em", max_width="100%")  # a capture's whole name
        self.trace = ui.Dropdown(description="trace", options=_numbered(captures), layout=wide)
        self.instance = ui.Dropdown(description="instance", layout=wide)
        self.steps = ui.BoundedIntText(60, min=1, max=600, description="steps", layout=ui.Layout(width="11em"))
        self.seconds = ui.BoundedFloatText(
            1.0, min=0.001, max=1e7, step=0.5, description="of seconds", layout=ui.Layout(width="13em")
        )
        self.channels = ui.SelectMultiple(description="channels", rows=5, layout=ui.Layout(width="28em"))
        self.methods = ui.SelectMultiple(description="methods", rows=5, layout=ui.Layout(width="32em"))
        self.page = ui.BoundedIntText(1, min=1, max=1, description="page", layout=ui.Layout(width="11em"))
        self.indented = ui.Checkbox(False, description="indented", indent=False, layout=ui.Layout(width="8em"))
        self.events = ui.Select(rows=10, layout=ui.Layout(width="99%"), style={"description_width": "0"})
        self.events.add_class("mcplab-events")
        self.clicked = ui.Text(layout=ui.Layout(display="none"))
        self.clicked.add_class("mcplab-pick")
        self.unpick = ui.Button(description="all segments", layout=ui.Layout(width="9em", display="none"))
        self.display_html = ui.HTML()
        self.listed = ui.HTML()
        self.raw_html = ui.HTML()
        for control, begins in (
            (self.trace, self._new_trace), (self.instance, self._new_instance), (self.channels, self._filtered),
            (self.methods, self._filtered), (self.steps, self._filtered), (self.seconds, self._filtered),
        ):  # fmt: skip
            control.observe(lambda _, begins=begins: self._chosen(begins), "value")
        self.clicked.observe(lambda _: self._click(), "value")
        self.unpick.on_click(lambda _: self._chosen(self._filtered))
        self.page.observe(lambda _: self._list(), "value")
        self.events.observe(lambda _: self._show(), "value")
        self.indented.observe(lambda _: self._show(), "value")
        super().__init__([
            ui.HBox([self.trace, self.instance, self.steps, self.seconds], layout=ui.Layout(flex_flow="row wrap")),
            self.display_html,
            ui.HBox([self.channels, self.methods], layout=ui.Layout(flex_flow="row wrap")),
            ui.HBox([self.page, self.listed, self.unpick, self.indented, self.clicked]),
            ui.HTML("<style>.mcplab-events select{font-family:monospace}</style>"),
            self.events,
            self.raw_html,
        ])  # fmt: skip
        self.add_class("mcplab-panel")
        self._new_trace()

    def __repr__(self) -> str:
        return f"<Panel: {len(self._captures)} captures>"

    def _repr_mimebundle_(self, **how: Any) -> dict[str, str] | None:
        """Where no widgets can be shown, the display that the panel begins with; there nothing can be clicked."""
        bundle = super()._repr_mimebundle_(**how)
        return None if bundle is None else {**bundle, "text/html": self.display_html.value.replace(_PICKS, "")}

    @property
    def view(self) -> View:
        """The chosen capture."""
        at = int(self.trace.value)
        if at not in self._views:
            self._views[at] = View(self._captures[at])
        return self._views[at]

    def replace(self, trace: Any) -> None:
        """Show this capture in place of the chosen one: the same capture, grown. Filters and choices stay."""
        at = int(self.trace.value)
        self._captures[at] = trace
        self._views.pop(at, None)
        self._new_trace()

    def redraw(self) -> None:
        """The strip anew: other steps, or with ``end="now"`` time that has passed."""
        if not self._quiet and self.instance.value is not None:
            self.display_html.value = framed(self._strips())

    def pick(self, channel: str, segment: int) -> None:
        """List what fell into a segment of a channel (0: the first that is shown), and show what it stands for.

        Raises:
            TraceError: there is no such channel or segment.
        """
        strip = self._strip
        if strip is None or channel not in strip.cells or not 0 <= segment < strip.count:
            raise TraceError(f"no segment {segment} on a channel {channel!r} in what the panel shows")
        self.picked = channel, strip.starts[segment], strip.seconds
        self._filtered()
        if len(self._at):
            chosen = self.view.strongest(self._at)
            self.page.value = 1 + int(np.flatnonzero(self._at == chosen)[0]) // PAGE
            self.events.value = chosen

    def _click(self) -> None:
        row, colon, segment = self.clicked.value.partition(":")
        if not (colon and row.isdecimal() and segment.isdecimal()) or self.instance.value is None:
            return
        channels = self.view.facts(self.instance.value).channels
        self.clicked.value = ""  # so that the same segment can be clicked again
        if int(row) < len(channels) and self._strip is not None and channels[int(row)].channel in self._strip.cells:
            self.pick(channels[int(row)].channel, int(segment))

    # Each step resets what depends on it and goes on to the next: trace, instance, filters, list, event.

    @contextmanager
    def _still(self) -> Any:
        """Changes that this code makes itself are no wishes of the user."""
        before, self._quiet = self._quiet, True
        try:
            yield
        finally:
            self._quiet = before

    def _chosen(self, begins: Callable[[], None]) -> None:
        """Another choice than before: the segment that was picked is none of it."""
        if not self._quiet:
            self.picked = None
            begins()

    def _new_trace(self) -> None:
        names = self.view.instances
        with self._still():
            _offer(self.instance, [(safe(name), name) for name in names])
        self._new_instance()

    def _new_instance(self) -> None:
        with self._still():
            if self.instance.value is None:
                self.channels.options = self.methods.options = ()
            else:
                one = self.view.facts(self.instance.value)
                _offer(self.channels, [(safe(row.channel), row.channel) for row in one.channels])
                methods = self.view.methods(self.instance.value)
                _offer(self.methods, [(f"{safe(name)[:60]} ({n:,})", name) for name, n in methods])
        self._filtered()

    def _filtered(self) -> None:
        if self.instance.value is None:
            self.display_html.value = framed('<p class="note">nothing was captured yet</p>')
            self._at = self._all = np.empty(0, dtype="int64")
            self._strip = None
        else:
            self._all = self.view.chosen(self.instance.value, self.channels.value, self.methods.value)
            self._at = self._all if self.picked is None else self.view.within(self._all, *self.picked)
            self.display_html.value = framed(self._strips())
        self.unpick.layout.display = "none" if self.picked is None else ""
        with self._still():
            last = self.page.value == self.page.max
            self.page.max = max(1, -(-len(self._at) // PAGE))
            if last and self.end is not None:  # of a capture that grows the last page is the one to see
                self.page.value = self.page.max
        self._list()

    def _strips(self) -> str:
        try:
            strips = segments(
                self.view.marked(self._all),
                self.instance.value,
                steps=self.steps.value,
                step_seconds=self.seconds.value,
                end=self.end,
            )
        except TraceError as error:
            self._strip = None
            return f'<p class="note">{escape(safe(error))}</p>'
        self._strip = strips
        one = self.view.facts(self.instance.value)
        text = block(one, strips, self.channels.value or None, self.end, self._set_apart(strips))
        text = f'<div class="mcplab-picks"{_PICKS}>{text}</div>'
        if self.methods.value:
            text += '<p class="note">the segments show the chosen methods; the counts are of the whole instance</p>'
        return text

    def _set_apart(self, strips: Segments) -> tuple[str, int] | None:
        """Where the picked segment now stands; None: nowhere."""
        if self.picked is None:
            return None
        at = int(strips.starts.get_indexer([self.picked[1]])[0])  # type: ignore[arg-type]
        return (self.picked[0], at) if at >= 0 else None

    def _list(self) -> None:
        if self._quiet:
            return
        begin = (self.page.value - 1) * PAGE
        shown = self._at[begin : begin + PAGE]
        with self._still():
            _offer(self.events, list(zip(self.view.lines(shown), shown.tolist(), strict=True)), first=False)
        end = begin + len(shown)
        where = "" if self.picked is None else f" in the segment from {_moment(self.picked[1])} on {self.picked[0]}"
        listed = f"events {begin + 1 if len(shown) else 0:,} to {end:,} of {len(self._at):,}{where}"
        self.listed.value = f"&ensp;{escape(safe(listed))}&ensp;"
        self._show()

    def _show(self) -> None:
        if self._quiet:
            return
        if self.events.value is None:
            self.raw_html.value = framed('<p class="note">click an event to see its text</p>')
            return
        self.raw_html.value = framed(self._text(int(self.events.value)))

    def _text(self, at: int) -> str:
        row = self.view.frame.iloc[at]
        text = self.view.trace.raw(int(row["seq"]))
        if self.indented.value:
            text = _indented(text)
        more = f"\n… {len(text) - LONGEST:,} more characters" if len(text) > LONGEST else ""
        lines = "\n".join(map(safe, text[:LONGEST].split("\n")))
        head = f"event {row['seq']} on {safe(row['channel'])}, {len(text):,} characters"
        return (
            f'<p class="note">{escape(head)}</p>'
            f'<pre style="white-space:pre-wrap;overflow-wrap:anywhere;max-height:30em">{escape(lines)}{more}</pre>'
        )


def _moment(start: Any) -> str:
    """A time as the display has it, or ``seq 5``."""
    return f"{clock(start)} UTC" if isinstance(start, datetime) else f"seq {start}"


def _numbered(captures: Sequence[Any]) -> list[tuple[str, int]]:
    return [(safe(capture.name), at) for at, capture in enumerate(captures)]


def _offer(control: Any, options: list[tuple[str, Any]], *, first: bool = True) -> None:
    """New options; what was chosen stays chosen where it is still there."""
    chosen = control.value
    if list(control.options) == options:
        return
    values = [value for _, value in options]
    control.options = options
    if isinstance(chosen, tuple):
        control.value = tuple(value for value in chosen if value in values)
    elif chosen in values:
        control.value = chosen
    else:
        control.value = values[0] if values and first else None


def _indented(text: str) -> str:
    """JSON over several lines; numbers, escapes and key order stay as they are. Other text as it is."""
    try:
        return msgspec.json.format(text.encode(), indent=2).decode()
    except (msgspec.DecodeError, UnicodeEncodeError):
        return text
