"""When a gate applies: tests on members of one message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

_MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class MemberTest:
    """One member of a message and what it must be.

    Without ``values`` the member must be there and not null: a null ``tools`` asks for no tools. With ``values`` it
    must equal one of them, or be missing where ``or_absent`` allows that.
    """

    member: tuple[str, ...]
    values: tuple[Any, ...] = ()
    or_absent: bool = False

    def holds(self, message: Any) -> bool:
        found = message
        for key in self.member:
            if not isinstance(found, Mapping) or key not in found:
                found = _MISSING
                break
            found = found[key]
        if found is _MISSING:
            return self.or_absent
        if not self.values:
            return found is not None
        return any(type(found) is type(value) and found == value for value in self.values)

    def __str__(self) -> str:
        name = ".".join(self.member)
        if not self.values:
            return f"{name} is there"
        text = f"{name} is {' or '.join(str(value) for value in self.values)}"
        return f"{text} or absent" if self.or_absent else text


@dataclass(frozen=True, slots=True)
class Condition:
    """Holds for a message when any of its tests does.

    ``holds`` takes the JSON object of the message: a request or an entry of ``inputRequests`` (member ``params...``),
    or the answer (members ``result...``, ``error...``).
    """

    tests: tuple[MemberTest, ...]

    def holds(self, message: Any) -> bool:
        return any(test.holds(message) for test in self.tests)

    def __str__(self) -> str:
        return ", or ".join(str(test) for test in self.tests)


def condition(entries: Sequence[Mapping[str, Any]] | None) -> Condition | None:
    """The condition that a TOML ``when`` describes; None where there is none: it always applies."""
    if not entries:
        return None
    return Condition(
        tuple(
            MemberTest(tuple(entry["member"].split(".")), tuple(entry.get("in", ())), entry.get("or_absent", False))
            for entry in entries
        )
    )
