#!/bin/sh
# Runs a few cases of the campaign and compares them with their predictions, in less than two minutes.
#   slice_test.sh BIN      exit status 77: this machine cannot emulate the links; the output says why
here=$(dirname "$0")
bin=$1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
if ! "$bin/fomoe-wan" run "$here/base.toml" --no-check --congestion-control bbr --socket-buffers large -- true >"$folder/why" 2>&1; then
  cat "$folder/why"
  exit 77
fi
python3 "$here/campaign.py" --slice --bin "$bin" --output "$folder/runs" || exit 1
cat "$folder/conditions.csv"
# Bytes must be exact. A busy machine is late, so wall clocks may be off by a quarter here; README.md has the errors on an
# idle machine.
"$bin/fomoe" validate "$folder"/runs/*.json --set network_model.host=linux --set network_model.congestion_control=bbr \
  --set network_model.queue_bdp=8 --set network_model.send_buffer=1GB --set network_model.receive_buffer=2GB \
  --limit bytes=0 --limit wall_clock=0.25
