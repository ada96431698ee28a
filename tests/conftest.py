"""What every test gets: no display, no network beyond loopback, nothing from the home folder, no figure left open."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import settings

from mcplab import data

# Figures need no display here. By rc file and not by MPLBACKEND, which a notebook's kernel would inherit: it would then
# show no figure in its outputs.
os.environ.pop("MPLBACKEND", None)
os.environ["MATPLOTLIBRC"] = str(Path(__file__).parent / "matplotlibrc")
os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"

# Started with nohup or in the background of a script, every process that a test starts would ignore these, as it should.
for name, usual in (("SIGINT", signal.default_int_handler), ("SIGHUP", signal.SIG_DFL), ("SIGQUIT", signal.SIG_DFL)):
    if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) is signal.SIG_IGN:
        signal.signal(getattr(signal, name), usual)

settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

EXTRAS = {
    "nbformat": ("test_notebooks.py", "test_report.py", "test_rulings.py"),
    "ipywidgets": ("test_widgets.py",),
    "ipykernel": ("test_handshake_kernel.py",),
    "jupyterlab": ("test_lab.py",),
    "duckdb": ("test_corpus*.py",),
}
"""Tests that need what an extra brings: without the extra they are not collected, and the header says so."""
_missing = [module for module in EXTRAS if importlib.util.find_spec(module) is None]
collect_ignore_glob = ["browser", *(name for module in _missing for name in EXTRAS[module])]  # make browser names it


def pytest_report_header() -> list[str]:
    return [f"not installed: {module}; left out: {', '.join(EXTRAS[module])}" for module in _missing]


@pytest.fixture(scope="session", autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Jupyter's and IPython's settings of the person who runs the tests neither help nor hinder."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
            patch.setenv(name, str(home / name.lower()))
        yield home


@pytest.fixture(scope="session", autouse=True)
def loopback_only() -> Iterator[None]:
    """A socket of this process that would leave the machine is an error."""
    real = socket.socket.connect

    def connect(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise AssertionError(f"a test wanted to connect to {address}; tests stay on 127.0.0.1")
        real(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", connect)
        yield


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")


@pytest.fixture(scope="session")
def captures() -> list[Path]:
    """The bundled captures, sorted."""
    return sorted(data.traces_dir().rglob("*.jsonl"))


@pytest.fixture(scope="session")
def script() -> Callable[[str], ModuleType]:
    """Loads a program of scripts/, which are no package, by its name."""

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[1] / "scripts" / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load
