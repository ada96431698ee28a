# make report and make test set everything up themselves; needed are Python 3.11 or newer with venv, and make.
#   make report [TRACES="file folder glob ..."]    build/report/index.html, by default from the bundled captures
#   make test   [PYTEST_ARGS="-k name"]            the tests
#   make browser [PYTEST_ARGS="-k 03"]             the notebooks in JupyterLab, in the system's Chromium
# PYTHON=/path/to/python3 chooses the interpreter, VENV=folder the environment, JOBS=0 runs the tests in one process.

SHELL := /bin/sh
VENV ?= .venv
TRACES ?=
PYTEST_ARGS ?=
LAB_ARGS ?=
JOBS ?= logical
FUZZ_SECONDS ?= 900
EVERY_LINE := mcplab/capabilities.py,mcplab/negotiation.py,mcplab/channels.py,mcplab/gating.py
BIN := $(VENV)/bin
PYTHON3 = $$(sh scripts/find_python.sh $(PYTHON))
READY := $(VENV)/.mcplab-ready
READY_TEST := $(VENV)/.mcplab-ready-test
READY_BROWSER := $(VENV)/.mcplab-ready-browser

PIP_FLAGS := -qq --disable-pip-version-check --root-user-action=ignore --no-compile -c constraints.txt
PIP_INSTALL := $(BIN)/python -m pip install $(PIP_FLAGS)
SITE = $$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
COMPILE = $(BIN)/python -m compileall -qq -j 0 -x '/(tests?|pip|setuptools)/' $(SITE) >/dev/null 2>&1 || true
COMPILE_OURS = @$(BIN)/python -m compileall -qq mcplab

# The environment's own kernel and settings count, not what the user has elsewhere.
export JUPYTER_PREFER_ENV_PATH := 1

.PHONY: help setup report pictures test test-all test-oldest test-bare coverage browser check lab bench fuzz conformance observe-check wheel clean distclean
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

help:
	@echo "make report   set up, then the comparison on TRACES= (default: the bundled captures): build/report/index.html"
	@echo "make pictures the README's pictures anew, from the report"
	@echo "make test     set up, then the tests"
	@echo "make test-all the tests with every Python from 3.11 up that is found; test-oldest: oldest dependencies;"
	@echo "              test-bare: without any extra"
	@echo "make coverage the tests, and which lines of mcplab none of them ran: fails under 90 %, and under all of what"
	@echo "              judges declarations (capabilities, negotiation, channels, gating)"
	@echo "make browser  set up, then the notebooks and panels in JupyterLab, as a person uses them (needs Chromium;"
	@echo "              root gets it by apt-get); screenshots in build/screens/"
	@echo "make check    set up, then lint, format, types and layers"
	@echo "make lab      set up, then JupyterLab on the notebooks (root, as in a container, needs LAB_ARGS=--allow-root)"
	@echo "make bench    set up, then the benchmarks"
	@echo "make conformance  set up, then the MCP project's conformance suite beside our findings (needs npm; 10 minutes)"
	@echo "make observe-check  set up, then the clients of the bundled captures again: do they declare the same? (needs npm)"
	@echo "make fuzz     set up, then 15 minutes of fuzzing for each family of readers"
	@echo "make wheel    set up, then a wheel and a source archive in dist/"
	@echo "make clean    remove what the other targets built; make distclean: the environment too"

# Set-up ----------------------------------------------------------------------------------------------
# Two steps, so that the first report comes soon: what the notebooks need, then what the tests need besides. Each is
# reused until pyproject.toml or constraints.txt change. Compiled once here: where Python is told not to write bytecode,
# every start would otherwise compile some thousand files anew. compileall's status is left aside, as some packages ship
# templates that are no valid Python.

setup: $(READY_TEST)

$(READY): pyproject.toml constraints.txt
	@if ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	    python=$$(sh scripts/find_python.sh $(PYTHON)) || exit 1; \
	    echo "Making $(VENV) with $$python"; \
	    "$$python" -m venv --clear $(VENV) || exit 1; \
	fi
	@echo "Installing mcplab and what its notebooks need into $(VENV) (once; a minute or two)"
	@$(PIP_INSTALL) hatchling editables
	@$(PIP_INSTALL) --no-build-isolation -e '.[lab]'
	@$(COMPILE)
	@touch $@

$(READY_TEST): $(READY)
	@echo "Installing what the tests and checks need into $(VENV) (once; about a minute)"
	@$(PIP_INSTALL) --no-build-isolation -e '.[lab,scale,test]'
	@$(COMPILE)
	@touch $@

$(READY_BROWSER): $(READY_TEST)
	@$(PIP_INSTALL) --no-build-isolation -e '.[lab,scale,test,browser]'
	@$(COMPILE)
	@touch $@

# The work --------------------------------------------------------------------------------------------

report: $(READY)
	$(COMPILE_OURS)
	$(BIN)/python -m mcplab report $(TRACES) -o build/report

# The README's pictures are charts of the report on the bundled captures
pictures: TRACES =
pictures: report
	cp build/report/charts/declarations.svg build/report/charts/timeline-legacy.svg docs/images/

test: $(READY_TEST)
	$(COMPILE_OURS)
	$(BIN)/python -m pytest -n $(JOBS) --maxprocesses 8 $(PYTEST_ARGS)

# What the tests start is measured too: the command line, recorders, servers, kernels
coverage: $(READY_TEST)
	$(COMPILE_OURS)
	rm -f .coverage .coverage.*
	$(BIN)/python -m coverage run -m pytest -n $(JOBS) --maxprocesses 8 $(PYTEST_ARGS)
	$(BIN)/python -m coverage combine -q
	$(BIN)/python -m coverage report --fail-under=90
	$(BIN)/python -m coverage report --fail-under=100 --include=$(EVERY_LINE)

# One server, one browser, no plugin for many processes; the folder of a run that passed is not kept
browser: $(READY_BROWSER)
	@sh scripts/chromium.sh
	$(COMPILE_OURS)
	$(BIN)/python -m pytest -p no:cacheprovider -p no:xdist -o tmp_path_retention_policy=failed tests/browser $(PYTEST_ARGS)

check: $(READY_TEST)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/pyrefly check --python-interpreter-path $(BIN)/python --min-severity error --summary=none
	$(BIN)/python -m pytest -p no:cacheprovider tests/test_layers.py

lab: $(READY)
	$(COMPILE_OURS)
	$(BIN)/python -c 'import sys; from pathlib import Path; from mcplab.lab import start; start(Path("notebooks"), sys.argv[1:])' $(LAB_ARGS)

bench: $(READY_TEST)
	$(COMPILE_OURS)
	@missed=; for file in benchmarks/bench_*.py; do \
	    echo "== $$file"; $(BIN)/python $$file || missed="$$missed $$file"; done; \
	[ -z "$$missed" ] || { echo "A limit is missed in:$$missed" >&2; exit 1; }

# Every Python from 3.11 up that is found, each in an environment of its own; says which were not.
test-all:
	@sh scripts/test_all.sh

# The oldest dependencies that pyproject.toml allows (old ones deprecate things among each other), and no extras.
test-oldest:
	@mkdir -p build && $(PYTHON3) scripts/oldest.py > build/oldest.txt
	@sh scripts/test_in.sh build/venv-oldest "$(PYTHON3)" build/oldest.txt '.[lab,scale]' -W ignore::DeprecationWarning

test-bare:
	@sh scripts/test_in.sh build/venv-bare "$(PYTHON3)" constraints.txt '.'

# 15 minutes a family of readers; atheris is built for some Pythons only, so it has an environment of its own
fuzz: $(READY_TEST)
	$(BIN)/python -m venv build/fuzz-venv
	build/fuzz-venv/bin/python -m pip install -qq --disable-pip-version-check atheris msgspec tzdata
	@set -e; for family in lines documents http logs any; do \
	  PYTHONPATH=. build/fuzz-venv/bin/python tests/fuzz/fuzz_formats.py $$family --seconds $(FUZZ_SECONDS); done

# The suite and a Node for it come by npm into build/conformance; docs/conformance.md is written anew.
# CONFORMANCE_ARGS=--compare compares the last run again, "--only server-ping" takes some scenarios only.
conformance: $(READY_TEST)
	PYTHONPATH=tests $(BIN)/python -m conformance $(CONFORMANCE_ARGS)

# Installs them by pip and npm into the user's cache; OBSERVE_ARGS="fast-agent:roots codex" takes some only.
observe-check: $(READY_TEST)
	$(BIN)/python scripts/observe_check.py $(OBSERVE_ARGS)

wheel: $(READY_TEST)
	$(BIN)/python -m build --no-isolation --outdir dist .

clean:
	rm -rf build dist .pytest_cache .ruff_cache .hypothesis .coverage .coverage.* htmlcov
	find mcplab tests notebooks benchmarks -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean
	rm -rf $(VENV)
