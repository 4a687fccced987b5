#!/bin/sh
# A few cases of the campaign, run anew and held against their predictions; in less than two minutes.
#   slice_test.sh BIN      77: this machine cannot emulate the links, and says why
here=$(dirname "$0")
bin=$1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
if ! "$bin/fomoe-wan" run "$here/base.toml" --no-check --congestion-control bbr -- true >"$folder/why" 2>&1; then
  cat "$folder/why"
  exit 77
fi
python3 "$here/campaign.py" --slice --bin "$bin" --output "$folder/runs" || exit 1
cat "$folder/conditions.csv"
# Bytes are exact. A machine that is busy with other things is late: of wall clocks a quarter is asked for here,
# README.md has what a calm one gives.
"$bin/fomoe" validate "$folder"/runs/*.json --network-model "$here/network-bbr.toml" \
  --limit bytes=0 --limit wall_clock=0.25
