"""Elicitation: forms and addresses (client/elicitation)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from mcplab.model import ABSENT
from mcplab.rulebook.checks.inputs import Asked, Given, asking, giving, verdict
from mcplab.rulebook.checks.recall import Recent
from mcplab.rulebook.checks.schema import CANNOT_TELL, conforms
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken

METHOD: Final = "elicitation/create"
REQUIRED: Final = -32042
_PRIMITIVE: Final = ("string", "number", "integer", "boolean")
_FORMATS: Final = ("email", "uri", "date", "date-time")
_NESTED: Final = ("$ref", "allOf", "anyOf", "not", "properties", "patternProperties")
_SECRET: Final = re.compile(
    r"pass(word|phrase)|api[_ -]?key|secret|(access|auth)[_ -]?token|credit ?card|cvv", re.IGNORECASE
)
_LOCAL: Final = ("localhost", "127.0.0.1", "::1")


def _mode(params: Mapping[str, Any], m: Fact) -> Any:
    """``form`` where there is none: 2025-06-18 knows no other."""
    return params.get("mode", "form") if (m.revision or "") >= "2025-11-25" else "form"


@asking(METHOD)
def message(m: Fact, one: Asked) -> Outcome:
    text = one.params.get("message", ABSENT)
    wrong = [] if isinstance(text, str) else ["message is absent" if text is ABSENT else "message is not a string"]
    return verdict(wrong, one.where)


@asking(METHOD)
def mode_value(m: Fact, one: Asked) -> Outcome:
    mode = one.params.get("mode", "form")
    return verdict([] if mode in ("form", "url") else [f"mode is {mode!r}"], one.where)


# Forms ------------------------------------------------------------------------------------------------------


def _choices(value: Any, key: str) -> bool:
    """Is it an array of ``{"const": ...}``, the titled choices of 2025-11-25?"""
    options = value.get(key)
    return isinstance(options, list) and all(isinstance(one, dict) and "const" in one for one in options)


def _property_fault(schema: Any, lists: bool) -> str | None:
    """Why a property is none of the primitive schemas; ``lists``: may it be an array of choices?"""
    if not isinstance(schema, dict):
        return "is not an object"
    kind = schema.get("type")
    nested = [name for name in _NESTED if name in schema]
    if nested:
        return f"has {nested[0]}"
    if kind == "array":
        items = schema.get("items")
        if not lists:
            return "is an array"
        fits = isinstance(items, dict) and (isinstance(items.get("enum"), list) or _choices(items, "anyOf"))
        return None if fits else "is an array of something else than choices"
    if kind not in _PRIMITIVE:
        return f"has the type {kind!r}" if kind is not None else "has no type"
    if "oneOf" in schema and not (lists and _choices(schema, "oneOf")):
        return "has oneOf that is not a list of choices"
    if kind == "string" and schema.get("format", "email") not in _FORMATS:
        return f"has the format {schema['format']!r}"
    return None


def _form_faults(m: Fact, params: Mapping[str, Any]) -> list[str]:
    schema = params.get("requestedSchema", ABSENT)
    if not isinstance(schema, dict):
        return ["requestedSchema is absent" if schema is ABSENT else "requestedSchema is not an object"]
    wrong = [] if schema.get("type") == "object" else ['requestedSchema is not of type "object"']
    properties = schema.get("properties", ABSENT)
    if not isinstance(properties, dict):
        return [*wrong, "requestedSchema has no properties"]
    lists = (m.revision or "") >= "2025-11-25"
    for name, inner in properties.items():
        why = _property_fault(inner, lists)
        if why is not None:
            wrong.append(f"{name!r} {why}")
    return wrong


@asking(METHOD)
def form_schema(m: Fact, one: Asked) -> Outcome:
    if _mode(one.params, m) != "form":
        return None
    return verdict(_form_faults(m, one.params), one.where)


def _texts(params: Mapping[str, Any]) -> list[str]:
    """What a user reads in a form."""
    found = [params.get("message")]
    schema = params.get("requestedSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for inner in properties.values() if isinstance(properties, dict) else ():
        if isinstance(inner, dict):
            found += [inner.get("title"), inner.get("description"), inner.get("default")]
    return [text for text in found if isinstance(text, str)]


@asking(METHOD)
def form_no_links(m: Fact, one: Asked) -> Outcome:
    if _mode(one.params, m) != "form":
        return None
    linked = [text for text in _texts(one.params) if re.search(r"https?://", text)]
    return verdict(["a text of the form has a link"] if linked else [], one.where)


@asking(METHOD)
def form_no_secrets(m: Fact, one: Asked) -> Outcome:
    """Names only: what a server means by them nobody can see."""
    schema = one.params.get("requestedSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if _mode(one.params, m) != "form" or not isinstance(properties, dict):
        return None
    names = [
        name
        for name, inner in properties.items()
        if _SECRET.search(name) or (isinstance(inner, dict) and _SECRET.search(str(inner.get("title", ""))))
    ]
    return verdict([f"{name!r} looks like a secret" for name in names], one.where)


# Addresses --------------------------------------------------------------------------------------------------


@asking(METHOD)
def url_fields(m: Fact, one: Asked) -> Outcome:
    """``elicitationId`` was asked for by 2025-11-25 only."""
    if one.params.get("mode") != "url":
        return None
    names = ("url", "elicitationId") if m.revision == "2025-11-25" else ("url",)
    return verdict([f"{name} is missing" for name in names if not isinstance(one.params.get(name), str)], one.where)


def _split(text: str) -> Any:
    try:
        return urlsplit(text)
    except ValueError:
        return None


@asking(METHOD)
def url_valid(m: Fact, one: Asked) -> Outcome:
    text = one.params.get("url")
    if one.params.get("mode") != "url" or not isinstance(text, str):
        return None
    parts = _split(text)
    if parts is None or not parts.scheme or re.search(r"[\s<>\"{}|\\^`]", text):
        return verdict([f"{text[:80]!r} is no URL"], one.where)
    if parts.scheme in ("http", "https") and not parts.netloc:
        return verdict([f"{text[:80]!r} has no host"], one.where)
    return KEPT


@asking(METHOD)
def url_https(m: Fact, one: Asked) -> Outcome:
    text = one.params.get("url")
    parts = _split(text) if one.params.get("mode") == "url" and isinstance(text, str) else None
    if parts is None or not parts.scheme:
        return None
    if parts.scheme == "https":
        return KEPT
    if parts.hostname in _LOCAL:
        return None  # a development environment is exempt
    return verdict([f"the scheme is {parts.scheme}"], one.where)


# Answers ----------------------------------------------------------------------------------------------------


@giving(METHOD)
def result_shape(m: Fact, one: Given) -> Outcome:
    value = one.value
    if not isinstance(value, dict):
        return None  # jsonrpc.result-object, mrtr.response-shape
    action = value.get("action", ABSENT)
    if action not in ("accept", "decline", "cancel"):
        if m.era == "modern":
            return None  # mrtr.response-shape
        return broken("action is absent" if action is ABSENT else f"action is {action!r}")
    content = value.get("content", ABSENT)
    if content is ABSENT:
        return KEPT
    if not isinstance(content, dict):
        if content is None:
            return broken(f"content is null{one.where}", confidence="low")
        return broken(f"content is not an object{one.where}")
    lists = (m.revision or "") >= "2025-11-25"
    wrong = [
        f"content.{name} is neither string, number nor boolean"
        for name, inner in content.items()
        if not isinstance(inner, (str, int, float))
        and not (lists and isinstance(inner, list) and all(isinstance(item, str) for item in inner))
    ]
    return verdict(wrong, one.where)


@giving(METHOD)
def content_matches(m: Fact, one: Given) -> Outcome:
    if not isinstance(one.value, dict) or one.value.get("action") != "accept":
        return None
    if one.params is None:
        return UNKNOWN
    schema = one.params.get("requestedSchema")
    if _mode(one.params, m) != "form" or not isinstance(schema, dict):
        return None
    content = one.value.get("content", ABSENT)
    if not isinstance(content, dict):
        return broken(f"the form was accepted without content{one.where}", related=(one.at,))
    said = conforms(schema, content)
    if said is CANNOT_TELL:
        return UNKNOWN
    return KEPT if said is None else broken(f"content does not fit: {said}{one.where}", related=(one.at,))


@giving(METHOD)
def url_no_content(m: Fact, one: Given) -> Outcome:
    if one.params is None:
        return UNKNOWN
    if one.params.get("mode") != "url" or not isinstance(one.value, dict):
        return None
    return verdict(["content for an address that was opened"] if "content" in one.value else [], one.where)


# 2025-11-25 only: completion notices, -32042, refusals ----------------------------------------------------------


def _announced(m: Fact) -> Recent[int]:
    return m.session.instance.memory.setdefault("elicitation.ids", Recent())


def _elicitations(m: Fact) -> Any:
    data = m.error.get("data")
    return data.get("elicitations", ABSENT) if isinstance(data, dict) else ABSENT


def complete_known(m: Fact) -> Outcome:
    known = _announced(m)
    if m.kind == "notification":
        ident = m.params.get("elicitationId", ABSENT)
        if not isinstance(ident, str):
            return broken("elicitationId is absent" if ident is ABSENT else "elicitationId is not a string")
        if ident in known:
            return KEPT
        if not m.session.whole or not known.whole:
            return UNKNOWN
        return broken(f"no elicitation {ident!r} was asked for")
    if m.kind == "request":
        entries: list[Any] = [m.params]
    else:
        listed = _elicitations(m) if m.code == REQUIRED else None
        entries = listed if isinstance(listed, list) else []
    for entry in entries:
        ident = entry.get("elicitationId") if isinstance(entry, dict) else None
        if isinstance(ident, str):
            known.put(ident, m.seq)
    return None


def required_error_shape(m: Fact) -> Outcome:
    if m.code != REQUIRED:
        return None
    entries = _elicitations(m)
    if not isinstance(entries, list) or not entries:
        return broken("data.elicitations is not a list of elicitations")
    for entry in entries:
        if not isinstance(entry, dict) or entry.get("mode") != "url":
            return broken("an elicitation that is not of mode url")
        missing = [name for name in ("elicitationId", "url", "message") if not isinstance(entry.get(name), str)]
        if missing:
            return broken(f"an elicitation without {', '.join(missing)}")
    return KEPT


def _declared(m: Fact, path: str) -> bool | None:
    return m.session.declared(m.revision or "", "client", path).declared


def undeclared_mode_refused(m: Fact) -> Outcome:
    """Where nothing of elicitation is declared, -32601 is an answer too: the client does not know the method."""
    asked = m.request
    mode = _mode(asked.params, m) if asked is not None else None
    if asked is None or m.again or mode not in ("form", "url"):
        return None
    declared = _declared(m, f"elicitation.{mode}")
    if declared is None:
        return UNKNOWN
    if declared:
        return None
    if m.kind == "result":
        return broken(f"the mode {mode} is not declared, and was answered", related=(asked.seq,))
    if m.code == -32602 or (m.code == -32601 and _declared(m, "elicitation") is False):
        return KEPT
    return broken(f"the mode {mode} is not declared, and was refused with {m.code}", related=(asked.seq,))


def modeless_is_form(m: Fact) -> Outcome:
    """A request that is well formed but for its mode, to a client that takes forms."""
    asked = m.request
    if asked is None or m.again or "mode" in asked.params or _declared(m, "elicitation.form") is not True:
        return None
    if m.kind == "result":
        return KEPT
    if m.code not in (-32601, -32602) or _form_faults(m, asked.params):
        return None
    return broken(f"a form without mode was refused with {m.code}", related=(asked.seq,))
