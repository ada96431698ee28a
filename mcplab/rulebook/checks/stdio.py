"""What may stand on the two lines of the stdio transport (basic/transports#stdio)."""

from __future__ import annotations

from mcplab import jsontext
from mcplab.rulebook.facts import Fact
from mcplab.rulebook.outcome import KEPT, Outcome, broken


def clean(m: Fact) -> Outcome:
    """A line that is no message; an empty one is only a hint. A message that fails is a matter of other rules."""
    if m.session.transport != "stdio":
        return None
    if m.kind != "text":
        if m.kind == "invalid" and not isinstance(m.body, (dict, list)):
            return broken(f"no message: {_shown(m.event.text if m.event is not None else '')}")
        return KEPT
    text = m.text.strip()
    if m.event is not None and isinstance(reason := getattr(m.event, "reason", None), str) and "cut" in reason:
        return None  # the capture ends inside the line
    held = m.session.memory.setdefault(f"stdio.held {m.sender}", [])
    if text and not text.startswith(("{", "[")) and not held:
        return broken(f"no message: {_shown(m.text)}")
    if not text:
        return broken("an empty line", confidence="low") if not held else None
    return broken(f"no message: {_shown(m.text)}")


def _shown(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


_LIMIT = 1_000_000


def embedded_newline(m: Fact) -> Outcome:
    """Lines of one direction that are no message each and make one together."""
    if m.session.transport != "stdio":
        return None
    key = f"stdio.lines {m.sender}"
    lines: list[tuple[int, str]] = m.session.memory.setdefault(key, [])
    if m.kind != "text":
        lines.clear()
        return KEPT
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
