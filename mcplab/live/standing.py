"""The probe on a client's stdio, with little to load: clients wait for their servers, some only 3 seconds."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from mcplab.live.tap import tap

_VALUES: Final = ("--serves", "--versions", "--capabilities", "--instructions", "--session-id", "--get", "--name")
"""Options of the server that have a value."""


def header(server: Sequence[str]) -> dict[str, Any]:
    """What a probe's trace says of it, by the server's arguments."""
    serves = server[server.index("--serves") + 1] if "--serves" in server else "dual"
    return {
        "server_mode": serves,
        "config": {"recorder": "probe", "challenge": "--challenge" in server, "server": list(server)},
    }


def stand(server: Sequence[str], output: Path, *, redact: Sequence[str] = (), keep_secrets: bool = False) -> int:
    """Be the probe on this process's standard input and output until the client leaves; the exit status.

    Raises:
        UsageError: a word of ``redact`` cannot be used.
    """
    command = [sys.executable, "-m", "mcplab.live.server", "--stdio", *server]
    return tap(command, output, redact=redact, keep_secrets=keep_secrets, header=header(server))


def plain_words(words: Sequence[str]) -> dict[str, Any] | None:
    """The arguments of ``stand`` from what follows ``mcplab probe`` in ``Probe.command``; None for any other."""
    given: dict[str, Any] = {"server": [], "redact": []}
    left = list(words)
    if left[:1] != ["--stdio"]:
        return None
    del left[0]
    while left:
        word = left.pop(0)
        word = "--capabilities" if word == "--server-capabilities" else word
        if word == "--challenge":
            given["server"].append(word)
        elif word == "--keep-secrets":
            given["keep_secrets"] = True
        elif word in ("-o", "--redact", *_VALUES) and left:
            value = left.pop(0)
            if word == "-o":
                given["output"] = Path(value)
            elif word == "--redact":
                given["redact"].append(value)
            else:
                given["server"] += [word, value]
        else:
            return None
    return given if "output" in given else None
