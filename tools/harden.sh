#!/usr/bin/env bash
# Attacks the project from all sides, and prints a line for each attack: its name, exit status, time, and the last line that it
# printed. The logs are in build/harden/SEED. A part that has succeeded is not run again with the same seed and the same sources.
#   tools/harden.sh [--seed N] [--short] [PART…]     N is 1 by default; --short makes fewer attempts
# Parts: reference (a second implementation, and properties), fuzz (clang 14), limits, kills, chaos, threads, sanitizers, coverage,
# faults, tidy. All of them by default, one after the other. The seed changes reference, limits, kills, chaos and faults; fuzz draws
# anew each time. They need a build by ./test.sh. chaos, and a part of kills, need Linux network namespaces.
set -euo pipefail
seed=1 size=long parts=()
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) sed -n '2,8s/^# //p' "$0"; exit 0 ;;
    --seed) seed=${2:-}; [ $# -gt 1 ] && shift ;;
    --short) size=short ;;
    -*) printf 'tools/harden.sh: got %s; expected --seed, --short or a part; for example tools/harden.sh --short reference\n' "$1" >&2; exit 2 ;;
    *) parts+=("$1") ;;
  esac
  shift
done
case $seed in '' | *[!0-9]*) printf 'tools/harden.sh: --seed: got %s; expected a whole number; for example 7\n' "$seed" >&2; exit 2 ;; esac
cd "$(dirname "${BASH_SOURCE[0]}")/.."
all=(reference fuzz limits kills chaos threads sanitizers coverage faults tidy)
[ ${#parts[@]} -gt 0 ] || parts=("${all[@]}")
for part in "${parts[@]}"; do
  printf '%s\n' "${all[@]}" | grep -qxF -- "$part" || {
    printf 'tools/harden.sh: got %s; expected one of %s\n' "$part" "${all[*]}" >&2; exit 2; }
done
bin=build/release/bin logs=build/harden/$seed
[ -x $bin/fomoe ] || { printf 'tools/harden.sh: no %s/fomoe; run ./test.sh first\n' "$bin" >&2; exit 2; }
mkdir -p "$logs"
sources=$( (git rev-parse HEAD && git diff HEAD) | sha1sum | cut -c 1-12)
python=python3
[ -x .venv/bin/python ] && python=.venv/bin/python

choose() { [ $size = long ] && printf %s "$1" || printf %s "$2"; }  # LONG SHORT

attack() {
  case $1 in
    reference) $python tests/reference/differential_test.py --fomoe $bin/fomoe --seed "$seed" \
      --scenarios "$(choose 10000 300)" --properties "$(choose 460 23)" ;;
    fuzz) tests/fuzz/fuzz.sh "$(choose 90 5)" && tests/fuzz/fuzz.sh --total ;;  # seconds for each of 40 readers
    limits) $python tests/fuzz/limits.py --all --fomoe $bin/fomoe --seed "$seed" ;;
    kills)
      $python tests/killing/killing.py --fomoe $bin/fomoe --rounds "$(choose 24 3)" --seed "$seed" &&
        $python tests/killing/training_killing.py --train $bin/fomoe-train --kills "$(choose 100 10)" --seed "$seed" &&
        # Status 77: this machine cannot emulate links.
        { $python tests/killing/wan_killing.py --programs $bin --seed "$seed" || [ $? -eq 77 ]; } ;;
    chaos) $python tests/trainer/chaos.py --programs $bin --minutes "$(choose 60 2)" --rounds "$(choose 2500 300)" --seed "$seed" --links ;;
    threads) tools/tsan.sh ;;
    sanitizers) tools/asan.sh ;;
    coverage) tools/coverage.sh ;;
    # mutate.py adds rows to its table; it succeeds if it tried all faults, whether or not a test saw them.
    faults) cmake --preset dev >/dev/null && $python tests/mutation/mutate.py --number "$(choose 100 5)" --seed "$seed" --build build/dev &&
      $python tests/mutation/mutate.py --summary ;;
    tidy) tools/lint.sh ;;
  esac
}

failed=0
for part in "${parts[@]}"; do
  log=$logs/$part-$size.log ok=$logs/$part-$size-$sources.ok
  if [ ! -e "$ok" ]; then
    begun=$SECONDS status=0
    printf '%s …\n' "$part" >&2
    attack "$part" >"$log.tmp" 2>&1 || status=$?
    mv "$log.tmp" "$log"
    line="$part: status $status, $((SECONDS - begun)) s: $(grep -v '^ *$' "$log" | tail -n 1 || true)"
    if [ $status -ne 0 ]; then
      printf '%s (%s)\n' "$line" "$log"
      failed=1
      continue
    fi
    printf '%s\n' "$line" >"$ok.tmp"
    mv "$ok.tmp" "$ok"
  fi
  cat "$ok"
done
exit $failed
