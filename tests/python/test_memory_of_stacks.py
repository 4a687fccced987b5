"""The memory that `fomoe cost` computes for Megatron-LM, torchtitan and DeepSpeed, beside tests/reference/training_memory.py and beside measured runs."""

import json
import os
import pathlib
import statistics
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = os.environ.get("FOMOE", str(ROOT / "build/release/bin/fomoe"))
sys.path.insert(0, str(ROOT / "tests/reference"))

import training_memory  # noqa: E402
from training_scenarios import config, scenario  # noqa: E402

GIB = 2**30
# Terms of what the allocator reserves in addition to what it has allocated.
CACHED = ("stream_of_gathers", "stream_of_reductions", "logits_block")


def expressible(run):
    """Whether a scenario has the run: no biases, learned positions or dropout, products that add gradients as Megatron-LM's default does, and no torchtitan
    before May 2025, which gathered both tables. An older torchtitan keeps more logits on the last stage, which shows only where that is the fullest."""
    return (run.biases == run.learned_positions == "no" and not run.dropout and run.ffn_matrices == 3 and run.fused_activation == "yes"
            and (run.stack != "megatron" or run.wgrad_fusion == "yes") and run.gathered_tables < 2
            and not (run.kept_logits and run.virtual_stages > 1))


def cost(run, folder):
    (folder / "config.json").write_text(json.dumps(config(run)))
    (folder / "scenario.json").write_text(json.dumps(scenario(run)))
    ran = subprocess.run([PROGRAM, "cost", folder / "scenario.json", "--output", "-"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


RUNS = [run for run in training_memory.read() if expressible(run) and run.rank == "max"]
ALLOCATED_AFTER = ("weights_bytes", "master_weights_bytes", "moments_bytes", "gradients_bytes", "buffers_bytes", "workspaces_bytes")


def allocated(run, answer):
    """GiB that the run's counter shows by the answer."""
    memory = answer["memory"]
    return (sum(memory[name] for name in ALLOCATED_AFTER) if run.metric == "allocated_end" else answer["memory_bytes_per_gpu"]) / GIB


def test_measured_runs_can_be_written_as_scenarios():
    assert len(RUNS) >= 40 and {run.stack for run in RUNS} == {"megatron", "torchtitan", "deepspeed"}
    assert any(run.attention == "mla" for run in RUNS) and any(run.context_parallel > 1 for run in RUNS) and any(run.pipeline_parallel > 1 for run in RUNS)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.id)
def test_the_memory_is_that_of_the_reference(run, tmp_path):
    # A scenario does not say which generation its GPU is of: the workspaces are those of Hopper.
    run.gpu = run.gpu if not run.gpu.startswith("A") else "H100"
    expected = sum(value for term, value in training_memory.terms_of(run).items() if term not in CACHED) / GIB
    answer = cost(run, tmp_path)
    # DeepSeek's routers have biases, which the reference leaves out: one number for each expert, with its copies at most 24 bytes.
    biases = 24 * run.experts * run.layers / GIB if run.attention == "mla" else 0
    assert allocated(run, answer) == pytest.approx(expected, rel=1e-9, abs=biases)
    if run.metric == "reserved_peak":
        assert [bound / GIB for bound in answer["reserved_bytes_per_gpu"]] == pytest.approx(training_memory.reserved_interval(run), rel=1e-7)


def test_allocated_memory_of_runs_that_were_not_used_for_building(tmp_path):
    errors = [abs(allocated(run, cost(run, tmp_path)) / run.value_gib - 1) for run in RUNS if run.role != "build" and run.metric.startswith("allocated")]
    assert len(errors) >= 11 and statistics.median(errors) <= 0.02 and max(errors) <= 0.06


@pytest.mark.parametrize("change", [{"selective_checkpointing": "attention"}, {"activation_checkpointing": True},
                                    {"activation_checkpointing": True, "checkpoint_every": 4}])
def test_what_is_computed_again_is_not_kept(change, tmp_path):
    run = next(run for run in RUNS if run.id == "simumax-b200-70b-tp4-pp1-cp1-ep1-s4096")
    whole = cost(run, tmp_path)["memory"]
    document = scenario(run)
    document["compute"] |= change
    (tmp_path / "scenario.json").write_text(json.dumps(document))
    answer = json.loads(subprocess.run([PROGRAM, "cost", tmp_path / "scenario.json", "--output", "-"], capture_output=True, check=True).stdout)["memory"]
    tokens, heads = run.micro_batch * run.sequence, run.heads / run.tensor_parallel
    inputs = 2 * run.d_model * tokens / run.tensor_parallel
    kept = {"selective_checkpointing": whole["activations_bytes"] - 4 * heads * tokens * run.layers,
            "activation_checkpointing": run.layers * inputs}[next(iter(change))]
    if "checkpoint_every" in change:
        kept = 0.75 * whole["activations_bytes"] + 0.25 * kept
    assert answer["activations_bytes"] == pytest.approx(kept, rel=1e-12)
