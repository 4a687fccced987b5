"""Tests sweeps on a Dask cluster of two worker processes, of which one is killed."""

import json
import os
import pathlib
import signal
import threading
import time

import fomoe
import pytest

distributed = pytest.importorskip("distributed", reason="the library distributed is not installed")

SCENARIO = pathlib.Path(__file__).parents[2] / "experiments/scenarios/two-sites.toml"
VARY = {"strategy.local_steps": "1..40+1", "platform.bandwidth": "100Mbps..10Gbps*2/decade"}


@pytest.fixture(scope="module")
def client():
    with (distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
          distributed.Client(cluster) as client):
        yield client


def text_of(table):
    return json.dumps(table.to_dict())


def test_wrong_input_is_an_input_error(client):
    with pytest.raises(fomoe.InputError, match="strategy.local_step"):
        fomoe.sweep(SCENARIO, {"strategy.local_step": [1]}, client=client)


@pytest.mark.parametrize("engine", ["simulated", "closed-form"])
@pytest.mark.parametrize("shards", [None, 1, 3, 50])
def test_rows_are_those_of_one_process(client, engine, shards):
    vary = {"strategy.local_steps": [1, 4, 16], "platform.bandwidth": "1Gbps,2Gbps"}
    alone = fomoe.sweep(SCENARIO, vary, engine=engine)
    assert text_of(fomoe.sweep(SCENARIO, vary, engine=engine, client=client, shards=shards)) == text_of(alone)


def test_a_dict_and_paths_relative_to_this_folder(client, tmp_path, monkeypatch):
    monkeypatch.chdir(SCENARIO.parents[2])
    scenario = {"model": {"hf_config": "experiments/models/mixtral-8x7b.json"},
                "workload": {"tokens": 1e9, "global_batch_sequences": 256}, "strategy": {"method": "diloco"},
                "compute": {"step_time": "3s"}, "platform": {"sites": 2, "bandwidth": "1Gbps", "latency": "25ms"}}
    vary = {"strategy.local_steps": [16, 64]}
    assert text_of(fomoe.sweep(scenario, vary, client=client)) == text_of(fomoe.sweep(scenario, vary))


def test_a_killed_worker_changes_nothing(client):
    expected = text_of(fomoe.sweep(SCENARIO, VARY))
    before = client.run(os.getpid)
    found = []
    sweep = threading.Thread(target=lambda: found.append(text_of(fomoe.sweep(SCENARIO, VARY, client=client, shards=40))))
    sweep.start()
    victim = next(iter(before.values()))
    deadline = time.monotonic() + 60
    while not any(client.processing().values()) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.5)
    assert sweep.is_alive() and any(client.processing().values())
    os.kill(victim, signal.SIGKILL)
    sweep.join(timeout=300)
    assert not sweep.is_alive()
    assert found == [expected]
    client.wait_for_workers(2, timeout=60)
    assert victim not in client.run(os.getpid).values()
