#!/usr/bin/env bash
# Builds the fuzzer, runs it for each reader, and prints a table.
#   tests/fuzz/fuzz.sh [SECONDS_EACH] [READER…]     60 s for each of all readers by default
# Exit status 1 if any reader fails. The inputs that failed are then in build/fuzz/findings; repeat one with
#   FOMOE_READER=NAME build/fuzz/bin/fuzz_readers build/fuzz/findings/NAME-…
# MINIMISE=1 keeps what is needed to reach the same code, at most 2 kB an input, in tests/fuzz/corpus.
#   tests/fuzz/fuzz.sh --total    prints the executions of all runs since build/fuzz was made (build/fuzz/executions.csv)
set -euo pipefail
cd "$(dirname "$0")/../.."
runs=build/fuzz/executions.csv
if [ "${1:-}" = --total ]; then
  awk -F, '{ count[$2] += $3; all += $3; time[$2] += $4; found += $5 }
           END { for (name in count) printf "%-16s %12d executions in %7d s\n", name, count[name], time[name] | "sort"
                 close("sort"); printf "%-16s %12d, %d findings\n", "all", all, found }' $runs
  exit
fi
seconds=${1:-60}
shift || true

export CCACHE_DIR=$PWD/.cache/ccache CCACHE_SLOPPINESS=pch_defines,time_macros
cmake --preset fuzz >/dev/null
nice cmake --build --preset fuzz --target fuzz_readers fomoe >build/fuzz/build.log 2>&1 || { tail -20 build/fuzz/build.log; exit 1; }
program=build/fuzz/bin/fuzz_readers
mkdir -p build/fuzz/findings build/fuzz/corpus build/fuzz/logs

# A dictionary of the words that the readers look for: the keys of scenarios, and the texts in the readers' sources.
{
  build/fuzz/bin/fomoe list keys | grep -oE '^ *[a-z_]+(\.[a-z_]+)?' | tr -d ' ' | tr . '\n'
  grep -rhoE '"[A-Za-z_#][A-Za-z0-9_ ./:-]{1,40}"' experiments/{files,json,model_files,results,scenario,step_profiles,probe,report,text,sweep} trainer/{grid,data,io,comm/digest.cpp} --include='*.cpp' | tr -d '"'
  printf '%s\n' 10Gbps 420ms 40% 2.50USD 1e308 -0 nan inf 1e-320 9223372036854775808 '[[' ']]' '{}' '[]' '..' '/decade'
} | sort -u | awk 'NF { gsub(/\\/, "\\\\"); print "\"" $0 "\"" }' >build/fuzz/words.dict

# An answer of each command whose JSON `fomoe report` reads.
answer() {
  local file=build/fuzz/answers/$1.json
  [ -e "$file" ] || build/fuzz/bin/fomoe "$@" --output "$file" >/dev/null 2>&1 || { echo "fomoe $* failed"; exit 1; }
}
mkdir -p build/fuzz/answers
smallest=experiments/scenarios/two-sites.toml
answer simulate $smallest
answer sweep $smallest --vary strategy.local_steps=8,16
answer compare $smallest --case strategy.method=diloco --case strategy.method=ddp
answer solve $smallest --for platform.bandwidth --target wall_clock=100s
answer plan $smallest --vary strategy.local_steps=16 --vary strategy.method=diloco,fomoe --top 3
answer validate experiments/validation/unequal/*-0[01]-*.json

readers=("$@")
[ ${#readers[@]} -gt 0 ] || mapfile -t readers < <($program | cut -d' ' -f1)
failed=0
printf '%-16s %12s %9s %7s %9s  %s\n' reader executions exec/s corpus 'MiB most' findings
for reader in "${readers[@]}"; do
  corpus=build/fuzz/corpus/$reader committed=tests/fuzz/corpus/$reader log=build/fuzz/logs/$reader
  mkdir -p "$corpus" "$committed"
  # shellcheck disable=SC2046  # the globs of the reader's seeds
  cp -n $($program | awk -v name="$reader" '$1 == name { for (i = 2; i <= NF; ++i) print $i }' | while read -r glob; do compgen -G "$glob" || true; done) "$corpus" 2>/dev/null || true
  before=$(find build/fuzz/findings -name "$reader-*" | wc -l)
  # A finding ends the program, which then starts again until the time is over.
  begun=build/fuzz/logs/$reader.begun start=$SECONDS
  touch "$begun"
  end=$((SECONDS + seconds)) total=0 most=0
  while [ $SECONDS -lt $end ]; do
    status=0
    FOMOE_READER=$reader nice $program -max_total_time=$((end - SECONDS)) -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=2048 -max_len=65536 \
      -dict=build/fuzz/words.dict -print_final_stats=1 -close_fd_mask=1 -artifact_prefix="build/fuzz/findings/$reader-" "$corpus" "$committed" 2>"$log" || status=$?
    total=$((total + $(awk '/number_of_executed_units/ { n = $2 } END { print n + 0 }' "$log")))
    most=$(awk -v most=$most '/peak_rss_mb/ { if ($2 > most) most = $2 } END { print most }' "$log")
    ended=$status
    # A busy machine, or one that slept, makes an input look slow. It counts only if it is slow again.
    while read -r slow; do
      if FOMOE_READER=$reader timeout 60 $program -timeout=10 -close_fd_mask=1 "$slow" >/dev/null 2>&1 </dev/null; then rm "$slow" && status=0; fi
    done < <(find build/fuzz/findings \( -name "$reader-timeout-*" -o -name "$reader-slow-unit-*" \) -newer "$begun")
    [ $ended -eq 0 ] && break
    cp "$log" "$log.finding"
    [ $(($(find build/fuzz/findings -name "$reader-*" | wc -l) - before)) -lt 5 ] || break
  done
  findings=$(($(find build/fuzz/findings -name "$reader-*" | wc -l) - before))
  [ "$findings" -eq 0 ] && [ $status -eq 0 ] || failed=1
  echo "$(date -I),$reader,$total,$((SECONDS - start)),$findings" >>$runs
  printf '%-16s %12d %9d %7d %9d  %s\n' "$reader" $total $((total / (SECONDS > start ? SECONDS - start : 1))) "$(find "$corpus" -type f | wc -l)" "$most" "$findings"
  if [ -n "${MINIMISE:-}" ]; then
    rm -rf "build/fuzz/minimised/$reader" && mkdir -p "build/fuzz/minimised/$reader"
    FOMOE_READER=$reader $program -merge=1 -max_len=2048 -close_fd_mask=1 "build/fuzz/minimised/$reader" "$committed" "$corpus" >/dev/null 2>&1 || true
    # The smallest inputs, up to 8 kB and 40 files for each reader.
    find "build/fuzz/minimised/$reader" -type f -printf '%s %p\n' | sort -n | awk '{ sum += $1; if (sum <= 8192 && NR <= 40) print $2 }' | xargs -r cp -t "$committed"
  fi
done
exit $failed
