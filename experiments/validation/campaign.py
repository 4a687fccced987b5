#!/usr/bin/env python3
"""Real runs over emulated links, to hold predictions against.

Every case is `fomoe-wan run base.toml … -- fomoe-train run base.toml …` on this machine: one process a site,
real tensors over real TCP, compute paced unless the case says otherwise. A finished case is kept and not run
again, so that an interrupted campaign goes on where it stopped.

  campaign.py --list                  the cases
  campaign.py                         all of them
  campaign.py --slice                 a few, in less than two minutes
  campaign.py --only 'diloco-*'       those whose names match

Then: fomoe validate experiments/validation/runs/*.json
"""
import argparse
import csv
import fnmatch
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

# name → overrides. Rates are of links, IP and TCP headers included.
PLATFORMS = {
    "near": ["platform.sites=2", "platform.bandwidth=100Mbps", "platform.latency=10ms"],
    "fast": ["platform.sites=2", "platform.bandwidth=1Gbps", "platform.latency=5ms"],
    "half": ["platform.sites=2", "platform.bandwidth=500Mbps", "platform.latency=25ms"],
    "three": ["platform.sites=3", "platform.bandwidth=200Mbps", "platform.latency=25ms"],
    "four": ["platform.sites=4", "platform.bandwidth=200Mbps", "platform.latency=50ms"],
    "far": ["platform.sites=4", "platform.bandwidth=50Mbps", "platform.latency=100ms"],
    "uneven": ["platform.sites=3", "platform.uplink=50Mbps", "platform.downlink=200Mbps", "platform.latency=20ms"],
    "slow": ["platform.file=slow-site.toml", "platform.sites=3"],
}
SITES = {"near": 2, "fast": 2, "half": 2, "three": 3, "four": 4, "far": 4, "uneven": 3, "slow": 3}
# Parameters of a site, in fp32: 1.3, 12 and 101 MB.
MODELS = {
    "small": ["model.d_model=128", "model.d_expert=64", "model.vocabulary=512", "model.experts=8"],
    "medium": ["model.d_model=256", "model.d_expert=256", "model.vocabulary=1024", "model.experts=8"],
    "large": ["model.d_model=512", "model.d_expert=512", "model.vocabulary=4096", "model.experts=16"],
}
METHODS = {
    "ddp": ["strategy.method=ddp"],
    "diloco": ["strategy.method=diloco"],
    "local_adamw": ["strategy.method=local_adamw"],
    "streaming": ["strategy.method=streaming_diloco", "strategy.fragments=2", "strategy.overlap_steps=2"],
    "fomoe-fixed": ["strategy.method=fomoe", "strategy.placement=fixed"],
    "fomoe-random": ["strategy.method=fomoe", "strategy.placement=random"],
    "fomoe-skip": ["strategy.method=fomoe", "strategy.placement=random", "strategy.skip_token=true"],
}
TOKENS_A_STEP = 16 * 16


def case(platform, model, method, k, rounds, collective="direct", step="100ms", overlap=None, paced=True,
         congestion="bbr", queue="8x", quota=None):
    name = f"{method}-{platform}-{model}-k{k}" + ("-ring" if collective == "ring" else "")
    if overlap:
        name += f"-o{overlap}"
    if not paced:
        name += "-computed"
    if quota:
        name += f"-quota{quota}"
    if congestion != "bbr":
        name += "-" + congestion
    if queue != "8x":
        name += "-shallow"
    steps = rounds if method == "ddp" else rounds * k
    settings = PLATFORMS[platform] + MODELS[model] + METHODS[method] + [
        f"strategy.local_steps={k}", f"strategy.collective={collective}", f"compute.step_time={step}",
        f"workload.tokens={steps * TOKENS_A_STEP}"] + ([f"strategy.expert_overlap={overlap}"] if overlap else [])
    if overlap and platform in ("three", "uneven", "slow"):
        settings.append("model.experts=6")  # so that three sites hold equally many
    return {"name": name, "platform": platform, "model": model, "settings": settings, "paced": paced,
            "congestion": congestion, "queue": queue, "quota": quota,
            "site_sequences": 16 // SITES[platform]}


def cases():
    yield case("near", "small", "diloco", 4, 8)
    yield case("near", "medium", "diloco", 8, 4)
    yield case("near", "medium", "ddp", 1, 6)
    yield case("near", "small", "ddp", 1, 20)
    yield case("near", "small", "ddp", 1, 20, "ring")
    yield case("near", "medium", "local_adamw", 8, 3)
    yield case("near", "medium", "streaming", 8, 4)
    yield case("near", "medium", "fomoe-fixed", 8, 4, overlap=1)
    yield case("near", "small", "diloco", 64, 2, step="50ms")
    yield case("fast", "large", "diloco", 8, 4)
    yield case("fast", "large", "ddp", 1, 5)
    yield case("fast", "medium", "diloco", 16, 4, step="50ms")
    yield case("fast", "medium", "local_adamw", 4, 6)
    yield case("fast", "large", "streaming", 8, 4)
    yield case("fast", "large", "fomoe-fixed", 8, 4, overlap=1)
    yield case("half", "medium", "diloco", 8, 6)
    yield case("half", "large", "diloco", 16, 3)
    yield case("half", "medium", "ddp", 1, 15)
    yield case("half", "large", "local_adamw", 8, 2)
    yield case("three", "medium", "diloco", 8, 4)
    yield case("three", "medium", "diloco", 8, 4, "ring")
    yield case("three", "small", "ddp", 1, 15)
    yield case("three", "small", "ddp", 1, 15, "ring")
    yield case("three", "medium", "streaming", 8, 4)
    yield case("three", "medium", "local_adamw", 16, 3)
    yield case("three", "medium", "fomoe-random", 8, 4, overlap=1)
    yield case("three", "medium", "fomoe-random", 8, 4, overlap=2)
    yield case("four", "small", "diloco", 8, 6)
    yield case("four", "medium", "diloco", 8, 3)
    yield case("four", "medium", "diloco", 8, 3, "ring")
    yield case("four", "small", "ddp", 1, 10)
    yield case("four", "small", "ddp", 1, 8, "ring")
    yield case("four", "medium", "fomoe-fixed", 8, 3, overlap=1)
    yield case("four", "medium", "fomoe-fixed", 8, 3, overlap=2)
    yield case("four", "medium", "fomoe-random", 8, 3, overlap=2)
    yield case("four", "medium", "fomoe-random", 8, 3, overlap=4)
    yield case("four", "medium", "fomoe-skip", 8, 3, overlap=2)
    yield case("four", "medium", "fomoe-random", 8, 3, "ring", overlap=2)
    yield case("far", "small", "diloco", 16, 4)
    yield case("far", "small", "diloco", 16, 4, "ring")
    yield case("far", "medium", "diloco", 16, 2)
    yield case("far", "small", "ddp", 1, 6)
    yield case("far", "small", "local_adamw", 16, 3)
    yield case("far", "medium", "fomoe-random", 16, 2, overlap=1)
    yield case("far", "small", "fomoe-skip", 16, 4, overlap=2)
    yield case("uneven", "small", "diloco", 8, 5)
    yield case("uneven", "medium", "diloco", 8, 3)
    yield case("uneven", "medium", "diloco", 8, 3, "ring")
    yield case("uneven", "small", "ddp", 1, 10)
    yield case("uneven", "medium", "fomoe-random", 8, 3, overlap=2)
    yield case("slow", "small", "diloco", 8, 5)
    yield case("slow", "medium", "diloco", 8, 3)
    yield case("slow", "medium", "diloco", 8, 3, "ring")
    yield case("slow", "small", "ddp", 1, 15)
    yield case("slow", "medium", "local_adamw", 8, 2)
    yield case("slow", "medium", "fomoe-fixed", 8, 3, overlap=2)
    # The same again with TCP that backs off at every loss.
    yield case("near", "small", "diloco", 4, 8, congestion="reno")
    yield case("near", "medium", "diloco", 8, 4, congestion="reno")
    yield case("near", "medium", "ddp", 1, 6, congestion="reno")
    yield case("half", "medium", "diloco", 8, 6, congestion="reno")
    yield case("half", "large", "diloco", 16, 3, congestion="reno")
    yield case("three", "medium", "diloco", 8, 4, congestion="reno")
    yield case("three", "medium", "diloco", 8, 4, "ring", congestion="reno")
    yield case("four", "small", "diloco", 8, 6, congestion="reno")
    yield case("four", "medium", "fomoe-random", 8, 3, overlap=2, congestion="reno")
    yield case("far", "small", "ddp", 1, 6, congestion="reno")
    yield case("far", "small", "diloco", 16, 4, congestion="reno")
    yield case("slow", "small", "diloco", 8, 5, congestion="reno")
    # And with queues that hold one product of rate and round trip: what does not fit is lost.
    yield case("near", "medium", "ddp", 1, 6, queue="1x")
    yield case("half", "medium", "diloco", 8, 6, queue="1x")
    yield case("three", "medium", "diloco", 8, 4, queue="1x")
    yield case("three", "medium", "fomoe-random", 8, 4, overlap=1, queue="1x")
    yield case("four", "medium", "diloco", 8, 3, queue="1x")
    yield case("four", "medium", "fomoe-random", 8, 3, overlap=4, queue="1x")
    yield case("slow", "small", "diloco", 8, 5, queue="1x")
    # Computed for real, predicted from a profile that is measured just before.
    yield case("near", "small", "diloco", 64, 4, paced=False)
    yield case("near", "small", "ddp", 1, 40, paced=False)
    yield case("near", "medium", "diloco", 16, 4, paced=False)
    yield case("four", "small", "diloco", 64, 4, paced=False, quota=0.4)
    yield case("four", "small", "ddp", 1, 20, paced=False, quota=0.4)


SLICE = ["diloco-near-small-k4", "ddp-near-small-k1", "diloco-three-medium-k8-ring", "fomoe-fixed-near-medium-k8-o1"]


def overrides(settings):
    return [word for setting in settings for word in ("--set", setting)]


def check_platform(one, checked, binaries, scenario):
    """Once for each platform: does the emulation do what is asked? With BBR, which fills links in both directions."""
    path = checked / f"{one['platform']}.json"
    if path.exists():
        return True
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "check.json"
        done = subprocess.run([binaries / "fomoe-wan", "check", scenario, "--report", report, "--congestion-control",
                               "bbr"] + overrides(one["settings"]), stdout=subprocess.DEVNULL)
        if done.returncode != 0:
            print(f"{one['platform']}: fomoe-wan check refuses it", file=sys.stderr)
            return False
        found = json.loads(report.read_text())
    kept = {key: found[key] for key in ("relay_most_bytes_per_s", "aggregate_bytes_per_s", "rates_include", "pairs",
                                        "congestion_control", "slow_start_after_idle", "tcp_wmem",
                                        "tcp_rmem")}
    write(path, json.dumps(kept, indent=1) + "\n")
    return True


def computed_scenario(one, folder, binaries):
    """base.toml with the case's model, and a profile of its steps, which the case is then predicted from: taken at
    all sites at once, so that they share this machine's cores as in the run."""
    text = (HERE / "base.toml").read_text()
    for setting in MODELS[one["model"]]:
        key, value = setting.removeprefix("model.").split("=")
        text = re.sub(rf"^{key} = .*$", f"{key} = {value}", text, flags=re.MULTILINE)
    scenario = folder / "computed.toml"
    scenario.write_text(text)
    profile = (f'"{binaries}/fomoe-train" profile --scenario "{scenario}" --threads 1 --device cpu '
               f'--micro-batch-sequences {one["site_sequences"]} --steps 40 --output "{folder}/profile-$RANK.json"')
    subprocess.run([binaries / "fomoe-wan", "run", scenario, "--no-check"] + wan_options(one) + overrides(one["settings"])
                   + ["--", "sh", "-c", profile], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (folder / "profile-0.json").rename(folder / "profile.json")
    return scenario


def wan_options(one):
    quota = ["--cpu-quota", str(one["quota"])] if one["quota"] else []
    return ["--congestion-control", one["congestion"], "--queue", one["queue"]] + quota


def write(path, text):
    temporary = path.with_suffix(path.suffix + ".tmp")
    temporary.write_text(text)
    temporary.replace(path)


def run(one, out, binaries, scenario, conditions):
    target = out / (one["name"] + ".json")
    with tempfile.TemporaryDirectory() as folder:
        report, result = Path(folder) / "wan.json", Path(folder) / "run.json"
        settings = one["settings"]
        if not one["paced"]:
            scenario = computed_scenario(one, Path(folder), binaries)
            settings = [s for s in settings if not s.startswith("compute.")] + ["compute.profile=profile.json"]
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
                                "relay_most_late_s", "relay_packets", "relay_dropped_packets", "queue",
                                "congestion_control", "slow_start_after_idle"])
            table.writerow([one["name"], measured["run"]["id"], measured["run"]["started_at"], f"{before:.2f}",
                            f"{after:.2f}", f"{took:.1f}", f"{relay['mean_late_s']:.3g}",
                            f"{relay['most_late_s']:.3g}", relay["packets"], relay["dropped_packets"],
                            one["queue"], wan["congestion_control"], wan["slow_start_after_idle"]])
        write(target, result.read_text().replace(folder + "/", ""))  # a path that is gone
    print(f"{one['name']}: {measured['wall_clock_s']:.1f} s, load {before:.1f} to {after:.1f}", file=sys.stderr)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=ROOT / "build/release/bin", help="where the programs are")
    parser.add_argument("--output", type=Path, default=HERE / "runs", help="folder of the reports")
    parser.add_argument("--only", default="*", help="names to run, with * and ?")
    parser.add_argument("--slice", action="store_true", help="a few cases, in less than two minutes")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no case after so long")
    parser.add_argument("--list", action="store_true", help="print the cases and stop")
    arguments = parser.parse_args()
    chosen = [one for one in cases() if fnmatch.fnmatch(one["name"], arguments.only)]
    if arguments.slice:
        chosen = [one for one in chosen if one["name"] in SLICE]
    if arguments.list:
        for one in chosen:
            print(one["name"], *one["settings"])
        return 0
    arguments.output.mkdir(parents=True, exist_ok=True)
    checked = arguments.output.parent / "checks" if not arguments.slice else None
    if checked:
        checked.mkdir(exist_ok=True)
    started, failed = time.time(), 0
    for one in chosen:
        if (arguments.output / (one["name"] + ".json")).exists():
            continue
        if time.time() - started > arguments.seconds:
            print("time is up; the same command goes on from here", file=sys.stderr)
            break
        if checked and not check_platform(one, checked, arguments.bin, HERE / "base.toml"):
            failed += 1
            continue
        failed += not run(one, arguments.output, arguments.bin, HERE / "base.toml",
                          arguments.output.parent / "conditions.csv")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
