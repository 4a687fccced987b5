#!/usr/bin/env python3
"""Runs training over emulated links, to compare predictions with.

Every case is `fomoe-wan run base.toml … -- fomoe-train run base.toml …` on this machine: one process per site sends real
tensors over real TCP. Compute is paced unless the case says otherwise. A finished case is kept and not run again, so an
interrupted campaign continues where it stopped.

  campaign.py --list                  lists the cases
  campaign.py                         runs all cases
  campaign.py --slice                 runs four cases, in less than two minutes
  campaign.py --only 'diloco-*'       runs the cases whose names match
  campaign.py --draw 30 --seed 7 > my-cases.csv       draws cases at random; the next line runs them
  campaign.py --drawn my-cases.csv --predict my-predictions.csv      predicts them, which must come before the runs
  campaign.py --drawn my-cases.csv --output my-runs
  campaign.py --compare my-predictions.csv --output my-runs      prints the errors of the predictions

To compare the runs with predictions: fomoe validate experiments/validation/runs/*.json
"""
import argparse
import csv
import fnmatch
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from cases import SLICE, cases, draw, network_terms, overrides, read_drawn, with_platform

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
NARROW = 0.03  # the width of a predicted range, as a share of the time, below which no chance is expected


def check_platform(one, checked, binaries, scenario):
    """Measures once for each platform whether the emulation has the rates and latencies asked for. The check uses BBR,
    which fills links in both directions."""
    path = checked / f"{one['platform']}.json"
    if path.exists():
        return True
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "check.json"
        done = subprocess.run([binaries / "fomoe-wan", "check", scenario, "--report", report, "--congestion-control",
                               "bbr"] + overrides(one["settings"]), stdout=subprocess.DEVNULL)
        if done.returncode != 0:
            print(f"{one['platform']}: fomoe-wan check rejects this platform", file=sys.stderr)
            return False
        found = json.loads(report.read_text())
    kept = {key: found[key] for key in ("relay_most_bytes_per_s", "aggregate_bytes_per_s", "rates_include", "pairs",
                                        "congestion_control", "slow_start_after_idle", "tcp_wmem",
                                        "tcp_rmem")}
    write(path, one_line(json.dumps(kept)))
    return True


def computed_scenario(one, folder, binaries, profiles=None):
    """Writes base.toml with the case's model, and beside it a profile of its steps, from which the case is predicted:
    that of the folder `profiles`, if it has one, or a new one, which is then kept there. A new profile is taken at all
    sites at the same time, so that they share this machine's cores as in the run."""
    text = (HERE / "base.toml").read_text()
    for setting in (s for s in one["settings"] if s.startswith("model.")):
        key, value = setting.removeprefix("model.").split("=")
        text = re.sub(rf"^{key} = .*$", f"{key} = {value}", text, flags=re.MULTILINE)
    scenario = folder / "computed.toml"
    scenario.write_text(text)
    kept = profiles / f"{one['name']}.json" if profiles else None
    if kept and kept.exists():
        shutil.copyfile(kept, folder / "profile.json")
        return scenario
    settings = dict(setting.split("=", 1) for setting in one["settings"])
    held = int(settings.get("model.experts", 8)) * int(settings.get("strategy.expert_overlap", settings["platform.sites"]))
    of_method = f'--local-experts {held // int(settings["platform.sites"])}'
    of_method += " --skip-token" if settings.get("strategy.skip_token") == "true" else ""
    profile = (f'"{binaries}/fomoe-train" profile --scenario "{scenario}" --threads 1 --device cpu '
               f'--micro-batch-sequences {one["site_sequences"]} {of_method} --steps 40 --output "{folder}/profile-$RANK.json"')
    subprocess.run([binaries / "fomoe-wan", "run", scenario, "--no-check"] + wan_options(one)
                   + overrides(with_platform(one, folder)) + ["--", "sh", "-c", profile], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (folder / "profile-0.json").rename(folder / "profile.json")
    if kept:
        profiles.mkdir(exist_ok=True)
        write(kept, one_line((folder / "profile.json").read_text().replace(f"{folder}/", "")))
    return scenario


def with_profile(settings):
    """The settings of a case whose steps take the times of a profile and not a given one. Steps vary where cores are shared
    or limited, and their median says little about their mean."""
    return [s for s in settings if not s.startswith("compute.")] + ["compute.profile=profile.json", "compute.draw_samples=true"]


def wan_options(one):
    quota = ["--cpu-quota", str(one["quota"])] if one["quota"] else []
    return ["--congestion-control", one["congestion"], "--queue", one["queue"],
            "--uplink-queue", one["uplink"], "--socket-buffers", one.get("buffers", "large")] + quota


def one_line(text):
    """The JSON text without white space between its tokens. Numbers keep every digit that was written."""
    return re.sub(r'("(?:[^"\\]|\\.)*")|\s+', lambda found: found[1] or "", text) + "\n"


def write(path, text):
    temporary = path.with_suffix(path.suffix + ".tmp")
    temporary.write_text(text)
    temporary.replace(path)


def run(one, out, binaries, scenario, conditions, profiles):
    target = out / (one["name"] + ".json")
    with tempfile.TemporaryDirectory() as folder:
        report, result = Path(folder) / "wan.json", Path(folder) / "run.json"
        settings = with_platform(one, folder)
        if not one["paced"]:
            scenario = computed_scenario(one, Path(folder), binaries, profiles)
            settings = with_profile(settings)
        train = [binaries / "fomoe-train", "run", scenario, "--threads", "1", "--output", result]
        train += (["--paced"] if one["paced"] else []) + overrides(settings)
        command = [binaries / "fomoe-wan", "run", scenario, "--no-check", "--report", report]
        command += wan_options(one) + overrides(settings) + ["--"] + train
        before, started = os.getloadavg()[0], time.time()
        done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
        took, after = time.time() - started, os.getloadavg()[0]
        if done.returncode != 0 or not result.exists():
            print(f"{one['name']}: failed, exit status {done.returncode}\n{done.stdout}", file=sys.stderr)
            return False
        wan = json.loads(report.read_text())
        relay = wan["relay"]
        measured = json.loads(result.read_text())
        new = not conditions.exists()
        with conditions.open("a", newline="") as file:
            table = csv.writer(file, lineterminator="\n")
            if new:
                table.writerow(["run", "id", "started_at", "load_before", "load_after", "took_s", "relay_mean_late_s",
                                "relay_most_late_s", "relay_packets", "relay_dropped_packets", "uplink_queue", "queue",
                                "congestion_control", "slow_start_after_idle", "socket_buffers"])
            table.writerow([one["name"], measured["run"]["id"], measured["run"]["started_at"], f"{before:.2f}",
                            f"{after:.2f}", f"{took:.1f}", f"{relay['mean_late_s']:.3g}",
                            f"{relay['most_late_s']:.3g}", relay["packets"], relay["dropped_packets"],
                            one["uplink"], one["queue"], wan["congestion_control"], wan["slow_start_after_idle"],
                            wan["socket_buffers"]])
        # The report names files of the temporary folder, which no longer exists when somebody reads it.
        write(target, one_line(result.read_text().replace(folder + "/", "")))
    print(f"{one['name']}: {measured['wall_clock_s']:.1f} s, load {before:.1f} to {after:.1f}", file=sys.stderr)
    return True


def predict(chosen, path, binaries, profiles):
    """Writes the predicted wall clock of each case in seconds: without network terms, and with those of a Linux host in
    the conditions of the case; low and high are the range of several simulations. A case that computes its steps is
    predicted from its profile."""
    rows = []
    for one in chosen:
        row = {"run": one["name"]}
        with tempfile.TemporaryDirectory() as folder:
            scenario, settings = HERE / "base.toml", with_platform(one, folder)
            if not one["paced"]:
                scenario, settings = computed_scenario(one, Path(folder), binaries, profiles), with_profile(settings)
            linux = network_terms(one["congestion"], one["uplink"], one["queue"], one.get("buffers", "large"))
            for name, terms in (("ideal_s", []), ("linux_s", linux)):
                done = subprocess.run([binaries / "fomoe", "simulate", scenario, *overrides(settings + terms), "--output",
                                       "-"], stdout=subprocess.PIPE, check=True)
                answer = json.loads(done.stdout)
                row[name] = f"{answer['wall_clock_s']:.4f}"
            low_s, high_s = answer.get("wall_clock_range_s", [answer["wall_clock_s"]] * 2)
            row |= {"linux_low_s": f"{low_s:.4f}", "linux_high_s": f"{high_s:.4f}"}
        rows.append(row)
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, ["run", "ideal_s", "linux_s", "linux_low_s", "linux_high_s"], lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


def compare(path, folders):
    """Prints measured times, the median of the runs in all folders, and predicted ÷ measured − 1 with each network model
    and at both ends of the range; then the errors of cases with a narrow range, and how many others lie in theirs."""
    errors, narrow, wide, widths = {}, [], [], []
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            name = row.pop("run")
            runs = [json.loads(run.read_text())["wall_clock_s"] for run in (folder / f"{name}.json" for folder in folders)
                    if run.exists()]
            if not runs:
                continue
            measured = statistics.median(runs)
            line = f"{name:40} {len(runs)} × {measured:8.2f} s"
            if "linux_low_s" in row:  # the first series were predicted without ranges
                low_s, predicted_s, high_s = (float(row[key]) for key in ("linux_low_s", "linux_s", "linux_high_s"))
                widths.append((high_s - low_s) / predicted_s)
                if widths[-1] < NARROW:
                    narrow.append(abs(predicted_s / measured - 1))
                else:
                    wide.append(low_s <= measured <= high_s)
            for model, seconds in row.items():
                error = float(seconds) / measured - 1
                errors.setdefault(model, []).append(abs(error))
                line += f"  {model.removesuffix('_s')} {100 * error:+6.1f} %"
            print(line)
    for model, values in errors.items():
        values.sort()
        print(f"{model.removesuffix('_s'):8} {len(values)} runs: median {100 * statistics.median(values):.1f} %, p95 "
              f"{100 * values[math.ceil(0.95 * len(values)) - 1]:.1f} %, worst {100 * values[-1]:.1f} %")
    narrow.sort()
    widths.sort()
    if narrow:
        print(f"ranges below {100 * NARROW:.0f} %: {len(narrow)} cases: median {100 * statistics.median(narrow):.1f} %, p95 "
              f"{100 * narrow[math.ceil(0.95 * len(narrow)) - 1]:.1f} %, worst {100 * narrow[-1]:.1f} %")
    if wide:
        print(f"others: {sum(wide)} of {len(wide)} cases lie inside their range")
    if widths:
        print(f"widths of ranges: median {100 * statistics.median(widths):.1f} %, p90 "
              f"{100 * widths[math.ceil(0.9 * len(widths)) - 1]:.1f} %")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=ROOT / "build/release/bin", help="folder of the programs")
    parser.add_argument("--output", type=Path, default=HERE / "runs", help="folder of the reports")
    parser.add_argument("--only", default="*", help="run the cases whose names match; * and ? are wildcards")
    parser.add_argument("--draw", type=int, metavar="N", help="print N random cases as CSV, and stop")
    parser.add_argument("--unequal", action="store_true", help="--draw latencies for each pair of sites")
    parser.add_argument("--predict", type=Path, metavar="FILE.csv", help="write predictions of --drawn, and stop")
    parser.add_argument("--compare", type=Path, metavar="FILE.csv", help="compare these predictions with --output")
    parser.add_argument("--again", type=Path, nargs="+", default=[], metavar="FOLDER",
                        help="further runs of the same cases; --compare takes the median of the runs of a case")
    parser.add_argument("--clock", type=float, default=10, metavar="S", help="--draw runs of about this many seconds")
    parser.add_argument("--real", action="store_true", help="--draw a part of the cases with steps that are computed")
    parser.add_argument("--carried", action="store_true", help="--draw only cases whose packets two cores carry")
    parser.add_argument("--seed", type=int, default=1, help="seed of --draw")
    parser.add_argument("--drawn", type=Path, metavar="FILE.csv", help="run these cases instead of the chosen ones")
    parser.add_argument("--slice", action="store_true", help="run four cases, in less than two minutes")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no further case after this many seconds")
    parser.add_argument("--list", action="store_true", help="print the cases and stop")
    arguments = parser.parse_args()
    if arguments.compare:
        compare(arguments.compare, [arguments.output, *arguments.again])
        return 0
    if arguments.draw is not None:
        columns = ["name", "settings"] + (["latencies_ms", "congestion", "capped", "shared", "uplink",
                                                         "queue", "buffers"]
                                          if arguments.unequal else []) + (["steps", "quota"] if arguments.real else [])
        table = csv.DictWriter(sys.stdout, columns, lineterminator="\n")
        table.writeheader()
        table.writerows(draw(arguments.draw, arguments.seed, arguments.bin / "fomoe", HERE / "base.toml",
                             arguments.unequal, arguments.clock, arguments.real, arguments.carried))
        return 0
    all_cases = read_drawn(arguments.drawn) if arguments.drawn else cases()
    chosen = [one for one in all_cases if fnmatch.fnmatch(one["name"], arguments.only)]
    profiles = arguments.drawn.with_name(arguments.drawn.stem + "-profiles") if arguments.drawn else None
    if arguments.predict:
        predict(chosen, arguments.predict, arguments.bin, profiles)
        return 0
    if arguments.slice:
        chosen = [one for one in chosen if one["name"] in SLICE]
    if arguments.list:
        for one in chosen:
            print(one["name"], *one["settings"])
        return 0
    arguments.output.mkdir(parents=True, exist_ok=True)
    checked = arguments.output.parent / "checks" if not (arguments.slice or arguments.drawn) else None
    if checked:
        checked.mkdir(exist_ok=True)
    started, failed = time.time(), 0
    for one in chosen:
        if (arguments.output / (one["name"] + ".json")).exists():
            continue
        if time.time() - started > arguments.seconds:
            print("the time of --seconds is over; run the same command to continue", file=sys.stderr)
            break
        if checked and not check_platform(one, checked, arguments.bin, HERE / "base.toml"):
            failed += 1
            continue
        failed += not run(one, arguments.output, arguments.bin, HERE / "base.toml",
                          arguments.output.parent / "conditions.csv", profiles)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
