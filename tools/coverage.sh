#!/usr/bin/env bash
# Says which share of the lines and branches the tests reach, for each folder.
#   tools/coverage.sh [ARGUMENT…]     the arguments go to ctest, for example -R costmodel
# Builds everything but the trainer with counters (build/coverage), runs the tests that are labelled unit or sim, and prints a table.
# build/coverage/uncovered.txt then lists the functions that no test enters. With FOMOE_ASAN=ON the same build has the sanitizers for
# addresses and undefined behaviour, so that one build serves both. FOMOE_TRAINER=ON adds the trainer, for which tools/setup.sh installs
# LibTorch, and the tests that are labelled trainer or live.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,7s/^# //p' "$0"; exit 0 ;; esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CCACHE_DIR=$PWD/.cache/ccache CCACHE_SLOPPINESS=pch_defines,time_macros
mkdir -p build/coverage
gcc -c tools/coverage_exit.c -o build/coverage/coverage_exit.o
cmake -B build/coverage -G Ninja -DCMAKE_BUILD_TYPE=Debug -DFOMOE_TRAINER="${FOMOE_TRAINER:-OFF}" -DFOMOE_CUDA=OFF \
  -DFOMOE_ASAN="${FOMOE_ASAN:-OFF}" -DCMAKE_CXX_FLAGS="-Og -g1 --coverage -fprofile-update=atomic" \
  -DCMAKE_EXE_LINKER_FLAGS="-Wl,--wrap=_exit,--wrap=_Exit $PWD/build/coverage/coverage_exit.o" >/dev/null
ninja -C build/coverage ${JOBS:+-j$JOBS}
find build/coverage -name '*.gcda' -delete
status=0
# Counters cannot be written to the full disks of the test "killing".
ctest --test-dir build/coverage -L '^(unit|sim|trainer|live)$' -E '^killing$' --output-on-failure "$@" || status=$?
python3 tools/coverage.py build/coverage
exit $status
