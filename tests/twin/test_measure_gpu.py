"""Tests experiments/measure_gpu.sh: the rehearsal runs to its end, and stages that fail or hit limits are resumed one by one."""

import csv
import json
import os
import pathlib
import signal
import subprocess
import sys
import tarfile
import time

import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = str(ROOT / "experiments/measure_gpu.sh")
FOMOE, TRAIN = os.environ["FOMOE"], os.environ["FOMOE_TRAIN"]
STAGES = ["tests", "graph", "medium", "small", "shared4", "shared2", "trainings", "sanitizer", "whole", "large", "kernel_times", "xl", "xxl",
          "compiled", "skip_peer", "skip", "composition", "kernels", "eager", "rates", "library", "compiled16"]
NO_PROFILES = ("rates.json", "kernels.json")

# A program that writes the files it is asked for at once. For calls whose arguments contain $WHERE it runs
# $BEHAVE first.
FAKE = """#!/bin/bash
if [ "$1" = -c ]; then echo /nowhere; exit 0; fi
if [[ -n "${WHERE:-}" && "$*" == *"$WHERE"* ]]; then eval "$BEHAVE"; fi
while [ $# -gt 0 ]; do if [ "$1" = --output ]; then echo '{}' >"$2"; fi; shift; done
"""


@pytest.fixture
def fakes(tmp_path):
    """Fake programs that end at once: a folder with fomoe-train, test_gpu and bench_kernels, and the environment that uses them."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("fomoe-train", "test_gpu", "bench_kernels", "python"):
        (folder / name).write_text(FAKE)
        (folder / name).chmod(0o755)
    return folder, {**os.environ, "PYTHON": str(folder / "python")}


def status(output):
    with open(output / "status.csv", newline="") as file:
        return [(row["stage"], row["status"]) for row in csv.DictReader(file)]


def measure(output, folder, env, *more):
    return subprocess.run([SCRIPT, "--rehearse", "--output", str(output), "--bin", str(folder), *more], env=env,
                          capture_output=True, text=True)


def test_the_rehearsal_runs_every_stage_with_the_real_programs(tmp_path):
    output = tmp_path / "out"
    done = measure(output, pathlib.Path(TRAIN).parent, os.environ)
    assert done.returncode == 0, done.stdout + done.stderr
    assert status(output) == [(stage, "complete") for stage in STAGES]
    profiles = sorted(path for path in output.glob("*/*.json") if path.name not in NO_PROFILES and path.parent.name != "trainings")
    assert sorted(path.name for path in profiles) == sorted([
        "large.json", "small-1.json", "small-2.json", "small-3.json", "small-4.json", "medium-1.json", "medium-2.json",
        "medium-skip-loop.json", "medium-skip-grouped.json",
        "small.json", "medium.json", "medium-library-kernels.json", "medium-skip-token.json", "medium-eager-loop.json", "medium-eager-grouped.json",
        "medium-compiled.json", "small-by-graph.json", "small-by-host.json", "medium-1-layers.json", "medium-2-layers.json",
        "medium-held-out.json", "large-16-layers.json", "large-16-eager-grouped.json", "large-16-compiled.json",
        "large-1-layers.json", "large-2-layers.json", "xl-1-layers.json", "xl-2-layers.json", "xxl-1-layers.json", "xxl-2-layers.json"])
    # Processes that share the device do so on purpose: their profiles say so, and no point is timed again when others have ended.
    sharing = [path for path in profiles if path.parent.name in ("shared2", "shared4")]
    assert len(sharing) == 6
    assert sorted(path for path in profiles if json.loads(path.read_text()).get("shared_device")) == sharing
    for path in sharing:
        points = json.loads(path.read_text())["points"]
        assert all("waited_share" in point and len(point["samples"]) >= 3 for point in points), path
        assert "again" not in path.with_suffix(".txt").read_text()
    rates = json.loads((output / "rates/rates.json").read_text())["rates"]
    assert {rate["kind"] for rate in rates} == {"matmul", "grouped", "copy"}
    kernels = json.loads((output / "kernels/kernels.json").read_text())
    assert kernels["rehearsal"] and kernels["complete"]
    both = {"losses and gradients of logits", "peri_norm forward", "rotary forward and backward", "experts forward and backward", "largest_of_groups"}
    for form in ("own", "library"):
        assert both <= {row["kernel"] for row in kernels["kernels"] if row["kernels"] == form}
    assert all(row["seconds"] > 0 for row in kernels["kernels"])
    assert "a rehearsal: none of this is a measurement" in (output / "machine.txt").read_text()
    with tarfile.open(output / "measurements.tar.gz") as archive:
        assert "./small/small.json" in archive.getnames() and "./machine.txt" in archive.getnames()
    # Steps of the tiny model are so short that more layers may seem to take less time; no other measurement
    # may be missing.
    assert not [line for line in summary(output) if "not measured" in line and "a negative time per layer" not in line]
    # fomoe must be able to read every profile; two depths of the tiny model are as good as those of a preset.
    for path in profiles:
        scaled = subprocess.run([FOMOE, "profile", "scale", str(path), "--from", "A10", "--to", "L40S", "--output", "-"],
                                capture_output=True, text=True)
        assert scaled.returncode == 0, (path, scaled.stderr)


    # Each training was predicted before it ran, and sent the predicted bytes.
    if "cannot emulate links" not in (output / "trainings/log.txt").read_text():
        predicted, measured = (json.loads((output / "trainings" / name).read_text()) for name in ("small-predicted.json", "small.json"))
        assert (predicted["executor"], measured["executor"]) == ("simulated", "measured")
        assert predicted["bytes_sent_per_site_per_round"] == measured["bytes_sent_per_site_per_round"]
        written = [(output / "trainings" / name).stat().st_mtime for name in ("small-predicted.json", "small.json")]
        assert written[0] < written[1]


def test_the_pack_has_what_a_gpu_machine_lacks(tmp_path):
    kit = tmp_path / "kit.tar.xz"
    done = subprocess.run([SCRIPT, "--pack", str(kit), "--bin", str(pathlib.Path(TRAIN).parent)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert kit.stat().st_size < 40e6
    with tarfile.open(kit) as archive:
        names = set(archive.getnames())
        archive.extractall(tmp_path)
    assert {"./fomoe-train", "./fomoe", "./fomoe-wan", "./test_gpu", "./bench_kernels"} <= names
    assert any(name.startswith("./lib/libsimgrid") for name in names)
    ran = subprocess.run([str(tmp_path / "fomoe"), "--version"], env={"LD_LIBRARY_PATH": str(tmp_path / "lib")}, capture_output=True, text=True)
    assert ran.stdout.startswith("fomoe "), ran.stderr


def summary(output):
    done = subprocess.run([sys.executable, str(ROOT / "experiments/gpu_summary.py"), str(output), "--fomoe", FOMOE],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [line.strip() for line in done.stdout.splitlines() if line.startswith("  ")]


def profile(layers, seconds):
    """A step profile in which a step with N_le local experts takes seconds[N_le], a third of it in each of the three parts."""
    model = {"name": "custom", "d_model": 64, "layers": layers, "heads": 2, "experts": 8, "active_experts": 2, "d_expert": 32,
             "vocabulary": 256, "sequence_length": 16}
    points = [{"micro_batch_sequences": 1, "local_experts": held, "skip_token": False, "peak_memory_bytes": 1 << 30,
               "samples": [dict.fromkeys(("forward_s", "backward_s", "optimizer_s"), s / 3)] * 3} for held, s in seconds.items()]
    return {"schema": "fomoe.step-profile/1", "model": model, "device_kind": "cuda", "device_name": "a GPU", "threads": 1, "dtype": "bf16",
            "versions": "", "measured_at": "2026-01-01T00:00:00Z", "source": "a test", "points": points}


def test_the_summary_says_how_far_off_compositions_and_interpolations_are(tmp_path):
    for name, content in {
        "medium/medium.json": profile(16, {8: 0.8, 4: 0.4}),
        "composition/medium-2-layers.json": profile(2, {8: 0.1, 4: 0.1}),
        "composition/medium-4-layers.json": profile(4, {8: 0.2, 4: 0.142}),  # 16 layers: 0.8 and 0.394
        "composition/medium-held-out.json": profile(16, {6: 0.5}),           # between the two: 0.6
        "compiled/medium-compiled.json": profile(16, {8: 1.0}),
        "eager/medium-eager-loop.json": profile(16, {8: 2.0}),
        "eager/medium-eager-grouped.json": profile(16, {8: 1.6}),
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps(content))
    (tmp_path / "machine.txt").write_text("a machine")
    text = "\n".join(" ".join(line.split()) for line in summary(tmp_path))
    assert "error of composed against timed steps, worst of 2 expert counts 1.5% goal: 3 %" in text
    assert "error of interpolation between expert counts, median of 1 held-out counts 20.0% goal: 3 %" in text
    assert "medium: tokens/s, one sequence 20\n" in text
    assert "speed relative to eager PyTorch 2.00x goal: 1.5x" in text and "speed relative to torch.compile 1.25x goal: 1.2x" in text
    assert "not measured: graph/small-by-graph.json" in text and "not measured: kernels/kernels.json" in text


def test_a_benchmark_of_kernels_that_is_killed_leaves_its_rows(tmp_path):
    output = tmp_path / "kernels.json"
    benchmark = subprocess.Popen([pathlib.Path(TRAIN).parent / "bench_kernels", "--rehearse", "--output", output], stderr=subprocess.PIPE)
    benchmark.stderr.readline()  # of the first row
    benchmark.stderr.readline()  # the first row has been written before
    benchmark.kill()
    benchmark.communicate()
    left = json.loads(output.read_text())
    assert left["kernels"][0]["kernel"] == "copy" and not left["complete"]


def test_the_programs_need_no_library_that_a_machine_with_pytorch_lacks():
    """The programs are carried to machines with GPUs, which lack the libraries of Debian's packages."""
    of_torch = {path.name for path in pathlib.Path(torch.__file__).parent.glob("lib/*.so*")}
    of_torch |= {path.name for path in pathlib.Path(torch.__file__).parents[1].glob("nvidia/*/lib/*.so*")}
    of_any_linux = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6", "libpthread.so.0", "libdl.so.2", "ld-linux-x86-64.so.2"}
    for name in ("fomoe-train", "test_gpu", "bench_kernels"):
        program = pathlib.Path(TRAIN).parent / name
        headers = subprocess.run(["objdump", "-p", str(program)], capture_output=True, text=True, check=True).stdout
        needed = {line.split()[1] for line in headers.splitlines() if line.strip().startswith("NEEDED")}
        assert "libtorch_cuda.so" in needed
        assert needed <= of_torch | of_any_linux, (name, needed - of_torch - of_any_linux)


def test_what_is_complete_is_not_run_again(tmp_path, fakes):
    folder, env = fakes
    output = tmp_path / "out"
    assert measure(output, folder, env).returncode == 0
    (output / "skip/complete").unlink()
    done = measure(output, folder, env)
    assert done.returncode == 0
    assert status(output)[len(STAGES):] == [("skip", "complete")]
    assert done.stdout.count("complete already") == len(STAGES) - 1


def test_a_stage_that_fails_stops_no_other_and_is_run_again(tmp_path, fakes):
    folder, env = fakes
    output = tmp_path / "out"
    done = measure(output, folder, {**env, "WHERE": "medium-skip-token", "BEHAVE": "echo no such kernel; exit 7"})
    assert done.returncode == 1
    assert dict(status(output)) == {**dict.fromkeys(STAGES, "complete"), "skip": "failed (7)"}
    assert "no such kernel" in done.stdout and not (output / "skip").exists()
    with tarfile.open(output / "measurements.tar.gz") as archive:  # packed early, in case the machine is lost
        assert "./small/small.json" in archive.getnames() and "./skip.part/log.txt" in archive.getnames()
    assert measure(output, folder, env).returncode == 0
    assert status(output)[len(STAGES):] == [("skip", "complete")]


def test_where_recorded_steps_fail_later_ones_go_kernel_by_kernel(tmp_path, fakes):
    folder, env = fakes
    (folder / "fomoe-train").write_text(FAKE.replace("\n", '\necho "$*" >>"$CALLS"\n', 1))
    (folder / "bench_kernels").write_text(FAKE.replace("\n", '\necho "$*" >>"$CALLS"\n', 1))
    calls = tmp_path / "calls"
    env = {**env, "CALLS": str(calls)}
    done = measure(tmp_path / "out", folder, {**env, "WHERE": "small-by-graph", "BEHAVE": "echo operation not permitted; exit 1"})
    assert done.returncode == 1 and ("graph", "failed (1)") in status(tmp_path / "out")
    after = calls.read_text().splitlines()[1:]
    assert len(after) > 8 and all("--cuda-graph off" in call for call in after)
    calls.unlink()
    assert measure(tmp_path / "good", folder, env).returncode == 0
    assert [call for call in calls.read_text().splitlines() if "--cuda-graph off" in call] == \
        [call for call in calls.read_text().splitlines() if "small-by-host" in call]


def test_processes_that_share_the_gpu_say_so_and_are_timed_for_equally_long(tmp_path, fakes):
    folder, env = fakes
    (folder / "fomoe-train").write_text(FAKE.replace("\n", '\necho "$*" >>"$CALLS"\n', 1))
    calls = tmp_path / "calls"
    assert measure(tmp_path / "out", folder, {**env, "CALLS": str(calls)}).returncode == 0
    sharing = [call for call in calls.read_text().splitlines() if "/shared2" in call or "/shared4" in call]
    profiles = [call for call in sharing if call.startswith("profile")]
    assert len(profiles) == 2 + 4
    assert all("--shared-device" in call and "--time-budget 1s" in call and "--steps" not in call for call in profiles)
    others = [call for call in calls.read_text().splitlines() if call.startswith("profile") and call not in profiles]
    assert others and not [call for call in others if "--shared-device" in call]


def test_a_stage_that_hangs_is_ended_at_the_budget_and_the_next_call_goes_on(tmp_path, fakes):
    folder, env = fakes
    output = tmp_path / "out"
    done = measure(output, folder, {**env, "WHERE": "medium-skip-token", "BEHAVE": "sleep 1000"}, "--budget", "8")
    assert done.returncode == 3, done.stdout  # no budget is left for the later stages
    assert ("skip", "limit") in status(output)
    assert "Run the same command to continue" in done.stdout
    assert measure(output, folder, env).returncode == 0
    assert dict(status(output)) == dict.fromkeys(STAGES, "complete")


def leads_a_group(process):
    try:
        return os.getpgid(process) == process
    except ProcessLookupError:
        return False


def test_a_kill_leaves_nothing_that_looks_complete(tmp_path, fakes):
    folder, env = fakes
    output = tmp_path / "out"
    hung = subprocess.Popen([SCRIPT, "--rehearse", "--output", str(output), "--bin", str(folder)], start_new_session=True,
                            env={**env, "WHERE": "rates", "BEHAVE": "sleep 1000"}, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    groups = []  # timeout(1) has a process group of its own; other children come and go
    while not groups and time.monotonic() < deadline:
        time.sleep(0.05)
        if (output / "rates.part").exists():
            children = pathlib.Path(f"/proc/{hung.pid}/task/{hung.pid}/children").read_text().split()
            groups = [int(child) for child in children if leads_a_group(int(child))]
    hung.kill()
    hung.wait()
    for group in groups:
        os.killpg(group, signal.SIGKILL)
    assert (output / "rates.part").exists() and not (output / "rates").exists()
    with tarfile.open(output / "measurements.tar.gz") as archive:  # has the stages before the one that was killed
        assert "./small/small.json" in archive.getnames()
    assert measure(output, folder, env).returncode == 0
    assert not list(output.glob("*.part"))


@pytest.mark.parametrize("wrong, expected", [
    ([], "--output: got nothing"),
    (["--output"], "--output: got nothing"),
    (["--output", "x", "--budget", "soon"], '--budget: got "soon"; expected whole seconds'),
    (["--output", "x", "--bin", "/nowhere"], '--bin: got "/nowhere", without fomoe-train'),
    (["--quick"], "unknown argument --quick"),
])
def test_wrong_options_are_named(wrong, expected, tmp_path):
    done = subprocess.run([SCRIPT, *wrong], capture_output=True, text=True)
    assert done.returncode == 2
    assert expected in done.stderr


@pytest.mark.parametrize("folder, left_out", [
    ("h100-2026-11-28", {"eager/", "compiled16/", "kernels/", "rates/", "library/", "sanitizer/"}),
    ("h200-2026-11-26", {"composition/", "compiled/", "rates/", "sanitizer/", "skip_peer/"}),
])
def test_the_committed_measurements_can_be_summarised(folder, left_out):
    lines = summary(ROOT / "experiments/measured" / folder)
    missing = [line for line in lines if "not measured" in line]
    assert len(lines) > 40
    assert not [line for line in missing if not any(stage in line for stage in left_out)]
