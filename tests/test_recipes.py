"""Recipes: what comes along, how a client is installed, and that observing it again is compared with its captures."""

from __future__ import annotations

import json
import shlex
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mcplab import observe, read_trace
from mcplab.live import installing, observing, recipes
from mcplab.live.installing import InstallError
from mcplab.live.recipes import Recipe, RecipeError, filled, recipe, texts

ROOT = Path(__file__).parents[1]


# Installing ----------------------------------------------------------------------------------------


def test_what_is_not_installed_says_how_to(tmp_path, monkeypatch):
    with pytest.raises(
        InstallError, match=r"mcplab observe --install fastmcp --cache .* installs fastmcp==.* with pip"
    ):
        observe("fastmcp", cache=tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(InstallError, match="goose is not installed; put goose on your PATH"):
        observe("goose", cache=tmp_path)


def test_the_hint_installs_that_recipe_into_that_cache(tmp_path):
    mine = tmp_path / "my client.toml"
    mine.write_text((recipes.FOLDER / "fastmcp.toml").read_text().replace('"fastmcp==', '"no-such-thing=='))
    for cache, words in ((None, []), (tmp_path / "c", ["--cache", str(tmp_path / "c")])):
        with pytest.raises(InstallError) as caught:
            observe(mine, cache=cache)
        hint = shlex.join(["mcplab", "observe", "--install", str(mine), *words])
        assert f"fastmcp is not installed; {hint} installs no-such-thing==" in str(caught.value)


def test_the_version_of_what_a_recipe_does_not_pin(tmp_path):
    one = Recipe(client="one", about="", installer="pip", command=[], entry={}, packages=["--pre", "A.thing[x]>=1"])
    folder = installing.place(one, tmp_path)
    assert installing.version_of(one, tmp_path) == ""
    about = folder / "lib" / "python3.11" / "site-packages" / "a_thing-1.2.dist-info" / "METADATA"
    about.parent.mkdir(parents=True)
    about.write_text("Metadata-Version: 2.1\nName: a.thing\nVersion: 1.2\n")
    assert installing.version_of(one, tmp_path) == "1.2"
    other = msgspec.structs.replace(one, installer="npm", packages=["@a/thing@next"])
    package = folder / "node_modules" / "@a" / "thing" / "package.json"
    package.parent.mkdir(parents=True)
    for text, version in (("[]", ""), ("{", ""), ('{"version": "3.4.5"}', "3.4.5")):
        package.write_text(text)
        assert installing.version_of(other, tmp_path) == version
    assert installing.version_of(msgspec.structs.replace(other, version="1"), tmp_path) == "1"


def test_the_cache_is_the_user_s(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert installing.cache_folder() == tmp_path / "mcplab" / "clients"
    assert installing.cache_folder("here") == Path.cwd() / "here"


def test_installing_with_pip_and_its_failure(tmp_path):
    """What pip has with it already, so that no registry is asked."""
    said: list[str] = []
    good = Recipe(
        client="good", about="", installer="pip", command=[], entry={}, version="1", packages=["--no-index", "pip"]
    )
    left = tmp_path / "cache" / "good-1" / "bin" / "python"  # by another interpreter, whose installation failed
    left.parent.mkdir(parents=True)
    left.symlink_to("/nowhere")
    assert installing.install(good, tmp_path / "cache", say=said.append) == tmp_path / "cache" / "good-1"
    assert installing.bin_of(good, tmp_path / "cache", "") == tmp_path / "cache" / "good-1" / "bin"
    assert any("pip install" in line for line in said)
    installing.install(good, tmp_path / "cache", say=said.append)
    assert said[-1] == "good 1 is installed"
    other = msgspec.structs.replace(good, client="other")
    with pytest.raises(InstallError, match="other: false failed with status 1"):
        installing.install(other, tmp_path / "cache", say=said.append, python="false")
    assert not installing.is_installed(other, tmp_path / "cache")


# Recipes -------------------------------------------------------------------------------------------


def every() -> list[Any]:
    found = [recipe(name) for name in recipes.names()]
    return [
        pytest.param(one, name, transport, id=f"{one.client}-{name}-{transport}")
        for one in found for name in (one.configs or {"default": None}) for transport in one.transports
    ]  # fmt: skip


def test_there_is_a_recipe_for_every_client_that_has_captures():
    bundled = {path.name for path in (ROOT / "data" / "traces").iterdir() if path.is_dir()}
    assert bundled <= set(recipes.names())
    assert len(recipes.names()) >= 30


@pytest.mark.parametrize("name", recipes.names())
def test_a_recipe_says_what_it_needs(name):
    one = recipe(name)
    assert one.client == name
    assert one.about
    assert one.transports
    if one.installer == "path":
        assert one.program
        assert not one.packages
    else:
        assert one.version
        assert any(package.endswith(one.version) for package in one.packages)  # the version is pinned


@pytest.mark.parametrize(("one", "name", "transport"), every())
def test_a_recipe_can_be_filled_in(one, name, transport):
    _, config = one.configuration(name)
    places = ("home", "work", "scripts", "bin", "command", "url", "command_b", "url_b")
    values = {**{word: f"/a-{word}" for word in places}, "closed": observing.CLOSED, **texts(one, config, transport)}
    words = [filled(word, values) for word in config.command or one.command]
    given = [filled(text, values) for text in {**one.env, **config.env}.values()]
    contents = {filled(file.path, values): filled(file.text, values) for file in one.files}
    assert not any("{{" in text for text in (*words, *given, *contents.values()))
    for path, text in contents.items():
        assert path.startswith(("/a-home/", "/a-work/", "/a-scripts/"))
        if path.endswith((".json", ".yaml")):
            json.loads(text)
        elif path.endswith(".toml"):
            tomllib.loads(text)
        elif path.endswith(".py"):
            compile(text, path, "exec")
    if transport == "http":
        assert any("/a-url" in text for text in (*words, *given, *contents.values())) or "MCPLAB_URL" in str(contents)


def test_a_file_that_is_no_recipe_says_so(tmp_path):
    file = tmp_path / "mine.toml"
    for text, told in (("client = ", "no recipe"), ('client = "a"\nodd = 1\n', "no recipe"), ("", "client")):
        file.write_text(text)
        with pytest.raises(RecipeError, match=told):
            recipe(file)
    with pytest.raises(RecipeError, match=r"mine\.toml: no recipe"):
        recipe(tmp_path / "gone" / "mine.toml")
    with pytest.raises(RecipeError, match="stands for nothing in this recipe"):
        filled("{{nothing}}", {})


# The check -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def checking(script):
    return script("observe_check")


def test_what_is_checked_again_is_captured(checking):
    for word in checking.USUAL:
        todo = list(checking.runs(word, every=False))
        assert todo, word
        assert len({run.config for run in todo}) == len(todo)
        assert all(path.exists() for run in todo for path in run.captures)
        assert len(list(checking.runs(word, every=True))) >= len(todo)
    assert [path.stem[-1] for path in next(checking.runs("fast-agent:two-servers", every=False)).captures] == ["A", "B"]


def test_a_difference_is_named(checking):
    (run,) = checking.runs("fast-agent:roots", every=False)
    then = read_trace(run.captures[0])
    assert checking.differences(then, [then]) == []
    (plain,) = checking.runs("fast-agent:default", every=False)
    told = checking.differences(then, [read_trace(plain.captures[0])])
    assert told == ["new: roots object", "new: roots.listChanged true true"]
