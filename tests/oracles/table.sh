#!/usr/bin/env bash
# Runs the oracles and writes their table into README.md, beside this file:  tests/oracles/table.sh [BUILD_FOLDER]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
program=${1:-build/release}/bin/test_oracles
[ -x "$program" ] || { echo "There is no $program: build it first (./test.sh -L oracle)" >&2; exit 1; }
readme=tests/oracles/README.md
table=$(mktemp)
trap 'rm -f "$table"' EXIT
for suite in smpi ns3; do FOMOE_ORACLE_TABLE=$table "$program" --test-suite=$suite >/dev/null; done
{
  sed '/^| case/,$d' "$readme"
  printf '| case | fomoe (s) | oracle (s) | difference | cause |\n|---|--:|--:|--:|---|\n'
  cat "$table"
} >"$readme.tmp"
mv "$readme.tmp" "$readme"
echo "$(wc -l <"$table") rows in $readme"
