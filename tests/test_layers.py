"""Imports point down: which module stands on which layer, and a walk over every import that holds them to it.

A new module needs one word in LAYERS. Modules inside a package stand on the package's layer. On one layer modules may
import each other as long as no cycle comes of it. ``mcplab/__init__.py`` is the facade that loads names on first use:
it may name every module, and no module may fetch a name through it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import mcplab

LAYERS = [
    "model progress",  # 0: nouns, and bars
    "jsontext lines spec formats data look told versions",  # 1: the protocol, formats, bundled files, looks, texts
    "envelope pairing citing capabilities comparison negotiation channels bins gating",  # 2: pure functions
    "credentials redaction redacting",  # 2: what is masked
    "frames rulebook",  # 3: the tables, the rules
    "traces render",  # 4: Trace and Traces, and how they are shown
    "published tiers varying disputes keeping provenance feed",  # 5: what documents say, and what varies
    "live plots exports publication corpus sources stories strips",  # 5: wire, figures, pages, files
    "widgets report lab rulebook_commands cli __main__",  # 6: what people start
]
TYPE_ONLY: set[tuple[str, str]] = set()
"""Upward imports under ``if TYPE_CHECKING:`` that are wanted, as (importing module, imported module)."""

MAX_LINES = 500


@dataclass(frozen=True)
class Import:
    importer: str  # dotted, without the package's name: "spec.paths"
    imported: str
    line: int
    type_only: bool


@dataclass
class Package:
    """What the source of a package says, read without importing it."""

    root: Path
    modules: dict[str, ast.Module] = field(
        default_factory=dict
    )  # "spec" stands for spec/__init__.py, "" for the facade
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        for file in sorted(self.root.rglob("*.py")):
            text = file.read_text(encoding="utf-8")
            name = ".".join(file.relative_to(self.root).with_suffix("").parts)
            self.modules[name.removesuffix("__init__").removesuffix(".")] = ast.parse(text, str(file))
            if (lines := len(text.splitlines())) > MAX_LINES:
                self.complaints.append(f"{name}: {lines} lines, {MAX_LINES} at most: split it by noun")

    def imports(self) -> Iterator[Import]:
        for name, tree in self.modules.items():
            if name:
                yield from self._walk(name, tree, type_only=False)

    def _walk(self, importer: str, node: ast.AST, *, type_only: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
                for statement in child.body:
                    yield from self._walk(importer, ast.Module([statement], []), type_only=True)
                for statement in child.orelse:
                    yield from self._walk(importer, ast.Module([statement], []), type_only=type_only)
                continue
            for imported in self._imported(importer, child):
                yield Import(importer, imported, getattr(child, "lineno", 0), type_only)
            yield from self._walk(importer, child, type_only=type_only)

    def _imported(self, importer: str, node: ast.AST) -> list[str]:
        package = self.root.name
        if isinstance(node, ast.Import):
            dotted = [alias.name for alias in node.names]
            return [self._known(importer, name) for name in dotted if f"{name}.".startswith(f"{package}.")]
        if isinstance(node, ast.ImportFrom):
            base = self._base(importer, node)
            if not f"{base}.".startswith(f"{package}."):
                return []
            if any(alias.name == "*" for alias in node.names):
                self.complaints.append(f"{importer}, line {node.lineno}: star import from {base}")
            return [
                self._known(importer, f"{base}.{alias.name}", parent=base)
                for alias in node.names
                if (base, alias.name) != (package, "__version__")
            ]
        if (
            isinstance(node, ast.Call)
            and ast.unparse(node.func).endswith(("import_module", "__import__"))
            and node.args
        ):
            first = node.args[0]
            if isinstance(first, ast.Constant) and f"{first.value}.".startswith(f"{package}."):
                return [self._known(importer, str(first.value))]
        return []

    def _base(self, importer: str, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        is_package = (self.root / Path(*importer.split("."))).is_dir()
        parts = [self.root.name, *importer.split(".")]
        parts = parts[: len(parts) - node.level + is_package]
        return ".".join([*parts, *filter(None, [node.module])])

    def _known(self, importer: str, dotted: str, parent: str = "") -> str:
        """The module that a dotted name is, or is in; the facade is "" and nobody may import it."""
        name = dotted.removeprefix(self.root.name).removeprefix(".")
        if name in self.modules:
            return name
        return parent.removeprefix(self.root.name).removeprefix(".") if parent else name


def problems(
    root: Path, layers: list[str], *, public: dict[str, str], type_only: Set[tuple[str, str]] = frozenset()
) -> list[str]:
    """Everything that is wrong with the package in `root`. `public`: name in the facade -> module that holds it."""
    package = Package(root)
    layer = {name: number for number, names in enumerate(layers) for name in names.split()}
    found: list[str] = []
    for name in package.modules:
        top, _, _ = name.partition(".")
        if name and top not in layer:
            found.append(f"{name}: on no layer; add {top!r} to LAYERS")
        if (last := name.rpartition(".")[2]) in public and public[last] != name:
            found.append(f"{name}: a module with the name of the public {last} hides it; rename the module")
    runtime: dict[str, set[str]] = {name: set() for name in package.modules if name}
    for one in package.imports():
        where = f"{one.importer}, line {one.line}: "
        if not one.imported:
            found.append(
                f"{where}goes through the facade; import from the module that defines the name "
                "(__version__ alone: from mcplab import __version__)"
            )
            continue
        if one.imported not in package.modules:
            found.append(f"{where}{one.imported} does not exist")
            continue
        low, high = (layer.get(name.partition(".")[0], -1) for name in (one.importer, one.imported))
        if high > low >= 0 and not one.type_only:
            found.append(f"{where}layer {low} imports {one.imported} of layer {high}")
        elif high > low >= 0 and (one.importer, one.imported) not in type_only:
            found.append(f"{where}layer {low} imports {one.imported} of layer {high} for its types; not in TYPE_ONLY")
        if not one.type_only:
            runtime[one.importer].add(one.imported)
    found += [f"cycle: {' -> '.join(cycle)}" for cycle in _cycles(runtime)]
    return found + package.complaints


def _cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Every back edge of a depth-first walk, as the way round that it closes."""
    cycles: list[list[str]] = []
    done: set[str] = set()

    def visit(name: str, way: list[str]) -> None:
        if name in way:
            ring = way[way.index(name) :]
            first = ring.index(min(ring))
            cycles.append([*ring[first:], *ring[:first], ring[first]])
        elif name not in done:
            for imported in sorted(graph[name]):
                visit(imported, [*way, name])
            done.add(name)

    for name in sorted(graph):
        visit(name, [])
    return cycles


def test_imports_point_down():
    root = Path(mcplab.__file__).parent
    assert problems(root, LAYERS, public=mcplab._HOME, type_only=TYPE_ONLY) == []


def test_every_module_of_the_facade_exists_or_is_still_to_come():
    """A name of the facade stands on a layer; that its module can be loaded is the facade's own test."""
    known = {name for names in LAYERS for name in names.split()}
    assert {home.partition(".")[0] for home in mcplab._HOME.values()} <= known


# The walk itself, on small packages ----------------------------------------------------------------

GOOD = {"__init__.py": "", "low.py": "", "mid/__init__.py": "from pack.mid import part", "mid/part.py": "import json"}
CASES: dict[str, tuple[dict[str, str], str]] = {
    "upward": ({"low.py": "from pack import top"}, "low, line 1: layer 0 imports top of layer 2"),
    "upward by name": ({"low.py": "from pack.top import x"}, "low, line 1: layer 0 imports top of layer 2"),
    "upward by module": ({"low.py": "import pack.top as t"}, "low, line 1: layer 0 imports top of layer 2"),
    "upward in a function": (
        {"low.py": "def f():\n    import pack.top"},
        "low, line 2: layer 0 imports top of layer 2",
    ),
    "upward in a try": (
        {"mid/part.py": "try:\n    from ..top import x\nexcept ImportError:\n    pass"},
        "mid.part, line 2: layer 1 imports top of layer 2",
    ),
    "upward, relative": ({"low.py": "from . import top"}, "low, line 1: layer 0 imports top of layer 2"),
    "upward, relative in a package": (
        {"mid/__init__.py": "from ..top import x"},
        "mid, line 1: layer 1 imports top of layer 2",
    ),
    "upward by call": (
        {"low.py": "import importlib\nimportlib.import_module('pack.top')"},
        "low, line 2: layer 0 imports top of layer 2",
    ),
    "upward for types": (
        {"low.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pack.top import X"},
        "low, line 3: layer 0 imports top of layer 2 for its types; not in TYPE_ONLY",
    ),
    "else of the types": (
        {"low.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    pass\nelse:\n    import pack.top"},
        "low, line 5: layer 0 imports top of layer 2",
    ),
    "cycle on a layer": (
        {"mid/part.py": "from pack.mid import other", "mid/other.py": "def f():\n    from pack.mid.part import x"},
        "cycle: mid.other -> mid.part -> mid.other",
    ),
    "itself": ({"low.py": "import pack.low"}, "cycle: low -> low"),
    "no layer": ({"stray.py": ""}, "stray: on no layer; add 'stray' to LAYERS"),
    "name taken": ({"mid/compare.py": ""}, "mid.compare: a module with the name of the public compare hides it"),
    "through the facade": ({"mid/part.py": "from pack import compare"}, "mid.part, line 1: goes through the facade"),
    "star": ({"mid/part.py": "from pack.low import *"}, "mid.part, line 1: star import from pack.low"),
    "long": ({"low.py": "\n" * 501}, "low: 501 lines, 500 at most"),
    "no such module": ({"top.py": "import pack.lost"}, "top, line 1: lost does not exist"),
}


def _small(tmp_path: Path, files: dict[str, str]) -> list[str]:
    root = tmp_path / "pack"
    for name, text in {**GOOD, "top.py": "", **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return problems(
        root, ["low", "mid", "top"], public={"compare": "low", "top": "top"}, type_only={("low", "mid.part")}
    )


def test_a_good_package_has_no_problem(tmp_path):
    wanted = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pack.mid import part"
    assert _small(tmp_path, {"low.py": wanted, "mid/part.py": "from pack import __version__, low"}) == []


@pytest.mark.parametrize("name", CASES)
def test_each_fault_is_found_and_is_the_only_one(tmp_path, name):
    files, message = CASES[name]
    found = _small(tmp_path, files)
    assert len(found) == 1, found
    assert found[0].startswith(message)
