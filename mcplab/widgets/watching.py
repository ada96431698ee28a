"""A capture watched while it is recorded: read what is new, redraw, once a second."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from html import escape
from pathlib import Path
from typing import Any, Final

import msgspec

from mcplab.formats import native
from mcplab.formats.source import Source
from mcplab.model import Event, MCPLabError, Record, TraceError, Unread
from mcplab.told import safe
from mcplab.traces import Trace
from mcplab.widgets.browser import Panel, ui

EVERY: Final = 1.0
"""Seconds between two looks."""
_BEGIN: Final = 512
"""Bytes by which a file is known again."""


class Tail:
    """The end of a version 1 file that someone else is writing: reads only what is new, whole lines only."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._restart()

    def _restart(self) -> None:
        self._at = 0
        self._line = 0
        self._held = b""
        self._head: bytes = b""
        self._header: dict[str, Any] = {}
        self._file: tuple[int, int] | None = None
        self._begin = b""
        self.events: list[Event] = []
        self.unread: list[Unread] = []

    def more(self) -> bool:
        """Read on; whether anything new was there.

        Raises:
            TraceError: the file is no version 1 trace, or cannot be read. One that is not there yet is no error.
        """
        try:
            with self.path.open("rb") as file:
                facts = os.fstat(file.fileno())
                begin = file.read(_BEGIN)
                same = self._file in (None, (facts.st_dev, facts.st_ino)) and begin.startswith(self._begin)
                if not same or facts.st_size < self._at:
                    self._restart()  # another file, or written anew
                self._file, self._begin = (facts.st_dev, facts.st_ino), begin
                file.seek(self._at)
                data = file.read()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise TraceError(f"{self.path}: cannot be read ({(error.strerror or str(error)).lower()})") from None
        self._at += len(data)
        whole, newline, self._held = (self._held + data).rpartition(b"\n")
        return bool(newline) and self._take(whole + newline)

    def _take(self, lines: bytes) -> bool:
        if not self.events and not self._head and not native.sniff(lines):
            raise TraceError(f"{self.path}: no version 1 trace, and only those can be watched while they grow")
        # the header goes before every piece, so that each is read by the same rules as a whole file
        before = self._head + b"\n" if self._head else b""
        found = native.read(Source(self.path.name, before + lines, self.path.stem))
        shift = self._line - (1 if before else 0)
        self.unread += [msgspec.structs.replace(one, line=one.line + shift) for one in found.unread]
        self._line += lines.count(b"\n")
        if found.header_line:
            self._head, self._header = found.header_line, dict(found.header)
        new = list(found.events)
        if new and self.events and new[0].seq <= self.events[-1].seq:  # unnumbered: the order of the lines counts
            first = self.events[-1].seq + 1
            new = [msgspec.structs.replace(event, seq=first + n) for n, event in enumerate(new)]
        self.events += new
        return bool(new)

    def record(self) -> Record:
        """What was read so far."""
        return Record(self._header, tuple(self.events), tuple(self.unread), native.NAME, (), self.path.stem)


class Memory:
    """A recorder of this process (``live.capture.Capture``): its events are already here."""

    def __init__(self, capture: Any) -> None:
        self._capture = capture
        self._seen = 0

    def more(self) -> bool:
        count = len(self._capture.events)
        grown, self._seen = count != self._seen, count
        return grown

    def record(self) -> Record:
        over_http = any(event.http is not msgspec.UNSET for event in self._capture.events)
        return self._capture.record("streamable-http" if over_http else "stdio")


class Watch(ui.VBox):
    """A panel on a capture that grows. ``stop()`` ends it, the button does, and so does ``close()``.

    ``panel`` holds the controls (missing until the first event), ``running`` says whether it still looks.
    """

    def __init__(self, source: Any, *, every: float = EVERY) -> None:
        self.panel: Panel | None = None
        self._source = source
        self._every = every
        self._task: asyncio.Task[None] | None = None
        self._thread: threading.Thread | None = None
        self._over = threading.Event()
        self._status = ui.HTML("waiting for the first event")
        self._button = ui.Button(description="stop", icon="stop", layout=ui.Layout(width="7em"))
        self._button.on_click(lambda _: self.stop())
        super().__init__([ui.HBox([self._button, self._status])])
        self.tick()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._thread = threading.Thread(target=self._in_thread, name="mcplab-watch", daemon=True)
            self._thread.start()
        else:
            self._task = loop.create_task(self._in_loop())

    @property
    def running(self) -> bool:
        return not self._over.is_set()

    def tick(self) -> bool:
        """Look now; whether anything new was there. What cannot be read is told in the panel and ends the watch."""
        try:
            grown = self._source.more()
            if grown or self.panel is not None:
                self._draw(grown)
            return grown
        except MCPLabError as error:
            self._over.set()
            self._say(f"stopped: {error}")
            return False

    def _draw(self, grown: bool) -> None:
        if grown or self.panel is None:
            trace = Trace(self._source.record())
            if self.panel is None:
                self.panel = Panel(trace, end="now")
                self.children = (*self.children, self.panel)
            else:
                self.panel.replace(trace)
        else:
            self.panel.redraw()  # time passes: the strip moves on
        self._say(f"{len(self._source.record().events):,} events")

    def _say(self, text: str) -> None:
        self._status.value = f"&ensp;{escape(safe(text))}"

    def stop(self) -> None:
        """Look a last time, then no more. Leaves no task and no thread behind."""
        if self._over.is_set():
            return
        self.tick()
        self._over.set()
        self._button.disabled = True
        if self.panel is not None:
            self.panel.end = None  # from now on the strip ends with the last event
            self.panel.redraw()
        if self._task is not None:
            self._task.cancel()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def close(self) -> None:
        self.stop()
        super().close()

    def _pause(self, took: float) -> float:
        """A capture that is slow to draw is drawn less often, so that the kernel has time for other things."""
        return max(self._every, 3 * took)

    async def _in_loop(self) -> None:
        took = 0.0
        while self.running:
            await asyncio.sleep(self._pause(took))
            if self.running:
                begun = time.perf_counter()
                self.tick()
                took = time.perf_counter() - begun

    def _in_thread(self) -> None:
        took = 0.0
        while not self._over.wait(self._pause(took)):
            begun = time.perf_counter()
            self.tick()
            took = time.perf_counter() - begun


def watch(recorder: Any, *, every: float = EVERY) -> Watch:
    """A panel on a capture while it is recorded.

    Args:
        recorder: a ``Recorder``, the path of a version 1 trace that is being written, anything else that has such a
            ``path``, or a ``Capture`` of this process.
        every: seconds between two looks.

    In a notebook it runs in the kernel's own loop, so it draws between cells and while a handshake waits; elsewhere a
    thread does it. Either ends with ``stop()``.

    Raises:
        TraceError: this is none of those.
    """
    if isinstance(recorder, (str, os.PathLike)):
        return Watch(Tail(recorder), every=every)
    if isinstance(path := getattr(recorder, "path", None), (str, os.PathLike)):
        return Watch(Tail(path), every=every)
    if hasattr(recorder, "events") and hasattr(recorder, "record"):
        return Watch(Memory(recorder), every=every)
    raise TraceError(f"a {type(recorder).__name__} cannot be watched: give a path or a recorder")
