#!/usr/bin/env bash
# Checks the format, and runs clang-tidy with the checks in .clang-tidy on the files that the dev preset builds.
#   tools/lint.sh [FILE…]     checks all files, or only the given files
# It needs Debian 12 or Ubuntu 24.04: Debian 13 does not have clang-tidy 14.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
prepare
can_install clang-tidy-14 || fail "tools/lint.sh needs clang-tidy 14, but the package sources of this system do not provide it" \
  "(Debian 12 and Ubuntu 24.04 provide it, Debian 13 does not)."
install_packages "${packages[@]}" clang-tidy-14
status=0
bash tools/format.sh --check || status=1
# clang cannot read the precompiled headers of g++.
logged configure cmake --preset dev -B build/lint -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON || { show_log configure; fail "Configuring the build failed."; }
files=("$@")
[ ${#files[@]} -gt 0 ] || mapfile -t files < <(git ls-files '*.cpp' | while read -r file; do
  ! grep -qF "\"$fomoe_root/$file\"" build/lint/compile_commands.json || printf '%s\n' "$file"
done)
say "Running clang-tidy on ${#files[@]} files"
printf '%s\0' "${files[@]}" | xargs -0 -r -n 1 -P "$(nproc)" \
  clang-tidy-14 -p build/lint --quiet --extra-arg=-Wno-unknown-warning-option 2>/dev/null || status=1
exit $status
