"""Which checks look at which event: triggers of the catalogue turned into a table per revision.

A trigger is ``<who> <kind> [<method> ...]``: who is client, server or any; kind is request, notification, result,
error, call (request or notification), answer (result or error), invalid, message (any of those) or text (what is no
JSON-RPC); methods may end in ``*``; none means all. Triggers without a party: ``open``, ``close``, ``end`` (of the
capture, for every connection), ``http request``, ``http response``, ``http end``, ``sse``. For answers the method is
the one answered; ``-`` stands for an answer whose request is not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from importlib import import_module
from itertools import count
from typing import Final, NamedTuple

from mcplab.model import SpecError
from mcplab.rulebook.catalogue import Rule
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.keys import CHANGING, READS
from mcplab.rulebook.outcome import Outcome
from mcplab.spec import method_names

Check = Callable[[Fact], Outcome]
Entry = tuple[int, Check]

_KINDS: Final = {
    "request": ("request",), "notification": ("notification",), "result": ("result",), "error": ("error",),
    "invalid": ("invalid",), "text": ("text",), "call": ("request", "notification"), "answer": ("result", "error"),
    "message": ("request", "notification", "result", "error", "invalid"),
}  # fmt: skip
_ALONE: Final = {
    "open": "open", "close": "close", "end": "end", "sse": "sse", "http request": "http-request",
    "http get": "http-get", "http response": "http-response", "http end": "http-end",
}  # fmt: skip
_WHO: Final = {"client": ("client",), "server": ("server",), "any": ("client", "server")}
NO_METHOD: Final = "-"
OTHER_METHOD: Final = "*"


def function(rule: Rule) -> Check | None:
    """The check of a rule; None where it has none.

    Raises:
        SpecError: there is no such function.
    """
    if not rule.check:
        return None
    module, _, name = rule.check.partition(".")
    try:
        found = getattr(import_module(f"mcplab.rulebook.checks.{module}"), name)
    except (ImportError, AttributeError):
        raise SpecError(f"rule {rule.id}: there is no check mcplab/rulebook/checks/{module}.py:{name}") from None
    return found(**rule.args) if rule.args else found


class Trigger:
    """One line of ``on``, taken apart."""

    def __init__(self, text: str) -> None:
        self.keys: list[tuple[str, str]] = []  # (sender, kind)
        self.methods: tuple[str, ...] = ()
        if text in _ALONE:
            self.keys = [("", _ALONE[text])]
            return
        who, _, rest = text.partition(" ")
        kind, _, names = rest.partition(" ")
        if who not in _WHO or kind not in _KINDS:
            raise SpecError(f"trigger {text!r}: write '<client|server|any> <kind> [method ...]' (docs/rules.md)")
        self.keys = [(sender, one) for sender in _WHO[who] for one in _KINDS[kind]]
        self.methods = tuple(names.split())

    def takes(self, name: str) -> bool:
        """Does it look at messages of that method (``-``: none, ``*``: one that no rule and no revision names)?"""
        if not self.methods:
            return True
        return any(name == wanted or (wanted.endswith("*") and fnmatchcase(name, wanted)) for wanted in self.methods)


class Group:
    """Checks whose outcome follows from the same key (keys.py); those with ``unless`` only without these texts."""

    __slots__ = ("_parted", "changing", "entries", "number", "reads", "unless")

    def __init__(self, number: int, reads: tuple[str, ...], entries: list[tuple[Entry, tuple[bytes, ...]]]) -> None:
        self.number = number
        self.reads = reads
        self.changing = tuple(each for each in reads if each in CHANGING)
        self.entries = tuple(entry for entry, _ in entries)
        texts = dict.fromkeys(texts for _, texts in entries if texts)
        self.unless = tuple((1 << bit, _search(each)) for bit, each in enumerate(texts))
        bits = {each: 1 << bit for bit, each in enumerate(texts)}
        self._parted = [self._part(entries, bits, mask) for mask in range(1 << len(texts))]

    @staticmethod
    def _part(
        entries: list[tuple[Entry, tuple[bytes, ...]]], bits: dict[tuple[bytes, ...], int], mask: int
    ) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
        each = tuple(entry for entry, texts in entries if texts and bits[texts] & mask)
        return tuple(entry for entry, _ in entries if entry not in each), each

    def mask(self, raw: bytes, hidden: bool) -> int:
        """Which of the texts are there, a bit each; all where they may be hidden."""
        if hidden:
            return (1 << len(self.unless)) - 1
        found = 0
        for bit, search in self.unless:
            if search(raw) is not None:
                found |= bit
        return found

    def parted(self, mask: int) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
        """The checks that follow from the key, and those that have to look at the message."""
        return self._parted[mask]


class Needing(NamedTuple):
    """Checks that look at messages with one of some texts (none given: at all). ``pure``: the outcome follows from the
    message itself and what the rule reads."""

    search: Callable[[bytes], object]
    entries: tuple[Entry, ...]
    pure: bool


class Entries:
    """The checks of one kind of event: by what they read (keys.py), by a text that they need, and the rest.

    ``reads``: what all of them read that say it, besides what changes on the way and the message itself.
    """

    __slots__ = ("across", "every", "groups", "needing", "number", "raw", "reads", "rest")

    def __init__(
        self, numbers: Iterator[int], rules: list[Rule], entries: tuple[Entry, ...], kind: str, named: bool
    ) -> None:
        self.every = entries
        self.across: tuple[Entry, ...] = ()  # of rules that stand for the other era
        groups: dict[str, list[tuple[Entry, tuple[bytes, ...]]]] = {}
        reads: dict[str, set[str]] = {}
        needing: dict[tuple[tuple[bytes, ...], bool], list[Entry]] = {}
        rest: list[Entry] = []
        steady: set[str] = set()
        for entry in entries:
            rule = rules[entry[0]]
            read = _of(rule.reads, kind)
            if read and not named and "envelope" in read:
                read = ()
            steady.update(read)
            texts, unless = _of(rule.contains, kind), _of(rule.unless, kind)
            if texts or "message" in read:
                needing.setdefault((_bytes(texts), bool(read)), []).append(entry)
            elif read:
                name = next((each for each in CHANGING if each in read), "")
                groups.setdefault(name, []).append((entry, _bytes(unless)))
                reads.setdefault(name, set()).update(read)
            else:
                rest.append(entry)
        self.groups = tuple(
            Group(next(numbers), tuple(each for each in READS if each in reads[name]), group)
            for name, group in groups.items()
        )
        self.needing = tuple(Needing(_search(texts), tuple(group), pure) for (texts, pure), group in needing.items())
        self.rest = tuple(rest)
        self.number = next(numbers, -1)
        self.reads = tuple(each for each in READS if each in steady and each not in CHANGING and each != "message")
        self.raw = bool(needing) or any(group.unless for group in self.groups)

    def with_rest(self, rest: tuple[Entry, ...]) -> Entries:
        """The same with other checks that are called each time."""
        self.rest = rest
        return self


def _of(words: Mapping[str, tuple[str, ...]], kind: str) -> tuple[str, ...]:
    return words.get(kind, words.get("", ()))


def _bytes(texts: tuple[str, ...]) -> tuple[bytes, ...]:
    return tuple(text.encode() for text in texts)


def _search(texts: tuple[bytes, ...]) -> Callable[[bytes], object]:
    return re.compile(b"|".join(map(re.escape, texts))).search


class Plan:
    """The checks of some rules, found by (sender, kind) and method, for each revision."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules: list[Rule] = []
        self._checks: list[Check] = []
        for rule in rules:
            check = function(rule)
            if check is not None:
                self.rules.append(rule)
                self._checks.append(check)
        self._triggers = [[Trigger(text) for text in rule.on] for rule in self.rules]
        self._across = [[Trigger(text) for text in rule.across] for rule in self.rules]
        self._known = frozenset(method_names()) | {
            name for triggers in self._triggers for trigger in triggers for name in trigger.methods
        }
        self._wildcards = sorted((name for name in self._known if name.endswith("*")), key=len, reverse=True)
        self._tables: dict[tuple[str, str, str, str | None], Entries] = {}
        self._numbers = count()
        self._of: dict[str | None, list[int]] = {}
        self._bulks: dict[tuple[tuple[int, ...], tuple[int, ...]], int] = {}
        self.bulks: list[tuple[tuple[int, ...], tuple[int, ...]]] = []  # (rules kept, rules unknown)

    def _bucket(self, name: str) -> str:
        """What stands for a method that nothing names: the wildcard that takes it, else ``*``."""
        return next((prefix for prefix in self._wildcards if name.startswith(prefix[:-1])), OTHER_METHOD)

    def checks(self, revision: str, sender: str, kind: str, name: str | None) -> Entries:
        """The checks for one event, each with the number of its rule, in the order of the catalogue."""
        found = self._tables.get((revision, sender, kind, name))
        if found is not None:
            return found
        method = NO_METHOD if name is None else name if name in self._known else self._bucket(name)
        key = (revision, sender, kind, method)
        found = self._tables.get(key)
        if found is None:
            entries = tuple(
                (number, self._checks[number])
                for number, rule in enumerate(self.rules)
                if revision in rule.revisions
                and any((sender, kind) in trigger.keys and trigger.takes(method) for trigger in self._triggers[number])
            )
            found = self._tables[key] = Entries(self._numbers, self.rules, entries, kind, method == name)
            found.across = tuple(
                (number, self._checks[number])
                for number, triggers in enumerate(self._across)
                if revision not in self.rules[number].revisions
                and any((sender, kind) in trigger.keys and trigger.takes(method) for trigger in triggers)
            )
            if name is None:
                self._tables[revision, sender, kind, None] = found
        return found

    def numbers(self, revision: str | None) -> list[int]:
        """Of the rules that a revision has; None: all."""
        found = self._of.get(revision)
        if found is None:
            numbered = enumerate(self.rules)
            found = self._of[revision] = [n for n, rule in numbered if revision is None or revision in rule.revisions]
        return found

    def bulk(self, kept: tuple[int, ...], unknown: tuple[int, ...]) -> int:
        """A number for a set of outcomes, so that it can be counted in one go."""
        number = self._bulks.get((kept, unknown))
        if number is None:
            number = self._bulks[kept, unknown] = len(self.bulks)
            self.bulks.append((kept, unknown))
        return number
