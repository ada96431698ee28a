"""Recipes: how to install a real client, point it at a server and start it without a model. Data in ``clients/``.

A recipe is a TOML file; a user's own may be given by its path wherever a client's name may. Texts in it may hold
``{{name}}``: the folders ``home``, ``work``, ``scripts`` and ``bin`` (the client's programs), ``closed`` (an address at
which nobody is), ``command`` and ``url`` (of the server; ``command_b`` and ``url_b`` of a second one), ``entry`` and
``entry_b`` (the recipe's ``[entry]`` of the transport), and the members of ``[text]``.
"""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

import msgspec

from mcplab.model import MCPLabError, UsageError

FOLDER: Final = Path(__file__).parent / "clients"
TRANSPORTS: Final = ("stdio", "http")
_NAME: Final = re.compile(r"\{\{(\w+)\}\}")


class RecipeError(MCPLabError):
    """A recipe that cannot be read, or says what cannot be."""


class Configuration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One way to configure and start the client; what it leaves out is the recipe's.

    ``capture``: label of the bundled captures that show the same, where it is not the configuration's own name.
    """

    about: str = ""
    capture: str = ""
    command: list[str] = []
    stdin: str = ""
    connected: str = ""
    env: dict[str, str] = {}
    text: dict[str, str] = {}


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file to write before the client starts."""

    path: str
    text: str


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How to run one client.

    ``installer``: ``pip`` (an environment of its own, ``python`` the least version it needs), ``npm`` (a folder of its
    own) or ``path`` (``program`` must be on the user's PATH). ``connected``: the client's request that shows that it
    got what it came for. ``ends``: it ends by itself; else it is ended once it is connected. ``seconds``: the longest
    that it may run. ``last_run``: when this recipe was last seen to work; missing: it was written from notes.
    """

    client: str
    about: str
    installer: Literal["pip", "npm", "path"]
    command: list[str]
    entry: dict[Literal["stdio", "http"], str]
    version: str = ""
    packages: list[str] = []
    python: str = ""
    program: str = ""
    files: list[File] = []
    env: dict[str, str] = {}
    text: dict[str, str] = {}
    configs: dict[str, Configuration] = {}
    connected: str = "tools/list"
    ends: bool = True
    seconds: float = 60
    last_run: datetime.date | None = None
    note: str = ""

    @property
    def transports(self) -> list[str]:
        return [name for name in TRANSPORTS if name in self.entry]

    def configuration(self, name: str | None) -> tuple[str, Configuration]:
        """A configuration with its name; None takes ``default``, or the first.

        Raises:
            UsageError: there is none of that name; those that are there are named.
        """
        known = self.configs or {"default": Configuration()}
        if name is None:
            name = "default" if "default" in known else next(iter(known))
        if name not in known:
            raise UsageError(f"{self.client} has no configuration {name!r}: use {', '.join(known)}")
        return name, known[name]


def names() -> list[str]:
    """The clients that have a recipe here."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def recipe(client: str | Path) -> Recipe:
    """The recipe of a client: its name, or the path of a TOML file.

    Raises:
        UsageError: there is no such recipe.
        RecipeError: the file is no recipe.
    """
    path = Path(client) if str(client).endswith(".toml") else FOLDER / f"{client}.toml"
    if path.parent == FOLDER and path.stem not in names():
        raise UsageError(f"there is no recipe for {client!r}; mcplab observe --list names those that there are")
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Recipe)
    except (OSError, ValueError) as error:  # msgspec's and tomllib's are ValueErrors
        raise RecipeError(f"{path.name}: no recipe that can be used ({error})") from error


def filled(text: str, values: Mapping[str, str]) -> str:
    """A text with its ``{{names}}`` replaced, those that come in with them too.

    Raises:
        RecipeError: one of them stands for nothing.
    """

    def value(found: re.Match[str]) -> str:
        if found[1] not in values:
            raise RecipeError(f"{found[0]} stands for nothing in this recipe")
        return values[found[1]]

    for _ in range(5):
        if _NAME.search(text) is None:
            break
        text = _NAME.sub(value, text)
    return text


def texts(made: Recipe, config: Configuration, transport: str) -> dict[str, str]:
    """What the recipe's own names stand for. ``UsageError``: it does not speak that transport."""
    entry = made.entry.get(transport)  # type: ignore[call-overload]
    if entry is None:
        raise UsageError(f"{made.client} is not run over {transport}: use {' or '.join(made.transports)}")
    second = entry.replace("{{command}}", "{{command_b}}").replace("{{url}}", "{{url_b}}")
    return {"entry": entry, "entry_b": second, "transport": transport, **made.text, **config.text}
