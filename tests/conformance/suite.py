"""Running the suite: its package and a Node new enough for it, one scenario at a time, its ``checks.json``."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SUITE: Final = "@modelcontextprotocol/conformance"
VERSION: Final = "0.2.0-alpha.12"
NODE: Final = "22.23.5"  # the suite calls fs.globSync, which Node has since 22
REVISIONS: Final = ("2025-11-25", "2026-07-28")
ROLES: Final = ("server", "client")
SECONDS: Final = 180  # of one scenario; the suite itself gives up after 30

_MACHINES: Final = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
_SCENARIO: Final = re.compile(r"\s+- (\S+)(?: \[(server|client)\])?$")


class SuiteError(Exception):
    """The suite cannot be had or run; one line that says why."""


@dataclass(frozen=True)
class Scenario:
    """One scenario at one revision. ``scored``: does the revision require it?"""

    role: str
    revision: str
    name: str
    scored: bool

    @property
    def slug(self) -> str:
        """Its name in paths."""
        return f"{self.revision}/{self.role}-{self.name.replace('/', '-')}"


@dataclass(frozen=True)
class Check:
    """One check of the suite with its verdict: SUCCESS, FAILURE, WARNING, SKIPPED or INFO."""

    id: str
    status: str
    message: str


def checks_of(text: str) -> list[Check]:
    """The checks in a ``checks.json``, without its notes of what was sent (INFO)."""
    found = json.loads(text)
    if not isinstance(found, list):
        raise SuiteError("checks.json holds no array")
    return [
        Check(one["id"], one["status"], " ".join(str(one.get("errorMessage") or "").split()))
        for one in found
        if one["status"] != "INFO"
    ]


def scenarios_in(listing: str, revision: str) -> list[Scenario]:
    """The scenarios that ``list --requirements`` names, those that are not scored too."""
    found: list[Scenario] = []
    role, scored = "", True
    for line in listing.splitlines():
        if line.startswith(("Server scenarios", "Client scenarios")):
            role = line[:6].lower()
        elif line.startswith("Run and reported"):
            scored = False
        elif match := _SCENARIO.match(line):
            found.append(Scenario(match[2] or role, revision, match[1], scored))
    return found


@dataclass(frozen=True)
class Suite:
    """The suite, installed below ``folder``; nothing outside of that folder is written."""

    folder: Path

    @property
    def _modules(self) -> Path:
        return self.folder / "node_modules"

    @property
    def _node(self) -> Path:
        return self._modules / _node_package() / "bin" / "node"

    def install(self) -> None:
        """Fetch both packages with npm, unless they are there."""
        wanted = {"private": True, "dependencies": {SUITE: VERSION, _node_package(): NODE}}
        package = self.folder / "package.json"
        text = json.dumps(wanted, indent=2)
        if package.exists() and package.read_text(encoding="utf-8") == text and self._node.exists():
            return
        npm = shutil.which("npm")
        if npm is None:
            raise SuiteError("npm is not there: any Node brings it (Debian: apt-get install npm)")
        self.folder.mkdir(parents=True, exist_ok=True)
        package.write_text(text, encoding="utf-8")
        options = ["--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock", "--loglevel=error"]
        mine = Path.home() / ".npmrc"
        env = {**os.environ, **self._private(), **({"npm_config_userconfig": str(mine)} if mine.exists() else {})}
        done = subprocess.run([npm, "install", *options], cwd=self.folder, env=env, capture_output=True, text=True)
        if done.returncode != 0:
            package.unlink()
            raise SuiteError(f"npm install failed: {' '.join(done.stderr.split())[:400]}")

    def _private(self) -> dict[str, str]:
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        cache = {"npm_config_cache": str(self.folder / "npm-cache"), "npm_config_update_notifier": "false"}
        return {"HOME": str(home), "DO_NOT_TRACK": "1", "NO_UPDATE_NOTIFIER": "1", **cache}

    def _run(self, words: Sequence[str], env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        program = self._modules / SUITE / "dist" / "index.js"
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        command = [str(self._node), str(program), *words]
        try:
            return subprocess.run(
                command,
                cwd=self.folder,
                env={**kept, **self._private(), **(env or {})},
                capture_output=True,
                text=True,
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise SuiteError(f"{' '.join(words[:4])}: no end after {SECONDS} s") from None

    def scenarios(self) -> list[Scenario]:
        """All that both revisions run."""
        found: list[Scenario] = []
        for revision in REVISIONS:
            listing = self._run(["list", "--requirements", revision])
            found += scenarios_in(listing.stdout, revision)
        if not found:
            raise SuiteError("the suite lists no scenario")
        return found

    def server(self, scenario: Scenario, url: str) -> list[Check]:
        """Run a scenario against a server."""
        return self._scenario(scenario, ["--url", url], {})

    def client(self, scenario: Scenario, trace: Path, paths: str) -> list[Check]:
        """Run a scenario against the client built on ``handshake``, which saves its trace."""
        command = f'"{sys.executable}" -m conformance.client "{trace}"'
        return self._scenario(scenario, ["--command", command], {"PYTHONPATH": paths, "PYTHONWARNINGS": "ignore"})

    def _scenario(self, scenario: Scenario, words: list[str], env: Mapping[str, str]) -> list[Check]:
        out = self.folder / "results" / scenario.slug
        shutil.rmtree(out, ignore_errors=True)
        asked = ["--scenario", scenario.name, "--spec-version", scenario.revision, "--force", "-o", str(out)]
        done = self._run([scenario.role, *words, *asked], env)
        try:
            return self.saved(scenario)
        except SuiteError as error:
            raise SuiteError(f"{error}: {' '.join((done.stderr or done.stdout).split())[-300:]}") from None

    def saved(self, scenario: Scenario) -> list[Check]:
        """The result of the last run."""
        files = sorted((self.folder / "results" / scenario.slug).rglob("checks.json"))
        if len(files) != 1:
            raise SuiteError(f"{scenario.slug}: {len(files)} results")
        return checks_of(files[0].read_text(encoding="utf-8"))


def _node_package() -> str:
    system, machine = platform.system().lower(), _MACHINES.get(platform.machine().lower())
    if system not in ("linux", "darwin") or machine is None:
        raise SuiteError(f"no Node package for {platform.system()} on {platform.machine()}")
    return f"node-{system}-{machine}"
