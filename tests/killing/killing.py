#!/usr/bin/env python3
"""Kills fomoe, and takes away what it needs: each time it must end with one clear line and its documented exit status, leave no
stray files, and go on later as if nothing had happened.

    killing.py --fomoe build/release/bin/fomoe [--rounds 8] [--seed 1]

Exit statuses: 0 success, 2 wrong input, 1 any other failure; a signal ends the program as it ends any other. Full and read-only
disks are small file systems in memory, which need root or user namespaces; without them these checks are left out, and said so.
"""
import argparse
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCENARIO = ROOT / "experiments/scenarios/two-sites.toml"
# Long enough to be killed at many moments, and with several chunks in its journal.
SWEEP = ["sweep", SCENARIO, "--vary", "strategy.local_steps=1..200+1", "--vary", "platform.latency=1ms..40ms+1ms", "--rounds", "1",
         "--jobs", "2"]
problems = []


def check(condition, what):
    if not condition:
        problems.append(what)
        print(f"  FAILED: {what}", flush=True)


class Ran:
    def __init__(self, command, **options):
        done = subprocess.run([str(word) for word in command], capture_output=True, timeout=300, **options)
        self.status, self.out, self.err = done.returncode, done.stdout.decode(), done.stderr.decode()

    def refused(self, what, status, *parts):
        """It ended with this status and one line, which contains the parts."""
        check(self.status == status, f"{what}: exit status {self.status}; expected {status}; {self.err[:200]!r}")
        lines = [line for line in self.err.replace("\r", "\n").splitlines() if line.strip()]
        check(len(lines) == 1, f"{what}: {len(lines)} lines of messages; expected one: {self.err[:300]!r}")
        for part in parts:
            check(part in self.err, f"{what}: the message lacks {part!r}: {self.err[:300]!r}")


def names(folder):
    return sorted(path.name for path in pathlib.Path(folder).iterdir())


def ended_after(command, seconds, how):
    """Starts the command and sends the signal after this time. Returns the exit status."""
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        # Its workers must notice by themselves that their parent has gone.
        process.send_signal(how)
        process.wait(30)
    process.stderr.close()
    return process.returncode


def workers_left(folder):
    """Processes of fomoe whose command line names the folder."""
    left = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder).encode() in path.read_bytes():
                left.append(path.parent.name)
        except OSError:
            pass  # it ended meanwhile
    return left


def killed_sweep(fomoe, folder, rounds, draw):
    undisturbed = folder / "undisturbed"
    undisturbed.mkdir()
    begin = time.monotonic()
    Ran([fomoe, *SWEEP, "--output", undisturbed / "sweep.csv"])
    whole_s = time.monotonic() - begin
    expected = (undisturbed / "sweep.csv").read_bytes()
    check(names(undisturbed) == ["sweep.csv"], f"an undisturbed sweep leaves {names(undisturbed)}")
    resumed_rows = 0
    for number in range(rounds):
        own = folder / f"killed-{number}"
        own.mkdir()
        command = [fomoe, *SWEEP, "--output", own / "sweep.csv", "--resume"]
        how = [signal.SIGKILL, signal.SIGINT, signal.SIGTERM][number % 3]
        ends = 0
        while (status := ended_after(command, draw.uniform(0, 0.8 * whole_s), how)) != 0:
            ends += 1
            check(status == -how, f"sweep after {how.name}: status {status}")
            check(set(names(own)) <= {"sweep.csv.partial"}, f"sweep after {how.name}: files {names(own)}")
            partial = own / "sweep.csv.partial"
            resumed_rows = max(resumed_rows, partial.stat().st_size if partial.exists() else 0)
            if ends == 20:
                check(False, "a resumed sweep does not come to an end")
                break
            if ends >= 4:
                how = signal.SIGCONT  # which lets it finish
                Ran(command)
                break
        check(names(own) == ["sweep.csv"], f"a resumed sweep leaves {names(own)}")
        check((own / "sweep.csv").read_bytes() == expected, "a resumed sweep differs from the undisturbed one")
        print(f"  sweep of {whole_s:.1f} s, ended {ends} times by {how.name if ends < 4 else 'signals'}: the same bytes", flush=True)
    check(resumed_rows > 100, "no kill left a journal with rows: the sweep is too short for this test")
    time.sleep(0.5)
    check(not workers_left(folder), "processes of killed sweeps go on")


def torn_journal(fomoe, folder, draw):
    """A crash of the machine may leave any beginning of the journal, or wrong bytes at its end."""
    output = folder / "sweep.csv"
    command = [fomoe, *SWEEP, "--output", output]
    Ran(command)
    expected = output.read_bytes()
    output.unlink()
    partial = folder / "sweep.csv.partial"
    for _ in range(20):
        ended_after(command + ["--resume"], draw.uniform(0.3, 1.5), signal.SIGKILL)
        if partial.exists() and partial.stat().st_size > 1000:
            break
    journal = partial.read_bytes() if partial.exists() else b""
    check(len(journal) > 1000, "no journal to tear")
    output.unlink(missing_ok=True)
    cut = draw.randrange(len(journal) + 1)
    at = draw.randrange(40, max(len(journal), 41))
    for what, torn in {"cut": journal[:cut], "with zeros at its end": journal[:cut] + bytes(4096),
                       "with a wrong byte": journal[:at] + bytes([journal[at] ^ 255]) + journal[at + 1:] if at < len(journal) else journal,
                       "empty": b""}.items():
        partial.write_bytes(torn)
        ran = Ran(command + ["--resume"])
        check(ran.status == 0 and output.read_bytes() == expected, f"a journal {what} gives another table: {ran.err[:200]}")
        output.unlink(missing_ok=True)


def disks(fomoe, folder):
    """A full and a read-only file system, inside a namespace of their own."""
    inside = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    mount = folder / "disk"
    mount.mkdir()
    def on(options, *command):
        words = " ".join(f"'{word}'" for word in command)
        script = (f"mount -t tmpfs -o size=16k tmpfs '{mount}' && head -c 12000 /dev/zero >'{mount}/.other'; {options} {words}; status=$?; "
                  f"ls '{mount}'; exit $status")
        return Ran([*inside, "sh", "-c", script])
    if on("", "true").status != 0:
        print("  left out: no rights to mount a file system", flush=True)
        return
    full = on("", fomoe, "simulate", SCENARIO, "--output", mount / "run.json")
    full.refused("simulate on a full disk", 1, "run.json", "cannot be written", "No space left on device")
    check(full.out == "", f"simulate on a full disk leaves {full.out!r}")
    full = on("", fomoe, *SWEEP, "--output", mount / "sweep.csv")
    full.refused("sweep on a full disk", 1, "cannot be written", "No space left on device")
    check(full.out.split() == ["sweep.csv.partial"], f"sweep on a full disk leaves {full.out!r}")
    read_only = f"mount -o remount,ro '{mount}' &&"
    on(read_only, fomoe, "simulate", SCENARIO, "--output", mount / "run.json").refused(
        "simulate into a read-only folder", 1, "run.json", "Read-only file system")
    on(read_only, fomoe, *SWEEP, "--output", mount / "sweep.csv").refused(
        "sweep into a read-only folder", 1, "sweep.csv", "Read-only file system")


def limited_file_size(fomoe, folder):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))

    Ran([fomoe, "simulate", SCENARIO, "--output", folder / "run.json"], preexec_fn=limit).refused(
        "simulate with a limit of file sizes", 1, "run.json", "File too large")
    check(names(folder) == [], f"simulate with a limit of file sizes leaves {names(folder)}")


def streams(fomoe):
    with open("/dev/full", "w") as full:
        done = subprocess.run([fomoe, "simulate", SCENARIO], stdout=full, stderr=subprocess.PIPE)
    check((done.returncode, done.stderr) == (1, b"fomoe: stdout: cannot be written\n"), f"a full stdout: {done}")
    closed = Ran(["sh", "-c", f"'{fomoe}' simulate '{SCENARIO}' >&-"])
    closed.refused("a closed stdout", 1, "stdout: cannot be written")
    # A reader that leaves early, such as head, ends the program by SIGPIPE without a message.
    left = subprocess.run(["bash", "-c", f"'{fomoe}' list keys | head -1; exit ${{PIPESTATUS[0]}}"], capture_output=True)
    check(left.returncode in (0, 128 + signal.SIGPIPE) and left.stderr == b"" and left.stdout.count(b"\n") == 1, f"| head -1: {left}")
    Ran(["sh", "-c", f"printf 'a = [' | '{fomoe}' simulate -"]).refused("a stdin that ends early", 2, "stdin:1: TOML")


def files(fomoe, folder):
    Ran([fomoe, "simulate", folder / "none.toml"]).refused("a missing file", 2, "none.toml:1", "no readable file")
    Ran([fomoe, "simulate", folder]).refused("a folder", 2, "a folder")
    for name in (folder / "none/run.json", "/dev/null/run.json"):
        Ran([fomoe, "simulate", SCENARIO, "--output", name]).refused("a missing folder", 2, f"--output: got \"{name}\"", "does not exist")
    # The file of a scenario vanishes while a sweep is under way, and so does the folder of the output.
    own = folder / "vanishing"
    own.mkdir()
    platform = ROOT / "platforms/two-offices.toml"
    shutil.copy(platform, own)
    scenario = own / "scenario.toml"
    shutil.copy(SCENARIO, scenario)
    (own / "out").mkdir()
    process = subprocess.Popen([str(word) for word in [fomoe, SWEEP[0], scenario, *SWEEP[2:], "--output", own / "out/sweep.csv"]],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    until = time.monotonic() + 30
    while not (own / "out/sweep.csv.partial").exists() and time.monotonic() < until:
        time.sleep(0.01)
    shutil.rmtree(own / "out")
    scenario.unlink()
    message = process.communicate(timeout=300)[1].decode()
    check(process.returncode in (1, 2), f"a sweep whose files vanish: status {process.returncode}, {message[-300:]!r}")
    last = message.replace("\r", "\n").strip().splitlines()[-1:]
    check(last and "sweep.csv" in last[0] or "scenario.toml" in "".join(last), f"a sweep whose files vanish says {last}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fomoe", type=pathlib.Path, default=ROOT / "build/release/bin/fomoe")
    parser.add_argument("--rounds", type=int, default=0, help="sweeps that are killed (about a minute for each three)")
    parser.add_argument("--seed", type=int, default=1)
    values = parser.parse_args()
    fomoe, draw = values.fomoe.resolve(), random.Random(values.seed)
    with tempfile.TemporaryDirectory(prefix="fomoe-killing-") as text:
        def own(name):
            (pathlib.Path(text) / name).mkdir()
            return pathlib.Path(text) / name
        print("streams"), streams(fomoe)
        print("files"), files(fomoe, own("files"))
        print("limit"), limited_file_size(fomoe, own("limit"))
        print("disks"), disks(fomoe, own("disks"))
        if values.rounds:
            print("killed sweeps"), killed_sweep(fomoe, own("killed"), values.rounds, draw)
            print("torn journals"), torn_journal(fomoe, own("torn"), draw)
    print(f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
