"""The order of versions and names."""

from __future__ import annotations

from mcplab.versions import label_key, natural_key, version_key


def test_versions_sort_oldest_first():
    order = ["0.9.4", "0.9.10", "0.20.1", "1.0.0-alpha.1", "1.0.0-rc.1", "1.0.0", "1.0.0.1", "1.0.1+build"]
    assert sorted(order[3:] + order[:3], key=version_key) == order


def test_a_leading_v_and_a_build_decide_nothing_but_a_tie():
    order = ["0.9", "v0.10.0-rc1", "v0.10.0", "0.10.1-insider", "0.10.1", "1.0+a", "1.0+b", "2025-12-31", "2026-01-05"]
    for key in (version_key, label_key):
        assert sorted(sorted(order, reverse=True), key=key) == order
    assert sorted(["vscode", "v2"], key=label_key) == ["v2", "vscode"]


def test_names_sort_by_letter_and_number():
    assert sorted(["b10", "B2", "a"], key=natural_key) == ["a", "B2", "b10"]


def test_labels_may_be_either():
    assert sorted(["b", "1.10", "a10", "1.9", "a9"], key=label_key) == ["1.9", "1.10", "a9", "a10", "b"]
    assert label_key("A") != label_key("a")
