"""What may stand on the two lines of the stdio transport (basic/transports#stdio)."""

from __future__ import annotations

from mcplab import jsontext
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, UNKNOWN, Outcome, broken


def clean(m: Fact) -> Outcome:
    """A line that is no message; an empty one is only a hint. A message that fails is a matter of other rules."""
    if m.session.transport is None and m.kind == "text" and m.text.strip():
        return UNKNOWN  # a line that is no message; whether it was one of stdio the capture does not say
    if m.session.transport != "stdio":
        return None
    if m.kind != "text":
        if m.kind == "invalid" and not isinstance(m.body, (dict, list)):
            return broken(f"no message: {_shown(m.event.text if m.event is not None else '')}")
        return KEPT
    reason = getattr(m.event, "reason", None)
    if isinstance(reason, str) and "cut" in reason:
        return None  # the capture ends inside the line
    if not m.text.strip():
        return broken("an empty line", confidence="low")
    return broken(f"no message: {_shown(m.text)}")


def _shown(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


_LIMIT = 1_000_000


def embedded_newline(m: Fact) -> Outcome:
    """Lines of one direction that are no message each and make one together."""
    if m.session.transport != "stdio":
        return None
    if m.kind != "text":
        return KEPT
    lines: list[tuple[int, str]] = m.session.memory.setdefault(f"stdio.lines {m.sender}", [])
    if m.session.last.get(m.sender, ("", 0))[0] != "text":
        lines.clear()  # a message stood between
    if not lines and not m.text.lstrip().startswith(("{", "[")):
        return None
    lines.append((m.seq, m.text))
    whole = "\n".join(text for _, text in lines)
    if len(whole) > _LIMIT:
        lines.clear()
        return None
    if len(lines) < 2 or jsontext.check(whole):
        return None
    first = lines[0][0]
    count = len(lines)
    lines.clear()
    return broken(f"one message over {count} lines", at=(first, None), related=(m.seq,))
