#!/usr/bin/env bash
# This script estimates what it costs to train one mixture-of-experts model across eight cloud regions. It compares DDP,
# DiLoCo and FoMoE, first with assumed step times, then with step times that it measures on this machine.
#
# Usage: ./demo.sh            needs Debian 12 or 13 or Ubuntu 24.04, and root or sudo for Debian packages that are missing
#        ./demo.sh --help
#
#   1. installs the Debian packages that are missing
#   2. builds fomoe in build/release, and downloads LibTorch from PyPI into .venv in the background: 0.55 GB on a machine
#      without an NVIDIA GPU; 2.5 GB, which include nvcc, on a machine with one
#   3. compares the methods on experiments/scenarios/eight-regions.toml with assumed step times
#   4. builds fomoe-train in build/release
#   5. times training steps, on the GPU if there is one, and writes experiments/profiles/this-machine.json, unless this
#      file is newer than the program and the scenario
#   6. compares the methods again, with the measured step times
#
# On two cores the first run takes about 9 minutes, most of them for compiling, and prints the first table after 5.
# Later runs take about half a minute.
# You can interrupt the script at any time and run it again. Outside this folder it only installs Debian packages.
set -euo pipefail
case ${1:-} in
  "") ;;
  -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0"; exit 0 ;;
  *) printf 'demo.sh: got the unknown argument %s; expected no argument or --help; for example ./demo.sh --help\n' "$1" >&2; exit 2 ;;
esac
. "$(dirname "${BASH_SOURCE[0]}")/tools/setup.sh"

scenario=experiments/scenarios/eight-regions.toml
profile=experiments/profiles/this-machine.json
bin=build/release/bin
stages=0
stage() { say "$((stages += 1)) of 6: $*"; }

cases=(--case strategy.method=ddp)
for local_steps in 32 128; do
  cases+=(--case "strategy.method=diloco strategy.local_steps=$local_steps")
done
for local_steps in 32 128; do
  for expert_overlap in 8 4 2 1; do
    cases+=(--case "strategy.method=fomoe strategy.local_steps=$local_steps strategy.expert_overlap=$expert_overlap")
  done
done

prepare
stage "Debian packages"
install_packages "${packages[@]}"

if has_gpu; then device=cuda; else device=cpu; fi
kind=$(trainer_kind)
if [ "$kind" = cuda ]; then with_trainer=(-DFOMOE_TRAINER=ON -DFOMOE_CUDA=ON); else with_trainer=(-DFOMOE_TRAINER=ON -DFOMOE_CUDA=OFF); fi
stage "Building fomoe, the planner and simulator"
if venv_has "$kind"; then
  configure_release "${with_trainer[@]}"
else
  say "Downloading LibTorch in the background (log: .cache/logs/download.log)"
  start_download "$kind"
  configure_release -DFOMOE_TRAINER=OFF
fi
build_release fomoe

stage "Comparison with assumed step times"
if [ -x $bin/fomoe-train ]; then
  say "Skipped: fomoe-train is already built, so measured step times replace the assumed ones"
else
  if [ $device = cuda ]; then assumed='50 ms'; else assumed='1 s'; fi
  printf '\nASSUMED: every training step takes %s at every site and with every method. No step time has been measured yet.\n\n' "$assumed"
  $bin/fomoe compare $scenario --set "compute.step_time=${assumed// /}" "${cases[@]}"
  printf '\nThe comparison with measured step times follows.\n'
fi

stage "Building fomoe-train, the trainer"
if [ -n "$download" ]; then
  finish_download
  configure_release "${with_trainer[@]}"
fi
build_release fomoe-train

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
stage "Measurement of the step times"
if [ $profile -nt $scenario ] && [ $profile -nt $bin/fomoe-train ] && [ $quiet -nt $profile ] &&
  grep -q "\"device_kind\": \"$device\"" $profile; then
  say "Already measured: $profile (remove this file to measure again)"
else
  say "Timing training steps on $device and writing $profile (takes 0.5 to 2 minutes)"
  rm -f $quiet
  mkdir -p "$(dirname $profile)"  # git keeps no empty folders
  read -r -d '' all_before busy_before own_before < <(cpu_ticks) || true
  logged profile $bin/fomoe-train profile --scenario $scenario --local-experts 16,8,4,2 \
    --micro-batch-sequences 1 --time-budget 5s --output $profile || { show_log profile; fail "Timing training steps failed."; }
  read -r -d '' all_after busy_after own_after < <(cpu_ticks) || true
  others=$((100 * (busy_after - busy_before - own_after + own_before) / (all_after - all_before)))
  if [ "$others" -ge 10 ]; then
    disturbed="These step times are unreliable: other programs used $others % of the CPU during the measurement. Run this script again when those programs have ended."
  else
    sleep 0.01 && touch $quiet
  fi
fi

stage "Comparison with measured step times: $((${#cases[@]} / 2)) cases on $scenario"
printf '\n'
$bin/fomoe compare $scenario "${cases[@]}"
[ -z "$disturbed" ] || printf '\n%s\n' "$disturbed"
say "Done. To continue, change $scenario or run $bin/fomoe --help"
say "For Python (import fomoe): python3 -m venv mine && mine/bin/pip install .    (needs python3-venv and python3-dev)"
