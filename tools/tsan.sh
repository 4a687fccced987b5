#!/usr/bin/env bash
# Runs the project's threads (tests/threads) with the thread sanitizer.
#   tools/tsan.sh [ARGUMENT…]     the arguments go to doctest, for example --test-case='*store*'
# It compiles what it needs by itself, in about a minute: LibTorch has no build with the sanitizer, and would hide or invent races.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,4s/^# //p' "$0"; exit 0 ;; esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p build/tsan
sources=(tests/main.cpp tests/threads/*.cpp trainer/execution/background.cpp trainer/store/{channel,secret,store_contents,store_server}.cpp
  experiments/probe/*.cpp experiments/text/{nesting,units,suggest,human}.cpp platforms/support/*.cpp)
flags=(-std=c++20 -g -O1 -fsanitize=thread -D_GLIBCXX_ASSERTIONS -I. -I/usr/include/doctest)
for source in "${sources[@]}"; do
  object=build/tsan/${source//\//_}.o
  # Headers may have changed, so that everything is compiled; ccache knows what has not.
  printf '%s\0%s\0' "$source" "$object"
done | xargs -0 -n 2 -P "${JOBS:-$(nproc)}" sh -c '$(command -v ccache) "${CXX:-g++}" '"${flags[*]}"' -c "$0" -o "$1"'
objects=()
for source in "${sources[@]}"; do objects+=("build/tsan/${source//\//_}.o"); done
"${CXX:-g++}" -fsanitize=thread "${objects[@]}" -lcrypto -lfmt -o build/tsan/test_threads
# A kernel that places programs far apart leaves the sanitizer no room; setarch places them as before.
export TSAN_OPTIONS="halt_on_error=0 exitcode=66 suppressions=$PWD/tests/threads/suppressions.txt print_suppressions=0"
setarch --addr-no-randomize build/tsan/test_threads "$@"
