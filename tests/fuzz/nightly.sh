#!/usr/bin/env bash
# Fuzzes all readers for a night, with the lowest priority and on one core, and then makes the committed corpora anew.
#   tests/fuzz/nightly.sh [HOURS]     8 by default
# Exit status 1 if any reader fails; the inputs are in build/fuzz/findings. Each round gives each reader a minute, so that no reader
# goes short when the night ends early. The corpora in build/fuzz/corpus go on from night to night.
#   0 22 * * *   cd …/fomoe && tests/fuzz/nightly.sh >build/nightly.log 2>&1 || mail -s "fuzzing" you <build/nightly.log
set -euo pipefail
cd "$(dirname "$0")/../.."
hours=${1:-8}
end=$(awk -v hours="$hours" -v now=$SECONDS 'BEGIN {print int(now + hours * 3600)}') failed=0
low=(nice -n 19)
chrt -i 0 true 2>/dev/null && low=(chrt -i 0 "${low[@]}")
while [ $SECONDS -lt $end ]; do
  "${low[@]}" tests/fuzz/fuzz.sh 60 || failed=1
done
MINIMISE=1 "${low[@]}" tests/fuzz/fuzz.sh 1 >/dev/null || failed=1
tests/fuzz/fuzz.sh --total
exit $failed
