#!/usr/bin/env bash
# Installs what is missing, builds everything, and runs all tests but those labelled slow.
# Arguments go to ctest:  ./test.sh -R costmodel    ./test.sh -L sim    ./test.sh -L slow (only the slow ones)
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,3s/^# //p' "$0"; exit 0 ;; esac
. "$(dirname "${BASH_SOURCE[0]}")/tools/setup.sh"

setup
install_notebooks
build_release
has_gpu || say "No NVIDIA GPU here: the tests labelled gpu skip themselves"
without=(-LE slow)
case " $* " in *" slow "*) without=() ;; esac
say "Testing"
exec ctest --preset release "${without[@]}" "$@"
