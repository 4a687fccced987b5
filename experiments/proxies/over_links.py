#!/usr/bin/env python3
"""Trains ten settings of the proxy over emulated links, one process for each of four sites, and compares with predictions.

    over_links.py predict     times one run without limits on links, and writes over-links/predictions.csv: wall clock, and time to a loss
    over_links.py run         makes the runs, and writes over-links/runs.csv: measured against predicted

A prediction needs the duration of a step. It is measured in one run of its own (local_adamw, K = 32, links of 10 Gb/s), in which each
site has the same share of a core as later. The time to a loss also needs the loss after each round, which does not depend on links:
it comes from a run in one process. Both are done by `predict`, before the runs. It needs an otherwise idle machine, and what fomoe-wan needs.
"""

import argparse
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SCENARIO = HERE / "small-experts.toml"
QUOTA = "0.35"  # cores of each site: four sites and the relay share two cores
TARGET_LOSS = 4.6  # nats
COMMON = ["platform.sites=4", "workload.tokens=1_048_576", "trainer.validation_sequences=64", "strategy.collective=direct"]
LINKS = {"fast": ["platform.bandwidth=200Mbps", "platform.latency=10ms"],
         "slow": ["platform.bandwidth=30Mbps", "platform.latency=40ms"]}
CASES = [("local_adamw", 32, 4, "slow", []), ("local_adamw", 8, 4, "fast", []),
         ("diloco", 32, 4, "slow", ["strategy.outer_optimizer=nesterov"]), ("diloco", 8, 4, "slow", ["strategy.outer_optimizer=nesterov"]),
         ("fomoe", 32, 1, "slow", []), ("fomoe", 32, 2, "slow", []), ("fomoe", 8, 1, "fast", []),
         ("fomoe", 16, 2, "slow", ["strategy.placement=random"]), ("fomoe", 16, 1, "slow", ["strategy.outer_optimizer=nesterov"]),
         ("fomoe", 16, 2, "fast", ["strategy.skip_token=true"])]


def settings_of(case):
    method, steps, overlap, links, more = case
    overlaps = [f"strategy.expert_overlap={overlap}"] if method == "fomoe" else []
    return COMMON + LINKS[links] + [f"strategy.method={method}", f"strategy.local_steps={steps}"] + overlaps + more


def set_options(settings):
    return [word for setting in settings for word in ("--set", setting)]


class Programs:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder).resolve()

    def simulate(self, settings, step_s):
        command = [self.folder / "fomoe", "simulate", SCENARIO, *set_options(settings), "--set", f"compute.step_time={step_s}s",
                   "--set", "network_model.host=linux", "--set", "network_model.send_buffer=1GB", "--set", "network_model.congestion_control=bbr", "--rounds", "all", "--output", "-"]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    def over_links(self, settings):
        with tempfile.TemporaryDirectory() as temporary:
            report = pathlib.Path(temporary) / "report.json"
            command = [self.folder / "fomoe-wan", "run", SCENARIO, *set_options(settings), "--no-check", "--cpu-quota", QUOTA,
                       "--congestion-control", "bbr", "--socket-buffers", "large", "--report", report, "--",
                       self.folder / "fomoe-train", "run", SCENARIO, *set_options(settings), "--threads", "1"]
            subprocess.run(command, check=True, capture_output=True, text=True)
            return json.loads(report.read_text())["run_report"]

    def losses(self, settings):
        """The validation loss after each round, from a run of all sites in one process."""
        with tempfile.TemporaryDirectory() as temporary:
            log = pathlib.Path(temporary) / "log.jsonl"
            subprocess.run([self.folder / "fomoe-train", "run", SCENARIO, *set_options(settings), "--set", "trainer.validation_rounds=1",
                            "--in-turn", "--threads", "2", "--log", log], check=True, capture_output=True, text=True)
            lines = [json.loads(line) for line in log.read_text().splitlines()]
        by_round = {}
        for line in lines:
            if line["kind"] == "validation":
                by_round.setdefault(line["round"], {})[line["site"]] = line["loss"]
        return [losses.get("all", sum(losses.values()) / len(losses)) for _, losses in sorted(by_round.items())]


def name_of(case):
    method, steps, overlap, links, more = case
    return " ".join([method, f"K={steps}", f"O_e={overlap}", links, *(m.split(".")[1] for m in more)])


def write_csv(path, rows):
    path.parent.mkdir(exist_ok=True)
    with open(path.with_suffix(".tmp"), "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    path.with_suffix(".tmp").replace(path)


def predict(programs, folder):
    unlimited = ["platform.bandwidth=10Gbps", "platform.latency=1ms"]
    timing = programs.over_links(COMMON + unlimited + ["strategy.method=local_adamw", "strategy.local_steps=32"])
    # Steps of a site: all rounds have 32, the last one what is left.
    step_s = sum(site["compute_s"] for site in timing["sites"]) / len(timing["sites"]) * timing["round"]["count"] / timing["optimizer_steps"]
    rows = []
    for case in CASES:
        settings = settings_of(case)
        simulated, losses = programs.simulate(settings, step_s), programs.losses(settings)
        reached = next((i + 1 for i, loss in enumerate(losses) if loss <= TARGET_LOSS), None)
        durations = simulated.get("round_durations_s") or [simulated["round"]["duration_s"]] * simulated["round"]["count"]
        rows.append({"case": name_of(case), "step_s": round(step_s, 6), "wall_clock_s": round(simulated["wall_clock_s"], 3),
                     "rounds_to_loss": reached or "", "time_to_loss_s": round(sum(durations[:reached]), 3) if reached else "",
                     "last_loss": losses[-1]})
        print(rows[-1], file=sys.stderr)
    write_csv(folder / "predictions.csv", rows)


def run(programs, folder):
    with open(folder / "predictions.csv", newline="") as file:
        predictions = {row["case"]: row for row in csv.DictReader(file)}
    rows = []
    for case in CASES:
        predicted = predictions[name_of(case)]
        report = programs.over_links(settings_of(case))
        measured = report["wall_clock_s"]
        row = {"case": name_of(case), "predicted_s": predicted["wall_clock_s"], "measured_s": round(measured, 3),
               "error": round(float(predicted["wall_clock_s"]) / measured - 1, 4),
               "predicted_time_to_loss_s": predicted["time_to_loss_s"], "measured_time_to_loss_s": "",
               "loss_in_one_process": predicted["last_loss"], "loss_over_links": report["validation"]["loss"]}
        if predicted["rounds_to_loss"]:
            row["measured_time_to_loss_s"] = round(sum(report["round_durations_s"][:int(predicted["rounds_to_loss"])]), 3)
        rows.append(row)
        print(row, file=sys.stderr)
        write_csv(folder / "runs.csv", rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("phase", choices=["predict", "run"])
    parser.add_argument("--bin", default=ROOT / "build/release/bin", help="folder of the programs (default: build/release/bin)")
    parser.add_argument("--output", type=pathlib.Path, default=HERE / "over-links", metavar="FOLDER", help="default: over-links, beside this script")
    arguments = parser.parse_args()
    {"predict": predict, "run": run}[arguments.phase](Programs(arguments.bin), arguments.output)


if __name__ == "__main__":
    main()
