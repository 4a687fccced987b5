#!/usr/bin/env bash
# Measures on a GPU, in calls of some minutes: the tests of the GPU code, step profiles of the five presets, our kernels beside
# LibTorch's operators, the time of each kernel in a step, several processes on the GPU at once, rates of kernels, and the same
# model in PyTorch, eager and compiled.
#
# Usage: experiments/measure_gpu.sh --output FOLDER [options]
#   --output FOLDER     the folder for all results; it is created if it does not exist
#   --bin FOLDER        the folder with fomoe-train, test_gpu and bench_kernels (default: build/release/bin)
#   --budget SECONDS    the time for this call (default: 430)
#   --pack FILE.tar.xz  writes what a GPU machine needs beside this repository, and measures nothing; unpack it there, and name the
#                       folder with --bin
#   --rehearse          runs the same stages with a tiny model on the CPU, to test that this script runs to its end
#   --list              prints the stages and their limits
#
# Stages run one after the other, each with its own limit. Complete stages are not run again, so the same command continues
# a call that was killed or that ran out of its budget. FOLDER/status.csv has the outcome of each stage, FOLDER/STAGE/ its
# files and log, FOLDER/machine.txt device, driver and versions, and FOLDER/clocks.csv the clocks before and after each
# stage. FOLDER/measurements.tar.gz holds all of these files and is written anew after each stage. Exit status: 0 all stages
# are complete, 1 a stage failed or hit its limit, 2 wrong usage, 3 the budget ran out (call again).
#
# large, xl and xxl are timed at two depths (embedding, head, and 2 or 18 layers; 2 or 8 for xxl). `fomoe profile compose`
# computes their profiles from these, on any machine; the last lines of the output show the commands. Stage whole times the
# whole large model, which this computation is checked with. Stages shared2 and shared4 time 2 and 4 processes on one GPU at
# once, as trainings of several sites on one GPU need them. experiments/gpu_summary.py FOLDER summarises the results.
#
# Steps are launched as CUDA graphs. If stage graph fails, all later stages launch kernel by kernel, and status.csv says so.
set -uo pipefail
cd "$(dirname "$0")/.."

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0"; }
fail() { printf 'measure_gpu.sh: %s\n' "$1" >&2; exit 2; }

output= bin=build/release/bin budget=430 rehearse= list= pack=
while [ $# -gt 0 ]; do
  case $1 in
    --output | --bin | --budget | --pack)
      [ $# -gt 1 ] || fail "$1: got nothing; expected a value after it; for example $1 $([ "$1" = --budget ] && echo 430 || echo folder)"
      printf -v "${1#--}" %s "$2"; shift 2 ;;
    --rehearse) rehearse=yes; shift ;;
    --list) list=yes; shift ;;
    -h | --help) usage; exit 0 ;;
    *) fail "unknown argument $1; expected one of --output, --bin, --budget, --pack, --rehearse, --list" ;;
  esac
done
[[ $budget =~ ^[1-9][0-9]{0,5}$ ]] || fail "--budget: got \"$budget\"; expected whole seconds; for example --budget 430"
[ -n "$output$list$pack" ] || fail "--output: got nothing; expected a folder; for example --output gpu-measurements"

python=${PYTHON:-python3}
[ -n "${PYTHON:-}" ] || [ ! -x .venv/bin/python3 ] || python=.venv/bin/python3
train=$bin/fomoe-train

# What is timed. The rehearsal runs the same stages with the tiny model.
if [ -n "$rehearse" ]; then
  tiny=d_model=64,layers=2,heads=2,experts=8,active_experts=2,d_expert=32,vocabulary=256
  steps=(--steps 3 --warmup 1) device=cpu depths="1 2" deep=3 whole=4 graphs=auto held_out=6 skip_batches=1
  training=experiments/scenarios/tiny-training.toml trainings="small shared4/small-1.json workload.tokens=16384"
  model() { printf '%s\n' --scenario experiments/scenarios/tiny-training.toml --sequence-length 16; }
  twin_model() { printf '%s\n' --shape $tiny --sequence-length 16; }
  experts() { echo 8,4; }
  batches() { echo 1,2; }
  time_budget=1s
  compiled=(--mode eager)  # compiling takes a minute or two and would not test this script
else
  steps=(--steps 20 --warmup 5) device=cuda depths="2 18" deep=16 whole=128 graphs=on held_out=12,6,3 skip_batches=1,4
  training=experiments/measured/training.toml
  trainings="ring shared4/small-1.json
int8 shared4/small-1.json strategy.collective=direct strategy.payload_dtype=int8
streaming shared4/small-1.json strategy.method=streaming_diloco strategy.collective=direct strategy.fragments=2 strategy.overlap_steps=4
fomoe-fixed shared4/small-1.json strategy.method=fomoe strategy.collective=direct strategy.expert_overlap=2
fomoe-random shared4/small-1.json strategy.method=fomoe strategy.collective=direct strategy.expert_overlap=2 strategy.placement=random
medium shared2/medium-1.json model.preset=medium platform.sites=2 workload.global_batch_sequences=8 strategy.local_steps=8 workload.tokens=393216"
  model() { printf '%s\n' --model "$1"; }
  # A vocabulary of 200,019 tokens makes PyTorch's matrix products slow; its users pad it to a multiple of 64, as our trainer does.
  twin_model() { printf '%s\n' --model "$1" --vocabulary 200064; }
  experts() { case $1 in small) echo 8,4,2,1 ;; medium) echo 16,8,4,2,1 ;; large) echo 32,16,8,4 ;; xl) echo 64,32 ;; xxl) echo 128,64 ;; esac; }
  batches() { case $1 in small | medium) echo 1,4,8 ;; large) echo 1,4 ;; xl) echo 1,2 ;; xxl) echo 1 ;; esac; }
  time_budget=4s
  compiled=(--mode compile --compile-mode reduce-overhead)  # with CUDA graphs, as our own steps
fi

# These programs link LibTorch, which PyTorch contains, and CUDA's runtime, which one of NVIDIA's Python packages contains.
torch_lib=$("$python" -c 'import glob, os, torch
packages = os.path.dirname(os.path.dirname(torch.__file__))
print(":".join([os.path.join(packages, "torch/lib"), *sorted(glob.glob(os.path.join(packages, "nvidia/*/lib")))]))' 2>/dev/null) || torch_lib=
[ ! -d "$bin/lib" ] || torch_lib=$torch_lib${torch_lib:+:}$(cd "$bin/lib" && pwd)  # of --pack
export LD_LIBRARY_PATH=$torch_lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

ours() {  # MODEL FILE OPTION…: takes a profile with fomoe-train
  local name=$1 file=$2; shift 2
  local words; mapfile -t words < <(model "$name")
  "$train" profile "${words[@]}" --device $device --cuda-graph "$launches" "${steps[@]}" --time-budget "$time_budget" --output "$file" "$@"
}
peer() {  # MODEL FILE OPTION…: takes a profile with the Python twin
  local name=$1 file=$2; shift 2
  local words; mapfile -t words < <(twin_model "$name")
  "$python" experiments/twin/profile_twin.py "${words[@]}" --device $device "${steps[@]}" --time-budget 4 --output "$file" "$@"
}

# Each stage has a name, a limit in seconds, and a function run_NAME whose first argument is the folder for its files. The
# most important stages come first: the tests, whether steps can be recorded, the profiles that plans are made with, trainings of
# sites on this GPU, errors that only a GPU shows, where the time goes, a step beside that of torch.compile. The limits add up to more than the
# budget, since few stages reach theirs.
stages=(tests:60 graph:30 medium:60 small:30 shared4:40 shared2:40 trainings:200 sanitizer:130 whole:60 large:60 kernel_times:90
        xl:60 xxl:90 compiled:150 skip_peer:60 skip:40 composition:60 kernels:90 eager:40 rates:30 library:30 compiled16:200)
run_tests() {
  "$bin/test_gpu"
  local status=$?
  [ $status -eq 77 ] && [ -n "$rehearse" ] && return 0  # no GPU here
  return $status
}
run_graph() {  # the same steps as a graph and kernel by kernel
  launches=$graphs ours small "$1/small-by-graph.json" --local-experts "$(experts small)" --micro-batch-sequences 1 &&
    launches=off ours small "$1/small-by-host.json" --local-experts "$(experts small)" --micro-batch-sequences 1
}
run_small() { ours small "$1/small.json" --local-experts "$(experts small)" --micro-batch-sequences "$(batches small)"; }
run_medium() { ours medium "$1/medium.json" --local-experts "$(experts medium)" --micro-batch-sequences "$(batches medium)"; }
run_kernels() {
  "$bin/bench_kernels" ${rehearse:+--rehearse} --cuda-graph "${launches/auto/on}" --output "$1/kernels.json"
}
run_library() {  # the same model with LibTorch's operators
  ours medium "$1/medium-library-kernels.json" --kernels library --local-experts "$(experts medium)" --micro-batch-sequences 1
}
run_skip() { ours medium "$1/medium-skip-token.json" --skip-token --local-experts "$(experts medium)" --micro-batch-sequences "$skip_batches"; }
run_whole() { ours large "$1/large.json" --layers "$whole" --local-experts "$(experts large | cut -d , -f 1)" --micro-batch-sequences 1,2; }
# Processes that share the device keep the same time for each point, so that none ends before the others. They share the
# cores too: threads that wait for work in a loop would keep the other processes from theirs, ten times longer on two cores.
at_once() {  # FOLDER PROCESSES MODEL…: profiles of the models, by several processes that start together
  local folder=$1 processes=$2 name process status=0 running steps=(--shared-device --warmup 5)
  shift 2
  for name in "$@"; do
    running=()
    for ((process = 1; process <= processes; process++)); do
      OMP_WAIT_POLICY=passive ours "$name" "$folder/$name-$process.json" --local-experts "$(experts "$name" | cut -d , -f 1,2)" --micro-batch-sequences 1 >"$folder/$name-$process.txt" 2>&1 &
      running+=($!)
    done
    for process in "${running[@]}"; do wait "$process" || status=1; done
  done
  return $status
}
run_shared2() { at_once "$1" 2 medium; }
run_shared4() { at_once "$1" 4 small; }
# Trainings of several sites on this GPU over emulated links. Each is predicted before it starts, from the steps that as
# many processes on the GPU took, and from nothing that was seen in a training.
run_trainings() {
  local output=$1 name profile settings setting congestion
  "$bin/fomoe-wan" run "$training" --no-check -- true || { echo "this machine cannot emulate links"; return 0; }
  congestion=$(cat /proc/sys/net/ipv4/tcp_congestion_control)
  while read -r name profile settings; do
    local words=(--set "compute.profile=$(realpath "${output%/*}")/$profile")
    [ -z "$rehearse" ] || words=(--set "compute.profile=$(realpath "${output%/*}")/$profile" --set model.sequence_length=16 --set platform.sites=2)
    for setting in $settings; do words+=(--set "$setting"); done
    "$bin/fomoe" simulate "$training" "${words[@]}" --set network_model.host=linux --set network_model.congestion_control="$congestion" \
      --sensitivity none --output "$output/$name-predicted.json" || return
    "$bin/fomoe-wan" run "$training" "${words[@]}" --no-check --report "$output/$name-links.json" -- "$train" run "$training" "${words[@]}" \
      --output "$output/$name.json" || return
  done <<<"$trainings"
}
# The time of each kernel of some training steps, launched one by one: of the medium model, and of two layers of the large one.
run_kernel_times() {
  local name options
  [ -z "$rehearse" ] || { echo "no GPU here"; return 0; }
  command -v ncu >/dev/null || { echo "no ncu here"; return 0; }
  while read -r name options; do
    ncu --clock-control none --metrics gpu__time_duration.sum --csv --page raw --log-file "$1/$name.csv" "$train" profile --model $options \
      --device cuda --cuda-graph off --steps 2 --warmup 1 --time-budget 1s --output "$1/$name-slowed.json" || return
  done <<<"large large --layers 2 --local-experts 32 --micro-batch-sequences 1
medium medium --local-experts 16 --micro-batch-sequences 4"
}
# The paper's own form, one product an expert after the other, and grouped products, with ghosts.
run_skip_peer() {
  local form
  for form in loop grouped; do
    peer medium "$1/medium-skip-$form.json" --mode eager --experts $form --skip-token --local-experts "$(experts medium)" --micro-batch-sequences 1 || return
  done
}
run_sanitizer() {  # checks the tests of our kernels for races in shared memory, uninitialised memory, barriers and invalid accesses
  local tool tests slow=
  [ -z "$rehearse" ] || { echo "no GPU here"; return 0; }
  command -v compute-sanitizer >/dev/null || { echo "no compute-sanitizer here"; return 0; }
  for tool in synccheck memcheck initcheck racecheck; do
    [ $tool = memcheck ] && slow= || slow="top-k*"
    for tests in "--test-case=routing*" "--source-file=*rows*,*norm*,*rotary*,*codec*,*outer_step*,*adam*"; do
      echo "$tool $tests:"
      # racecheck takes minutes for the tests of top-k
      compute-sanitizer --tool $tool --error-exitcode 9 "$bin/test_gpu" "$tests" ${slow:+"--test-case-exclude=$slow"} || return
    done
  done
}
run_rates() { "$python" experiments/twin/kernel_rates.py ${rehearse:+--rehearse} --output "$1/rates.json"; }
run_eager() {
  local form
  for form in loop grouped; do
    peer medium "$1/medium-eager-$form.json" --mode eager --experts $form --micro-batch-sequences 1 || return
  done
  peer large "$1/large-16-eager-grouped.json" --mode eager --layers "$deep" --experts grouped --micro-batch-sequences 1
}
run_compiled() { peer medium "$1/medium-compiled.json" "${compiled[@]}" --experts grouped --micro-batch-sequences 1; }
run_compiled16() {
  peer large "$1/large-16-compiled.json" "${compiled[@]}" --layers "$deep" --experts grouped --micro-batch-sequences 1
}
at_two_depths() {  # MODEL FOLDER MICRO-BATCHES [DEPTHS]
  local depth
  for depth in ${4:-$depths}; do
    ours "$1" "$2/$1-$depth-layers.json" --layers "$depth" --local-experts "$(experts "$1")" --micro-batch-sequences "$3" || return
  done
}
# The times that composed and interpolated times are compared with. Stage medium times the whole medium model.
run_composition() {
  at_two_depths medium "$1" 1 "${depths/18/8}" && ours medium "$1/medium-held-out.json" --local-experts "$held_out" --micro-batch-sequences 1 &&
    ours large "$1/large-16-layers.json" --layers "$deep" --local-experts "$(experts large)" --micro-batch-sequences 1
}
run_large() { at_two_depths large "$1" "$(batches large)"; }
run_xl() { at_two_depths xl "$1" "$(batches xl)"; }
run_xxl() { at_two_depths xxl "$1" "$(batches xxl)" "${depths/18/8}"; }

if [ -n "$list" ]; then
  for stage in "${stages[@]}"; do printf '%-9s at most %s s\n' "${stage%:*}" "${stage#*:}"; done
  exit 0
fi

[ -x "$train" ] || fail "--bin: got \"$bin\", without fomoe-train; expected the folder of the built programs; for example --bin build/release/bin"
[ -n "$torch_lib$pack" ] || fail "$python cannot import torch; expected a Python with PyTorch; for example PYTHON=.venv/bin/python3 $0 …"
if [ -n "$pack" ]; then
  kit=$(mktemp -d) && mkdir "$kit/lib" || fail "--pack: there is no folder for temporary files"
  trap 'rm -rf "$kit"' EXIT
  for program in fomoe-train fomoe fomoe-wan test_gpu bench_kernels; do
    strip -o "$kit/$program" "$bin/$program" || fail "--bin: got \"$bin\", without $program; expected the folder of the built programs"
  done
  # The libraries of fomoe and fomoe-wan are Debian packages, which the GPU machine lacks; the C library's are on every Linux.
  for program in fomoe fomoe-wan; do ldd "$bin/$program"; done |
    awk '$3 ~ /^\// && $1 !~ /^(libc|libm|libdl|libpthread|libgcc_s|libstdc\+\+)\.so/ {print $3}' | sort -u | xargs -I{} cp -L {} "$kit/lib/"
  XZ_OPT="-1 -T0" tar -cJf "$pack" -C "$kit" . || fail "--pack: could not write $pack"
  du -h "$pack"
  exit 0
fi
mkdir -p "$output" || fail "--output: got \"$output\"; expected a folder that can be created; for example --output gpu-measurements"

status_file=$output/status.csv
[ -e "$status_file" ] || echo "stage,status,seconds,cuda_graph" >"$status_file"
started=$SECONDS
clocks() {
  command -v nvidia-smi >/dev/null || return 0
  [ -e "$output/clocks.csv" ] || echo "stage,moment,sm_MHz,memory_MHz,power,temperature,throttle_reasons" >"$output/clocks.csv"
  printf '%s,%s,%s\n' "$1" "$2" "$(nvidia-smi --query-gpu=clocks.sm,clocks.mem,power.draw,temperature.gpu,clocks_throttle_reasons.active --format=csv,noheader,nounits | head -1 | tr -d ' ')" >>"$output/clocks.csv"
}
{
  date -u +%Y-%m-%dT%H:%M:%SZ
  grep -m1 "model name" /proc/cpuinfo
  "$python" -c 'import torch; print("PyTorch", torch.__version__, "CUDA", torch.version.cuda)'
  git rev-parse HEAD 2>/dev/null
  [ -n "$rehearse" ] && echo "a rehearsal: none of this is a measurement"
  # without what identifies this card, so that the folder can be published
  if command -v nvidia-smi >/dev/null; then nvidia-smi -q | grep -vE 'Serial Number|UUID|PDI'; else echo "no nvidia-smi"; fi
} >"$output/machine.txt" 2>&1

# The files are named one by one: tar warns that the folder changes while it writes the archive into the same folder.
archive() {
  (cd "$output" && rm -f measurements.tar.gz.tmp && tar --exclude=./measurements.tar.gz -czf measurements.tar.gz.tmp ./* &&
    mv measurements.tar.gz.tmp measurements.tar.gz) || { echo "measure_gpu.sh: could not write $output/measurements.tar.gz" >&2; exit 1; }
}

worst=0
for stage in "${stages[@]}"; do
  name=${stage%:*} limit=${stage#*:}
  if [ -e "$output/$name/complete" ]; then printf '%-9s complete already\n' "$name"; continue; fi
  left=$((budget - (SECONDS - started)))
  if [ $left -lt 5 ]; then
    printf 'The --budget of %s s ended before stage %s. Run the same command to continue.\n' "$budget" "$name"
    exit 3
  fi
  [ "$limit" -le $left ] || limit=$left
  # A stage's folder has another name until it is complete, so the files of a killed stage are never taken for results.
  rm -rf "$output/$name" "$output/$name.part" && mkdir "$output/$name.part"
  clocks "$name" before
  begun=$SECONDS
  launches=off
  if [ -e "$output/graph/small-by-graph.json" ] || [ -e "$output/graph.part/small-by-graph.json" ]; then launches=auto; fi
  # timeout starts a process group of its own, so that the limit also ends the children.
  export -f model twin_model experts batches ours peer at_two_depths at_once "run_$name"
  export time_budget bin train python rehearse device depths tiny deep whole graphs held_out skip_batches training trainings launches
  steps_text="${steps[*]}" compiled_text="${compiled[*]}" timeout -k 5 "$limit" bash -c \
    'read -ra steps <<<"$steps_text"; read -ra compiled <<<"$compiled_text"; run_'"$name"' "$1"' _ "$output/$name.part" \
    >"$output/$name.part/log.txt" 2>&1
  code=$?
  took=$((SECONDS - begun))
  clocks "$name" after
  case $code in
    0) how=complete; touch "$output/$name.part/complete"; mv "$output/$name.part" "$output/$name" ;;
    124 | 137) how=limit; worst=1 ;;
    *) how="failed ($code)"; worst=1 ;;
  esac
  echo "$name,$how,$took,$launches" >>"$status_file"
  printf '%-9s %s after %s s\n' "$name" "$how" "$took"
  archive
  [ "$how" = complete ] || { printf '  the last lines of %s:\n' "$output/$name.part/log.txt"; tail -5 "$output/$name.part/log.txt" | sed 's/^/  /'; }
done

if [ $worst -eq 0 ]; then
  printf 'All stages are complete. To compute the profiles of the deep presets:\n'
  printf '  fomoe profile compose %s/large/large-%s-layers.json %s/large/large-%s-layers.json --layers 128 --output large.json\n' \
    "$output" "${depths% *}" "$output" "${depths#* }"
  printf '  and the same for xl with --layers 256, and for xxl with --layers 512 from %s\n' "its own two depths"
  printf 'To print the results with their goals: experiments/gpu_summary.py %s\n' "$output"
fi
exit $worst
