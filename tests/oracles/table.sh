#!/usr/bin/env bash
# Runs the oracles, and writes their results to table.csv beside this file:  tests/oracles/table.sh [BUILD_FOLDER]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
program=${1:-build/release}/bin/test_oracles
[ -x "$program" ] || { echo "There is no $program: build it first (./test.sh -L oracle)" >&2; exit 1; }
table=tests/oracles/table.csv
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
for suite in smpi ns3; do FOMOE_ORACLE_TABLE=$rows "$program" --test-suite=$suite >/dev/null; done
# The program writes "| case | fomoe (s) | oracle (s) | difference | cause |".
{
  echo case,fomoe_s,oracle_s,difference,cause
  sed -E 's/^\| (.*) \| (.*) \| (.*) \| (.*) \| (.*) \|$/"\1",\2,\3,\4,"\5"/' "$rows"
} >"$table.tmp"
mv "$table.tmp" "$table"
echo "$(wc -l <"$rows") rows in $table"
