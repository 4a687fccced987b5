#!/usr/bin/env bash
# What would it cost to train one mixture-of-experts model across eight cloud regions? This measures real training steps on this
# machine, and compares DDP, DiLoCo and FoMoE with them.
#
# Usage: ./demo.sh            needs Debian 12 or Ubuntu 24.04, and root or sudo for the packages that are missing
#        ./demo.sh --help
#
#   1. installs what is missing: Debian packages, and LibTorch and nvcc from PyPI into .venv (5 GB)
#   2. builds fomoe and fomoe-train in build/release
#   3. times training steps, on the GPU if there is one, into experiments/profiles/this-machine.json
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

if has_gpu; then device="the GPU"; else device="the CPU (no NVIDIA GPU here)"; fi
say "Timing real training steps on $device into $profile"
logged profile build/release/bin/fomoe-train profile --scenario $scenario --local-experts 16,8,4,2 \
  --micro-batch-sequences 1 --time-budget 5s --output $profile || { show_log profile; fail "Timing training steps failed."; }

cases=(--case strategy.method=ddp)
for local_steps in 32 128; do
  cases+=(--case "strategy.method=diloco,strategy.local_steps=$local_steps")
done
for local_steps in 32 128; do
  for expert_overlap in 8 4 2 1; do
    cases+=(--case "strategy.method=fomoe,strategy.local_steps=$local_steps,strategy.expert_overlap=$expert_overlap")
  done
done
say "Comparing $((${#cases[@]} / 2)) cases on $scenario"
printf '\n'
build/release/bin/fomoe compare $scenario "${cases[@]}"
say "Done. Change $scenario, or try: build/release/bin/fomoe --help"
