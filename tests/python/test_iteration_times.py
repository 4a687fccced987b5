"""The iteration times in experiments/data: the program still predicts what the table and its page say."""

import csv
import os
import pathlib
import statistics
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = os.environ.get("FOMOE", str(ROOT / "build/release/bin/fomoe"))
sys.path[:0] = [str(ROOT / "tests/reference"), str(ROOT / "experiments/data")]

import iteration_times  # noqa: E402
import training_memory  # noqa: E402

PAGE = (ROOT / "experiments/data/iteration_times.md").read_text()
with iteration_times.TABLE.open(newline="") as file:
    ROWS = list(csv.DictReader(file))
CHECKS = [row for row in ROWS if row["role"] == "check"]
KINDS = {"dense, 4,096 tokens": lambda name: name.endswith("s4096") and "-ds" not in name, "dense, 32,768": lambda name: not name.endswith("s4096"),
         "mixtures of experts": lambda name: "-ds" in name, "all": lambda name: True}


@pytest.mark.parametrize("row", ROWS[::6], ids=lambda row: row["id"])
def test_the_program_predicts_what_the_table_says(row):
    run = next(run for run in training_memory.read() if run.id == row["id"])
    assert iteration_times.predicted_ms(PROGRAM, run, int(row["micro_batches"])) == pytest.approx(float(row["predicted_ms"]), abs=0.06)


@pytest.mark.parametrize("kind", KINDS)
def test_the_page_states_the_errors_of_the_checks(kind):
    def sign(value):
        return f"{value:+.1f}".replace("-", "−")

    stated = []
    for column in ("first_ms", "predicted_ms"):
        errors = [100 * (float(row[column]) / float(row["measured_ms"]) - 1) for row in CHECKS if KINDS[kind](row["id"])]
        stated += [f"{statistics.median(map(abs, errors)):.1f} %", f"{sign(min(errors))} to {sign(max(errors))} %"]
    line = next(line for line in PAGE.splitlines() if line.startswith(f"| {kind}"))
    assert [cell.strip() for cell in line.split("|")[2:-1]] == [str(len(errors)), *stated]
