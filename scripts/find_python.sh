#!/bin/sh
# Prints a Python that can hold the project: 3.11 or newer, able to make a virtual environment with pip in it.
# Usage: find_python.sh [CANDIDATE]...   Otherwise one clear line on stderr and status 1.
[ $# -gt 0 ] || set -- python3.13 python3.12 python3.11 python3.14 python3
bare=
for candidate in "$@"; do
    found=$("$candidate" -c 'import sys; print(sys.executable) if sys.version_info >= (3, 11) else sys.exit(1)' 2>/dev/null) || continue
    # Debian's python3 has venv but, without python3-venv, no ensurepip: the environment would come without pip.
    if "$found" -c 'import ensurepip, venv' 2>/dev/null; then
        echo "$found"
        exit 0
    fi
    bare=${bare:-$found}
done
if [ -n "$bare" ]; then
    version=$("$bare" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    echo "mcplab: $bare cannot make a virtual environment (no ensurepip); on Debian: apt install python$version-venv" >&2
else
    echo "mcplab: no Python 3.11 or newer among: $*; install one, or name it: make PYTHON=/path/to/python3" >&2
fi
exit 1
