"""mcplab.spec paths: any JSON key goes in and comes back, and any paths sort in the specification's order."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcplab import spec
from mcplab.model import SpecError

PLAIN = st.text("abzAZ019_-", min_size=1, max_size=8)
JSON_TEXT_KEYS = st.lists(st.integers(0, 0xFFFF), max_size=6).map(
    lambda units: json.loads('"' + "".join(f"\\u{unit:04x}" for unit in units) + '"')
)
"""Every key that JSON text can hold: any sequence of UTF-16 units, lone surrogates among them."""
ODD = st.sampled_from(
    ["", "$", ".", "..", "a.b", "[", '["', '"]', "\\", '\\"', "a[0]", "*", "é", "😀", "\ud83d", "\n", " "]
)
KEYS = PLAIN | ODD | JSON_TEXT_KEYS


@given(st.lists(KEYS, max_size=6))
@example([])
@example([""])
@example(["$"])
@example(["$", "$"])
@example(["\ud800"])
@example(["a", "\udfff", "b.c"])
def test_join_and_split_are_inverse(keys: list[str]) -> None:
    path = spec.join(keys)
    assert spec.split(path) == keys
    assert path.isascii()
    assert (path == "$") is (keys == [])


@given(st.lists(KEYS, max_size=4), st.lists(KEYS, max_size=4))
def test_two_paths_are_equal_only_for_equal_keys(one: list[str], other: list[str]) -> None:
    assert (spec.join(one) == spec.join(other)) is (one == other)


@pytest.mark.parametrize(
    ("keys", "path"),
    [
        ([], "$"),
        (["sampling", "tools"], "sampling.tools"),
        (["a.b"], '["a.b"]'),
        (["$"], '["$"]'),
        ([""], '[""]'),
        (["a", ""], 'a[""]'),
        (
            ["extensions", "io.modelcontextprotocol/ui", "mimeTypes"],
            'extensions["io.modelcontextprotocol/ui"].mimeTypes',
        ),
        (["é"], '["\\u00e9"]'),
        (["0", "-", "_"], "0.-._"),
    ],
)
def test_spelling(keys: list[str], path: str) -> None:
    assert spec.join(keys) == path
    assert spec.split(path) == keys


def test_other_spellings_are_read_and_come_back_canonical() -> None:
    assert spec.join(spec.split('["roots"]["listChanged"]')) == "roots.listChanged"
    assert spec.join(spec.split('x["é"]')) == 'x["\\u00e9"]'


def test_the_halves_of_one_character_are_that_character() -> None:
    assert spec.split(spec.join(["\ud83d\ude00"])) == ["😀"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        ".a",
        "a.",
        "a..b",
        "a b",
        "a/b",
        "$.a",
        "$$",
        "a$",
        "[a]",
        '["a"',
        '["a"]b',
        'a.["b"]',
        "a[0]",
        '["\\x"]',
        "extensions.io.modelcontextprotocol/ui",
        "é",
        "a\n",
    ],
)
def test_what_is_no_path_says_where(text: str) -> None:
    with pytest.raises(SpecError, match=r"is no capability path \(character \d+\)"):
        spec.split(text)


@given(st.lists(KEYS, min_size=1, max_size=4))
def test_parent(keys: list[str]) -> None:
    assert spec.parent(spec.join(keys)) == spec.join(keys[:-1])
    assert spec.parent("$") == "$"


# Order --------------------------------------------------------------------------------------------------------------

CLIENT = [
    "$", "experimental", "roots", "roots.listChanged", "sampling", "sampling.context", "sampling.tools", "elicitation",
    "elicitation.form", "elicitation.url", "tasks", "tasks.list", "tasks.cancel", "tasks.requests",
    "tasks.requests.sampling", "tasks.requests.sampling.createMessage", "tasks.requests.elicitation",
    "tasks.requests.elicitation.create", "extensions",
]  # fmt: skip
SERVER = [
    "$", "experimental", "logging", "completions", "prompts", "prompts.listChanged", "resources", "resources.subscribe",
    "resources.listChanged", "tools", "tools.listChanged", "tasks", "tasks.list", "tasks.cancel", "tasks.requests",
    "tasks.requests.tools", "tasks.requests.tools.call", "extensions",
]  # fmt: skip
"""As the interfaces ClientCapabilities and ServerCapabilities of schema.ts list their members."""


@pytest.mark.parametrize(("party", "wanted"), [("client", CLIENT), ("server", SERVER)])
def test_path_order_is_that_of_the_schema(party: str, wanted: list[str]) -> None:
    order = spec.path_order(party)
    assert [path for path in order if not path.startswith("extensions[")] == wanted
    assert list(order.values()) == list(range(len(order)))
    assert sorted(order, key=lambda path: spec.path_key(path, party)) == list(order)
    known = {c.path for r in spec.REVISIONS for c in spec.capabilities(r, party) if not c.path.endswith(".*")}
    assert known == order.keys() - {"$"}


def test_without_a_party_both_are_known() -> None:
    order = list(spec.path_order())
    assert set(order) == {*spec.path_order("client"), *spec.path_order("server")}
    assert order.index("roots") < order.index("extensions") < order.index("tools") < order.index("tools.listChanged")
    assert sorted(order, key=spec.path_key) == order


def test_unknown_paths_follow_the_known_siblings_by_name_and_members_their_parent() -> None:
    shuffled = ["zeta", "roots", "extensions", "alpha", "$", "roots.zz", "roots.listChanged", "roots.aa", "alpha.x"]
    wanted = ["$", "roots", "roots.listChanged", "roots.aa", "roots.zz", "extensions", "alpha", "alpha.x", "zeta"]
    assert sorted(shuffled, key=lambda path: spec.path_key(path, "client")) == wanted


NAMES = st.sampled_from(["roots", "listChanged", "tasks", "requests", "tools", "x", "", "a.b", "$"])
TREES: st.SearchStrategy[Any] = st.recursive(
    st.none(), lambda below: st.dictionaries(NAMES, below, max_size=4), max_leaves=20
)


@given(st.dictionaries(NAMES, TREES, max_size=5), st.sampled_from(["client", "server", None]), st.randoms())
def test_sorting_any_object_s_paths_is_a_walk_through_it(tree: dict[str, Any], party: str | None, random: Any) -> None:
    paths: list[str] = []

    def walk(part: Any, above: list[str]) -> None:
        paths.append(spec.join(above))
        for key, below in (part or {}).items():
            walk(below, [*above, key])

    walk(tree, [])
    random.shuffle(paths)
    got = sorted(paths, key=lambda path: spec.path_key(path, party))
    assert got[0] == "$"
    open_paths: list[str] = []
    for path in got[1:]:
        while open_paths and open_paths[-1] != spec.parent(path):
            open_paths.pop()
        assert open_paths or spec.parent(path) == "$", "a member does not stand in its parent's block"
        open_paths.append(path)
