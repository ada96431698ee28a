"""What the lesson on rules tells: each example is judged as it is shown, and each breach leads to its messages."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from figures import figure_of

from mcplab import spec, stories
from mcplab.data import notebooks_dir
from mcplab.model import ABSENT, UNKNOWN, SpecError
from mcplab.rulebook.catalogue import catalogue
from mcplab.stories import rulings
from mcplab.told import Picture, safe
from mcplab.traces import Traces, make_trace, read_trace, read_traces

LESSON = notebooks_dir() / "04-rules.ipynb"
CELLS = nbformat.read(LESSON, as_version=4).cells
CARDS = re.findall(r'^stories\.rule\("([^"]+)"(?:, "([^"]+)")?\)$', "\n".join(c.source for c in CELLS), re.MULTILINE)

ORDER = (
    "## Lifecycle", "## Version and capability", "## A declaration switches nothing on", "## Shapes", "## Direction",
    "## Nested flags", "## Tasks", "## What is not there", "## `{}` has to survive", "## Unknown and experimental",
    "## Finding items", "## Credentials", "## One check on every way out", "## What to keep", "## The modern era",
    "## Discovery and fallback", "## Asking back", "## Subscriptions", "## Headers", "## And the captures?",
)  # fmt: skip
NEEDED = {
    "lifecycle.initialize-first", "lifecycle.client-waits-for-result", "lifecycle.server-waits-for-initialized",
    "lifecycle.initialized-sent", "version.negotiated-respected", "capabilities.marker-object",
    "capabilities.flag-boolean", "gate.tools-request", "gate.sampling", "gate.roots-list", "gate.resources-subscribe",
    "gate.resources-list-changed", "gate.roots-list-changed", "gate.sampling-tools", "gate.sampling-context",
    "sampling.undeclared-tools-refused", "gate.elicitation-form", "gate.elicitation-url", "gate.task-tools-call",
    "gate.task-sampling", "capabilities.server-undeclared-served", "capabilities.experimental-shape",
    "request-meta.client-capabilities", "discover.result-shape", "mrtr.input-request-declared", "mrtr.state-echoed",
    "subscriptions.ack-first", "mcp-headers.method-matches", "version-header.legacy-present",
}  # fmt: skip
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


# The lesson ----------------------------------------------------------------------------------------


def test_the_lesson_keeps_a_readers_order():
    text = "\n".join(cell.source for cell in CELLS if cell.cell_type == "markdown")
    places = [text.index(heading) for heading in ORDER]
    assert places == sorted(places)
    assert {name for name, _ in CARDS} >= NEEDED


def test_each_part_has_a_cell_for_the_reader():
    """From one heading to the next stand code to run and the word that says: this is yours to change."""
    text = "\n".join(cell.source for cell in CELLS)
    parts = re.split(r"^## ", text, flags=re.MULTILINE)
    for part in parts:
        if any(part.startswith(heading.removeprefix("## ")) for heading in ORDER[:-1]):
            assert re.search(r"\byours\b", part, re.IGNORECASE), part[:60]


@pytest.mark.parametrize(("name", "revision"), CARDS, ids=lambda value: value or "newest")
def test_each_card_shows_a_kept_and_a_broken_exchange_and_a_link(name, revision):
    card = stories.rule(name, revision or None)
    said = repr(card)
    assert "Verdict: ✓ kept" in said
    assert "Verdict: ✗ broken" in said
    assert f"✗ {name}: " in said
    assert spec.spec_url(card.revision, catalogue()[name].section[card.revision]) in said
    shown = card._repr_html_()
    assert shown.count('<a href="https://') == len(card.links) >= 1
    for word in set(catalogue()[name].level.values()):
        assert word in said


def test_what_the_lesson_says_of_the_installed_sdk_is_so():
    """Its prose names three losses and one way that keeps what the model knows."""
    (cell,) = [cell for cell in CELLS if cell.id == "layers-code"]
    source = cell.source.replace("stories.Told(stories.layers(", "table = (stories.layers(")
    names: dict = {"stories": stories}
    exec(compile(source, "layers-code", "exec"), names)
    table = names["table"].set_index("way")
    assert table.loc["as it was sent"].tolist()[1:] == ["none", "✓ open", "✓ open"]
    whole = table.loc["model_dump()"]
    assert "elicitation: empty → object" in whole["paths changed"]
    assert "roots.listChanged: absent → null" in whole["paths changed"]
    assert (whole["roots/list"], whole["elicitation/create"]) == ("✓ open", "✗ closed")
    lost = '["com.example/extra"]: object → absent; ["com.example/extra"].level: value → absent'
    assert table.loc["model_dump(exclude_none=True)"].tolist()[1:] == [lost, "✓ open", "✓ open"]
    for way in ("exclude_none, then only what is true in Python", "every empty object made null"):
        assert table.loc[way].tolist()[2:] == ["✗ closed", "✗ closed"]


# Its tools -----------------------------------------------------------------------------------------


def test_an_edit_changes_the_verdict():
    asked = ("server", {"jsonrpc": "2.0", "id": 7, "method": "roots/list"})
    bad = repr(stories.judged(make_trace([*stories.hello({"sampling": {}}, {}), asked]), "gate.roots-list"))
    good = repr(stories.judged(make_trace([*stories.hello({"roots": {}}, {}), asked]), "gate.roots-list"))
    assert "Verdicts: 1 broken." in bad
    assert "roots is absent" in bad
    assert "Verdicts: 1 kept." in good
    assert "✗" not in good


def test_a_rule_that_nothing_called_on_is_said_to_be_so():
    said = repr(stories.judged(make_trace(stories.hello({}, {})), "gate.roots-list"))
    assert "Verdicts: nothing called on these rules." in said


def test_a_handshake_is_one_row_unless_it_breaks_a_rule():
    trace = make_trace([*stories.hello({"roots": {}}, {"tools": {}}), ("client", LIST)])
    rows = stories.exchange(trace)
    assert rows["#"].tolist() == ["0..2", "3"]
    assert rows["message"][0].endswith('2025-11-25; client {"roots":{}}, server {"tools":{}}')
    broken = make_trace([*stories.hello({"roots": None}, {"tools": {}}), ("client", LIST)])
    assert stories.exchange(broken, broken.findings)["#"].tolist() == ["0", "1", "2", "3"]
    half = make_trace(stories.hello({}, {})[:2])
    assert stories.exchange(half)["#"].tolist() == ["0", "1"]


def test_messages_are_shown_as_they_were_sent():
    text = '{"jsonrpc": "2.0", "method": "x", "params": {"n": 1.50, "n": 2}}'
    rows = stories.exchange(make_trace([("client", text), ("server", "no JSON")]))
    assert rows["message"].tolist() == [text, "(unparsed) no JSON"]


def test_headers_that_matter_are_shown_with_their_message():
    trace = stories.play('http\nhandshake server={}\n> [mcp-name=other] {"id":1,"method":"tools/list"}', "2026-07-28")
    rows = stories.exchange(trace)
    assert rows["#"].tolist()[0] in ("0", "0..1")
    assert rows["http"].iloc[-1] == "POST; mcp-protocol-version: 2026-07-28; mcp-method: tools/list; mcp-name: other"


def test_seven_states_and_what_nobody_saw_stay_apart_at_the_gate():
    declared = [{"tools": {}}, {"tools": None}, {"tools": True}, {"tools": []}, {}, None, ABSENT, UNKNOWN]
    table = stories.gates("2025-11-25", declared, {"list": LIST}, of="server")
    assert table["list"].tolist() == ["✓ open", *["✗ closed"] * 6, "? not known"]
    assert table["server declares"].tolist()[-3:] == ["null", "ABSENT", "UNKNOWN"]


def test_a_rule_that_is_not_there_or_not_in_that_revision():
    with pytest.raises(SpecError, match=r"no rule 'gate\.root'"):
        stories.rule("gate.root")
    with pytest.raises(SpecError, match=r"did you mean caching\.ttl-present"):
        stories.rule("caching.ttl-presnt")
    with pytest.raises(SpecError, match="does not stand in 2026-07-28"):
        stories.rule("lifecycle.initialize-first", "2026-07-28")


def test_a_hint_has_no_example_and_says_so():
    low = next(one for one in catalogue().values() if not one.broken and not one.kept)
    assert "only hinted at" in repr(stories.rule(low.id))


def test_topics_count_every_rule_once():
    table = stories.topics()
    assert table["rules"].sum() == len(catalogue())
    assert (table["MUST"] + table["SHOULD"] + table["hints only"] == table["rules"]).all()


def test_no_markup_comes_through():
    evil = "<script>alert(1)</script>\x1b[31m"
    trace = make_trace([("client", {"jsonrpc": "2.0", "id": 1, "method": evil}), ("server", evil)])
    for told in (stories.judged(trace), rulings.explained(trace, 0)):
        shown = told._repr_html_()
        assert "<script" not in shown
        assert "\x1b" not in shown + repr(told)
    assert safe("\x1b") == r"\x1b"


# Findings over captures ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def traces(captures) -> Traces:
    return stories.load()


@pytest.fixture(scope="module")
def documented() -> list[list[str]]:
    """The rows of the document of known findings: trace, seq, party, revision, rule."""
    text = (Path(__file__).parents[1] / "docs" / "findings-on-bundled-captures.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in text.splitlines() if "|" in line]
    return [row for row in rows if len(row) == 5 and row[1].isdigit()]


def test_the_headline_counts_what_the_document_lists(traces, documented):
    said = stories.breach_headline(traces)
    assert said.startswith(f"{len({row[4] for row in documented})} MUSTs broken: ")
    for party in ("client", "server"):
        runs = {row[0] for row in documented if row[2] == party}
        assert f"by the {party} in {len(runs)}" in said


def test_a_client_is_told_of_what_it_broke_itself_only(traces, documented):
    said = repr(stories.broken_by_client(traces))
    found = traces.findings
    asked = set(found.loc[(found["verdict"] == "broken") & (found["party"] == "server"), "trace"])
    own = set(found.loc[(found["verdict"] == "broken") & (found["party"] == "client"), "trace"])
    assert asked - own  # where the server alone broke a rule
    for name in asked - own:
        assert f"{name}#" not in said
    for row in documented:
        if row[2] == "client":
            assert row[4] in said
    assert "(no rows)" not in said  # each has its message below it


def test_every_example_in_the_table_is_a_message_that_was_found(traces):
    table = stories.breaches(traces)
    assert len(table)
    found = traces.findings
    for row in table.itertuples():
        trace, _, seq = str(row.example).rpartition("#")
        hit = found[(found["trace"] == trace) & (found["seq"] == int(seq)) & (found["rule"] == row.rule)]
        assert set(hit["verdict"]) == {"broken"}
        assert set(hit["party"]) == {row.party}
        assert str(row.address).startswith("https://modelcontextprotocol.io/specification/")
    assert table["messages"].sum() == (found["verdict"] == "broken").sum()


def test_the_messages_behind_a_finding(traces):
    said = repr(stories.behind(traces, "gate.roots-list"))
    assert '"method":"roots/list"' in said.replace(": ", ":")
    assert "broken by the server in a capture of " in said
    assert repr(stories.behind(traces, "ping.answered")) == "Nothing here breaks ping.answered."


def test_a_breach_of_a_client_that_nobody_knows(tmp_path):
    hello = stories.hello({}, {})
    hello[0][1]["params"]["clientInfo"] = {"name": "mystery-client", "version": "0.0.1"}
    made = make_trace([*hello, ("client", LIST)])
    traces = read_traces(made.save(tmp_path / "mystery.jsonl"), progress=False)
    picture = stories.breach_chart(traces, str(tmp_path / "chart"))
    assert isinstance(picture, Picture)
    assert "gate.tools-request by the client" in picture.alt
    assert sorted(path.name for path in tmp_path.glob("chart.*")) == ["chart.png", "chart.svg"]
    said = repr(stories.broken_by_client(traces))
    assert "\nmystery-client 0.0.1: 1 of 1 instance; gate.tools-request; for example mystery#3:\n" in said
    assert '"method":"tools/list"' in said.replace(": ", ":").splitlines()[-1]
    assert stories.breach_headline(traces) == "1 MUST broken: by the client in 1 of 1 instance"
    assert '"method":"tools/list"' in repr(stories.behind(traces))


def test_a_client_without_a_name_is_told_of_what_it_broke_too(tmp_path):
    first = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": []}}
    traces = Traces([read_trace(make_trace([("client", first)]).save(tmp_path / "bad.jsonl"))])
    assert "\na client without a name: 1 of 1 instance; lifecycle." in repr(stories.broken_by_client(traces))


def test_nothing_is_said_where_nothing_is_broken(tmp_path):
    traces = Traces([read_trace(stories.play("handshake\nclose").save(tmp_path / "fine.jsonl"))])
    assert "none was broken, so there is no chart" in repr(stories.breach_chart(traces, str(tmp_path / "chart")))
    assert not list(tmp_path.glob("chart.*"))
    assert stories.breach_headline(traces) == "No MUST is broken in 1 instance"
    assert stories.breaches(traces).empty
    assert repr(stories.behind(traces)) == "Nothing here breaks a rule."
    assert repr(stories.broken_by_client(traces)) == "No client here was seen to break a rule."


def test_the_chart_in_the_lesson_is_the_one_of_the_package(traces):
    from mcplab import plots

    ax = plots.findings(traces.findings, connections=traces.connections, title=stories.breach_headline(traces))
    assert stories.breach_headline(traces) in plots.alt_text(ax)
    assert figure_of(ax).get_size_inches()[0] <= 10


def test_a_message_of_the_handshake_is_shown_alone():
    trace = make_trace(stories.hello({}, {}))
    assert '"method":"initialize"' in repr(stories.explained(trace, 0)).replace(": ", ":")
