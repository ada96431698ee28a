"""The tables of a trace (design, section 5), each made when it is first asked for."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pandas as pd
from msgspec import UNSET

from mcplab.channels import Marks
from mcplab.formats.columns import Events
from mcplab.frames import activity, connections, declared, direct, messages, table, transport
from mcplab.frames.links import Link, links
from mcplab.frames.sparse import Sparse
from mcplab.frames.wire import Wire
from mcplab.model import Record

__all__ = ["Tables"]


class Tables:
    """All tables of one record, under the name that the trace has where it is shown."""

    def __init__(self, record: Record, name: str) -> None:
        self.record = record
        self.name = name

    @staticmethod
    def empty(name: str) -> pd.DataFrame:
        """The table of that name without rows."""
        return table.empty(name)

    @cached_property
    def wire(self) -> Wire:
        """The walk that all tables are made from."""
        return Wire(self.record)

    @cached_property
    def ts(self) -> np.ndarray:
        """Microseconds since 1970 of each event; table.NO_TIME where it has none that can be read."""
        return table.parse_times([event.ts if isinstance(event.ts, str) else None for event in self.record.events])

    @cached_property
    def links(self) -> dict[str, Link]:
        """What each connection said about itself."""
        return links(self.wire, self.name)

    @cached_property
    def instance(self) -> dict[str, str]:
        """Connection -> instance."""
        return {name: link.instance for name, link in self.links.items()}

    @cached_property
    def marks(self) -> Marks:
        """What a timeline is made of."""
        return activity.marks(self.wire, self.links, self.ts)

    @cached_property
    def clockless(self) -> int:
        """How many events have a time stamp that cannot be read."""
        given = sum(event.ts is not UNSET and event.ts is not None for event in self.record.events)
        return given - int((self.ts != table.NO_TIME).sum())

    @cached_property
    def direct(self) -> pd.DataFrame | None:
        """The table of messages without a walk over event objects; None where it takes one."""
        events = self.record.events
        if not isinstance(events, Events) or "wire" in self.__dict__:
            return None
        return direct.messages(events.columns, self.record, self.name)

    @property
    def sparse(self) -> Sparse | None:
        """What ``wire`` knows, of a big plain trace that was not walked yet; None where it takes that walk."""
        events = self.record.events
        if not isinstance(events, Events) or "wire" in self.__dict__:
            return None
        walked = direct.walked(events.columns, self.record, self.name)
        return None if walked is None else Sparse(self.record, walked)

    @cached_property
    def messages(self) -> pd.DataFrame:
        if self.direct is not None:
            return self.direct
        return messages.messages(self.wire, self.name, self.instance, self.ts)

    @cached_property
    def exchanges(self) -> pd.DataFrame:
        return messages.exchanges(self.wire, self.name, self.instance, self.ts)

    @cached_property
    def connections(self) -> pd.DataFrame:
        return connections.connections(self.wire, self.name, self.links, self.ts)

    @cached_property
    def declarations(self) -> pd.DataFrame:
        return declared.declarations(self.wire, self.name, self.links)

    @cached_property
    def channels(self) -> pd.DataFrame:
        return activity.channel_table(self.wire, self.name, self.links)

    @cached_property
    def http(self) -> pd.DataFrame:
        return transport.http(self.wire, self.name, self.instance, self.ts)

    @cached_property
    def events(self) -> pd.DataFrame:
        return transport.events(self.wire, self.name, self.instance, self.ts)

    @cached_property
    def unparsed(self) -> pd.DataFrame:
        return transport.unparsed(self.wire, self.name)
