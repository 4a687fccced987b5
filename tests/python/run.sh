#!/usr/bin/env bash
# Builds the package as `pip install .` does, installs it into a folder of its own, and tests it there:  run.sh PYTHON
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python=$1
pip=("$python" -m pip --disable-pip-version-check --quiet)
wheels=build/python-wheel site=$PWD/build/python-site
rm -rf "$wheels" "$site"
"${pip[@]}" wheel . --no-deps --no-build-isolation --wheel-dir "$wheels"
"${pip[@]}" install --no-deps --target "$site" "$wheels"/fomoe-*.whl
PYTHONPATH=$site exec "$python" -m pytest -q -rs -p no:cacheprovider tests/python
