"""The versions chart counts instances, revision by revision, and says why a client fell back."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from figures import assert_legible, said
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import mcplab
from mcplab import look, plots
from mcplab.plots import revisions

REFUSED = "error -32601 Method not found (HTTP 400)"
CONNECTIONS = pd.DataFrame(
    [
        ("t1", "i1", "b", "2.0.0", "2026-07-28, 2025-11-25", "2025-11-25", "legacy-fallback", REFUSED, "auto"),
        ("t2", "i2", "b", "2.0.0", "2026-07-28", "2026-07-28", "modern", "supported 2026-07-28", "auto"),
        ("t3", "i3", "b", "2.0.0", "2026-07-28", None, "failed", "timeout", "forced"),
        ("t4", "i4", "b", "1.9.0", "2025-11-25", "2025-06-18", "none", None, "unknown"),
        # one run, two connections: a probe process and its successor
        ("t5", "i5", "A", "1", "2026-07-28", None, "probe", None, "auto"),
        ("t5", "i5", "A", "1", "2025-11-25", "2025-11-25", "legacy-fallback", REFUSED, "auto"),
        ("t6", "i6", "A", "1", None, None, "none", None, "auto"),
        ("t7", "i7", None, None, "DRAFT-9", "DRAFT-9", "none", None, "auto"),
    ],
    columns=["trace", "instance", "client", "client_version", "offered", "selected", "discovery", "discovery_detail", "mode"],
)  # fmt: skip


def read(ax: Axes) -> dict[tuple[str, int, float], int]:
    """(agreed or offered, row, column) -> the number beside it; agreed or offered by the mark's shape alone."""
    found = {}
    numbers = [(text.get_position(), text.get_text()) for text in ax.texts]
    for line in ax.lines:
        if not str(line.get_gid()).startswith(("agreed:", "offered:")):
            continue
        hollow = to_hex(line.get_markerfacecolor()) != to_hex(line.get_markeredgecolor())
        x, y = np.asarray(line.get_xydata())[0]
        (value,) = [text for (tx, ty), text in numbers if ty == y and 0 < tx - x < 0.35 and text.isdigit()]
        found["offered" if hollow else "agreed", int(y), float(np.round(x))] = int(value)
    return found


def test_rows_are_releases_by_name_oldest_first() -> None:
    rows = revisions.releases(CONNECTIONS)
    assert [(row.client, row.version, row.instances) for row in rows] == [
        ("A", "1", 2), ("b", "1.9.0", 1), ("b", "2.0.0", 3), ("—", "—", 1),
    ]  # fmt: skip


def test_instances_are_counted_not_connections() -> None:
    a, old, new, _ = revisions.releases(CONNECTIONS)
    assert a.agreed == {"2025-11-25": 1}
    assert a.offered == {"2026-07-28": 1}
    assert a.back == {REFUSED: 1}
    assert a.silent == 1
    assert (old.agreed, old.offered) == ({"2025-06-18": 1}, {"2025-11-25": 1})
    assert new.agreed == {"2025-11-25": 1, "2026-07-28": 1}
    assert new.offered == {"2026-07-28": 2}
    assert (new.stopped, new.forced) == ({"timeout": 1}, 1)


def test_the_chart_says_what_was_counted() -> None:
    ax = plots.versions(CONNECTIONS)
    # columns: 2025-06-18, 2025-11-25, 2026-07-28, DRAFT-9
    assert read(ax) == {
        ("agreed", 0, 1.0): 1, ("offered", 0, 2.0): 1, ("agreed", 1, 0.0): 1, ("offered", 1, 1.0): 1,
        ("agreed", 2, 1.0): 1, ("agreed", 2, 2.0): 1, ("offered", 2, 2.0): 2, ("agreed", 3, 3.0): 1,
    }  # fmt: skip
    texts = said(ax)
    assert "falls back: 1 (a); nothing offered: 1" in texts
    assert "falls back: 1 (a); gives up: 1 (b); forced: 1" in texts
    assert f"(a) {REFUSED}. (b) timeout." in texts
    assert {"legacy", "modern", "unknown", "DRAFT-9"} <= set(texts)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("n", [1, 31, 60])
def test_legible_on_a_page(n: int, theme: str) -> None:
    frame = pd.concat(
        [CONNECTIONS.assign(client=f"client-with-a-long-name-{k // 3}", client_version=f"{k}.0") for k in range(n)]
    )
    ax = plots.versions(frame, title="Who gets which revision", theme=theme)
    assert_legible(ax)
    assert isinstance(ax.figure, Figure)
    width, height = ax.figure.get_size_inches()
    assert width <= 8.5
    if n <= 60:
        assert height <= 11


def test_the_bundled_captures_are_legible(captures: list[Path]) -> None:
    traces = mcplab.read_traces(*captures, progress=False)
    frame = traces.connections
    ax = plots.versions(frame, title="Bundled captures")
    assert_legible(ax)
    total = sum(row.instances for row in revisions.releases(frame))
    assert total == frame["instance"].nunique()


def test_hostile_names_are_literal() -> None:
    frame = CONNECTIONS.assign(client="$x$ \x1b" + "y" * 300, client_version="$1$", discovery_detail="$why$\n%\u2800")
    ax = plots.versions(frame, title="$t$")
    assert "$1$" in said(ax)
    assert any("$why$\\u000a%\\u2800" in text for text in said(ax))
    assert_legible(ax)


def test_same_chart_whatever_the_hash_seed(tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[2]); import test_plots_versions as v, test_plots_timeline as t,"
        "test_plots_matrix as m; from mcplab import plots, export;"
        "export(plots.versions(v.CONNECTIONS), sys.argv[1] + '/versions.svg');"
        "export(plots.timeline(t.HANDSHAKE), sys.argv[1] + '/timeline.svg');"
        "export(plots.declarations(m.frame_of(6)), sys.argv[1] + '/matrix.svg')"
    )
    for seed in ("1", "2"):
        run = [sys.executable, "-c", code, str(tmp_path / seed), str(Path(__file__).parent)]
        subprocess.run(run, check=True, env={**os.environ, "PYTHONHASHSEED": seed})
    names = sorted(file.name for file in (tmp_path / "1").iterdir())
    assert names == ["matrix.svg", "timeline.svg", "versions.svg"]
    for name in names:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes(), name


def test_wrong_frames_are_refused() -> None:
    with pytest.raises(ValueError, match="no column 'selected'"):
        plots.versions(CONNECTIONS.drop(columns="selected"))
    with pytest.raises(ValueError, match="nothing to draw"):
        plots.versions(CONNECTIONS.iloc[:0])


def test_alternative_text_and_ground() -> None:
    ax = plots.versions(CONNECTIONS, title="Two fall back.", theme="dark")
    assert plots.alt_text(ax) == (
        "Two fall back: a chart of protocol revisions agreed on by 4 client releases: "
        "DRAFT-9 by 1, 2026-07-28 by 1, 2025-11-25 by 2, 2025-06-18 by 1; 2 fall back."
    )
    assert to_hex(ax.figure.get_facecolor()).upper() == look.GROUNDS["dark"].paper.upper()
