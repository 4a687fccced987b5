"""Tests how fomoe.torch keeps a model with all experts from using those that its site does not hold, in one process."""

import json

import fomoe
import pytest
from torch_sites import scenario

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from fomoe.torch import _experts, _groups, _plan_file, _scenario, _worker  # noqa: E402

SHAPE = {"d_model": 16, "layers": 1, "heads": 2, "experts": 4, "active_experts": 2, "d_expert": 8, "vocabulary": 32, "sequence_length": 8}


class Router(torch.nn.Module):
    """As in DeepSeek-V3: the product is in fp32, with a cast weight."""

    def __init__(self, correction=False):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, 16).to(torch.bfloat16))
        if correction:
            self.register_buffer("e_score_correction_bias", torch.zeros(4))

    def forward(self, x):
        return torch.nn.functional.linear(x.float(), self.weight.type(torch.float32)).sigmoid()


class Block(torch.nn.Module):
    def __init__(self, bias=False, **more):
        super().__init__()
        self.router = Router(**more)
        self.experts = torch.nn.ParameterDict({"up": torch.randn(4, 16, 8), "down": torch.randn(4, 8, 16), **({"up_bias": torch.zeros(4, 8)} if bias else {})})


class Model(torch.nn.Module):
    def __init__(self, **more):
        super().__init__()
        self.layers = torch.nn.ModuleList([Block(**more)])


def held_by_first_site(model, **strategy):
    """The experts 0 and 1 of the model, of which the second site holds the others."""
    document = scenario(SHAPE, 8, sites=2, sequence_length=8, method="fomoe", local_steps=4, expert_overlap=1, placement="fixed", **strategy)
    answered = _scenario.ask(document)
    answered.plan.setdefault("placements", [{"rounds": [0, 1, 2], "owners": [[[0], [0], [1], [1]]]}])
    plan = _plan_file.TrafficPlan(answered.plan)
    names = _groups.Names(model, plan.groups, None, None)
    worker = _worker.Worker(plan, names, [torch.optim.AdamW(model.parameters())], 0, answered.outer)
    return _experts.Experts(model, worker, plan.owners(0))


def test_scores_of_absent_experts_are_masked_also_with_a_cast_weight():
    model = Model()
    x = torch.randn(50, 16)
    before = model.layers[0].router(x)
    experts = held_by_first_site(model)
    after = model.layers[0].router(x)
    assert torch.equal(after[:, :2], before[:, :2])
    assert (after[:, 2:] == 0).all() and (before[:, 2:] > 0).all()
    experts.check_masked()
    experts.change({(0, expert): (expert % 2,) for expert in range(4)})
    assert (model.layers[0].router(x)[:, [1, 3]] == 0).all()


def test_a_router_that_fails_leaves_no_mask_behind():
    model = Model()
    held_by_first_site(model)
    with pytest.raises(RuntimeError):
        model.layers[0].router(torch.randn(3, 5))
    same = torch.nn.functional.linear(torch.ones(1, 16), model.layers[0].router.weight.float())
    assert torch.isfinite(same).all() and (same.abs() < 1e30).all()


def test_a_router_that_is_not_called_is_noticed():
    experts = held_by_first_site(Model())
    with pytest.raises(fomoe.InputError, match="router: got a model that does not multiply with the router's weight of layer 0"):
        experts.check_masked()


def test_a_bias_after_the_product_is_refused():
    with pytest.raises(fomoe.InputError, match="router: got layers.0.router.e_score_correction_bias"):
        held_by_first_site(Model(correction=True))


def test_with_skip_token_absent_experts_are_zeros_and_may_have_no_biases():
    model = Model()
    experts = held_by_first_site(model, skip_token=True)
    up = model.layers[0].experts["up"]
    assert not up[2:].any() and up[:2].all()
    experts.change({(0, expert): (1 - expert // 2,) for expert in range(4)})
    assert not up[:2].any()
    with pytest.raises(fomoe.InputError, match="experts: got layers.0.experts.up_bias, a bias, with skip-token"):
        held_by_first_site(Model(bias=True), skip_token=True)


def test_the_profile_of_a_module_is_of_the_model_that_shape_describes(tmp_path):
    model = Model()
    shape = fomoe.torch.shape(model, tmp_path / "shape.json", active_experts=2)
    fomoe.torch.profile(lambda: sum(p.float().sum() for p in model.parameters()), tmp_path / "p.json", model=model, sequences=2, sequence_length=8,
                        active_experts=2, dtype="fp32", repeats=3, warmup=0)
    profiled = json.loads((tmp_path / "p.json").read_text())["model"]
    assert profiled["active_experts"] == 2
    assert {**profiled, "sequence_length": 0} == {**shape.get("model", shape), "sequence_length": 0}
    with pytest.raises(fomoe.InputError, match="active_experts"):
        fomoe.torch.profile(lambda: None, tmp_path / "q.json", model=shape, sequences=2, sequence_length=8, active_experts=2, dtype="fp32")
