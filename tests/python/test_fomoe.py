"""Tests the Python module `fomoe`: it gives the same answers as the program, from a file and from a dict."""

import json
import os
import pathlib
import subprocess

import fomoe
import pytest

ROOT = pathlib.Path(__file__).parents[2]
SCENARIO = ROOT / "experiments/scenarios/two-sites.toml"
PROGRAM = os.environ.get("FOMOE", str(ROOT / "build/release/bin/fomoe"))

SITES = {
    "model": {"dense_parameters": 1_000_000},
    "workload": {"tokens": 1e6, "global_batch_tokens": 1000},
    "strategy": {"method": "diloco", "local_steps": 10, "payload_dtype": "fp32"},
    "compute": {"step_time": "100ms"},
    "platform": {"sites": 2, "bandwidth": "8Mbps", "latency": "0ms"},
}


def program(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("engine", ["simulated", "closed-form"])
def test_a_file_gives_what_the_program_gives(engine):
    report = fomoe.simulate(SCENARIO, set={"strategy.local_steps": 64, "strategy.method": "diloco"}, engine=engine)
    same = program("simulate", SCENARIO, "--set", "strategy.local_steps=64", "--set", "strategy.method=diloco",
                   "--engine", engine, "--output", "-")
    assert report == json.loads(same)


def test_a_dict_by_hand(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report = fomoe.simulate(SITES)
    # 1000 steps are 100 rounds of 1 s. In a ring of two, each site sends 2(M-1)/M = 1 times 4 MB at 1 MB/s.
    assert report["wall_clock_s"] == pytest.approx(100 * (1 + 4), rel=1e-9)
    assert report["executor"] == "simulated"
    assert list(tmp_path.iterdir()) == []  # no file is left behind


def test_sweep_is_a_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = fomoe.sweep(SITES, {"strategy.local_steps": [10, 20], "platform.bandwidth": "8Mbps,16Mbps"})
    assert [row["strategy.local_steps"] for row in rows] == [10, 10, 20, 20]
    assert [row["wall_clock_s"] for row in rows] == pytest.approx([500, 300, 300, 200], rel=1e-9)


def test_words_and_booleans_vary():
    rows = fomoe.sweep(SCENARIO, {"strategy.skip_token": [True, False], "strategy.method": ["ddp", "fomoe"]},
                       engine="closed-form")
    assert [(row["strategy.skip_token"], row["strategy.method"]) for row in rows] == [
        ("true", "ddp"), ("true", "fomoe"), ("false", "ddp"), ("false", "fomoe")]


def test_the_other_commands(tmp_path, monkeypatch):
    assert fomoe.cost(SCENARIO) == json.loads(program("cost", SCENARIO, "--output", "-"))
    assert fomoe.explain(SCENARIO) == program("explain", SCENARIO)
    monkeypatch.chdir(tmp_path)
    # In each of 100 rounds, 4 MB take as long as the compute at 4 MB/s: utilisation 1/2.
    answer = fomoe.solve(SITES, "platform.bandwidth", "compute_utilization=0.5")
    assert json.dumps(answer)
    answer = fomoe.plan(SITES, within={"time": "1h"}, vary={"strategy.method": ["diloco", "local_sgd"]}, top=3)
    assert "diloco" in json.dumps(answer)


def test_wrong_input_is_a_value_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(fomoe.InputError, match="strategy.local_steps: got -1; expected"):
        fomoe.simulate(SITES, set={"strategy.local_steps": -1})
    with pytest.raises(ValueError, match="did you mean"):
        fomoe.simulate({**SITES, "strategy": {"method": "diloko"}})
    with pytest.raises(fomoe.InputError):
        fomoe.simulate({"model": {"preset": None}})
    with pytest.raises(fomoe.InputError, match="no-such"):
        fomoe.simulate("no-such.toml")
    # The module still works after a failure.
    assert fomoe.simulate(SITES)["round"]["count"] == 100
