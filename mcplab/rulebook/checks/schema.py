"""Does a value conform to a JSON Schema? Only what is certain is said (2025-11-25 basic/index#json-schema-usage).

A schema is a conjunction: a keyword that this module knows and that fails settles it. Where a keyword that it leaves
out (patterns, references to other documents, unevaluated members) might still fail, it cannot tell. Formats are
annotations unless a dialect says otherwise, and are not judged. The default dialect is 2020-12.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import unquote

DEPTH: Final = 64
_TYPES: Final[dict[str, Callable[[Any], bool]]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: _number(value),
    "integer": lambda value: _number(value) and (isinstance(value, int) or value.is_integer()),
}
_LEFT_OUT: Final = (
    "$dynamicRef", "$recursiveRef", "contains", "dependencies", "dependentSchemas", "patternProperties",
    "propertyNames", "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
_OLD: Final = re.compile(r"draft-0[3-7]")
CANNOT_TELL: Final = "cannot tell"


def conforms(schema: Any, value: Any) -> str | None:
    """None: it conforms. ``CANNOT_TELL``: this module does not know. Else what is wrong, in a few words."""
    old = isinstance(schema, dict) and isinstance(schema.get("$schema"), str) and bool(_OLD.search(schema["$schema"]))
    return _Judge(schema, old).say(schema, value, "", 0)


def same(one: Any, other: Any) -> bool:
    """Equality of JSON values: ``1`` is ``1.0`` and not ``true``."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


class _Judge:
    def __init__(self, root: Any, old: bool) -> None:
        self.root = root
        self.old = old  # up to draft-07 what stands beside $ref is ignored

    def say(self, schema: Any, value: Any, at: str, depth: int) -> str | None:
        if schema is True or (isinstance(schema, dict) and not schema):
            return None
        if schema is False:
            return f"{at or 'the value'} is not allowed"
        if not isinstance(schema, dict) or depth > DEPTH:
            return CANNOT_TELL
        unsure = False
        for said in self._keywords(schema, value, at, depth + 1):
            if said is CANNOT_TELL:
                unsure = True
            elif said is not None:
                return said
        return CANNOT_TELL if unsure else None

    def _keywords(self, schema: Mapping[str, Any], value: Any, at: str, depth: int) -> Iterator[str | None]:
        if "$ref" in schema:
            found = self._referred(schema["$ref"])
            yield CANNOT_TELL if found is CANNOT_TELL else self.say(found, value, at, depth)
            if self.old:
                return
        if any(name in schema for name in _LEFT_OUT):
            yield CANNOT_TELL
        yield from self._plain(schema, value, at)
        if isinstance(value, dict):
            yield from self._object(schema, value, at, depth)
        elif isinstance(value, list):
            yield from self._array(schema, value, at, depth)
        yield from self._composed(schema, value, at, depth)

    def _referred(self, ref: Any) -> Any:
        if not isinstance(ref, str) or not ref.startswith("#") or (len(ref) > 1 and ref[1] != "/"):
            return CANNOT_TELL
        found = self.root
        for step in ref[2:].split("/") if len(ref) > 1 else ():
            step = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict) and step in found:
                found = found[step]
            else:
                return CANNOT_TELL
            if isinstance(found, dict) and "$id" in found:
                return CANNOT_TELL  # a document of its own: what is below it may refer to it
        return found

    def _plain(self, schema: Mapping[str, Any], value: Any, at: str) -> Iterator[str | None]:
        name = at or "the value"
        if "type" in schema:
            wanted = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
            if isinstance(wanted, list) and all(one in _TYPES for one in wanted):
                if not any(_TYPES[one](value) for one in wanted):
                    yield f"{name} is not of type {' or '.join(wanted)}"
            else:
                yield CANNOT_TELL
        if isinstance(schema.get("enum"), list) and not any(same(value, one) for one in schema["enum"]):
            yield f"{name} is none of its enum"
        if "const" in schema and not same(value, schema["const"]):
            yield f"{name} is not its const"
        if _number(value):
            yield from self._ranged(schema, value, name, "minimum", "maximum")
            for key in ("exclusiveMinimum", "exclusiveMaximum"):
                bound = schema.get(key)
                if bound is not None and not _number(bound):
                    yield CANNOT_TELL  # a flag of draft-04
                elif bound is not None and (value <= bound if key == "exclusiveMinimum" else value >= bound):
                    yield f"{name} is out of {key}"
            factor = schema.get("multipleOf")
            if factor is not None:
                whole = type(factor) is int and type(value) is int and factor > 0
                yield (f"{name} is no multiple of {factor}" if value % factor else None) if whole else CANNOT_TELL
        if isinstance(value, str):
            yield from self._ranged(schema, len(value), f"the length of {name}", "minLength", "maxLength")
            if "pattern" in schema:
                yield CANNOT_TELL  # ECMA's expressions are not Python's

    def _ranged(self, schema: Mapping[str, Any], size: Any, name: str, low: str, high: str) -> Iterator[str | None]:
        least, most = schema.get(low), schema.get(high)
        if _number(least) and size < least:
            yield f"{name} is below {low}"
        if _number(most) and size > most:
            yield f"{name} is above {high}"

    def _object(self, schema: Mapping[str, Any], value: dict[str, Any], at: str, depth: int) -> Iterator[str | None]:
        required = schema.get("required")
        if isinstance(required, list):
            missing = [name for name in required if isinstance(name, str) and name not in value]
            if missing:
                yield f"{at or 'the value'} has no {', '.join(missing)}"
        size = f"the size of {at or 'the value'}"
        yield from self._ranged(schema, len(value), size, "minProperties", "maxProperties")
        dependent = schema.get("dependentRequired")
        if isinstance(dependent, dict):
            for name, wanted in dependent.items():
                if name in value and isinstance(wanted, list) and any(one not in value for one in wanted):
                    yield f"{at or 'the value'} has {name} without what it needs"
        properties = schema.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        for name, inner in properties.items():
            if name in value:
                yield self.say(inner, value[name], f"{at}.{name}" if at else name, depth)
        if "additionalProperties" in schema and "patternProperties" not in schema:
            for name in value:
                if name not in properties:
                    yield self.say(schema["additionalProperties"], value[name], f"{at}.{name}" if at else name, depth)

    def _array(self, schema: Mapping[str, Any], value: list[Any], at: str, depth: int) -> Iterator[str | None]:
        yield from self._ranged(schema, len(value), f"the length of {at or 'the value'}", "minItems", "maxItems")
        if schema.get("uniqueItems") is True and any(
            same(one, other) for number, one in enumerate(value) for other in value[:number]
        ):
            yield f"{at or 'the value'} has equal items"
        first = schema.get("prefixItems")
        items = schema.get("items", True)
        if isinstance(items, list):  # up to 2019-09 an array of schemas goes by position
            first, items = items, schema.get("additionalItems", True)
        first = first if isinstance(first, list) else []
        for number, one in enumerate(value):
            inner = first[number] if number < len(first) else items
            yield self.say(inner, one, f"{at}[{number}]", depth)

    def _composed(self, schema: Mapping[str, Any], value: Any, at: str, depth: int) -> Iterator[str | None]:
        name = at or "the value"
        for inner in schema.get("allOf") or ():
            yield self.say(inner, value, at, depth)
        for key in ("anyOf", "oneOf"):
            if not isinstance(schema.get(key), list):
                continue
            said = [self.say(inner, value, at, depth) for inner in schema[key]]
            fits, unsure = said.count(None), said.count(CANNOT_TELL)
            if fits + unsure == 0:
                yield f"{name} fits none of {key}"
            elif key == "oneOf" and fits > 1:
                yield f"{name} fits more than one of oneOf"
            elif unsure and (key == "oneOf" or not fits):
                yield CANNOT_TELL
        if "not" in schema:
            said = self.say(schema["not"], value, at, depth)
            yield f"{name} is what it must not be" if said is None else CANNOT_TELL if said is CANNOT_TELL else None
        if "if" in schema:
            said = self.say(schema["if"], value, at, depth)
            if said is CANNOT_TELL:
                yield CANNOT_TELL
            else:
                yield self.say(schema.get("then" if said is None else "else", True), value, at, depth)
