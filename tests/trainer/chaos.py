#!/usr/bin/env python3
"""Trains at four sites on this machine, and kills and stops their processes at random moments.

    tests/trainer/chaos.py --minutes 60 --seed 7
    tests/trainer/chaos.py --minutes 60 --seed 7 --policy drop
    tests/trainer/chaos.py --minutes 20 --links          # over links that fomoe-wan emulates

With the policy "wait", every checkpoint must have the bytes of an undisturbed run. With "drop", the sites go on without those that
are lost, so there is no such run: all sites must have the same parameters after the last averages.

Half of the disturbances are kill -9; the process is started again. The other half stop a process (SIGSTOP) for longer than the
time after which the others treat it as lost; then it goes on, and joins again. With --links, one of four disturbances stops
fomoe-wan's relay instead, so that all links are dead meanwhile.
"""

import argparse
import atexit
import glob
import hashlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCENARIO = ROOT / "experiments/scenarios/tiny-training.toml"
SITES, TIMEOUT_S = 4, 5
# What a service manager does at a real site: it starts the process again until the run has ended, which this file says.
UNTIL_IT_ENDS = 'trap "" TERM; ended="$1"; shift; "$@"; until [ $? -eq 0 ] || [ -e "$ended" ]; do sleep 0.3; "$@" --resume; done'
AFTER_THE_END_S = 30  # within which all sites must have ended


def command(programs, policy, checkpoints, rounds, *more):
    settings = {"strategy.local_steps": 8, "workload.global_batch_sequences": 16,
                "workload.tokens": rounds * 8 * 16 * 64, "trainer.on_lost_site": policy,
                "trainer.timeout": f"{TIMEOUT_S}s", "trainer.validation_sequences": 0}
    if policy == "drop":
        settings |= {"strategy.method": "diloco", "trainer.drop_after": "1s"}
    options = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    return [str(programs / "fomoe-train"), "run", str(SCENARIO), "--threads", "1", "--checkpoints", str(checkpoints), *options, *more]


class Hashes:
    """The hashes of all checkpoints that a run has written, also of those that it has removed since."""

    def __init__(self, folder):
        self.folder, self.seen, self.read = folder, {}, set()

    def look(self):
        for path in glob.glob(str(self.folder / "round-*/node-*.safetensors")):  # pathlib's fails if a folder is removed meanwhile
            key = os.path.relpath(path, self.folder)
            try:
                state = os.stat(path)
                version = (path, state.st_ino, state.st_mtime_ns)
                if version in self.read:
                    continue
                value = hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
            except FileNotFoundError:
                continue
            self.read.add(version)
            before = self.seen.setdefault(key, value)
            if before != value:
                sys.exit(f"{key} was written twice, with different bytes")


def parameters(path):
    """The bytes of all parameters in a safetensors file, without the states of the optimisers."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8:8 + length])
    states = (".moment1", ".moment2", ".steps", ".anchor", ".residual", ".outer1", ".outer2")
    return {name: content[8 + length + entry["data_offsets"][0]:8 + length + entry["data_offsets"][1]]
            for name, entry in header.items() if name not in ("__metadata__", "moment_ages") and not name.endswith(states)}


def differing(folder):
    """Names of parameters in which sites differ in a round's checkpoint."""
    sites = [parameters(path) for path in sorted(folder.glob("node-*.safetensors"))]
    return [name for name in sites[0] if any(site[name] != sites[0][name] for site in sites)]


def children(process):
    text = pathlib.Path(f"/proc/{process}/task/{process}/children").read_text(encoding="utf-8")
    return [int(word) for word in text.split()]


def over_links(programs, train, ended):
    """The command that runs `train` at each site of an emulated network. The file `ended` says that the run has ended."""
    return [str(programs / "fomoe-wan"), "run", str(SCENARIO), "--no-check", "--set", "platform.bandwidth=100Mbps",
            "--set", "platform.latency=5ms", "--", "/bin/bash", "-c", UNTIL_IT_ENDS, "site", str(ended), *train]


def processes_below(process):
    """All processes that the process has started, and those that they have started: pairs of a number and a name."""
    found = []
    for child in children(process):
        try:
            found.append((child, pathlib.Path(f"/proc/{child}/comm").read_text(encoding="utf-8").strip()))
            found += processes_below(child)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def relay_among(processes):
    """The process of fomoe-wan that emulates the links. The kernel may leave out processes while others end; then: None."""
    return next((process for process, name in processes if name == "fomoe-wan relay"), None)


def stop_for_a_while(process, drawn):
    os.kill(process, signal.SIGSTOP)
    time.sleep(TIMEOUT_S * drawn.uniform(0.3, 2))
    os.kill(process, signal.SIGCONT)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=2, help="time for disturbances; the run then ends undisturbed")
    parser.add_argument("--rounds", type=int, help="rounds of the run, which ends early if it has too few")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--policy", choices=["wait", "drop"], default="wait", help="trainer.on_lost_site")
    parser.add_argument("--links", action="store_true", help="run over links that fomoe-wan emulates")
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/release/bin", help="folder of fomoe-train and fomoe-wan")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    drawn = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        rounds = given.rounds or max(20, round(given.minutes * 60 * 1.5))  # recoveries take most of the time
        expected = Hashes(folder / "whole")
        whole = None
        if given.policy == "wait":
            whole = subprocess.Popen(command(given.programs, "wait", folder / "whole", rounds, "--in-turn"),
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(folder / "stderr", "w", encoding="utf-8") as log:
            train = command(given.programs, given.policy, folder / "chaos", rounds, *([] if given.links else ["--local"]))
            run = subprocess.Popen(over_links(given.programs, train, folder / "ended") if given.links else train, stdout=subprocess.DEVNULL, stderr=log)
        atexit.register(run.terminate)  # if this script fails, or is ended
        seen, kills, stops, cuts, relay, ended_at = Hashes(folder / "chaos"), 0, 0, 0, None, None
        begun = next_at = last_at = time.monotonic()
        until = begun + 60 * given.minutes
        while run.poll() is None or (whole is not None and whole.poll() is None):
            if given.policy == "wait":
                expected.look()
                seen.look()
            time.sleep(0.05)
            # With "drop", the run ends without a site that is away at that moment, and which then looks for the others in vain.
            if given.policy == "drop" and ended_at is None and (folder / f"chaos/round-{rounds:08d}/node-0.safetensors").exists():
                ended_at = until = time.monotonic()
            if ended_at is not None and time.monotonic() > ended_at + AFTER_THE_END_S:
                (folder / "ended").touch()
                for process, name in processes_below(run.pid):
                    if name == "fomoe-train":
                        os.kill(process, signal.SIGKILL)
            if run.poll() is not None or time.monotonic() > until or time.monotonic() < next_at:
                continue
            last_at = time.monotonic()
            next_at = last_at + drawn.expovariate(1 / 5)  # every 5 seconds, also on a loaded machine
            try:
                below = processes_below(run.pid)
            except FileNotFoundError:  # the run has just ended
                continue
            victims = [process for process, name in below if name == "fomoe-train"]
            if not victims:
                continue
            victim, kind = drawn.choice(victims), drawn.random()
            relay = relay or relay_among(below)
            try:
                if kind < 0.25 and relay is not None:
                    stop_for_a_while(relay, drawn)
                    cuts += 1
                elif kind < 0.5:
                    os.kill(victim, signal.SIGKILL)
                    kills += 1
                else:
                    stop_for_a_while(victim, drawn)
                    stops += 1
            except ProcessLookupError:
                pass
        minutes = (last_at - begun) / 60
        expected.look()
        seen.look()
        if whole is not None and whole.returncode != 0:
            sys.exit("the undisturbed run failed")
        said = (folder / "stderr").read_text(encoding="utf-8")
        if run.returncode != 0:
            sys.exit(f"the run was lost with status {run.returncode}:\n{said[-3000:]}")
        if given.policy == "drop":
            last = folder / f"chaos/round-{rounds:08d}"
            if not (last / "node-0.safetensors").exists() or differing(last):
                sys.exit(f"files of the last round: {sorted(last.glob('node-*'))}; sites differ in {differing(last)[:5]}")
            print(f"{kills} kills, {stops} stops and {cuts} cuts in {minutes:.1f} min: no lost run, {len(list(last.glob('node-*')))} sites have "
                  "the same parameters; "
                  f"{said.count('got the state after round')} times a site got the state of the others")
            return
        wrong = [key for key, value in seen.seen.items() if expected.seen.get(key, value) != value]
        last = [key for key in seen.seen if key.startswith(f"round-{rounds:08d}/")]
        compared = sum(key in expected.seen for key in seen.seen)
        if wrong or len(last) != SITES:
            sys.exit(f"wrong weights in {wrong[:5]}; {len(last)} of {SITES} files of the last round")
        print(f"{kills} kills, {stops} stops and {cuts} cuts in {minutes:.1f} min: no lost run, {compared} checkpoints compared, none wrong")


if __name__ == "__main__":
    main()
