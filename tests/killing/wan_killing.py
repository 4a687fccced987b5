#!/usr/bin/env python3
"""Kills fomoe-wan and fomoe probe at random moments, and disturbs the links between the sites of a training run: links are cut and
restored, and packets are lost.

    wan_killing.py --programs build/release/bin [--kills 20] [--seed 1] [--only wan probe cut loss]

Needs root or user namespaces, TUN devices, iperf3 (for probe) and iptables (for cut and loss); what is missing is left out, and said
so. The run over disturbed links must end with the bytes of a run without links.
"""
import argparse
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import killing
from killing import ROOT, check, names

SCENARIO = ROOT / "experiments/scenarios/two-sites.toml"
TRAINING = ROOT / "experiments/scenarios/tiny-training.toml"


def network_namespaces():
    found = set()
    for path in pathlib.Path("/proc").glob("[0-9]*/ns/net"):
        try:
            found.add(str(path.readlink()))
        except OSError:
            pass  # it ended meanwhile
    return found


def control_groups():
    return {str(path) for path in pathlib.Path("/sys/fs/cgroup").glob("**/fomoe-wan-*")}


class Surroundings:
    """What the machine had before a run, so that the test sees what the run leaves."""

    def __init__(self):
        self.namespaces, self.groups = network_namespaces(), control_groups()

    def check_left(self, marker, what):
        until = time.monotonic() + 10
        while time.monotonic() < until and (killing.workers_left(marker) or network_namespaces() - self.namespaces):
            time.sleep(0.05)
        check(not killing.workers_left(marker), f"{what}: processes are left: {killing.workers_left(marker)}")
        check(not network_namespaces() - self.namespaces, f"{what}: network namespaces are left")
        check(not control_groups() - self.groups, f"{what}: control groups are left: {control_groups() - self.groups}")
        check(not pathlib.Path("/sys/class/net/wan0").exists(), f"{what}: a network device is left")


def wan(programs, *words):
    return [str(word) for word in [programs / "fomoe-wan", "run", *words]]


def possible(programs):
    return subprocess.run(wan(programs, SCENARIO, "--no-check", "--", "true"), capture_output=True).returncode == 0


def killed_wan(programs, folder, kills, draw):
    before, statuses = Surroundings(), []
    for number in range(kills):
        marker = folder / f"marker-{number}"  # the command line of each process of the sites contains it
        options = [] if number % 4 == 0 else ["--no-check"]  # the check of the emulation is killed, too
        command = wan(programs, SCENARIO, *options, "--", "sh", "-c", f"sleep 30; : {marker}")
        how = draw.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
        statuses.append(killing.ended_after(command, draw.uniform(0, 4 if options else 1.2), how))
        allowed = [-how] if how == signal.SIGKILL else [-how, 128 + how]
        check(statuses[-1] in allowed, f"fomoe-wan after {how.name}: status {statuses[-1]}")
        before.check_left(marker, f"fomoe-wan after {how.name}")
    print(f"  fomoe-wan ended {kills} times, {statuses.count(-signal.SIGKILL)} of them by SIGKILL: nothing left", flush=True)


def killed_probe(programs, folder, kills, draw):
    if not shutil.which("iperf3"):
        return print("  left out: iperf3 is not installed", flush=True)
    before, named = Surroundings(), 0
    for number in range(kills):
        own = folder / f"probe-{number}"
        own.mkdir()
        victim, after = draw.randint(0, 1), draw.uniform(0.2, 8)
        probe = f"{programs}/fomoe probe --streams 1 --seconds 1 --repeat 1 --wait 20 --output {own}/p.toml"
        # One of the two sites is killed; the other one must end by itself.
        script = f"if [ $RANK = {victim} ]; then {probe} & sleep {after:.2f}; kill -9 $! 2>/dev/null; wait; else {probe}; fi"
        begin = time.monotonic()
        ran = killing.Ran(wan(programs, SCENARIO, "--set", "platform.bandwidth=100Mbps", "--no-check", "--", "sh", "-c", script))
        took = time.monotonic() - begin
        finished = (own / "p.toml").exists()
        check(finished or ran.status != 0, f"probe with a killed site {victim}: status {ran.status} without a platform file")
        check(took < after + 60, f"probe with a killed site {victim}: it took {took:.0f} s to end")
        check(set(names(own)) <= {"p.toml"}, f"probe with a killed site leaves {names(own)}")
        named += not finished and any(word in ran.out + ran.err for word in ("site", "rank 0"))
        check(finished or "fomoe:" in ran.out + ran.err, f"probe with a killed site says nothing: {(ran.out + ran.err)[-300:]!r}")
        before.check_left(own, "probe with a killed site")
    print(f"  probe with a killed site {kills} times: nothing left, {named} times the message says who has gone", flush=True)


def training(programs, checkpoints, *more):
    settings = {"platform.sites": 2, "workload.tokens": 12 * 8 * 64 * 64, "strategy.local_steps": 8, "trainer.timeout": "60s",
                "trainer.validation_sequences": 0, "platform.bandwidth": "200Mbps", "platform.latency": "5ms"}
    options = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    return [programs / "fomoe-train", "run", TRAINING, "--threads", "1", "--checkpoints", checkpoints, *options, *more]


def last_states(folder):
    """The files of the last round that has both sites' files."""
    for last in sorted(pathlib.Path(folder).glob("round-*"), reverse=True):
        files = {path.name: path.read_bytes() for path in last.glob("node-*.safetensors")}
        if len(files) == 2:
            return last.name, files
    return None, {}


def disturbed_training(programs, folder, what, disturb):
    """Trains over emulated links, in which `disturb`, a shell script, runs beside the site of rank 1."""
    whole, own = folder / "whole", folder / what.replace(" ", "-")
    if not whole.exists():
        done = killing.Ran(training(programs, whole, "--in-turn"))
        check(done.status == 0, f"the undisturbed run failed: {done.err[-300:]}")
    words = " ".join(f"'{word}'" for word in training(programs, own))
    log = folder / "disturbance"
    script = f"if [ $RANK = 1 ]; then {{ {disturb}; }} >>{log} 2>&1 & fi; {words}; status=$?; kill $! 2>/dev/null; exit $status"
    before = Surroundings()
    begin = time.monotonic()
    ran = killing.Ran(wan(programs, TRAINING, "--set", "platform.sites=2", "--set", "platform.bandwidth=200Mbps", "--set",
                          "platform.latency=5ms", "--no-check", "--", "sh", "-c", script))
    took = time.monotonic() - begin
    check(ran.status == 0, f"training with {what}: status {ran.status}: {(ran.out + ran.err)[-500:]!r}")
    check(last_states(own) == last_states(whole) and last_states(own)[0], f"training with {what} ends with other weights")
    before.check_left(own, f"training with {what}")
    text = log.read_text() if log.exists() else ""
    check("done" in text, f"training with {what} was not disturbed: {text[-200:]!r}")
    print(f"  training with {what}: {took:.0f} s, the same bytes in {last_states(own)[0]}", flush=True)
    log.unlink(missing_ok=True)


def cut_links(programs, folder):
    cut = "; ".join("sleep 2; iptables -A INPUT -i wan0 -j DROP && iptables -A OUTPUT -o wan0 -j DROP && sleep 4; iptables -F; echo done"
                    for _ in range(3))
    disturbed_training(programs, folder, "links cut three times for 4 s", cut)


def lost_packets(programs, folder):
    for share in (0.01, 0.05):
        lose = f"iptables -A INPUT -i wan0 -m statistic --mode random --probability {share} -j DROP && echo done; sleep 600"
        disturbed_training(programs, folder, f"{share:.0%} of packets lost", lose)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/release/bin")
    parser.add_argument("--kills", type=int, default=20, help="of fomoe-wan, and of sites of fomoe probe")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=["wan", "probe", "cut", "loss"], default=["wan", "probe", "cut", "loss"])
    values = parser.parse_args()
    programs, draw = values.programs.resolve(), random.Random(values.seed)
    if not possible(programs):
        print("left out: this machine cannot emulate links")
        return 77
    with tempfile.TemporaryDirectory(prefix="fomoe-killing-") as text:
        folder = pathlib.Path(text)
        if "wan" in values.only:
            killed_wan(programs, folder, values.kills, draw)
        if "probe" in values.only:
            killed_probe(programs, folder, values.kills, draw)
        if not (programs / "fomoe-train").exists() or not shutil.which("iptables"):
            print("  left out: fomoe-train or iptables is missing")
        else:
            if "cut" in values.only:
                cut_links(programs, folder)
            if "loss" in values.only:
                lost_packets(programs, folder)
    print(f"{len(killing.problems)} problems")
    return 1 if killing.problems else 0


if __name__ == "__main__":
    sys.exit(main())
