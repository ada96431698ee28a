"""Headers that mirror arguments of a tool: ``x-mcp-header`` in its inputSchema, ``Mcp-Param-*`` on the call.

2026-07-28 server/tools#x-mcp-header and basic/transports/streamable-http#custom-headers-from-tool-parameters. What a
call owes follows from the list that the client read last; without that list the capture cannot tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from mcplab.model import ABSENT
from mcplab.rulebook.checks import lists, mcp_headers, version_header
from mcplab.rulebook.checks.mcp_headers import MISMATCH, NOT_DECODED, decoded
from mcplab.rulebook.checks.recall import Recent
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken
from mcplab.rulebook.rounds import own_params

KEY: Final = "x-mcp-header"
PREFIX: Final = "mcp-param-"
SAFE: Final = 2**53 - 1
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PRIMITIVE: Final = ("string", "integer", "boolean")
_SCHEMAS: Final = (
    "items", "additionalItems", "contains", "additionalProperties", "propertyNames", "unevaluatedItems",
    "unevaluatedProperties", "contentSchema", "not", "if", "then", "else", "allOf", "anyOf", "oneOf", "prefixItems",
)  # fmt: skip
_NAMED: Final = ("patternProperties", "$defs", "definitions", "dependentSchemas")
_TELLS_TYPE: Final = ("$ref", "$dynamicRef", "enum", "const", "allOf", "anyOf", "oneOf")
_DEPTH: Final = 60
_CELL: Final = re.compile(r"[\x20-\x7e\t]*")

Path = tuple[str, ...]


class Mark(NamedTuple):
    """One ``x-mcp-header``. ``path``: the ``properties`` keys that lead to it; None where others are among them."""

    path: Path | None
    name: Any
    schema: dict[str, Any]


def _marks(schema: Any, path: Path | None = (), depth: int = 0) -> Iterator[Mark]:
    """Every annotation of a schema. Values of ``default``, ``examples`` and the like are no schemas."""
    if isinstance(schema, list):
        for one in schema:
            yield from _marks(one, None, depth + 1)
        return
    if not isinstance(schema, dict) or depth > _DEPTH:
        return
    if KEY in schema:
        yield Mark(path or None, schema[KEY], schema)
    properties = schema.get("properties")
    if isinstance(properties, dict):
        for key, below in properties.items():
            yield from _marks(below, None if path is None else (*path, key), depth + 1)
    for word in _NAMED:
        held = schema.get(word)
        for below in held.values() if isinstance(held, dict) else ():
            yield from _marks(below, None, depth + 1)
    for word in _SCHEMAS:
        if word in schema:
            yield from _marks(schema[word], None, depth + 1)


# What a server lists ----------------------------------------------------------------------------------------


def _bad_name(marks: list[Mark]) -> str | bool | None:
    for mark in marks:
        if not isinstance(mark.name, str) or not _TOKEN.fullmatch(mark.name):
            return f"{mark.name!r:.60} is no header name"
    return None


def _twice(marks: list[Mark]) -> str | bool | None:
    names = [mark.name.lower() for mark in marks if isinstance(mark.name, str)]
    again = next((name for name in names if names.count(name) > 1), None)
    return None if again is None else f"{again!r} stands for more than one parameter"


def _bad_type(marks: list[Mark]) -> str | bool | None:
    """True: the type cannot be told, or is a primitive one or null, of which the text says nothing clear."""
    doubtful = False
    for mark in marks:
        kind = mark.schema.get("type", ABSENT)
        if kind in _PRIMITIVE:
            continue
        if kind is ABSENT:
            open_ = any(word in mark.schema for word in _TELLS_TYPE)
        else:
            open_ = isinstance(kind, list) and kind != [] and all(name in (*_PRIMITIVE, "null") for name in kind)
        doubtful = doubtful or open_
        if not open_:
            return f"{mark.name!r:.60} is on a parameter " + (
                "without a type" if kind is ABSENT else f"of type {kind!r:.60}"
            )
    return doubtful or None


def _unreachable(marks: list[Mark]) -> str | bool | None:
    for mark in marks:
        if mark.path is None:
            return f"{mark.name!r:.60} is not reached by properties keys alone"
    return None


_FAULTS: Final = {"name": _bad_name, "unique": _twice, "type": _bad_type, "reachable": _unreachable}


def annotation(fault: str) -> Any:
    """The check of one constraint on the annotations of the tools listed: name, unique, type or reachable."""
    find = _FAULTS[fault]

    def check(m: Fact) -> Outcome:
        tools = m.result.get("tools")
        wrong, applied, doubtful = [], False, False
        for tool in tools if isinstance(tools, list) else []:
            marks = list(_marks(tool.get("inputSchema"))) if isinstance(tool, dict) else []
            said = find(marks) if marks else None
            applied = applied or bool(marks)
            if isinstance(said, str):
                wrong.append(f"tool {tool.get('name')!r:.60}: {said}")
            doubtful = doubtful or said is True
        if wrong:
            return broken("; ".join(wrong[:3]))
        return UNKNOWN if doubtful else KEPT if applied else None

    return check


# What a call owes -------------------------------------------------------------------------------------------


class Parameter(NamedTuple):
    """One annotated parameter of a call: its header, the argument (ABSENT), and the header's value (None)."""

    header: str
    value: Any
    sent: str | None

    @property
    def given(self) -> bool:
        """Is there an argument? null counts as none."""
        return self.value is not ABSENT and self.value is not None

    @property
    def unsafe(self) -> bool:
        """Is it a number outside the range that headers may have?"""
        return isinstance(self.value, (int, float)) and abs(self.value) > SAFE

    @property
    def fault(self) -> str | None:
        """What is wrong with the header of a given argument; None where nothing is, or its value has no text."""
        text = _text(self.value)
        if text is None:
            return None
        if self.sent is None:
            return f"no {self.header}"
        found = decoded(self.sent)
        if found is NOT_DECODED:
            return f"{self.header} does not decode"
        if found == text or (isinstance(self.value, (int, float)) and _same_number(str(found), self.value)):
            return None
        return f"{self.header} is {found!r:.60}, the argument {self.value!r:.60}"


class Call(NamedTuple):
    """A ``tools/call`` over HTTP with the definition that its sender knew.

    ``faults``: what makes the definition invalid, None where its annotations cannot be judged. ``seq`` of the call,
    ``listed`` that of the list.
    """

    seq: int
    parameters: tuple[Parameter, ...]
    faults: tuple[str, ...] | None
    listed: int


def _text(value: Any) -> str | None:
    """The argument as a header shows it; None for what has no such form."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value) if isinstance(value, int) and abs(value) < 10**300 else None


def _same_number(text: str, value: int | float) -> bool:
    """Equal as numbers: 42.0 is 42 (basic/transports/streamable-http#server-validation)."""
    if isinstance(value, bool) or not re.fullmatch(r"-?\d{1,300}(?:\.0{1,300})?", text):
        return False
    return int(text.partition(".")[0]) == value


def _argument(m: Fact, path: Path) -> Any:
    value = m.params.get("arguments", ABSENT)
    for key in path:
        if not isinstance(value, dict):
            return ABSENT
        value = value.get(key, ABSENT)
    return value


def _definition(m: Fact) -> tuple[dict[str, Any], int] | None:
    """The called tool as it was listed last on this endpoint, and that list's seq; None where nobody saw it."""
    listing = lists.latest(m, "tools/list")
    if listing is None or not listing.fresh or m.post is None or listing.path != m.post.exchange.path:
        return None
    tool = listing.named(m.params.get("name"))
    return None if tool is None else (tool, listing.at)


def _look(m: Fact) -> Call | None:
    found = _definition(m)
    if found is None:
        return None
    tool, listed = found
    marks = list(_marks(tool.get("inputSchema")))
    said = [fault(marks) for fault in _FAULTS.values()]
    faults = tuple(one for one in said if isinstance(one, str))
    headers = m.post.headers or {} if m.post is not None else {}
    parameters = tuple(
        Parameter(name, _argument(m, mark.path), headers.get(name))
        for mark in marks
        if mark.path is not None and not faults and (name := PREFIX + mark.name.lower())
    )
    return Call(m.seq, parameters, None if True in said and not faults else faults, listed)


def _call(m: Fact) -> Call | None:
    """What a call owes, by the list known when it was sent; kept with its exchange for the answer."""
    if m.post is None:
        return None
    if m.kind == "request":
        held = m.post.memory.get("mcp-param")
        if held is None or held[0] != m.place:
            held = m.post.memory["mcp-param"] = (m.place, _look(m))
        return held[1]
    held = m.post.memory.get("mcp-param")
    return held[1] if held is not None and m.request is not None and held[0] == m.request.place else None


def _note_lists(m: Fact) -> bool:
    """Take lists in; True where the message is about one."""
    if m.method == "tools/call":
        return False
    lists.page(m)
    return True


def _over_http(m: Fact) -> bool:
    return m.post is not None and m.part is None


def mirrored(m: Fact) -> Outcome:
    if _note_lists(m) or not _over_http(m) or m.post is None:
        return None
    call = _call(m)
    if call is None or m.post.headers is None:
        return UNKNOWN
    if call.faults:
        return None
    owed = [one for one in call.parameters if one.given]
    wrong = [one.fault for one in owed if one.fault]
    if wrong:
        return broken("; ".join(wrong[:3]), related=(call.listed,))
    return KEPT if owed else None


def omitted(m: Fact) -> Outcome:
    if _note_lists(m) or not _over_http(m) or m.post is None:
        return None
    call = _call(m)
    if call is None or m.post.headers is None:
        return UNKNOWN
    left = [one for one in call.parameters if not one.given]
    wrong = [one.header for one in left if one.sent is not None]
    if wrong:
        return broken(f"{', '.join(wrong)} without an argument", related=(call.listed,))
    return KEPT if left else None


def integer_range(m: Fact) -> Outcome:
    if _note_lists(m) or not _over_http(m):
        return None
    call = _call(m)
    if call is None:
        return UNKNOWN
    numbers = [
        one for one in call.parameters if isinstance(one.value, (int, float)) and not isinstance(one.value, bool)
    ]
    wrong = [one for one in numbers if one.unsafe]
    if wrong:
        return broken(f"the argument of {wrong[0].header} is {wrong[0].value!r:.60}", related=(call.listed,))
    return KEPT if numbers else None


def invalid_not_called(m: Fact) -> Outcome:
    if _note_lists(m) or not _over_http(m):
        return None
    call = _call(m)
    if call is None or call.faults is None:
        return UNKNOWN
    if call.faults:
        return broken(f"a call of a tool whose definition is invalid: {call.faults[0]}", related=(call.listed,))
    return KEPT if call.parameters else None


# What the server makes of it --------------------------------------------------------------------------------


def _wrong(call: Call) -> list[str]:
    """Faults that a server has to refuse: given arguments whose header is missing, differs or cannot be read."""
    found = []
    for one in call.parameters:
        if one.given and one.fault:
            found.append(one.fault)
        elif one.sent is not None and not _CELL.fullmatch(one.sent):
            found.append(f"{one.header} holds characters that no header may")
    return found


def server_validates(m: Fact) -> Outcome:
    """The server's own definition may be newer than the list: medium. Several faults may be answered by another."""
    if m.kind != "request" and _note_lists(m):
        return None
    call = _call(m)
    if m.kind == "request" or m.post is None or m.request is None or m.again:
        return None
    if call is None or m.post.headers is None:
        return UNKNOWN
    wrong = _wrong(call) if not call.faults else []
    if not wrong:
        return None
    if m.kind == "error" and m.code == MISMATCH:
        return KEPT  # its status: mcp-headers.mismatch-status
    status = m.post.exchange.status
    if m.kind == "error" and (status is None or status >= 400) and m.code in (-32022, -32602, -32601, -32021):
        return UNKNOWN
    shown = "served" if m.kind == "result" else f"answered {m.code} with status {status}"
    return broken(f"{'; '.join(wrong[:3])}, and the call was {shown}", related=(m.request.seq,))


def _refused_in_vain(m: Fact) -> Call | Outcome:
    """The call of a -32020 whose headers are all as they should be; KEPT where the refusal has its reason."""
    call = _call(m)
    if m.kind == "request" or m.post is None or m.request is None or m.code != MISMATCH:
        return None
    faults = mcp_headers.faults(m.request)
    if faults or version_header.differs(m.request):
        return KEPT
    if faults is None or call is None or call.faults is None:
        return UNKNOWN
    if call.faults or _wrong(call) or any(one.sent is not None and not one.given for one in call.parameters):
        return KEPT
    doubtful = any(one.given and (_text(one.value) is None or one.unsafe) for one in call.parameters)
    return UNKNOWN if doubtful else call


def not_expect_null(m: Fact) -> Outcome:
    """Kept where a call without such an argument, and without its header, gets a result."""
    if m.kind != "request" and _note_lists(m):
        return None
    call = _call(m)
    if m.post is None:
        return None
    if m.kind == "result":
        if call is None:
            return UNKNOWN
        return KEPT if any(not one.given and one.sent is None for one in call.parameters) else None
    said = _refused_in_vain(m)
    if not isinstance(said, Call):
        return None if said is KEPT else said
    left = [one.header for one in said.parameters if not one.given]
    if not left:
        return None  # mcp-headers.false-mismatch
    return broken(f"-32020, though only {', '.join(left)} is not there, nor its argument", related=(said.seq,))


def false_mismatch(m: Fact) -> Outcome:
    """mcp-headers.false-mismatch: of a call the tool's own headers have to match too, and none is left out."""
    if m.method != "tools/call":
        if m.kind == "error":
            return mcp_headers.false_mismatch(m)
        lists.page(m)
        return None
    said = _refused_in_vain(m)
    if not isinstance(said, Call):
        return said
    if any(not one.given for one in said.parameters):
        return None  # mcp-param.server-not-expect-null
    return broken("-32020, though the standard headers and every Mcp-Param match", related=(said.seq,))


# What the client makes of a refusal -------------------------------------------------------------------------


def _sent(m: Fact) -> tuple[tuple[str, str], ...]:
    headers = m.post.headers or {} if m.post is not None else {}
    return tuple(sorted((name, value) for name, value in headers.items() if name.startswith(PREFIX)))


def client_refreshes(m: Fact) -> Outcome:
    """Giving up is allowed, and so is a call with other headers: the same once more is what the text rules out."""
    refused: Recent[tuple[int, Any, bool]] | None = m.session.instance.memory.get("mcp-param.refused")
    if m.kind == "error":
        asked = m.request
        if m.code != MISMATCH or asked is None or m.post is None or mcp_headers.faults(asked) != []:
            return None
        if version_header.differs(asked) is None:
            if refused is None:
                refused = m.session.instance.memory["mcp-param.refused"] = Recent()
            refused.put(own_params(asked), (m.seq, _sent(asked), False))
        return None
    if not refused:
        return None
    if m.method == "tools/list":
        for key, (seq, sent, _) in list(refused.items()):
            refused.put(key, (seq, sent, True))
        return None
    if m.post is None or m.post.headers is None:
        return None
    before = refused.pop(own_params(m))
    if before is None:
        return None
    if before[2]:
        return KEPT
    if before[1] != _sent(m):
        return None
    return broken("the same call with the same headers again, without tools/list", related=(before[0],))
