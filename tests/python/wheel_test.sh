#!/usr/bin/env bash
# Builds the wheel and installs it into a fresh environment in which there is neither a compiler nor a package index:
# wheel_test.sh PYTHON
# FOMOE names the program whose answers the wheel must give.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python=$1
root=$PWD
program=${FOMOE:-$root/build/release/bin/fomoe}
[ -x "$program" ] || { echo "$program: no such program; build it first: ninja -C build/release fomoe" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

PYTHON=$python tools/build_wheel.sh "$work/dist"
wheel=$(echo "$work"/dist/fomoe-*.whl)
case $wheel in *-cp39-abi3-manylinux_*.whl) ;; *) echo "$wheel: not a wheel for every Python from 3.9 on" >&2; exit 1 ;; esac
# Everything that the wheel contains may be distributed with it (tools/build_wheel.sh says why ns-3 may not).
"$python" -m zipfile -l "$wheel" >"$work/files"
if grep -E 'libns3|libgsl' "$work/files"; then echo "$wheel contains ns-3" >&2; exit 1; fi
grep -q 'licences/SimGrid' "$work/files" || { echo "$wheel lacks the licence of SimGrid" >&2; exit 1; }

/usr/bin/python3 -m venv "$work/venv"
# Nothing is on the PATH beside the environment, so that a compiler cannot be used; --no-index: nothing is downloaded.
clean=(/usr/bin/env -i HOME="$work" LC_ALL=C.UTF-8 PATH="$work/venv/bin")
begin=$(date +%s.%N)
"${clean[@]}" "$work/venv/bin/pip" install --quiet --no-index "$wheel"
cd "$work"
"${clean[@]}" "$work/venv/bin/python" -c 'import fomoe; print(fomoe.simulate(fomoe.example("two-sites")).wall_clock_s)' >python.txt
end=$(date +%s.%N)
"${clean[@]}" "$work/venv/bin/fomoe" simulate "$root/experiments/scenarios/two-sites.toml" --output - >wheel.json
"$program" simulate "$root/experiments/scenarios/two-sites.toml" --output - >program.json
cmp wheel.json program.json
grep -q "\"wall_clock_s\": $(cat python.txt)" program.json
# The pages have the charts of the wheel, which a version of its own marks here, and not those of the system.
charts=$(echo "$work"/venv/lib/python3*/site-packages/fomoe/bin/chart.min.js)
sed -i 's/Chart.js v3\.[0-9.]*/Chart.js v3.77.7/' "$charts"
"${clean[@]}" "$work/venv/bin/fomoe" report wheel.json --output report.html >/dev/null
"${clean[@]}" "$work/venv/bin/fomoe" explore "$root/experiments/scenarios/two-sites.toml" --export explore.html >/dev/null
for page in report.html explore.html; do
  grep -q 'Chart.js v3.77.7' $page || { echo "$page has other charts than those of the wheel" >&2; exit 1; }
done
# The program is quiet if the reader of its output closes the pipe.
"${clean[@]}" "$work/venv/bin/fomoe" list keys 2>head.err | head -1 >/dev/null || true
[ ! -s head.err ] || { cat head.err; exit 1; }
# Whatever the wheel does not contain must be a part of every Linux.
for file in "$work"/venv/lib/python3*/site-packages/fomoe/bin/fomoe "$work"/venv/lib/python3*/site-packages/fomoe/_fomoe.abi3.so; do
  ldd "$file" | awk '$3 ~ /^\// {print $3}' | grep -vE "^$work/|/(libc|libm|libgcc_s|libstdc\+\+|libpthread|libdl|librt)\.so" &&
    { echo "$file takes these from the system" >&2; exit 1; }
done
awk -v begin="$begin" -v end="$end" 'BEGIN {printf "installed, imported and simulated in %.1f s\n", end - begin}'
