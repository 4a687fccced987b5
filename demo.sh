#!/usr/bin/env bash
# What would it cost to train one mixture-of-experts model across eight cloud regions? This times real training steps on
# this machine, and with them compares DDP, DiLoCo and FoMoE.
#
# Usage: ./demo.sh            needs Debian 12 or Ubuntu 24.04, and root or sudo for the packages that are missing
#        ./demo.sh --help
#
#   1. installs what is missing: Debian packages, and LibTorch and nvcc from PyPI into .venv (5 GB)
#   2. builds fomoe and fomoe-train in build/release
#   3. times training steps, on the GPU if there is one, into experiments/profiles/this-machine.json, unless that is
#      newer than the program and the scenario
#   4. compares the methods on experiments/scenarios/eight-regions.toml
#
# The first run takes up to 15 minutes on two cores, downloads included; the next ones about half a minute. Interrupt
# and repeat it as you like. Outside this folder it leaves Debian packages and nothing else.
set -euo pipefail
case ${1:-} in
  "") ;;
  -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0"; exit 0 ;;
  *) printf 'demo.sh: unknown argument %s; ./demo.sh --help says what it does\n' "$1" >&2; exit 2 ;;
esac
. "$(dirname "${BASH_SOURCE[0]}")/tools/setup.sh"

scenario=experiments/scenarios/eight-regions.toml
profile=experiments/profiles/this-machine.json

setup
build_release fomoe fomoe-train

# CPU time so far, in clock ticks: of everything, of everything but idling, of this script's finished children.
cpu_ticks() {
  awk '/^cpu / {busy = $2 + $3 + $4 + $7 + $8 + $9; print busy + $5 + $6, busy}' /proc/stat
  awk '{print $16 + $17}' /proc/$$/stat
}

# A step timed while other programs want the same cores can be tens of times too long, and by another factor for each
# count of experts, which turns the comparison round. So the share of the CPU that others took is measured too,
# and a profile is used again only if that share was small.
quiet=.cache/profile-was-quiet
disturbed=
if has_gpu; then device=cuda; else device=cpu; fi
if [ $profile -nt $scenario ] && [ $profile -nt build/release/bin/fomoe-train ] && [ $quiet -nt $profile ] &&
  grep -q "\"device_kind\": \"$device\"" $profile; then
  say "Training steps were timed on this machine already, in $profile (remove it to time them again)"
else
  say "Timing real training steps on $device into $profile (half a minute to two)"
  rm -f $quiet
  mkdir -p "$(dirname $profile)"  # git keeps no empty folders
  read -r -d '' all_before busy_before own_before < <(cpu_ticks) || true
  logged profile build/release/bin/fomoe-train profile --scenario $scenario --local-experts 16,8,4,2 \
    --micro-batch-sequences 1 --time-budget 5s --output $profile || { show_log profile; fail "Timing training steps failed."; }
  read -r -d '' all_after busy_after own_after < <(cpu_ticks) || true
  others=$((100 * (busy_after - busy_before - own_after + own_before) / (all_after - all_before)))
  if [ "$others" -ge 10 ]; then
    disturbed="Do not trust these times: other programs took $others % of the CPU while steps were timed. Run this again when they have ended."
  else
    sleep 0.01 && touch $quiet
  fi
fi

cases=(--case strategy.method=ddp)
for local_steps in 32 128; do
  cases+=(--case "strategy.method=diloco strategy.local_steps=$local_steps")
done
for local_steps in 32 128; do
  for expert_overlap in 8 4 2 1; do
    cases+=(--case "strategy.method=fomoe strategy.local_steps=$local_steps strategy.expert_overlap=$expert_overlap")
  done
done
say "Comparing $((${#cases[@]} / 2)) cases on $scenario"
printf '\n'
build/release/bin/fomoe compare $scenario "${cases[@]}"
[ -z "$disturbed" ] || printf '\n%s\n' "$disturbed"
say "Done. Change $scenario, or try: build/release/bin/fomoe --help"
