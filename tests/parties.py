"""A client and a server that are always busy, and log what reaches them: ``python parties.py client|server ...``.

Both write a line to their log once they have read it whole, so what a log holds was delivered. Each message is sent once.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from pathlib import Path


def lines(fd: int):
    """Whole lines from a descriptor, without their ends."""
    held = b""
    while chunk := os.read(fd, 1 << 16):
        *whole, held = (held + chunk).split(b"\n")
        yield from whole


def write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def padding(number: int) -> str:
    return "x" * (200_000 if number % 97 == 96 else random.Random(number).randrange(2000))


def server(log: str) -> None:
    """Answers each request, with a notification before it; says on stderr that it did."""
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    Path(log + ".pid").write_text(str(os.getpid()))
    for number, line in enumerate(lines(0)):
        write(out, line + b"\n")
        told = f'{{"jsonrpc":"2.0","method":"notifications/message","params":{{"n":{number}}}}}\n'
        answer = f'{{"jsonrpc":"2.0","id":{number},"result":{{"text":"{padding(number)}"}}}}\n'
        write(2, b"answered\n")
        write(1, (told + answer).encode())


def client(log: str, *command: str) -> None:
    """Sends requests without waiting for answers, a few ahead, until it is stopped by its input's end."""
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    Path(log + ".pid").write_text(f"{os.getpid()} {process.pid}")
    assert process.stdin is not None
    assert process.stdout is not None
    ahead = threading.Semaphore(8)

    def ask() -> None:
        number = 0
        try:
            while ahead.acquire():
                message = f'{{"jsonrpc":"2.0","id":{number},"method":"m","params":{{"t":"{padding(number + 50)}"}}}}\n'
                write(process.stdin.fileno(), message.encode())
                number += 1
        except OSError:
            pass

    threading.Thread(target=ask, daemon=True).start()
    for line in lines(process.stdout.fileno()):
        write(out, line + b"\n")
        if b'"id"' in line:
            ahead.release()
    process.stdin.close()
    sys.exit(process.wait())


if __name__ == "__main__":
    {"server": server, "client": client}[sys.argv[1]](*sys.argv[2:])
