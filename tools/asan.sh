#!/usr/bin/env bash
# Builds everything but the trainer with the address and undefined-behaviour sanitizers, and runs the tests of that build
# that are labelled unit or sim.
#   tools/asan.sh [ARGUMENT…]     the arguments go to ctest, for example -R sim
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,4s/^# //p' "$0"; exit 0 ;; esac
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
prepare
install_packages "${packages[@]}"
logged configure-asan cmake --preset asan || { show_log configure-asan; fail "Configuring the build failed."; }
say "Building with sanitizers; this takes about as long as the normal build"
progress=build_progress logged build-asan cmake --build --preset asan || { show_log build-asan; fail "The build failed."; }
# Each simulation is a process of its own, and a fork copies the page tables of the memory that the sanitizer withholds from reuse.
# Leaks are not looked for, since SimGrid keeps its objects until a process ends.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0:quarantine_size_mb=8}
exec ctest --preset asan -L '^(unit|sim)$' "$@"
