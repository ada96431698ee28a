#!/bin/sh
# Runs the tests with every Python from 3.11 up that is found (on PATH or below PYENV_ROOT), and says which were not.
set -eu
missing= failed= ran=
for minor in 11 12 13 14 15; do
    found=
    for candidate in "python3.$minor" "${PYENV_ROOT:-$HOME/.pyenv}/versions/3.$minor".*/bin/python3; do
        if "$candidate" -c "import ensurepip, sys, venv; sys.exit(sys.version_info[:2] != (3, $minor))" 2>/dev/null; then
            found=$candidate
            break
        fi
    done
    if [ -z "$found" ]; then
        missing="$missing 3.$minor"
    elif sh scripts/test_in.sh "build/venv-3.$minor" "$found" constraints.txt '.[lab,scale]'; then
        ran="$ran 3.$minor"
    else
        failed="$failed 3.$minor"
    fi
done
echo "== passed:${ran:- none}; failed:${failed:- none}; not found:${missing:- none}"
[ -z "$failed" ] && [ -n "$ran" ]
