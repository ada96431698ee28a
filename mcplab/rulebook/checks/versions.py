"""Which revision the two agree on, and that they keep to it (basic/lifecycle#version-negotiation, basic/versioning)."""

from __future__ import annotations

import re
from typing import Any, Final

from mcplab import jsontext, spec
from mcplab.model import ABSENT
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken
from mcplab.spec import META_VERSION, REVISIONS

UNSUPPORTED: Final = -32022
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
FIRST_DRAFT: Final = "2024-10-07"  # what the first SDKs spoke, before the first published revision
_MODERN_ERRORS: Final = (-32020, -32021, -32022)


def initialize_carries(m: Fact) -> Outcome:
    return _string(m.params.get("protocolVersion", ABSENT))


def result_carries(m: Fact) -> Outcome:
    return _string(m.result.get("protocolVersion", ABSENT))


def _string(value: Any) -> Outcome:
    if isinstance(value, str):
        return KEPT
    return broken("protocolVersion is absent" if value is ABSENT else "protocolVersion is not a string")


def offer_legacy(m: Fact) -> Outcome:
    version = m.params.get("protocolVersion")
    if not isinstance(version, str):
        return None
    return KEPT if spec.era(version) == "legacy" else broken(f"offers {version}")


def counter_offer(m: Fact) -> Outcome:
    """The same page shows such an error as its example, so this is no more than a hint."""
    if m.kind == "result":
        return KEPT
    text = m.error.get("message")
    data = m.error.get("data")
    speaks = isinstance(text, str) and "protocol version" in text.lower()
    return broken("refused for its version") if speaks or (isinstance(data, dict) and "supported" in data) else None


def answer_known(m: Fact) -> Outcome:
    version = m.result.get("protocolVersion")
    if not isinstance(version, str):
        return None
    if spec.era(version) == "modern":
        return broken(f"answers {version}, which has no initialize")
    if version in (*REVISIONS, FIRST_DRAFT) or version.startswith("DRAFT-"):
        return KEPT
    return broken(f"answers {version}, which was never published")


def server_echo(m: Fact) -> Outcome:
    """A server supports what it accepted before under the same name and version, or named in its discovery."""
    offered = m.request.params.get("protocolVersion") if m.request is not None else None
    answered, instance = m.result.get("protocolVersion"), m.session.instance
    if m.again or not isinstance(offered, str) or not isinstance(answered, str):
        return None
    server = m.result.get("serverInfo")
    names = (server.get("name"), server.get("version")) if isinstance(server, dict) else (None,)
    accepted = instance.memory.setdefault("version.accepted", {})
    if offered == answered:
        if all(isinstance(name, str) for name in names) and len(accepted) < 1000:
            accepted.setdefault((names, offered), m.seq)
        return KEPT
    before = accepted.get((names, offered)) if all(isinstance(name, str) for name in names) else None
    if before is not None:
        return broken(f"{offered} was offered and accepted before, now {answered} is answered", related=(before,))
    at = instance.discovered_at
    if at is not None and offered in (instance.supported or ()) and len(instance.sessions) == 1:
        return broken(f"{answered} for {offered}, which the discovery names", related=(at,))
    return UNKNOWN if offered in REVISIONS else None


_TASK_SINCE: Final = "2025-11-25"


def respected(m: Fact) -> Outcome:
    """Features that change what a message means; further unknown members do no harm."""
    revision = m.revision or ""
    found = []
    if m.kind == "result":
        if m.result.get("resultType") == "input_required":
            found.append("resultType input_required")
    elif revision < _TASK_SINCE:
        params = m.params
        if m.method in ("tools/call", "sampling/createMessage", "elicitation/create") and "task" in params:
            found.append("params.task")
        if m.method == "elicitation/create" and params.get("mode") == "url":
            found.append("elicitation mode url")
        if m.method == "sampling/createMessage" and params.get("tools") is not None and "tools" in params:
            found.append("tools in sampling")
    if found:
        return broken(f"{', '.join(found)}: {revision} has no such thing")
    return KEPT


# Modern ---------------------------------------------------------------------------------------------------


def _asked(m: Fact) -> str | None:
    version = m.request.meta.get(META_VERSION) if m.request is not None else None
    return version if isinstance(version, str) else None


def unsupported_error(m: Fact) -> Outcome:
    """What a server supports is known from its discovery, or from an earlier refusal of this kind."""
    version = _asked(m)
    if version is None or m.again:
        return None
    supported = m.session.instance.supported
    if supported is None:
        return UNKNOWN if version not in REVISIONS and m.code != UNSUPPORTED else None
    if version in supported:
        return None
    if m.kind == "error":
        if m.code == UNSUPPORTED:
            return KEPT
        return UNKNOWN if m.code in (-32602, -32020, -32021, -32601) else broken(f"{version} was refused with {m.code}")
    return broken(
        f"{version} is not supported, and the request was served", related=(m.request.seq,) if m.request else ()
    )


def unsupported_data(m: Fact) -> Outcome:
    if m.code != UNSUPPORTED:
        return None
    data = m.error.get("data")
    if not isinstance(data, dict):
        return broken("-32022 without data")
    wrong = []
    supported = data.get("supported")
    if not isinstance(supported, list) or not all(isinstance(name, str) for name in supported):
        wrong.append("supported is not an array of strings")
    requested = data.get("requested")
    asked = _asked(m)
    if not isinstance(requested, str):
        wrong.append("requested is not a string")
    elif asked is not None and requested != asked:
        wrong.append(f"requested is {requested}, the request said {asked}")
    return broken("; ".join(wrong)) if wrong else KEPT


def unsupported_misused(m: Fact) -> Outcome:
    version = _asked(m)
    if m.code != UNSUPPORTED or version is None:
        return None
    data = m.error.get("data")
    named = data.get("supported") if isinstance(data, dict) else None
    if (isinstance(named, list) and version in named) or version in (m.session.instance.supported or ()):
        return broken(f"{version} is refused, and the server supports it")
    return KEPT


def unsupported_400(m: Fact) -> Outcome:
    if m.code != UNSUPPORTED or m.post is None:
        return None
    status = m.post.exchange.status
    if status is None:
        return UNKNOWN
    return KEPT if status == 400 else broken(f"-32022 came with status {status}")


def retry_supported(m: Fact) -> Outcome:
    """The next request after a -32022. Giving up is allowed; requests already on their way are not meant."""
    memory = m.session.instance.memory
    if m.kind == "error":
        data = m.error.get("data")
        named = data.get("supported") if isinstance(data, dict) else None
        if m.code == UNSUPPORTED and isinstance(named, list):
            memory["version.named"] = (m.seq, named, _asked(m))
        return None
    named = memory.pop("version.named", None)
    version = m.meta.get(META_VERSION)
    if named is None or not isinstance(version, str):
        return None
    if version in named[1]:
        return KEPT
    modern = [name for name in named[1] if isinstance(name, str) and spec.era(name) == "modern"]
    return broken(f"{version} again, the server named {', '.join(modern)}", related=(named[0],)) if modern else None


def no_fallback(m: Fact) -> Outcome:
    """A list of nothing but legacy versions does call for initialize. Kept where the process ends without one."""
    memory = m.session.instance.memory
    if m.kind == "error":
        if m.request is not None and m.request.era == "modern" and m.code in _MODERN_ERRORS:
            data = m.error.get("data")
            named = data.get("supported") if isinstance(data, dict) else None
            if not isinstance(named, list) or any(spec.era(name) == "modern" for name in named):
                memory["version.modern error"] = (m.seq, m.code)
        return None
    seen = memory.get("version.modern error")
    if m.kind == "close":
        return KEPT if seen is not None else None
    return None if seen is None else broken(f"initialize after {seen[1]}", related=(seen[0],))


def probe_first(m: Fact) -> Outcome:
    """A client that falls back on the same process is one of both eras; whether it probed shows before that."""
    session = m.session
    if m.method == "server/discover":
        if not session.spoke_modern:
            session.memory["version.probed"] = m.seq
        return None
    if m.post is not None or not session.spoke_modern or not session.opened:
        return None
    return KEPT if "version.probed" in session.memory else broken("initialize after modern requests and no probe")


def refusal_names_versions(m: Fact) -> Outcome:
    """A server is known as modern-only by the versions that it named."""
    supported = m.session.instance.supported
    if m.again or not supported or any(spec.era(version) != "modern" for version in supported):
        return None
    said = jsontext.dumps([m.error.get("message", ""), m.error.get("data", "")])
    return KEPT if _DATE.search(said) else broken("initialize was refused, and no version is named")
