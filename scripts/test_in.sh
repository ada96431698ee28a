#!/bin/sh
# Runs the tests in an environment of its own: test_in.sh VENV PYTHON CONSTRAINTS WHAT [PYTEST_ARGS], WHAT as '.[lab]'.
# Afterwards the environment stays, so that a second run is quick. TEST_ARGS is handed to pytest too.
set -eu
venv=$1 python=$2 constraints=$3 what=$4
shift 4
echo "== $("$python" --version), $what, versions as in $constraints"
[ -x "$venv/bin/python" ] || "$python" -m venv --clear "$venv"
pip() { "$venv/bin/python" -m pip install -qq --disable-pip-version-check --root-user-action=ignore "$@"; }
pip -c "$constraints" hatchling editables
pip -c "$constraints" --no-build-isolation -e "$what"
pip -c constraints.txt $("$venv/bin/python" - "$constraints" <<'P'
"""The tests' own tools, as pyproject.toml's extra names them, but for those that only make check and make wheel use."""
import sys, tomllib
test = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["test"]
print(*(t.split(";")[0].replace(" ", "") for t in test if not t.startswith(("build", "pyrefly", "ruff"))))
P
)
exec "$venv/bin/python" -m pytest -n "${JOBS:-logical}" --maxprocesses 8 "$@" ${TEST_ARGS:-}
