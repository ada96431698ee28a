"""The shape of every method's params and result, by revision: required members, JSON types, constants.

``shapes.json`` holds them (scripts/shapes.py writes it from the published schemas); each is compiled once into plain
functions. Objects are open, as the schemas have them: an unknown member is no fault. Formats and limits of numbers are
not looked at.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any, Final

from mcplab.model import ABSENT
from mcplab.spec.revisions import revision_data

Shape = Callable[[Any, str], list[str]]
"""What is wrong with a value at a place; [] where it fits."""

MAX_DEPTH: Final = 64


@cache
def _data() -> dict[str, Any]:
    return json.loads(files("mcplab.spec").joinpath("shapes.json").read_text(encoding="utf-8"))


def _is_integer(value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())


_WORDS: Final[dict[str, Callable[[Any], bool]]] = {
    "any": lambda value: True,
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "integer": _is_integer,
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
}


def _word(name: str) -> Shape:
    test = _WORDS[name]

    def shape(value: Any, at: str) -> list[str]:
        return [] if test(value) else [f"{at} is not of type {name}"]

    return shape


def _constant(allowed: list[Any]) -> Shape:
    def shape(value: Any, at: str) -> list[str]:
        if any(type(value) is type(one) and value == one for one in allowed):
            return []
        return [f"{at} is none of {', '.join(json.dumps(one) for one in allowed)}"]

    return shape


def _list(inner: Shape) -> Shape:
    def shape(value: Any, at: str) -> list[str]:
        if not isinstance(value, list):
            return [f"{at} is not an array"]
        return [wrong for n, one in enumerate(value) for wrong in inner(one, f"{at}[{n}]")]

    return shape


def _map(inner: Shape) -> Shape:
    def shape(value: Any, at: str) -> list[str]:
        if not isinstance(value, dict):
            return [f"{at} is not an object"]
        return [wrong for key, one in value.items() for wrong in inner(one, f"{at}[{json.dumps(key)}]")]

    return shape


def _members(members: dict[str, Shape]) -> Shape:
    needed = [name for name in members if not name.endswith("?")]
    known = {name.removesuffix("?"): inner for name, inner in members.items()}

    def shape(value: Any, at: str) -> list[str]:
        if not isinstance(value, dict):
            return [f"{at} is not an object"]
        wrong = [f"{at}.{name} is absent" for name in needed if name not in value]
        for name, inner in known.items():
            if name in value:
                wrong += inner(value[name], f"{at}.{name}")
        return wrong

    return shape


def _any_of(inner: list[Shape]) -> Shape:
    def shape(value: Any, at: str) -> list[str]:
        best: list[str] | None = None
        for one in inner:
            wrong = one(value, at)
            if not wrong:
                return []
            best = wrong if best is None or len(wrong) < len(best) else best
        return best or []

    return shape


def _all_of(inner: list[Shape]) -> Shape:
    def shape(value: Any, at: str) -> list[str]:
        return [wrong for one in inner for wrong in one(value, at)]

    return shape


class _Compiler:
    """Shapes of one revision; a type that names itself is looked up when it is used."""

    def __init__(self, types: dict[str, Any]) -> None:
        self.types = types
        self.made: dict[str, Shape] = {}

    def shape(self, node: Any) -> Shape:
        if isinstance(node, str):
            return self._named(node[1:]) if node.startswith("@") else _word(node)
        if isinstance(node, list):
            return _any_of([self.shape(one) for one in node])
        if "is" in node:
            return _constant(node["is"])
        if "list" in node:
            return _list(self.shape(node["list"]))
        if "map" in node:
            return _map(self.shape(node["map"]))
        if "all" in node:
            return _all_of([self.shape(one) for one in node["all"]])
        return _members({name: self.shape(inner) for name, inner in node["of"].items()})

    def _named(self, name: str) -> Shape:
        def shape(value: Any, at: str) -> list[str]:
            if at.count(".") + at.count("[") > MAX_DEPTH:
                return []
            made = self.made.get(name)
            if made is None:
                made = self.made[name] = self.shape(self.types[name])
            return made(value, at)

        return shape


@cache
def _compiled(revision: str) -> tuple[dict[str, tuple[bool, Shape]], dict[str, Shape]]:
    revision_data(revision)
    data = _data()[revision]
    maker = _Compiler(data["types"])
    params = {name: (entry["required"], maker.shape(entry["shape"])) for name, entry in data["params"].items()}
    results = {name: maker.shape(entry) for name, entry in data["results"].items()}
    return params, results


def params_problems(revision: str, method: str, params: Any) -> list[str] | None:
    """What is wrong with the params of a request or notification; None where the revision's schema has no such method.

    ``params``: a JSON value, or ``ABSENT``.

    Raises:
        SpecError: no such revision.
    """
    entry = _compiled(revision)[0].get(method)
    if entry is None:
        return None
    if params is ABSENT:
        return ["params is absent"] if entry[0] else []
    return entry[1](params, "params")


def result_problems(revision: str, method: str, result: Any) -> list[str] | None:
    """What is wrong with a complete result of a request; None where the revision's schema has no such request.

    A task (2025-11-25) and a result that asks for input (2026-07-28) have shapes of their own and are not meant here.

    Raises:
        SpecError: no such revision.
    """
    shape = _compiled(revision)[1].get(method)
    return None if shape is None else shape(result, "result")
