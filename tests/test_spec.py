"""mcplab.spec: revisions, eras, addresses, capability paths, and what importing it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest
from mcp_types import version as sdk

import mcplab.spec as spec
from mcplab.model import SpecError

# Revisions and eras ---------------------------------------------------------------------------------------------


def test_the_five_revisions_are_those_of_the_sdk_and_so_are_their_eras() -> None:
    assert spec.REVISIONS == sdk.KNOWN_PROTOCOL_VERSIONS
    assert tuple(name for name in spec.REVISIONS if spec.era(name) == "legacy") == sdk.HANDSHAKE_PROTOCOL_VERSIONS
    assert tuple(name for name in spec.REVISIONS if spec.era(name) == "modern") == sdk.MODERN_PROTOCOL_VERSIONS
    assert spec.LATEST_LEGACY == sdk.LATEST_HANDSHAKE_VERSION


@pytest.mark.parametrize(
    ("text", "era"),
    [
        ("2024-10-07", "legacy"),
        ("1999-12-31", "legacy"),
        ("2026-07-27", "legacy"),
        ("2026-07-28", "modern"),
        ("2026-07-29", "modern"),
        ("2099-01-01", "modern"),
        ("DRAFT-2025-v1", "legacy"),
        ("DRAFT-2025-v3", "legacy"),
        ("DRAFT-2026-v1", "modern"),
        ("DRAFT-2027-v1", "unknown"),
        ("draft", "unknown"),
        ("2026-02-30", "unknown"),
        ("2026-13-01", "unknown"),
        ("2025-11-25 ", "unknown"),
        ("2025-11-25\n", "unknown"),
        ("20251125", "unknown"),
        ("2025-W48-2", "unknown"),
        ("٢٠٢٥-١١-٢٥", "unknown"),
        ("1.0", "unknown"),
        ("", "unknown"),
        (None, "unknown"),
        (20251125, "unknown"),
        (True, "unknown"),
        (["2025-11-25"], "unknown"),
        ({}, "unknown"),
    ],
)
def test_era_of_whatever_a_peer_may_send(text: object, era: str) -> None:
    assert spec.era(text) == era
    assert not spec.is_revision(text) or text in spec.REVISIONS


def test_only_published_revisions_are_revisions() -> None:
    assert all(spec.is_revision(name) for name in spec.REVISIONS)
    assert not any(spec.is_revision(other) for other in ("2024-10-07", "2099-01-01", "draft", "", None, 1, [], {}))


def test_the_general_sentence_is_should_then_must_then_gone() -> None:
    assert [spec.capability_level(name) for name in spec.REVISIONS] == ["SHOULD", "SHOULD", "MUST", "MUST", ""]


@pytest.mark.parametrize("ask", [spec.capability_level, spec.methods, lambda name: spec.spec_url(name, "index")])
def test_an_unknown_revision_is_one_clear_line(ask: object) -> None:
    with pytest.raises(SpecError, match=r"^no revision '2099-01-01': the published ones are 2024-11-05, .*2026-07-28$"):
        ask("2099-01-01")  # type: ignore[operator]


# Addresses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("revision", "page", "anchor", "tail"),
    [
        ("2025-06-18", "basic/lifecycle#initialization", "", "2025-06-18/basic/lifecycle#initialization"),
        ("2025-06-18", "basic/lifecycle", "initialization", "2025-06-18/basic/lifecycle#initialization"),
        ("2026-07-28", "basic/index#_meta", "", "2026-07-28/basic#_meta"),
        ("2026-07-28", "basic", "", "2026-07-28/basic"),
        ("2024-11-05", "index", "", "2024-11-05"),
        ("2025-11-25", "schema.ts#CreateTaskResult", "", "2025-11-25/schema#createtaskresult"),
    ],
)
def test_addresses(revision: str, page: str, anchor: str, tail: str) -> None:
    assert spec.spec_url(revision, page, anchor) == f"https://modelcontextprotocol.io/specification/{tail}"


def test_addresses_outside_the_pages() -> None:
    assert spec.spec_url("2024-11-05", "schema.ts#ListRootsResult").endswith("/schema/2024-11-05/schema.ts")
    assert spec.spec_url("2026-07-28", "seps/2663-tasks-extension#tasks").endswith("/seps/2663-tasks-extension#tasks")


@pytest.mark.parametrize(
    ("revision", "page"),
    [("2024-11-05", "client/elicitation"), ("2026-07-28", "basic/lifecycle"), ("2025-06-18", ""), ("2025-06-18", "x")],
)
def test_a_page_that_the_revision_lacks_is_an_error(revision: str, page: str) -> None:
    if not page:
        assert spec.spec_url(revision, page) == f"https://modelcontextprotocol.io/specification/{revision}"
    else:
        with pytest.raises(SpecError, match="has no page"):
            spec.spec_url(revision, page)


# Capabilities -----------------------------------------------------------------------------------------------------


def test_what_came_when() -> None:
    def first(party: str, path: str) -> str:
        return next(name for name in spec.REVISIONS if spec.capability(name, party, path) is not None)

    def last(party: str, path: str) -> str:
        return next(name for name in reversed(spec.REVISIONS) if spec.capability(name, party, path) is not None)

    assert first("server", "completions") == "2025-03-26"
    assert first("client", "elicitation") == "2025-06-18"
    assert {first("client", path) for path in ("elicitation.url", "sampling.tools", "tasks")} == {"2025-11-25"}
    assert last("client", "roots.listChanged") == "2025-11-25"
    assert {last(party, "tasks") for party in ("client", "server")} == {"2025-11-25"}
    assert first("client", 'extensions["io.modelcontextprotocol/ui"].mimeTypes') == "2025-06-18"


def test_empty_elicitation_means_form_and_never_url() -> None:
    for revision in ("2025-11-25", "2026-07-28"):
        form, url = (spec.capability(revision, "client", f"elicitation.{mode}") for mode in ("form", "url"))
        assert form is not None
        assert form.implied_by == ("elicitation", "empty")
        assert url is not None
        assert url.implied_by is None
    assert spec.capability("2025-06-18", "client", "elicitation.form") is None
    implied = {
        c.path for r in spec.REVISIONS for p in ("client", "server") for c in spec.capabilities(r, p) if c.implied_by
    }
    assert implied == {"elicitation.form"}


def test_deprecation_counts_from_its_revision_on() -> None:
    def deprecated(revision: str) -> dict[str, str]:
        return {
            c.path: c.deprecated for p in ("client", "server") for c in spec.capabilities(revision, p) if c.deprecated
        }

    assert deprecated("2025-06-18") == {}
    assert deprecated("2025-11-25") == {"sampling.context": "2025-11-25"}
    assert deprecated("2026-07-28") == {
        "roots": "2026-07-28",
        "sampling": "2026-07-28",
        "sampling.context": "2025-11-25",
        "logging": "2026-07-28",
    }


def test_free_keys_resolve_to_their_pattern() -> None:
    for key in ("codex/auth-change", "x", "", "a.b", "*"):
        for group in ("experimental", "extensions"):
            path = spec.join([group, key])
            found = spec.capability("2026-07-28", "client", path)
            assert found is not None
            assert (found.path, found.pattern, found.type) == (path, f"{group}.*", "object-marker")
            assert spec.capability("2026-07-28", "client", spec.join([group, key, "deeper"])) is None


def test_a_named_extension_is_itself_and_settings_are_no_declaration() -> None:
    found = spec.capability("2026-07-28", "client", 'extensions["io.modelcontextprotocol/ui"]')
    assert found is not None
    assert found.pattern == ""
    assert found.gates == ()
    setting = spec.capability("2026-07-28", "client", 'extensions["io.modelcontextprotocol/ui"].mimeTypes')
    assert setting is not None
    assert setting.type == "setting"


def test_the_tasks_extension_enables_nothing_under_2025_11_25() -> None:
    path = 'extensions["io.modelcontextprotocol/tasks"]'
    legacy = spec.capability("2025-11-25", "client", path)
    assert legacy is not None
    assert legacy.pattern == "extensions.*"
    assert legacy.informal
    assert legacy.gates == ()
    modern = spec.capability("2026-07-28", "client", path)
    assert modern is not None
    assert "tasks/update" in {gate.method for gate in modern.gates}


def test_unknown_is_none_and_nonsense_an_error() -> None:
    assert spec.capability("2025-11-25", "client", "tools") is None
    assert spec.capability("2025-11-25", "client", "$") is None
    assert spec.capability("2024-11-05", "client", "extensions.x") is None
    with pytest.raises(SpecError, match="no party"):
        spec.capability("2025-11-25", "host", "roots")
    with pytest.raises(SpecError, match="no revision"):
        spec.capability("draft", "client", "roots")
    with pytest.raises(SpecError, match="no capability path"):
        spec.capability("2025-11-25", "client", "extensions.io.modelcontextprotocol/ui")


# Import -----------------------------------------------------------------------------------------------------------


def test_importing_it_loads_no_heavy_library() -> None:
    code = (
        "import sys, mcplab.spec\n"
        "mcplab.spec.methods('2025-11-25'); mcplab.spec.capabilities('2026-07-28', 'client')\n"
        "heavy = {'pandas', 'numpy', 'pyarrow', 'matplotlib', 'IPython', 'mcp', 'mcp_types', 'pydantic', 'yaml'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_facade_names_what_it_has() -> None:
    assert spec.__all__ == sorted(spec.__all__, key=lambda name: (not name.isupper(), not name[0].isupper(), name))
    assert all(hasattr(spec, name) for name in spec.__all__)
