#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs one file of Python tests with pytest in the lab's environment; extra arguments go to pytest.
set -eu
root=$(CDPATH='' cd -P "$(dirname "$0")/../.." && pwd -P)
python=$("$root/tools/lab_venv.sh")
export PYTHONPATH="$root/tools:$root/test/lab" PYTHONDONTWRITEBYTECODE=1
exec "$python" -m pytest -q -p no:cacheprovider "$@"
