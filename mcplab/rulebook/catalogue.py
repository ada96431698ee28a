"""The rules as data: ``mcplab/spec/rules/*.toml``, one file a topic (docs/rules.md explains every member)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any, Final

from mcplab.model import SpecError
from mcplab.spec import REVISIONS
from mcplab.spec.files import load
from mcplab.spec.revisions import word_at

LEVELS: Final = ("MUST", "MUST NOT", "SHOULD", "SHOULD NOT")
CONFIDENCES: Final = ("high", "medium", "low")
PARTIES: Final = ("client", "server", "either")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the catalogue.

    Attributes:
        level, confidence, section: by revision; ``level`` is MUST, MUST NOT, SHOULD or SHOULD NOT.
        revisions: the published revisions that it stands for, oldest first.
        needs: what a capture must hold for a verdict: ``messages``, ``start`` (the connection's beginning),
            ``negotiation`` (versions and declarations), ``end``, ``http-headers``, ``http-status``, ``stdio-lines``...
        on: the triggers that call the check (mcplab/rulebook/plan.py).
        check: ``module.function`` below mcplab/rulebook/checks; with ``args`` the function makes the check.
        kept, broken: era or revision (``""``: any) -> example script (mcplab/rulebook/examples.py).
        also: by revision, other rules that the broken example breaks by the same act.
        kept_also: the same for the kept example: the rule's own cause, where only another rule's breach calls on it.
        given: its broken example hides the revision, so it is judged with the revision given.
        reads: kind of message (``""``: any) -> names of keys.py from which its outcome follows.
        contains: kind of message (``""``: any) -> texts, one of which it must hold for the rule to apply to it at all.
        across: triggers for messages of the other era that this rule is about too (an initialize, for 2026-07-28).
        unless: the same -> texts; with one of them the outcome follows from ``reads`` and the message itself.
    """

    id: str
    title: str
    party: str
    level: Mapping[str, str]
    confidence: Mapping[str, str]
    section: Mapping[str, str]
    revisions: tuple[str, ...]
    needs: tuple[str, ...] = ("messages",)
    on: tuple[str, ...] = ()
    check: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)
    kept: Mapping[str, str] = field(default_factory=dict)
    broken: Mapping[str, str] = field(default_factory=dict)
    also: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kept_also: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    given: bool = False
    reads: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    contains: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unless: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    across: tuple[str, ...] = ()
    note: str = ""

    def example(self, which: str, revision: str) -> str | None:
        """The kept or broken example script that stands for a revision; None where there is none."""
        scripts = self.kept if which == "kept" else self.broken
        era = "modern" if revision >= "2026-07-28" else "legacy"
        return next((scripts[key] for key in (revision, era, "") if key in scripts), None)


def _by_revision(value: Any, revisions: tuple[str, ...]) -> dict[str, Any]:
    """A word for all revisions, or a table whose keys say from which revision on each word stands."""
    return {revision: word_at(value, revision) for revision in revisions}


def _rule(entry: Mapping[str, Any]) -> Rule:
    since, until = entry.get("since", REVISIONS[0]), entry.get("until", REVISIONS[-1])
    revisions = tuple(entry.get("revisions", [name for name in REVISIONS if since <= name <= until]))
    examples = {
        which: {"": script} if isinstance(script := entry.get(which, {}), str) else dict(script)
        for which in ("kept", "broken")
    }
    reads, contains, unless = (
        found if isinstance(found := entry.get(name, {}), dict) else {"": found}
        for name in ("reads", "contains", "unless")
    )
    try:
        return Rule(
            id=entry["id"],
            title=entry["title"],
            party=entry["party"],
            level=_by_revision(entry["level"], revisions),
            confidence=_by_revision(entry.get("confidence", "high"), revisions),
            section=_by_revision(entry["section"], revisions),
            revisions=revisions,
            needs=tuple(entry.get("needs", ("messages",))),
            on=tuple(entry.get("on", ())),
            check=entry.get("check", ""),
            args=dict(entry.get("args", {})),
            kept=examples["kept"],
            broken=examples["broken"],
            also={name: tuple(also) for name, also in _by_revision(entry.get("also", ()), revisions).items()},
            kept_also={name: tuple(also) for name, also in _by_revision(entry.get("kept_also", ()), revisions).items()},
            given=entry.get("given", False),
            reads={kind: tuple(names.split()) for kind, names in reads.items()},
            contains={kind: tuple(texts) for kind, texts in contains.items()},
            unless={kind: tuple(texts) for kind, texts in unless.items()},
            across=tuple(entry.get("across", ())),
            note=entry.get("note", ""),
        )
    except KeyError as missing:
        raise SpecError(f"rule {entry.get('id', '?')}: {missing.args[0]} is missing") from None


def topics() -> list[str]:
    """The rule files without suffix, sorted."""
    folder = files("mcplab.spec").joinpath("rules")
    return sorted(item.name.removesuffix(".toml") for item in folder.iterdir() if item.name.endswith(".toml"))


@cache
def catalogue() -> dict[str, Rule]:
    """Every rule by id, in the order of the files.

    Raises:
        SpecError: a rule's entry is not complete, or two have one id.
    """
    found: dict[str, Rule] = {}
    for topic in topics():
        for entry in load(f"rules/{topic}.toml")["rule"]:
            rule = _rule(entry)
            if rule.id in found:
                raise SpecError(f"rule {rule.id} stands twice in mcplab/spec/rules/")
            found[rule.id] = rule
    return found


def find(name: str) -> Rule:
    """One rule.

    Raises:
        SpecError: no rule has that id; the message names those that look like it.
    """
    rules = catalogue()
    if name in rules:
        return rules[name]
    like = [known for known in rules if name.rpartition(".")[2] in known or known.startswith(f"{name}.")]
    like = like or get_close_matches(name, list(rules))
    hint = f"did you mean {', '.join(like[:5])}?" if like else "mcplab rules lists them all"
    raise SpecError(f"no rule {name!r}: {hint}")
