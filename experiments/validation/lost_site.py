#!/usr/bin/env python3
"""Kills a site of a real run, starts it again later, and compares the delay with the one that `fomoe simulate` predicts.

    experiments/validation/lost_site.py --predict lost-site.csv    two undisturbed runs, and the predictions of all cases
    experiments/validation/lost_site.py --run lost-site.csv        runs the cases and adds what was measured

Three or four sites train over links that fomoe-wan emulates, with 0.4 cores each. The simulator executes the outage of the same
site at the same time within a round (failures.outages). fomoe-train takes longer for reasons that the simulator leaves out, and the
prediction adds them, with times from the undisturbed run:

  wait   the site that comes back first starts its process (`startup`)
  drop   all others repeat the round in which the site was lost, and start their processes again (1 s + `startup`) when they notice
         that it is lost, and once more when it comes back
"""

import argparse
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCENARIO = ROOT / "experiments/scenarios/tiny-training.toml"
BIN = pathlib.Path(os.environ.get("FOMOE_PROGRAMS", ROOT / "build/release/bin"))
LOST_IN_ROUND = 9  # in the middle of this round
RESTART_S = 1  # that a waiting process of fomoe-train sleeps before it starts itself again
COLUMNS = ["sites", "method", "policy", "outage_s", "undisturbed_s", "round_s", "startup_s", "simulated_delay_s", "predicted_delay_s",
           "measured_delay_s", "simulated_missed_rounds", "missed_rounds"]
CASES = [(sites, method, policy, outage) for sites, method in ((3, "diloco"), (4, "fomoe")) for policy in ("wait", "drop") for outage in (12, 40)]
# A service manager that starts the process again, but not while the site is out.
AT_SITE = 'trap "" TERM; hold="$1"; shift; "$@"; until [ $? -eq 0 ]; do while [ -e "$hold-$RANK" ]; do sleep 0.05; done; "$@" --resume; done'


def settings_of(sites, method):
    found = {"platform.sites": sites, "platform.bandwidth": "10Mbps", "platform.latency": "20ms", "strategy.method": method,
             "strategy.local_steps": 60, "workload.global_batch_sequences": 16 * sites, "workload.tokens": 40 * 60 * 16 * sites * 64}
    if method == "fomoe":
        found |= {"strategy.placement": "fixed", "strategy.expert_overlap": 2}
    return found


def options(settings):
    return [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]


class Run:
    """A run over emulated links, whose checkpoints tell how far it is."""

    def __init__(self, settings, folder, policy, drop_after):
        self.folder, self.hold = folder, folder / "hold"
        train = [str(BIN / "fomoe-train"), "run", str(SCENARIO), "--threads", "1", "--checkpoints", str(folder / "checkpoints"),
                 *options(settings | {"trainer.on_lost_site": policy, "trainer.drop_after": f"{drop_after}s", "trainer.validation_sequences": 0}),
                 "--output", str(folder / "report.json")]
        self.begun = time.monotonic()
        self.log = open(folder / "stderr", "w", encoding="utf-8")  # noqa: SIM115 - the run writes to it
        self.process = subprocess.Popen(
            [str(BIN / "fomoe-wan"), "run", str(SCENARIO), "--no-check", "--congestion-control", "bbr", "--socket-buffers", "large", "--cpu-quota", "0.4", *options(settings), "--", "/bin/bash", "-c", AT_SITE,
             "site", str(self.hold), *train], stdout=subprocess.DEVNULL, stderr=self.log)

    def wait_for_round(self, done):
        """The time since the start of the run at which all sites have completed these rounds."""
        path = self.folder / f"checkpoints/round-{done:08d}/node-0.safetensors"
        while not path.exists():
            if self.process.poll() is not None:
                sys.exit(f"the run ended before round {done}:\n{(self.folder / 'stderr').read_text()[-2000:]}")
            time.sleep(0.01)
        return time.monotonic() - self.begun

    def lose(self, rank, outage_s):
        hold = pathlib.Path(f"{self.hold}-{rank}")
        hold.touch()
        killed = [process for process in self.processes() if self.rank_of(process) == rank]
        for process in killed:
            os.kill(process, 9)
        if len(killed) != 1:
            sys.exit(f"killed {len(killed)} processes of rank {rank} instead of one")
        time.sleep(outage_s)
        hold.unlink()

    def processes(self):
        return [int(word) for word in subprocess.run(["pgrep", "-x", "fomoe-train"], capture_output=True, text=True, check=False).stdout.split()]

    @staticmethod
    def rank_of(process):
        try:
            for entry in pathlib.Path(f"/proc/{process}/environ").read_bytes().split(b"\0"):
                if entry.startswith(b"RANK="):
                    return int(entry[5:])
        except FileNotFoundError:
            pass
        return None

    def finish(self):
        status = self.process.wait()
        self.log.close()
        if status != 0:
            sys.exit(f"the run failed with status {status}:\n{(self.folder / 'stderr').read_text()[-2000:]}")
        return time.monotonic() - self.begun


def simulated(settings, step_s, **failures):
    values = settings | {"compute.step_time": f"{step_s}s", "network_model.host": "linux", "network_model.send_buffer": "1GB"} | {f"failures.{key}": value for key, value in failures.items()}
    done = subprocess.run([str(BIN / "fomoe"), "simulate", str(SCENARIO), *options(values), "--output", "-"], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def predict(path):
    rows, known = [], {}
    for sites, method, policy, outage_s in CASES:
        settings, drop_after = settings_of(sites, method), 5
        if (sites, method) not in known:
            with tempfile.TemporaryDirectory() as name:
                run = Run(settings, pathlib.Path(name), "wait", drop_after)
                first_s = run.wait_for_round(1)
                later_s = run.wait_for_round(LOST_IN_ROUND)
                whole_s = run.finish()
                report = json.loads((pathlib.Path(name) / "report.json").read_text())
            known[sites, method] = whole_s, (later_s - first_s) / (LOST_IN_ROUND - 1), first_s, report["round"]["compute_s"] / 60
        whole_s, round_s, first_s, step_s = known[sites, method]
        startup_s = first_s - round_s
        plain = simulated(settings, step_s)
        at_s = (LOST_IN_ROUND - 0.5) * plain["round"]["duration_s"]
        failures = {"outages": f'["site-{sites - 1} at {at_s}s for {outage_s}s"]', "policy": policy, "checkpoint_rounds": 1,
                    "checkpoint_cost": "0s"}
        if policy == "drop":
            failures["timeout"] = f"{drop_after}s"
        lossy = simulated(settings, step_s, **failures)
        # A training does not train later what a lost site would have trained; the prediction does.
        later_s = lossy["attendance"]["added_rounds"] * plain["round"]["duration_s"]
        delay_s = lossy["wall_clock_s"] - plain["wall_clock_s"] - later_s
        extra_s = startup_s if policy == "wait" else round_s + 2 * (RESTART_S + startup_s)
        missed = lossy["attendance"]["missed_rounds_per_site"][-1]
        rows.append({"sites": sites, "method": method, "policy": policy, "outage_s": outage_s, "undisturbed_s": f"{whole_s:.1f}",
                     "round_s": f"{round_s:.3f}", "startup_s": f"{startup_s:.2f}", "simulated_delay_s": f"{delay_s:.1f}",
                     "predicted_delay_s": f"{delay_s + extra_s:.1f}", "simulated_missed_rounds": missed})
        print(rows[-1], flush=True)
    write(path, rows)


def measure(path):
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if row.get("measured_delay_s"):
            continue
        settings = settings_of(int(row["sites"]), row["method"])
        with tempfile.TemporaryDirectory() as name:
            run = Run(settings, pathlib.Path(name), row["policy"], 5)
            run.wait_for_round(LOST_IN_ROUND - 1)
            time.sleep(float(row["round_s"]) / 2)
            run.lose(int(row["sites"]) - 1, float(row["outage_s"]))
            whole_s = run.finish()
            said = (pathlib.Path(name) / "stderr").read_text(encoding="utf-8")
        row["measured_delay_s"] = f"{whole_s - float(row['undisturbed_s']):.1f}"
        back = re.findall(r"got the state after round (\d+)", said)
        row["missed_rounds"] = float(back[-1]) - (LOST_IN_ROUND - 1) if back else 0.0
        print(row, flush=True)
        write(path, rows)


def write(path, rows):
    with open(f"{path}.tmp", "w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        table.writerows(rows)
    os.replace(f"{path}.tmp", path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--predict", metavar="TABLE")
    group.add_argument("--run", metavar="TABLE")
    given = parser.parse_args()
    if given.predict:
        predict(given.predict)
    else:
        measure(given.run)


if __name__ == "__main__":
    main()
