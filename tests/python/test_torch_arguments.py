"""What fomoe.torch refuses before anything is trained."""

import json

import numpy
import pytest

torch = pytest.importorskip("torch")

import fomoe.torch  # noqa: E402
from fomoe.torch import _executor  # noqa: E402
from test_torch import MODEL, Model, one_site, plan_for  # noqa: E402
from torch_sites import scenario  # noqa: E402


@pytest.mark.parametrize("node", ["0", 3, -1, True, 0.5])
def test_held_experts_of_no_site(node):
    document = scenario(MODEL, 8, sequence_length=8, method="fomoe", local_steps=4, expert_overlap=1, placement="fixed")
    assert fomoe.torch.held_experts(document, numpy.int64(2))[0]
    with pytest.raises(fomoe.InputError, match="node: got .*; expected the place of a site, from 0 to 2"):
        fomoe.torch.held_experts(document, node)


def test_a_closure_computes_gradients_too_late_for_an_exchange():
    for method, refused in (("ddp", True), ("diloco", False)):
        model = Model()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        plan = fomoe.torch.Plan(one_site(method=method, local_steps=4), model, optimizer, experts="experts")
        if refused:
            with pytest.raises(fomoe.InputError, match="optimizer.step: got a closure"):
                optimizer.step(lambda: torch.zeros(()))
        else:
            optimizer.step(lambda: torch.zeros(()))
            plan.step()
            assert plan.steps_done == 1


def test_one_site_is_one_process(monkeypatch):
    dist = _executor.Sites.__init__.__globals__["dist"]
    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    monkeypatch.setattr(dist, "get_world_size", lambda group=None: 2)
    with pytest.raises(fomoe.InputError, match="got 2 processes; expected 1, since only one site of the scenario trains"):
        plan_for(one_site())


def test_a_plan_file_of_other_sites_or_steps(tmp_path):
    document = one_site(method="diloco", local_steps=4)
    plan = _executor.ask(document).plan
    for change, said in ((lambda plan: plan["nodes"][0].update(site=2), "got a plan of 1 nodes at 3 sites; expected the 1 sites of the scenario"),
                         (lambda plan: plan.update(optimizer_steps=80), "got a plan of 80 optimiser steps; expected 8")):
        other = json.loads(json.dumps(plan))
        change(other)
        (tmp_path / "plan.json").write_text(json.dumps(other))
        model = Model()
        with pytest.raises(fomoe.InputError, match=said):
            fomoe.torch.Plan(document, model, torch.optim.SGD(model.parameters(), lr=0.1), experts="experts", plan_file=tmp_path / "plan.json")


def test_the_report_has_the_files_of_the_start(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    model = torch.nn.Linear(8, 8)
    fomoe.torch.shape(model, "shape.json")
    document = one_site(method="diloco", local_steps=4)
    document["model"] = {"shape": "shape.json", "sequence_length": 8}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    plan = fomoe.torch.Plan(document, model, optimizer, report="report.json")
    before = (tmp_path / "shape.json").read_text()
    (tmp_path / "shape.json").write_text("changed")
    monkeypatch.chdir(tmp_path / "elsewhere")
    while not plan.done:
        optimizer.step()
        plan.step()
    run = json.loads((tmp_path / "report.json").read_text())["run"]
    assert run["files"] == {"shape.json": before}


def test_a_shape_that_only_counts_parameters_has_no_parts(tmp_path):
    model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(4)))
    document = one_site(method="streaming_diloco")
    document["model"] = {"shape": str(tmp_path / "shape.json"), "sequence_length": 8}
    fomoe.torch.shape(model, tmp_path / "shape.json")
    with pytest.raises(fomoe.InputError, match="shape only counts parameters.*for example strategy.fragments = 1"):
        fomoe.torch.Plan(document, model, torch.optim.SGD(model.parameters(), lr=0.1))


@pytest.mark.parametrize("wrong", ["no-such.toml", None, {"strategy": {"method": "diloko"}}])
def test_a_scenario_that_fomoe_refuses(wrong):
    with pytest.raises(fomoe.InputError):
        fomoe.torch.held_experts(wrong, 0)


@pytest.mark.parametrize("wrong,said", [
    ({"sequences": 0}, "sequences: got 0; expected a whole number of at least 1"), ({"sequences": "2"}, "sequences: got '2'"),
    ({"sequence_length": -8}, "sequence_length: got -8"), ({"local_experts": []}, "local_experts: got an empty list"),
    ({"local_experts": [99]}, "local_experts: got 99; expected a whole number of at least 0 and at most 4"),
    ({"model": "no-such.json"}, "model: got no-such.json, which cannot be read")])
def test_a_wrong_argument_of_profile_costs_no_measurement(tmp_path, wrong, said):
    def never(*_):
        raise AssertionError("a step was made")

    given = {"model": {**MODEL, "name": "custom"}, "sequences": 2, "sequence_length": 8, "dtype": "fp32", **wrong}
    with pytest.raises(fomoe.InputError, match=said):
        fomoe.torch.profile(never, tmp_path / "p.json", **given)
    assert not (tmp_path / "p.json").exists()


def test_numbers_of_numpy_are_numbers(tmp_path):
    fomoe.torch.profile(lambda held: lambda: None, tmp_path / "p.json", model={**MODEL, "name": "custom"}, sequences=numpy.int64(2), sequence_length=8,
                        local_experts=numpy.array([2, 4]), dtype="fp32", repeats=5, warmup=1)
    assert [point["local_experts"] for point in json.loads((tmp_path / "p.json").read_text())["points"]] == [2, 4]
