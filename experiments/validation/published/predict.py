#!/usr/bin/env python3
"""Predicts times that others published, after fitting to two of them for each backend.

  predict.py           rewrites errors.csv, and the figures in README.md between their marks
  predict.py --check   writes nothing; exit status 1 if either file has other figures
"""
import argparse
import csv
import io
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
BEGIN, END = "<!-- figures: predict.py -->\n", "<!-- end of figures -->\n"

# The two times that are fitted for each backend: the fewest nodes, both payloads, the middle one of the links.
CALIBRATED = {backend: (f"tc-allreduce-4-{backend}-128-2G5ms", f"tc-allreduce-4-{backend}-256-2G5ms")
              for backend in ("nccl", "gloo")}
RINGS = ["fluid", "stepwise"]


def fomoe(binary, arguments):
    """The standard output of fomoe."""
    done = subprocess.run([str(binary), *arguments], capture_output=True, text=True, cwd=HERE)
    if done.returncode != 0:
        sys.exit(f"fomoe {arguments[0]}: exit status {done.returncode}\n{done.stderr}")
    return done.stdout


def efficiency(binary, rows, ring):
    """bandwidth_efficiency fitted to the rows; 1 if the rows are compatible with 1."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "two.csv"
        lines = ["collective,sites,payload,bandwidth,latency,seconds"]
        for row in rows:
            lines.append(f"ring,{row['nodes']},{row['bytes']}B,{row['link_bit_per_s']}bps,"
                         f"{row['one_way_delay_s']}s,{row['seconds']}")
        path.write_text("\n".join(lines) + "\n")
        answer = fomoe(binary, ["calibrate", str(path), "--terms", "bandwidth_efficiency",
                                "--set", f"network_model.ring_model={ring}", "--set", "network_model.host=ideal", "--output", "-"])
    term = next(term for term in json.loads(answer)["terms"] if term["name"] == "bandwidth_efficiency")
    return 1.0 if term["doubtful"] else term["value"]


def predicted_s(binary, row, ring, share):
    settings = {"platform.sites": row["nodes"], "workload.tokens": row["nodes"],
                "workload.global_batch_tokens": row["nodes"], "model.dense_parameters": int(row["bytes"]) // 4,
                "platform.bandwidth": row["link_bit_per_s"] + "bps", "platform.latency": row["one_way_delay_s"] + "s",
                "network_model.ring_model": ring, "network_model.bandwidth_efficiency": f"{share:.6f}"}
    if int(row["calls"]) > 1:
        settings["strategy.bucket_bytes"] = f"{int(row['bytes']) // int(row['calls'])}B"
    sets = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    report = json.loads(fomoe(binary, ["simulate", "collective.toml", *sets, "--output", "-"]))
    return report["round"]["communication_s"]


def summary(name, errors):
    size = sorted(abs(e) for e in errors)
    p95 = size[min(len(size) - 1, -(-95 * len(size) // 100) - 1)]
    return (f"| {name} | {len(size)} | {100 * statistics.median(size):.1f} % | {100 * p95:.1f} % | "
            f"{100 * size[-1]:.1f} % | {100 * statistics.mean(errors):+.1f} % |")


def read_rows(name):
    with open(HERE / name, newline="") as file:
        return list(csv.DictReader(file))


def collectives(binary):
    rows = read_rows("collectives.csv")
    by_id = {row["id"]: row for row in rows}
    out, tables = io.StringIO(), []
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["id", "ring_model", "bandwidth_efficiency", "measured_s", "predicted_s", "error"])
    for ring in RINGS:
        for backend, chosen in CALIBRATED.items():
            share = efficiency(binary, [by_id[i] for i in chosen], ring)
            groups = {"one call": [], "several calls": []}
            for row in rows:
                if row["backend"] != backend or row["id"] in chosen:
                    continue
                seconds = predicted_s(binary, row, ring, share)
                error = seconds / float(row["seconds"]) - 1
                groups["one call" if row["calls"] == "1" else "several calls"].append(error)
                writer.writerow([row["id"], ring, f"{share:.4f}", row["seconds"], f"{seconds:.4f}", f"{error:.4f}"])
            for group, errors in groups.items():
                if errors:
                    tables.append(summary(f"{backend}, {group} | {ring} | {share:.3f}", errors))
    head = ("| backend | ring_model | bandwidth_efficiency | predicted | median | p95 | worst | bias |\n"
            "|---|---|---|---|---|---|---|---|\n")
    return head + "\n".join(tables) + "\n", out.getvalue()


def runs():
    lines = ["| run | steps, s | synchronisation, s | utilisation | published | MFU | published |",
             "|---|---|---|---|---|---|---|"]
    for row in read_rows("utilization.csv"):
        compute, sync = float(row["compute_s"]), float(row["synchronization_s"])
        share = compute / (compute + sync)
        alone = float(row["mfu_alone"]) if row["mfu_alone"] else None
        lines.append(f"| {row['run']} ({row['source']}) | {compute:g} | {sync:g} | {100 * share:.1f} % | "
                     f"{100 * float(row['utilization']):.1f} % | " +
                     (f"{100 * alone * share:.1f} % | {100 * float(row['mfu']):.1f} % |" if alone else "| |"))
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare and write nothing")
    parser.add_argument("--fomoe", type=lambda path: Path(path).resolve(), default=HERE.parents[2] / "build/release/bin/fomoe", help="the program")
    arguments = parser.parse_args()
    table, errors = collectives(arguments.fomoe)
    text = (HERE / "README.md").read_text()
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    figures = f"### All-reduces\n\n{table}\n### Training runs\n\n{runs()}"
    wanted = {HERE / "README.md": before + BEGIN + figures + END + after, HERE / "errors.csv": errors}
    if arguments.check:
        stale = [str(path) for path, content in wanted.items() if not path.exists() or path.read_text() != content]
        sys.exit(f"{', '.join(stale)}: different from the output of {__file__}" if stale else 0)
    for path, content in wanted.items():
        temporary = path.with_suffix(".tmp")
        temporary.write_text(content)
        temporary.replace(path)


if __name__ == "__main__":
    main()
