#!/usr/bin/env python3
"""Draws the README's second picture: perplexity against bytes of the trained proxies (fig-exp1, K = 32, eight sites).

    notebooks/exp1.py [--fomoe build/release/bin/fomoe]     writes notebooks/exp1.svg
    notebooks/exp1.py --check                               exits with 1 if the committed runs are others than in the picture

It needs matplotlib. The points are part of the picture's description, which is what --check compares.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PICTURE = ROOT / "notebooks" / "exp1.svg"
NAMES = {"local_adamw": "LocalAdamW", "nesterov": "DiLoCo's outer step"}
COLOURS = {"local_adamw": "#0969a8", "nesterov": "#a8470a"}
MARKERS = {"": "*", "fixed": "o", "random": "^"}


def points(fomoe):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([fomoe, "reproduce", "fig-exp1", "--output", folder], check=True, capture_output=True)
        rows = json.loads((pathlib.Path(folder) / "fig-exp1.json").read_text())["rows"]
    wanted = [r for r in rows if r["series"] == "proxy" and (r["outer_optimizer"] == "centralised" or (r["local_steps"], r["sites"]) == (32, 8))]
    keys = ("outer_optimizer", "placement", "expert_overlap", "seeds", "perplexity", "plus_minus", "bytes_per_site")
    return [{key: row[key] for key in keys} for row in wanted]


def draw(data):
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    matplotlib.rcParams.update({"svg.hashsalt": "fomoe", "svg.fonttype": "none", "font.size": 11,
                                "font.family": ["DejaVu Sans", "sans-serif"], "axes.spines.top": False, "axes.spines.right": False})
    figure, axis = plt.subplots(figsize=(8.6, 4.4))
    for outer, name in NAMES.items():
        for placement, marker in MARKERS.items():
            chosen = sorted((r for r in data if r["outer_optimizer"] == outer and r["placement"] == placement), key=lambda r: r["bytes_per_site"])
            if not chosen:
                continue
            x, y = [r["bytes_per_site"] / 1e6 for r in chosen], [r["perplexity"] for r in chosen]
            error = [r["plus_minus"] or 0 for r in chosen]
            axis.errorbar(x, y, yerr=error if any(error) else None, linestyle=":" if len(x) > 1 else "none", linewidth=1, marker=marker,
                          markersize=15 if marker == "*" else 7, color=COLOURS[outer], capsize=3,
                          label=f"{name}, {placement + ' placement' if placement else 'full replicas'}")
            for row, px, py in zip(chosen, x, y):
                if placement == "fixed":
                    axis.annotate(f"$O_e$ = {row['expert_overlap']}", (px, py), textcoords="offset points", xytext=(7, 5), fontsize=9, color=COLOURS[outer])
    for row in data:
        if row["outer_optimizer"] == "centralised":
            axis.axhline(row["perplexity"], color="#57606a", linewidth=1, linestyle="--")
            axis.annotate("centralised", (0.995, row["perplexity"]), xycoords=("axes fraction", "data"), textcoords="offset points",
                          xytext=(0, 4), ha="right", fontsize=9, color="#57606a")
    axis.set_xscale("log")
    axis.set_xticks([20, 50, 100, 200, 500], ["20", "50", "100", "200", "500"])
    axis.minorticks_off()
    axis.set_xlabel("sent by each of the eight sites in the whole run (MB)")
    axis.set_ylabel("perplexity")
    axis.set_title("A proxy of 0.66 M parameters, trained: fewer copies of the experts send less and learn less", loc="left", fontsize=12)
    axis.legend(fontsize=9, frameon=False)
    figure.tight_layout()
    figure.savefig(PICTURE, metadata={"Date": None, "Description": json.dumps(data)}, facecolor="white")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fomoe", default=str(ROOT / "build/release/bin/fomoe"))
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    data = points(str(pathlib.Path(arguments.fomoe).resolve()))
    if not arguments.check:
        draw(data)
        return 0
    import html
    if json.dumps(data) in html.unescape(PICTURE.read_text(encoding="utf-8")):
        return 0
    print("notebooks/exp1.svg shows other runs than those in experiments/proxies/results; run notebooks/exp1.py to update it", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
