#!/usr/bin/env python3
"""Rewrites the table of claims in README.md from the committed results, by `fomoe reproduce all`.

  claims.py            rewrites the table between its two marks
  claims.py --check    writes nothing; exit status 1 if the table differs from what the results give
"""
import argparse
import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BEGIN, END = "<!-- claims: claims.py -->\n", "<!-- end of claims -->\n"


def percent(text):
    return f"{float(text):+.1f} %"


def without_diverged(folder):
    """The effect by the paper's printed means without settings that diverged, by claim."""
    effects = {}
    for path in folder.glob("*.json"):
        findings = json.loads(path.read_text())["findings"]
        for claim in findings.get("claims_paper", []) if isinstance(findings, dict) else []:
            if "percent_without_diverged" in claim:
                effects[claim["claim"]] = claim["percent_without_diverged"]
    return effects


def table(folder):
    kept = without_diverged(folder)
    lines = ["| statement | paper | proxy | effect on perplexity, 95 % interval |", "|---|---|---|---|"]
    with (folder / "claims.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            paper = f"{row['paper']}, {percent(row['paper_percent'])}" if row["paper"] else ""
            if row["claim"] in kept:
                paper += f" ({percent(kept[row['claim']])} without runs that diverged)"
            effect = percent(row["effect_percent"]) if row["effect_percent"] else row["finding"]
            if row["low_percent"]:
                effect += f" ({percent(row['low_percent'])} to {percent(row['high_percent'])})"
            if row["fewest_seeds"] == "1":
                effect += ", some settings with one seed" if row["low_percent"] else ", one seed"
            lines.append(f"| {row['claim']} | {paper} | **{row['ours']}** | {effect} |".replace("|  |", "| |"))
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fomoe", type=Path, default=ROOT / "build/release/bin/fomoe", help="the program")
    parser.add_argument("--check", action="store_true", help="compare and write nothing")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([arguments.fomoe.resolve(), "reproduce", "all", "--output", folder], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wanted = table(Path(folder))
    readme = HERE / "README.md"
    before, rest = readme.read_text().split(BEGIN)
    text = before + BEGIN + wanted + END + rest.split(END)[1]
    if text == readme.read_text():
        return 0
    if arguments.check:
        print("the table of claims in experiments/proxies/README.md differs from what the results give; run claims.py",
              file=sys.stderr)
        return 1
    temporary = readme.with_suffix(".md.tmp")
    temporary.write_text(text)
    temporary.replace(readme)
    return 0


if __name__ == "__main__":
    sys.exit(main())
