#!/usr/bin/env python3
"""Kills fomoe-train at random moments, stops its sites, and takes away what it needs. Whatever happens, the weights at the end must have
the bytes of an undisturbed run, no process and no stray file may be left, and an error must be one clear line.

    training_killing.py --train build/release/bin/fomoe-train [--kills 100] [--seed 1] [--only SUBJECT…]

Subjects: `run` kills a run over four sites (its launcher, one site, or all at once), `write` kills it just when it writes a checkpoint,
`grid` kills a grid, `stopped` stops a site for a minute (SIGSTOP), `twice` lets a rank join twice, `disk` fills the disk and takes the
right to write, `signals` sends SIGINT and SIGTERM and closes stdout, `changing` changes the file of tokens while it is read.
"""
import argparse
import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time

import killing
from killing import ROOT, check, names, workers_left

SCENARIO = ROOT / "experiments/scenarios/tiny-training.toml"
ROUNDS, SITES = 10, 4
train = None  # the program


def command(folder, *more, **settings):
    keys = {"strategy.local_steps": 2, "workload.tokens": ROUNDS * 2 * 64 * 64, "trainer.validation_sequences": 0,
            "trainer.timeout": "20s"} | {key.replace("__", "."): value for key, value in settings.items()}
    options = [part for key, value in keys.items() for part in ("--set", f"{key}={value}")]
    return [str(word) for word in [train, "run", SCENARIO, "--threads", "1", "--checkpoints", folder, *options, *more]]


def states(folder):
    """The bytes of all checkpoints, which a run keeps of its last rounds."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.glob("round-*/node-*.safetensors"))}


def undisturbed(folder):
    whole = folder / "whole"
    if not whole.exists():
        done = killing.Ran(command(whole, "--in-turn"))
        check(done.status == 0, f"the undisturbed run failed: {done.err[-300:]}")
        check(len(states(whole)) >= SITES, f"the undisturbed run left {names(whole)}")
    return states(whole)


def children(process):
    try:
        return [int(word) for word in pathlib.Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def gone(folder, what):
    """Waits until no process of the run is left."""
    until = time.monotonic() + 45  # a site waits for trainer.timeout before it takes another one for lost
    while time.monotonic() < until and workers_left(folder):
        time.sleep(0.02)
    check(not workers_left(folder), f"{what}: processes are left: {workers_left(folder)}")


def strays(folder):
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and not (
        path.name.startswith("node-") and path.name.endswith(".safetensors"))]


def finished(folder, expected, what):
    ran = killing.Ran(command(folder, "--local", "--resume"))
    check(ran.status == 0, f"{what}: the resumed run ends with {ran.status}: {ran.err[-300:]!r}")
    found = states(folder)
    differing = [name for name, content in expected.items() if found.get(name) != content]
    check(not differing, f"{what}: {differing} differ from the undisturbed run")
    check(not strays(folder), f"{what}: stray files {strays(folder)}")


def killed_runs(folder, kills, draw, at_a_write):
    expected, done, runs = undisturbed(folder), 0, 0
    begin = time.monotonic()
    killing.Ran(command(folder / f"measured-{at_a_write}", "--local"))
    whole_s = time.monotonic() - begin
    while done < kills:
        own, runs = folder / f"killed-{at_a_write}-{runs}", runs + 1
        for _ in range(draw.randint(3, 8)):
            if done >= kills:
                break
            process = subprocess.Popen(command(own, "--local", "--resume"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       start_new_session=True)
            if at_a_write:  # a folder of a round appears just before its files are written
                before, until = set(own.glob("round-*")), time.monotonic() + 60
                number = draw.randint(1, 3)
                while len(set(own.glob("round-*")) - before) < number and process.poll() is None and time.monotonic() < until:
                    time.sleep(0.0005)
                time.sleep(draw.uniform(0, 0.02))
            else:
                time.sleep(draw.uniform(0, 0.95 * whole_s))
            sites = children(process.pid)  # none before the launcher has started them
            victims = draw.choice([[process.pid], sites[:1] or [process.pid], [process.pid, *sites]])
            for victim in victims:
                try:
                    os.kill(victim, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            try:
                status = process.wait(120)
            except subprocess.TimeoutExpired:
                process.kill()
                status = None
            check(status is not None, "a run with a killed site does not end")
            gone(own, "a killed run")
            if status == 0:  # it had ended before
                break
            done += 1
        finished(own, expected, "a killed run")
    print(f"  {done} kills of {runs} runs over {SITES} sites, each of {whole_s:.1f} s{' at a write' if at_a_write else ''}: the same bytes",
          flush=True)


def killed_grids(folder, kills, draw):
    (folder / "grid.toml").write_text(
        f'scenario = "{SCENARIO}"\nset = ["workload.tokens=32768", "strategy.local_steps=2"]\n'
        '[[runs]]\nvary = ["seed=42,123", "strategy.expert_overlap=1,4"]\n')
    def grid(output):
        return [train, "grid", folder / "grid.toml", "--output", output, "--jobs", "2"]
    def rows(output):  # without the last columns: seconds, resumed, device and version differ
        return [line.split(",")[:10] for line in (output / "rows.csv").read_text().splitlines()]
    begin = time.monotonic()
    first = killing.Ran(grid(folder / "whole-grid"))
    whole_s = time.monotonic() - begin
    check(first.status == 0, f"the undisturbed grid failed: {first.err[-300:]}")
    expected, own, done, number = rows(folder / "whole-grid"), None, 0, 0
    while done < kills:
        own, number = folder / f"grid-{number}", number + 1
        for _ in range(5):
            status = killing.ended_after(grid(own), draw.uniform(0, 0.8 * whole_s), signal.SIGKILL)
            gone(own, "a killed grid")
            if status == 0 or done >= kills:
                break
            done += 1
        last = killing.Ran(grid(own))
        check(last.status == 0 and rows(own) == expected, f"a killed grid has other rows: {last.err[-300:]}")
        left = [str(path) for path in own.rglob("*") if path.suffix in (".tmp", ".checkpoints")]
        check(not left, f"a killed grid leaves {left}")
    print(f"  {done} kills of {number} grids, each of {whole_s:.1f} s: the same rows", flush=True)


def stopped_site(folder, draw, stop_s):
    expected, own = undisturbed(folder), folder / "stopped"
    with open(folder / "stopped.err", "w", encoding="utf-8") as log:
        run = subprocess.Popen(command(own, "--local", trainer__on_lost_site="wait", trainer__timeout="5s"), stdout=subprocess.DEVNULL,
                               stderr=log)
    until = time.monotonic() + 60
    while not list(own.glob("round-*")) and time.monotonic() < until:
        time.sleep(0.01)
    victim = draw.choice(children(run.pid) or [run.pid])
    os.kill(victim, signal.SIGSTOP)
    time.sleep(stop_s)
    os.kill(victim, signal.SIGCONT)
    status = run.wait(300)
    said = (folder / "stopped.err").read_text(encoding="utf-8")
    check(status == 0, f"a run with a stopped site: status {status}: {said[-300:]!r}")
    check(states(own) == expected, "a run with a stopped site ends with other weights")
    gone(own, "a run with a stopped site")
    print(f"  a site stopped for {stop_s:g} s: the same bytes; stderr has {len(said.splitlines())} lines", flush=True)


def joins_twice(folder):
    """Rank 1 is started twice. One of the two must be refused by name or be taken for the lost one; the weights stay right."""
    expected, own = undisturbed(folder), folder / "twice"
    port = str(20_000 + os.getpid() % 10_000)
    def start(rank, name):
        with open(folder / f"twice-{name}", "w", encoding="utf-8") as log:
            return subprocess.Popen(command(own), stdout=subprocess.DEVNULL, stderr=log, env=os.environ | {
                "RANK": str(rank), "WORLD_SIZE": str(SITES), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port})
    started = {name: start(rank, name) for name, rank in (("0", 0), ("1", 1), ("1-again", 1), ("2", 2), ("3", 3))}
    begin = time.monotonic()
    statuses = {}
    for name, process in started.items():
        try:
            statuses[name] = process.wait(max(1, 120 - (time.monotonic() - begin)))
        except subprocess.TimeoutExpired:
            process.kill()
            statuses[name] = "hangs"
    said = {name: (folder / f"twice-{name}").read_text(encoding="utf-8").strip() for name in started}
    check("hangs" not in statuses.values(), f"a rank that joins twice: {statuses}, {said}")
    check(any("1" in text and text for text in said.values()), f"a rank that joins twice is not named: {said}")
    found = states(own)
    check(all(expected.get(name, content) == content for name, content in found.items()), "a rank that joins twice changes weights")
    print(f"  a rank that joins twice: ended after {time.monotonic() - begin:.0f} s with {statuses}; {next((t for t in said.values() if t), '')[:160]!r}",
          flush=True)


def disks(folder):
    inside = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    mount = folder / "disk"
    mount.mkdir()
    def on(size, options, how):
        words = " ".join(f"'{word}'" for word in command(mount / "checkpoints", how))
        script = f"mount -t tmpfs -o size={size} tmpfs '{mount}' && {options} {words}; status=$?; find '{mount}' -type f; exit $status"
        return killing.Ran([*inside, "sh", "-c", script])
    if killing.Ran([*inside, "sh", "-c", f"mount -t tmpfs tmpfs '{mount}'"]).status != 0:
        return print("  left out: no rights to mount a file system", flush=True)
    for how in ("--in-turn", "--local"):
        full = on("1M", "", how)
        check(full.status == 1 and "No space left on device" in full.err, f"training on a full disk {how}: {full.status}, {full.err[-400:]!r}")
        check(".tmp" not in full.out, f"training on a full disk leaves {full.out!r}")
        read_only = on("1M", f"mount -o remount,ro '{mount}' &&", how)
        check(read_only.status in (1, 2) and "Read-only file system" in read_only.err,
              f"training into a read-only folder {how}: {read_only.status}, {read_only.err[-400:]!r}")

    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    limited = killing.Ran(command(folder / "limited", "--in-turn"), preexec_fn=small)
    check(limited.status == 1 and "File too large" in limited.err, f"training with a limit of file sizes: {limited.status}, {limited.err[-300:]!r}")
    print("  full disk, read-only folder, limit of file sizes: each refused by name", flush=True)


def signals(folder, draw):
    expected = undisturbed(folder)
    for how in (signal.SIGINT, signal.SIGTERM):
        for mode in ("--local", "--in-turn"):
            own = folder / f"signal-{how.name}{mode}"
            status = killing.ended_after(command(own, mode), draw.uniform(0.3, 3), how)
            check(status in (-how, 128 + how, 0), f"fomoe-train {mode} after {how.name}: status {status}")
            gone(own, f"fomoe-train {mode} after {how.name}")
            finished(own, expected, f"fomoe-train {mode} after {how.name}")
    closed = killing.Ran(["sh", "-c", " ".join(f"'{word}'" for word in command(folder / "closed", "--in-turn", "--output", "-")) + " >&-"])
    check(closed.status != 0 and "stdout" in closed.err or closed.status == 0, f"a closed stdout: {closed.status}, {closed.err[-300:]!r}")
    left = killing.Ran(["bash", "-c", " ".join(f"'{word}'" for word in command(folder / "head", "--in-turn")) + " | head -1; exit ${PIPESTATUS[0]}"])
    check(left.status in (0, 128 + signal.SIGPIPE), f"| head -1: status {left.status}, {left.err[-300:]!r}")
    print(f"  SIGINT and SIGTERM in both modes, and a closed stdout (status {closed.status}): the same bytes when resumed", flush=True)


def changing_tokens(folder):
    """The file of tokens gets shorter while it is mapped, which gives SIGBUS to a reader that trusts its size."""
    tokens = folder / "tokens.bin"
    tokens.write_bytes(bytes(byte % 200 if i % 2 == 0 else 0 for i, byte in enumerate(random.Random(5).randbytes(2_000_000))))
    data = {"trainer__data": str(tokens)}
    process = subprocess.Popen(command(folder / "changing", "--in-turn", workload__tokens=200 * 2 * 64 * 64, **data), stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE)
    until = time.monotonic() + 60
    while not list((folder / "changing").glob("round-*")) and process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    with open(tokens, "r+b") as file:
        file.truncate(10_000)
    message = process.communicate(timeout=300)[1].decode()
    check(process.returncode in (1, 2) and "tokens.bin" in message, f"tokens that vanish: status {process.returncode}, {message[-300:]!r}")
    print(f"  a file of tokens that gets shorter: status {process.returncode}, {message.strip().splitlines()[-1:]}", flush=True)


def main():
    global train
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=pathlib.Path, default=ROOT / "build/release/bin/fomoe-train")
    parser.add_argument("--kills", type=int, default=100, help="of runs; half as many at writes of checkpoints, a fifth of grids")
    parser.add_argument("--stop", type=float, default=60, help="seconds for which a site is stopped")
    parser.add_argument("--seed", type=int, default=1)
    subjects = ["run", "write", "grid", "stopped", "twice", "disk", "signals", "changing"]
    parser.add_argument("--only", nargs="+", choices=subjects, default=subjects)
    values = parser.parse_args()
    train, draw = values.train.resolve(), random.Random(values.seed)
    with tempfile.TemporaryDirectory(prefix="fomoe-killing-") as text:
        folder = pathlib.Path(text)
        for subject, act in {"signals": lambda: signals(folder, draw), "disk": lambda: disks(folder), "twice": lambda: joins_twice(folder),
                             "changing": lambda: changing_tokens(folder), "stopped": lambda: stopped_site(folder, draw, values.stop),
                             "write": lambda: killed_runs(folder, values.kills // 2, draw, True),
                             "grid": lambda: killed_grids(folder, values.kills // 5, draw),
                             "run": lambda: killed_runs(folder, values.kills, draw, False)}.items():
            if subject in values.only:
                print(subject, flush=True)
                act()
    print(f"{len(killing.problems)} problems")
    return 1 if killing.problems else 0


if __name__ == "__main__":
    sys.exit(main())
