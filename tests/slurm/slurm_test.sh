#!/usr/bin/env bash
# Tests the job scripts of experiments/slurm on a real Slurm cluster on this machine:  slurm_test.sh BINARIES
# It trains with several tasks and compares the state byte for byte with that of one process that runs the nodes in turn.
# It sweeps in a job array and compares the table with that of one process. The exit status is 77 if Slurm is missing.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
if [ "${1:-}" != inside ]; then
  FOMOE=$(realpath "$1/fomoe") FOMOE_TRAIN=$(realpath "$1/fomoe-train")
  export FOMOE FOMOE_TRAIN
  out=$(mktemp -d)
  trap 'rm -rf "$out"' EXIT
  tests/slurm/cluster.sh "${BASH_SOURCE[0]}" inside "$out"
  exit
fi
out=$2

job() {  # SBATCH ARGUMENTS…: submits a job and waits for its end; prints its log if it fails
  sbatch --wait --quiet --output="$out/job-%j-%a.log" "$@" || { tail -n 20 "$out"/job-*.log >&2; exit 1; }
}
settings=(--threads 1 --set platform.sites=2 --set strategy.expert_overlap=1 --set workload.tokens=131072)
scenario=experiments/scenarios/tiny-training.toml

job --ntasks=2 experiments/slurm/train.sbatch "$scenario" "${settings[@]}" --checkpoints "$out/tasks" --output "$out/tasks.json"
"$FOMOE_TRAIN" run "$scenario" "${settings[@]}" --in-turn --checkpoints "$out/turn" --output "$out/turn.json"
last=$(ls "$out/turn" | tail -n 1)
for node in 0 1; do cmp "$out/turn/$last/node-$node.safetensors" "$out/tasks/$last/node-$node.safetensors"; done
echo "2 tasks of Slurm and one process in turn: the same bytes after $last"

# A job that is told to stop saves, is put into the queue again and ends in the same bytes. Its tasks have the CPUs of the job.
show=$out/show-cpus
printf '#!/bin/sh\necho "CPUs of a task: $SLURM_CPUS_PER_TASK" >>"%s"\nexec "%s" "$@"\n' "$out/cpus" "$FOMOE_TRAIN" >"$show"
chmod +x "$show"
longer=("${settings[@]}" --set workload.tokens=2097152)
"$FOMOE_TRAIN" run "$scenario" "${longer[@]}" --in-turn --checkpoints "$out/long"
number=$(FOMOE_TRAIN=$show FOMOE_CHECKPOINTS=$out/stopped sbatch --parsable --output="$out/stopped.log" --ntasks=2 --cpus-per-task=3 \
  experiments/slurm/train.sbatch "$scenario" "${longer[@]}")
for _ in $(seq 600); do [ -e "$out/stopped/round-00000003/node-1.safetensors" ] && break; sleep 0.1; done
scancel --signal=TERM "$number"
ended() { case $(scontrol show job "$number" | grep -o 'JobState=[A-Z]*') in *COMPLETED) return 0 ;; *FAILED | *CANCELLED) return 2 ;; *) return 1 ;; esac; }
released=
for _ in $(seq 1800); do
  ended && break
  # Slurm holds a requeued job back for two minutes; here it need not.
  if [ -z "$released" ] && scontrol show job "$number" | grep -q 'Reason=BeginTime'; then
    scontrol update jobid="$number" starttime=now && released=yes
  fi
  sleep 0.1
done
ended || { tail -n 20 "$out/stopped.log" >&2; exit 1; }
grep -q 'got SIGTERM; --resume goes on from there' "$out/stopped.log"
grep -q 'resumed after round' "$out/stopped.log"
last_long=$(ls "$out/long" | tail -n 1)
for node in 0 1; do cmp "$out/long/$last_long/node-$node.safetensors" "$out/stopped/$last_long/node-$node.safetensors"; done
[ "$(sort -u "$out/cpus")" = 'CPUs of a task: 3' ] || { sort -u "$out/cpus" >&2; exit 1; }
echo "a job that was told to stop, and went on in the queue: the same bytes after $last_long"

# Started with srun directly, without a job script.
MASTER_ADDR=127.0.0.1 MASTER_PORT=$((10000 + $$ % 10000)) srun --ntasks=2 "$FOMOE_TRAIN" run "$scenario" "${settings[@]}" \
  --checkpoints "$out/srun"
cmp "$out/turn/$last/node-1.safetensors" "$out/srun/$last/node-1.safetensors"

axes=(experiments/scenarios/two-sites.toml --engine closed-form --vary strategy.local_steps=1..50+1
      --vary 'platform.bandwidth=100Mbps..100Gbps*10/decade')
job --array=1-3 experiments/slurm/sweep.sbatch "$out/rows" "${axes[@]}"
{ head -n 1 "$out/rows-1.csv"; tail -q -n +2 $(ls -v "$out"/rows-*.csv); } >"$out/rows.csv"
"$FOMOE" sweep "${axes[@]}" --output "$out/whole.csv"
cmp "$out/whole.csv" "$out/rows.csv"
[ "$(ls "$out"/rows-*.csv | wc -l)" = 3 ]
echo "3 tasks of an array and one process: the same $(wc -l <"$out/whole.csv") lines"

grid=(experiments/proxies/tiny.toml --set workload.tokens=131072)
job --array=1-2 experiments/slurm/grid.sbatch "${grid[@]}" --output "$out/grid"
"$FOMOE_TRAIN" grid "${grid[@]}" --output "$out/grid-alone"
cmp "$out/grid/quality.csv" "$out/grid-alone/quality.csv"
echo "2 tasks of an array and one process: the same perplexities of $(($(wc -l <"$out/grid/rows.csv") - 1)) runs"
