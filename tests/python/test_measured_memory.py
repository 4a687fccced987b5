"""Tests the table of measured GPU memory (experiments/data/measured_memory.csv): its rows are complete, and the reference model has the errors of its page."""

import csv
import hashlib
import pathlib
import re
import statistics
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
DATA = ROOT / "experiments/data"
sys.path.insert(0, str(ROOT / "tests/reference"))

import training_memory  # noqa: E402
import training_state  # noqa: E402

CHOICES = {
    "stack": {"megatron", "torchtitan", "deepspeed"}, "attention": {"gqa", "mla"}, "zero_stage": {"0", "1", "2", "3"},
    "checkpointing": {"none", "full", "selective_op"}, "logits": {"fp32_whole", "fp32_fused", "bf16_fused", "compiled"}, "matrix_dtype": {"bf16", "fp8"},
    "metric": {"allocated_peak", "allocated_end", "reserved_peak", "peak_unstated"}, "role": {"build", "check", "second_check"},
    **{key: {"yes", "no"} for key in ("tied", "learned_positions", "biases", "sequence_parallel", "compiled", "wgrad_fusion", "fused_activation", "opened")},
}
MAY_BE_EMPTY = {"note", "kept_logits", "gpu_gib", "grouped_experts", "context_exchange"}
WHOLE = ["layers", "dense_layers", "d_model", "heads", "kv_heads", "head_dim", "d_ffn", "vocabulary", "experts", "active_experts", "gpus", "tensor_parallel",
         "pipeline_parallel", "virtual_stages", "context_parallel", "expert_parallel", "expert_tensor_parallel", "micro_batch", "micro_batches", "sequence"]


def table():
    with open(DATA / "measured_memory.csv", newline="") as file:
        return list(csv.DictReader(file, strict=True))


ROWS = table()
RUNS = training_memory.read()


def predictions():
    with open(DATA / "measured_memory_predictions.csv", newline="") as file:
        return {row["id"]: float(row["predicted_gib"]) for row in csv.DictReader(file)}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_row_is_complete(row):
    assert None not in row and None not in row.values()
    empty = {key for key, value in row.items() if value == ""}
    assert empty <= MAY_BE_EMPTY, f"{row['id']} lacks {sorted(empty - MAY_BE_EMPTY)}"
    assert (row["context_exchange"] == "") == (row["context_parallel"] == "1")
    assert (row["grouped_experts"] == "") == (row["experts"] == "0")
    for key, choices in CHOICES.items():
        assert row[key] in choices, f"{row['id']}: {key} is {row[key]}"
    numbers = {key: int(row[key]) for key in WHOLE}
    assert all(value >= 0 for value in numbers.values()) and 0.1 < float(row["value_gib"]) < 200
    replicas = numbers["tensor_parallel"] * numbers["pipeline_parallel"] * numbers["context_parallel"]
    assert numbers["gpus"] % replicas == 0
    # torchtitan has uneven stages; for the others a stage of the reference has whole layers.
    assert row["stack"] == "torchtitan" or numbers["layers"] % numbers["pipeline_parallel"] == 0
    if numbers["experts"]:
        assert numbers["experts"] % numbers["expert_parallel"] == 0 and numbers["active_experts"] >= 1
        assert numbers["gpus"] % (numbers["pipeline_parallel"] * numbers["expert_parallel"] * numbers["expert_tensor_parallel"]) == 0


def test_identifiers_are_unique_and_columns_are_explained():
    assert len({row["id"] for row in ROWS}) == len(ROWS) == 138
    page = (DATA / "measured_memory.md").read_text()
    explained = set(re.findall(r"`(\w+)`", page))
    assert set(ROWS[0]) - explained == {"role"} - explained


def test_roles_follow_the_rule():
    for row in ROWS:
        if row["role"] == "second_check" or row["id"].startswith("simumax"):
            continue
        case = re.search(r"test_cases/\w+/(\w+)/", row["place"])
        key = f"megatron-{case[1]}" if case else row["id"]
        assert row["role"] == ("build" if hashlib.sha256(key.encode()).digest()[0] % 2 == 0 else "check"), row["id"]


def test_every_check_row_of_allocated_memory_was_predicted():
    known = predictions()
    late = {row["id"] for row in ROWS if row["id"].endswith("-reserved")}
    assert {row["id"] for row in ROWS if row["role"] != "build"} - late == set(known)


def percent(values):
    return f"{100 * statistics.median(map(abs, values)):.2f} %", f"{100 * max(values, key=abs):+.2f} %".replace("-", "\u2212")


GROUPS = {
    "check, Megatron on B200, allocated peak": lambda run: run.role == "check" and run.id.startswith("simumax") and run.metric == "allocated_peak",
    "check, Megatron, allocated peak": lambda run: run.role == "check" and run.id.startswith("megatron") and run.metric == "allocated_peak",
    "check, Megatron, allocated after": lambda run: run.role == "check" and run.id.startswith("megatron") and run.metric == "allocated_end",
    "second check, torchtitan": lambda run: run.role == "second_check" and run.stack == "torchtitan",
    "second check, Megatron, allocated peak": lambda run: run.role == "second_check" and run.metric == "allocated_peak",
    "second check, Megatron, allocated after": lambda run: run.role == "second_check" and run.metric == "allocated_end",
    "check, torchtitan": lambda run: run.role == "check" and run.stack == "torchtitan",
    "check, DeepSpeed": lambda run: run.role == "check" and run.stack == "deepspeed",
    "check, Megatron on B200, reserved": lambda run: run.role == "check" and run.id.endswith("-reserved"),
}


@pytest.mark.parametrize("start", GROUPS)
def test_the_page_states_the_errors(start):
    line = next(line for line in (DATA / "measured_memory.md").read_text().splitlines() if line.startswith(f"| {start}"))
    before, now = line.split("|")[2:4]
    rows = [run for run in RUNS if GROUPS[start](run)]
    assert f"{len(rows)} rows" in line
    values = [training_memory.predict(run) / run.value_gib - 1 for run in rows]
    assert now.strip() == ", ".join(percent(values))
    known = predictions()
    if "not predicted" not in before:
        assert before.strip() == ", ".join(percent([known[run.id] / run.value_gib - 1 for run in rows]))


def test_allocated_memory_of_whole_models_is_within_the_goal():
    errors = [abs(training_memory.predict(run) / run.value_gib - 1) for run in RUNS
              if run.role != "build" and run.metric.startswith("allocated") and run.value_gib >= 16]
    assert len(errors) == 12 and statistics.median(errors) <= 0.02 and max(errors) <= 0.06


def test_reserved_memory_is_mostly_inside_its_interval():
    rows = [run for run in RUNS if run.metric == "reserved_peak"]
    inside = [low <= run.value_gib <= high for run in rows for low, high in [training_memory.reserved_interval(run)]]
    assert all(ok for ok, run in zip(inside, rows) if run.role == "build")
    assert sum(ok for ok, run in zip(inside, rows) if run.role == "check") == 17


def test_expert_parallelism_is_inside_data_parallelism():
    """Experts are divided among GPUs that also share the dense state: the degree multiplies no number of GPUs."""
    run = next(run for run in RUNS if run.id == "simumax-b200-dsv2-tp1-pp1-cp1-ep8-s4096")
    assert training_state.degrees(run) == (8, 1)
    dense, experts = training_state.stage_parameters(run, 0)
    state = training_state.state(run, 0)
    assert sum(state.values()) == pytest.approx(dense * (2 + 4 + 12 / 8) + experts * (2 + 4 + 12))
