#!/usr/bin/env bash
# Formats the tracked C++ and CUDA files in place; with --check only says what would change, and exits 1 if anything would.
# clang-format 14 it must be, since other versions break lines elsewhere: it is in Debian 12 and in Ubuntu 24.04.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
prepare
install_packages clang-format-14
how=(-i)
[ "${1:-}" != --check ] || how=(--dry-run -Werror)
git ls-files -z '*.cpp' '*.hpp' '*.cu' '*.cuh' | xargs -0 -r clang-format-14 "${how[@]}"
