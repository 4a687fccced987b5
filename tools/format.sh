#!/usr/bin/env bash
# Formats the C++ and CUDA files in place, new ones too, but none that git ignores. With --check it changes nothing, prints the
# lines that it would change, and exits with 1 if there are any. It needs clang-format 14, since other versions break lines
# differently. It exits with 77 on systems that do not provide this version.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
prepare
can_install clang-format-14 || {
  printf 'tools/format.sh needs clang-format 14, but the package sources of this system do not provide it\n' >&2
  printf '(Debian 12 and Ubuntu 24.04 provide it, Debian 13 does not). No file was checked or changed.\n' >&2
  exit 77
}
install_packages clang-format-14
how=(-i)
[ "${1:-}" != --check ] || how=(--dry-run -Werror)
git ls-files -z --cached --others --exclude-standard '*.cpp' '*.hpp' '*.cu' '*.cuh' | xargs -0 -r clang-format-14 "${how[@]}"
