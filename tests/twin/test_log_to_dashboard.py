"""Checks the curves that tools/log_to_dashboard.py makes of a real log, without TensorBoard or Weights & Biases."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import log_to_dashboard  # noqa: E402


def test_curves_of_a_real_log(tmp_path):
    log = tmp_path / "steps.jsonl"
    subprocess.run([os.environ["FOMOE_TRAIN"], "run", str(ROOT / "experiments/scenarios/tiny-training.toml"), "--in-turn", "--log", str(log),
                    "--set", "workload.tokens=8192", "--set", "strategy.local_steps=2", "--set", "platform.sites=2",
                    "--set", "strategy.skip_token=true"], check=True, capture_output=True)
    curves = {}
    for line in log_to_dashboard.lines_of(log, follow=False):
        step, values = log_to_dashboard.scalars(line)
        for name, value in values.items():
            curves.setdefault(name, []).append((step, value))
    assert curves["site-0/loss"][0] == (0, pytest.approx(5.6, abs=0.3))
    assert [step for step, _ in curves["site-1/gradient_norm"]] == [0, 1]
    assert all(value > 0 for _, value in curves["site-1/update_norm"])
    assert len(curves["site-1/outer_update_norm"]) == 1
    assert all(0 <= value <= 1 for _, value in curves["site-1/ghost_share"])
    assert curves["all/validation_loss"][0][1] > 0
    assert any(name.startswith("site-0/exposed_s/") for name in curves)


def test_a_line_that_is_being_written_waits_for_its_end(tmp_path):
    log = tmp_path / "steps.jsonl"
    whole = json.dumps({"kind": "validation", "site": "a", "round": 3, "loss": 2.5}) + "\n"
    log.write_text(whole + whole[:20], encoding="utf-8")
    lines = log_to_dashboard.lines_of(log, follow=True)
    assert next(lines)["loss"] == 2.5
    assert next(lines) is None
    with open(log, "a", encoding="utf-8") as file:
        file.write(whole[20:])
    assert next(lines)["round"] == 3
