"""Coverage-guided fuzzing of the readers (atheris; `make fuzz`).

    python tests/fuzz/fuzz_formats.py FAMILY [--seconds 900] [--corpus FOLDER]

An input is a failure when a reader raises anything but ``TraceError``, when that error has more than one line, or when
a reader takes longer than five seconds. Inputs start from the samples in tests/formats and from the corpus folder, where
new ones are kept.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["mcplab"]):
    from mcplab import formats
    from mcplab.formats import halves, source
    from mcplab.model import TraceError

HERE = Path(__file__).parent
SAMPLES = HERE.parent / "formats"
FAMILIES = {
    "lines": ["mcplab", "mcpsnoop", "recorder-lines", "jsonrpc", "claude-code", "fast-agent"],
    "documents": ["inspector", "inspector-network", "mcpjam", "mcp-recorder", "har"],
    "http": ["curl", "event-stream", "har", "lsp-framed"],
    "logs": ["claude-desktop", "vscode", "cursor", "mcp-remote", "go-sdk", "python-sdk", "text"],
    "any": [],
}
SECONDS = 5


def one_line(error: TraceError) -> None:
    """An error that a user sees is one line."""
    assert "\n" not in str(error), error


def check(family: str, data: bytes) -> None:
    """Read the input in every format of the family, and as a reader that chooses would."""
    try:
        loaded = source.load(data)
    except TraceError as error:
        one_line(error)
        return
    for name in [*FAMILIES[family], None]:
        try:
            record = formats.read(loaded, format=name)
        except TraceError as error:
            one_line(error)
            continue
        assert [event.seq for event in record.events] == sorted({event.seq for event in record.events})
        assert len(record.linenos) == len(record.events)
        for writer in formats.WRITERS:
            for _ in formats.write(record, writer):
                pass
    if family == "any":
        middle = len(data) // 2
        try:
            halves.read(source.load(data[:middle]), source.load(data[middle:]))
        except TraceError:
            pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("--seconds", type=int, default=900)
    parser.add_argument("--corpus", type=Path, default=None, help="default: build/fuzz/FAMILY")
    given = parser.parse_args()
    corpus = given.corpus or HERE.parents[1] / "build" / "fuzz" / given.family
    corpus.mkdir(parents=True, exist_ok=True)
    kept = HERE / "corpus" / given.family
    for sample in [*SAMPLES.iterdir(), *(kept.iterdir() if kept.is_dir() else ())]:
        if sample.is_file() and sample.suffix != ".py":
            shutil.copy(sample, corpus / sample.name)
    options = [
        sys.argv[0],
        f"-max_total_time={given.seconds}",
        f"-timeout={SECONDS}",
        "-max_len=8192",
        f"-artifact_prefix={corpus.parent}/{given.family}-",
        str(corpus),
    ]
    atheris.Setup(options, lambda data: check(given.family, data))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
