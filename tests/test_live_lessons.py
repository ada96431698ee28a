"""What the handshake notebook rests on."""

from __future__ import annotations

import pytest

from mcplab.live import lessons
from mcplab.live.handshakes import handshake
from mcplab.live.server.demo import DEMO, serving
from mcplab.model import ABSENT, JsonText


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_matrix_comes_out_as_the_specification_says(transport):
    table = lessons.matrix((transport,))
    assert len(table) == 7
    assert table["outcome"].tolist() == table["specification"].tolist()
    assert table["label"].dropna().tolist() == [
        "2026-07-28 (forced modern)",
        "2026-07-28 (modern)",
        "2025-11-25 (legacy)",
        "2025-11-25 (forced legacy)",
        "2025-11-25 (forced legacy)",
    ]


def test_a_callback_makes_a_capability():
    table = lessons.callbacks()
    assert len(table) == 8
    for row in table.itertuples():
        for name in ("sampling", "elicitation", "roots"):
            assert (f'"{name}"' in row.declared) is getattr(row, name)


def test_what_servers_do_with_declarations():
    with serving(serves="dual") as server:
        table = lessons.declaring({"{}": {}, "nothing": ABSENT, "odd": JsonText("{")}, {"demo": server.url})
    assert table.loc["{}", "demo"] == "2026-07-28 (modern)"
    assert table.loc["nothing", "demo"].startswith("refused: ")
    assert "Parse error" in table.loc["odd", "demo"]


def test_messages_beside_their_meaning():
    shake = handshake(DEMO(serves="legacy"), declare={"roots": {}}, then=[("tools/call", {"name": "ask-roots"})])
    table = lessons.told(shake, width=20)
    assert table["meaning"].tolist()[:2] == [
        "asks which versions the server speaks and what it can do (modern)",
        "a refusal to server/discover",
    ]
    assert "the server asks which folders the client works in" in set(table["meaning"])
    assert table["message"].str.len().max() == 23


def test_compared_with_the_bundled_clients_in_one_call():
    shake = handshake(DEMO, declare={"roots": {}, "telepathy": {}})
    table = shake.compare()
    assert table.loc["roots", "mcplab"] == "empty"
    assert table.loc["telepathy", "mcplab"] == "empty"
    assert len(table.columns) > 10
    assert "mcplab-display" in shake._repr_html_()


def test_shown():
    assert lessons.shown(ABSENT) == "ABSENT"
    assert lessons.shown(JsonText("1.50")) == "1.50"
    for declared in lessons.variants().values():
        assert isinstance(lessons.shown(declared), str)
