"""Tests fomoe.torch in one process: imports, the outer optimisers, groups of parameters, messages, and profiles."""

import json
import math
import subprocess
import sys

import fomoe
import numpy
import pytest
from torch_sites import scenario

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from fomoe.torch import _checks, _executor, _groups, _outer, _plan_file, _scenario  # noqa: E402

MODEL = {"d_model": 16, "layers": 2, "heads": 2, "experts": 4, "active_experts": 2, "d_expert": 8, "vocabulary": 32, "sequence_length": 8}


class Layer(torch.nn.Module):
    """A layer with the parameters of the paper's family: attention of 4·d², four norms, a router, and experts of two matrices."""

    def __init__(self, d=16, experts=4, hidden=8, batched=True):
        super().__init__()
        self.attention = torch.nn.Linear(d, 4 * d, bias=False)
        self.norms = torch.nn.ParameterList(torch.nn.Parameter(torch.ones(d)) for _ in range(4))
        self.router = torch.nn.Linear(d, experts, bias=False)
        if batched:
            self.experts = torch.nn.ParameterDict({"up": torch.randn(experts, d, hidden), "down": torch.randn(experts, hidden, d)})
        else:
            self.experts = torch.nn.ModuleList(torch.nn.ModuleDict({"up": torch.nn.Linear(d, hidden, bias=False),
                                                                    "down": torch.nn.Linear(hidden, d, bias=False)}) for _ in range(experts))


class Model(torch.nn.Module):
    def __init__(self, layers=2, **more):
        super().__init__()
        self.embedding = torch.nn.Embedding(32, 16)
        self.embedding_norm, self.final_norm = torch.nn.Parameter(torch.ones(16)), torch.nn.Parameter(torch.ones(16))
        self.layers = torch.nn.ModuleList(Layer(**more) for _ in range(layers))


def plan_for(document, **more):
    model = Model()
    return fomoe.torch.Plan(document, model, torch.optim.AdamW(model.parameters()), **more)


def one_site(**more):
    return scenario(MODEL, 8, sites=1, sequence_length=8, **{"method": "diloco", "local_steps": 4, **more})


# ---- imports ----


def test_fomoe_does_not_import_torch_until_it_is_asked_for():
    code = "import fomoe, sys; assert 'torch' not in sys.modules; fomoe.torch.Plan; assert 'torch' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_pytorch_the_message_says_what_to_install():
    code = "import sys; sys.modules['torch'] = None\nimport fomoe\nfomoe.torch"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == "ImportError: fomoe.torch needs PyTorch; install it with: pip install torch"


# ---- the outer optimiser ----


def test_nesterov_is_pytorchs_sgd():
    torch.manual_seed(1)
    theirs = torch.nn.Parameter(torch.randn(50, dtype=torch.float64))
    sgd = torch.optim.SGD([theirs], lr=0.7, momentum=0.9, nesterov=True)
    ours, momentum = theirs.detach().clone(), torch.zeros(50, dtype=torch.float64)
    for _ in range(3):
        difference = torch.randn(50, dtype=torch.float64)
        theirs.grad = difference.clone()
        sgd.step()
        _outer.outer_step(_scenario.Outer("nesterov", 0.7, 0.9, 0.5), ours, momentum, None, difference)
    assert torch.allclose(ours, theirs.detach(), rtol=1e-14)


@pytest.mark.parametrize("kind,second", [("adam", 0.99 * 4 + 0.01 * 9), ("yogi", 4 + 0.01 * 9)])
def test_adaptive_outer_optimisers_by_hand(kind, second):
    """d = 3, m = 1, v = 4: m becomes 0.9 + 0.3; yogi's v grows by (1 − β2)·d², since v < d²."""
    anchor, m, v = (torch.tensor([x], dtype=torch.float64) for x in (10.0, 1.0, 4.0))
    _outer.outer_step(_scenario.Outer(kind, 0.1, 0.9, 0.5), anchor, m, v, torch.tensor([3.0], dtype=torch.float64))
    assert (m.item(), v.item()) == pytest.approx((1.2, second))
    assert anchor.item() == pytest.approx(10 - 0.1 * 1.2 / (math.sqrt(second) + 1e-3))


def test_the_settings_of_the_outer_optimiser_have_the_defaults_of_the_scenario():
    keys = fomoe.schema()["properties"]["trainer"]["properties"]
    for kind, rate in (("nesterov", 0.7), ("adam", 0.1)):
        outer = _scenario.ask(one_site(outer_optimizer=kind)).outer
        assert (outer.kind, outer.learning_rate) == (kind, rate)
        assert (outer.momentum, outer.kept_share) == (0.9, keys["kept_share"]["default"])
    assert "0.9, or 0 with sparse_loco" in keys["outer_momentum"]["description"]
    assert "0.7 for nesterov, 0.1 for adam and yogi" in keys["outer_learning_rate"]["description"]
    given = _scenario.ask(one_site(trainer={"outer_learning_rate": "40%", "outer_momentum": 0.5, "kept_share": "25%"})).outer
    assert (given.learning_rate, given.momentum, given.kept_share) == (0.4, 0.5, 0.25)
    assert given.residual_decay == 1
    assert _scenario.ask(one_site(trainer={"error_feedback_decay": 0.95})).outer.residual_decay == 0.95


# ---- groups of parameters ----


@pytest.mark.parametrize("batched", [True, False])
def test_a_group_of_an_expert_has_its_matrices_and_its_row_of_the_router(batched):
    document = scenario(MODEL, 8, sites=2, sequence_length=8, method="diloco", local_steps=4)
    plan = _plan_file.TrafficPlan(_scenario.ask(document).plan)
    model = Model(batched=batched)
    names = _groups.Names(model, plan.groups, "...experts.{e}...." if not batched else None, None)
    wanted = next(group for group in plan.groups if group.of_experts() and group.layers[0] == 1 and group.experts[0] == 2)
    slices = names.slices(wanted, 2, None)
    layer = model.layers[1]
    own = [layer.experts[2]["up"].weight, layer.experts[2]["down"].weight] if not batched else [layer.experts["down"][2], layer.experts["up"][2]]
    flat = torch.cat([part.of(names.all[part.index].parameter).reshape(-1) for part in slices])
    assert torch.equal(flat, torch.cat([layer.router.weight[2], *(values.reshape(-1) for values in own)]))


@pytest.mark.parametrize("pattern,name,expected", [
    ("mlp.experts.{e}", "model.layers.3.mlp.experts.5.w1.weight", {"e": "5"}),
    ("...experts.{e}....", "model.layers.3.mlp.experts.5.w1.weight", {"e": "5"}),
    ("layers.{layer}.*.experts", "model.layers.3.mlp.experts.gate_up_proj", {"layer": "3"}),
    ("mlp.experts", "model.layers.3.mlp.experts_bias", None),
    ("experts", "model.layers.3.shared_experts.w1", None),
])
def test_patterns_of_names(pattern, name, expected):
    found = _groups.compiled(pattern).search(name)
    assert (found is not None) == (expected is not None)
    for key, value in (expected or {}).items():
        assert found[key] == value


@pytest.mark.parametrize("name,kind,layer", [
    ("tok_embeddings.weight", "embedding", -1), ("layers.1.attention.wq.weight", "attention", 1), ("layers.1.attention_norm.weight", "norm", 1),
    ("layers.1.moe.experts.w1", "expert", 1), ("layers.1.moe.shared_experts.w1", "attention", 1), ("layers.1.moe.router.gate.weight", "router", 1),
    ("norm.weight", "norm", -1), ("output.weight", "embedding", -1), ("layers.1.output.weight", "attention", 1)])
def test_parameters_of_torchtitan_have_their_classes(name, kind, layer):
    """Its names, without the library. Two layers of four experts; the unembedding goes with the embedding unless the plan sends it alone."""
    model = torch.nn.Module()
    model.named_parameters = lambda: [("layers.0.moe.experts.w1", torch.nn.Parameter(torch.ones(4, 2, 2))),
                                      ("layers.1.moe.experts.w2", torch.nn.Parameter(torch.ones(4, 2, 2))), (name, torch.nn.Parameter(torch.ones(4, 3)))]
    groups = [_plan_file.Group(("router", "expert"), (at, at + 1), (expert, expert + 1), 1) for at in range(2) for expert in range(4)]
    one = _groups.Names(model, groups, None, None).all[-1]
    assert (one.kind, one.layer) == (kind, layer)


# ---- messages ----


def test_a_scenario_of_another_model_is_refused():
    document = one_site()
    document["model"] = {**MODEL, "d_expert": 12}
    with pytest.raises(fomoe.InputError, match=r"got 272 elements in the model's router, expert of layer 0, expert 0 \(layers.0.router.weight, .*expected 400"):
        plan_for(document)


def test_experts_that_are_not_found_are_named():
    with pytest.raises(fomoe.InputError, match=r"experts: got 'mlp.moe', which matches no parameter; .*embedding_norm"):
        plan_for(one_site(), experts="mlp.moe")


def test_processes_are_as_many_as_sites():
    with pytest.raises(fomoe.InputError, match="got no process group; expected one process for each of the 3 sites; for example"):
        plan_for(scenario(MODEL, 8, sequence_length=8, method="diloco", local_steps=4))


def test_the_steps_of_the_plan_are_all():
    plan = plan_for(one_site())
    assert plan.steps == 8
    for _ in range(8):
        plan.step()
    assert plan.done
    with pytest.raises(fomoe.InputError, match="step: got step 9; expected at most 8 steps"):
        plan.step()


def test_gradients_are_exchanged_before_the_optimisers_step():
    plan = plan_for(one_site(method="ddp"))
    with pytest.raises(fomoe.InputError, match=r"step: got a call without a step of the optimiser before it"):
        plan.step()
    plan.before_step()
    plan.step()
    assert plan.steps_done == 1


def test_the_optimiser_may_call_the_step_and_there_may_be_several():
    """One site, so that an outer step of Nesterov only enlarges what the site has moved: θ ← θ_before + η·(1 + μ)·moved, in the first round."""
    model = Model()
    before = model.layers[0].attention.weight.detach().clone()
    first = torch.optim.SGD(model.layers.parameters(), lr=1.0)
    second = torch.optim.AdamW([model.embedding.weight, model.embedding_norm, model.final_norm])
    plan = fomoe.torch.Plan(one_site(), model, [first, second], automatic=True)
    for _ in range(4):
        model.layers[0].attention.weight.grad = torch.ones_like(before)
        first.step()
        second.step()
    assert plan.steps_done == 4
    assert torch.allclose(model.layers[0].attention.weight, before - 4 * 0.7 * 1.9, atol=1e-5)


def test_the_moments_that_a_plan_averages_must_exist():
    model = Model()
    with pytest.raises(fomoe.InputError, match="optimizer: got SGD, which has no moments, but the plan averages moment1; expected AdamW"):
        fomoe.torch.Plan(one_site(method="local_adamw"), model, torch.optim.SGD(model.parameters(), lr=0.1))


def test_what_is_not_executed_is_refused():
    with pytest.raises(fomoe.InputError, match="top-k"):
        plan_for(scenario(MODEL, 8, sites=1, sequence_length=8, method="sparse_loco", local_steps=4))
    document = one_site()
    document["strategy"]["granularity"] = "tensor"
    with pytest.raises(fomoe.InputError, match="strategy.granularity"):
        plan_for(document)
    with pytest.raises(fomoe.InputError, match="strategy.quorum: got 1"):
        plan_for(one_site(quorum=1))
    for method in ("eager_diloco", "diloco_x"):
        delayed = scenario(MODEL, 8, sites=2, sequence_length=8, method=method, local_steps=4)
        with pytest.raises(fomoe.InputError, match="overwritten before they are sent"):
            _checks.check_operations(_plan_file.TrafficPlan(_scenario.ask(delayed).plan))
    with pytest.raises(fomoe.InputError, match="strategy.local_step: got an unknown key"):
        plan_for(one_site(local_step=4))
    for strategy, said in (({"method": "diloco", "local_steps": 4, "layerwise": True}, "of a step; expected whole steps"),
                           ({"method": "fsdp", "local_steps": 1, "collective": "ring"}, "got chunks that no operation of the round has left")):
        document = scenario(MODEL, 8, sites=3, sequence_length=8, **strategy)
        plan = _plan_file.TrafficPlan(_scenario.ask(document).plan)
        with pytest.raises(fomoe.InputError, match=said):
            _checks.check_operations(plan)


def test_sparse_differences_have_no_momentum_beside_their_error_feedback():
    document = scenario(MODEL, 8, sites=1, sequence_length=8, method="sparse_loco", local_steps=4)
    asked = _scenario.ask(document)
    assert asked.outer.momentum == 0
    assert _scenario.ask(one_site()).outer.momentum == 0.9


def test_a_plan_that_does_not_say_who_holds_an_expert_is_refused(tmp_path):
    document = scenario(MODEL, 8, sites=2, sequence_length=8, method="fomoe", local_steps=4, expert_overlap=1, placement="fixed")
    plan = _scenario.ask(document).plan
    plan.pop("placements", None)
    with pytest.raises(fomoe.InputError, match="placements: got no owners of the router, expert of layer 0, expert 0"):
        _plan_file.TrafficPlan(plan)
    plan["placements"] = [{"rounds": [0, 1, 2], "owners": [[[0], [0], [1], [1]]] * 2}]
    assert _plan_file.TrafficPlan(plan).owners(2)[1, 3] == (1,)


# ---- profiles and shapes ----


def test_a_profile_of_whole_steps_is_read_by_fomoe(tmp_path):
    model = Model()

    def step_of(held):
        return lambda: sum(layer.experts["up"][:held].square().sum() for layer in model.layers).backward()

    points = fomoe.torch.profile(step_of, tmp_path / "p.json", model={**MODEL, "name": "custom"}, sequences=2, sequence_length=8, local_experts=[2, 4],
                                 dtype="fp32", repeats=5, warmup=1)
    assert [(point.local_experts, len(point.samples)) for point in points] == [(2, 5), (4, 5)]
    assert all(point.median_s > 0 and point.spread >= 0 for point in points)
    document = scenario(MODEL, 8, sequence_length=8, method="diloco", local_steps=4)
    document["compute"] = {"profile": str(tmp_path / "p.json"), "micro_batch_sequences": 2}
    report = fomoe.simulate(document)
    # Without its samples' scatter, a round has four steps of the median.
    assert report.round.compute_s == pytest.approx(4 * points[1].median_s, rel=1e-6)
    assert next(entry for entry in report["provenance"] if "step" in entry["what"])["origin"] == "measured"


def test_a_step_that_yields_is_timed_in_three_parts(tmp_path):
    def step():
        torch.randn(400, 400) @ torch.randn(400, 400)
        yield
        yield
        torch.ones(1)

    (point,) = fomoe.torch.profile(step, tmp_path / "p.json", model=MODEL, sequences=1, sequence_length=8, dtype="fp32", repeats=3)
    assert all(sample["forward_s"] > sample["backward_s"] for sample in point.samples)
    assert not json.loads((tmp_path / "p.json").read_text())["origin"]["whole_steps"]
    with pytest.raises(fomoe.InputError, match="yields 1 times; expected none, or two"):
        fomoe.torch.profile(lambda: (None for _ in range(1)), tmp_path / "p.json", model=MODEL, sequences=1, sequence_length=8, dtype="fp32", repeats=3)


def test_the_shape_of_a_model_of_ones_own_describes_it(tmp_path):
    model = Model()
    document = fomoe.torch.shape(model, tmp_path / "shape.json", active_experts=2)
    counts = document["model"]["opaque"]
    assert counts["expert_parameters"] == sum(p.numel() for name, p in model.named_parameters() if "experts" in name)
    assert sum(counts.values()) == sum(p.numel() for p in model.parameters())
    plan = plan_for(scenario({"shape": str(tmp_path / "shape.json"), "sequence_length": 8}, 8, sites=1, sequence_length=8, method="diloco", local_steps=4))
    assert plan.steps == 8


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


@pytest.mark.parametrize("method", ["diloco", "local_adamw", "ddp", "streaming_diloco"])
def test_a_model_whose_names_have_numbers_and_no_layers_is_sent_whole(tmp_path, method):
    model = torch.nn.Sequential(torch.nn.Embedding(50, 16), torch.nn.Linear(16, 64), torch.nn.LayerNorm(64), torch.nn.Linear(64, 50))
    fomoe.torch.shape(model, tmp_path / "shape.json")
    document = one_site(method=method) | {"model": {"shape": str(tmp_path / "shape.json"), "sequence_length": 8}}
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    plan = fomoe.torch.Plan(document, model, optimizer)  # it refuses groups with other elements than the plan counts
    while not plan.done:
        optimizer.step()
        plan.step()


def test_a_shape_that_only_counts_parameters_has_no_parts(tmp_path):
    model = torch.nn.ModuleDict({"layers": torch.nn.ModuleList(torch.nn.Linear(8, size) for size in (8, 16, 32, 64))})
    document = one_site(method="streaming_diloco") | {"model": {"shape": str(tmp_path / "shape.json"), "sequence_length": 8}}
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
