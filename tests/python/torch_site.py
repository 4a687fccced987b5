"""One site of a test: a process that trains cases, one after the other, with fomoe.torch.  torch_site.py FOLDER

FOLDER/cases.json lists the cases; rank, number of processes and address come from the environment, as torchrun sets them.
"""

import json
import os
import pathlib
import sys

import torch
import torch.distributed as dist

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "experiments/twin"))
import fomoe.torch  # noqa: E402
import twin  # noqa: E402

TWIN_EXPERTS = ["layers.{layer}.up", "layers.{layer}.down"]


class Router(torch.nn.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = weight

    def forward(self, x):
        return x @ self.weight


class WithRouters(twin.Model):
    """A twin whose routers are modules, as in other models, so that the scores of absent experts can be masked."""

    def with_modules(self):
        for layer in self.layers:
            weight = layer.router
            del layer.router
            layer.router = Router(weight)

    def moe(self, layer, x):
        flat = x.reshape(-1, x.shape[-1])
        score, chosen = layer.router(flat).topk(self.chosen, dim=1)
        return self.looped(flat, chosen, score.sigmoid(), layer.up, layer.down).view_as(x)


class WithSingleExperts(twin.Model):
    """A twin whose experts have tensors of their own, with a router that scores all of them."""

    def with_tensors(self):
        for layer in self.layers:
            for name in ("up", "down"):
                tensors = torch.nn.ParameterList(torch.nn.Parameter(values) for values in getattr(layer, name).detach().clone())
                delattr(layer, name)
                setattr(layer, name, tensors)

    def moe(self, layer, x):
        flat = x.reshape(-1, x.shape[-1])
        score, chosen = (flat @ layer.router).topk(self.chosen, dim=1)
        return self.looped(flat, chosen, score.sigmoid(), layer.up, layer.down).view_as(x)


def part_of(whole, shape, held):
    """A twin with the experts `held` (by layer) of another twin that has all of them."""
    model = twin.Model(shape, held=len(held[0]))
    every = dict(whole.named_parameters())
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            values = every[name]
            layer = int(name.split(".")[1]) if name.startswith("layers.") else -1
            if name.endswith(("up", "down")):
                values = values[held[layer]]
            elif name.endswith("router"):
                values = values[:, held[layer]]
            parameter.data = values.clone()  # a layer may have one expert more than another
    return model


def train_twin(case, folder, rank):
    """The paper's model from exported weights, on one sequence that each site repeats; writes weights and report."""
    whole = twin.load_exported(case["weights"], skip_token=case["experts"] == "zeros")
    model = whole
    if case["experts"] == "masked":
        model = WithRouters(whole.shape)
        model.load_state_dict(whole.state_dict())
        model.with_modules()
    if case["experts"] == "single":
        model = WithSingleExperts(whole.shape)
        model.load_state_dict(whole.state_dict())
        model.with_tensors()
    if case["experts"] == "held":
        model = part_of(whole, whole.shape, fomoe.torch.held_experts(case["scenario"], rank, plan_file=case.get("plan")))
    inner = case["inner"]
    optimizer = torch.optim.AdamW(model.parameters(), lr=case["learning_rate"], betas=(inner["beta1"], inner["beta2"]), eps=inner["epsilon"], weight_decay=0)
    name = case["name"]
    plan = fomoe.torch.Plan(case["scenario"], model, optimizer, experts=TWIN_EXPERTS, report=folder / f"{name}.report.json",
                            plan_file=case.get("plan"))
    text = torch.tensor(case["texts"][rank])
    tokens, targets = (part.repeat(case["sequences"], 1) for part in (text, text.roll(-1)))
    steps = 0
    while not plan.done:
        model.loss(tokens, targets).backward()
        optimizer.step()
        optimizer.zero_grad()
        plan.step()
        steps += 1
        if steps == 2 and case["experts"] in ("masked", "zeros", "single"):
            with plan.whole_model():  # in the middle of a round; the training goes on as if nothing had been
                pass
        if case["restart_every"] and steps % case["restart_every"] == 0:
            optimizer.state.clear()
    texts = torch.tensor(case["texts"])

    def mean_loss():
        with torch.no_grad():
            return sum(model.loss(part[None], part.roll(-1)[None]).item() for part in texts) / len(texts)

    loss = whole_loss = mean_loss()
    if case["experts"] in ("all", "masked", "zeros", "single"):
        with plan.whole_model():
            whole_loss = mean_loss()
        assert mean_loss() == loss  # the site's own model again
    weights = {key.replace("router.weight", "router"): values.detach() for key, values in model.named_parameters()}
    for stem in [key[:-2] for key in weights if key.endswith((".up.0", ".down.0"))]:
        weights[stem] = torch.stack([weights.pop(f"{stem}.{expert}") for expert in range(whole.shape.experts)])
    held = [plan.held_experts(layer) for layer in range(whole.shape.layers)]
    torch.save({"weights": weights, "loss": loss, "whole_loss": whole_loss, "held": held}, folder / f"{name}.{rank}.pt")


def train_transformer(case, folder, rank):
    """A tiny mixture of the library transformers; saves its state after `save_after` steps, and is killed after
    `die_after` or left after `stop_after`."""
    from transformers import AutoConfig, AutoModelForCausalLM

    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(case["config"]))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    name, states = case["name"], folder / f"{case['name']}.{rank}.state"
    plan = fomoe.torch.Plan(case["scenario"], model, optimizer, experts="mlp.experts", report=folder / f"{name}.report.json")
    if case.get("resume"):
        state = torch.load(states)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        plan.load_state_dict(state["plan"])
    seen = set()
    model.model.layers[0].mlp.experts.register_forward_pre_hook(lambda module, inputs: seen.update(inputs[1].unique().tolist()))
    foreign = False
    while not plan.done:
        numbers = torch.Generator().manual_seed(1000 * rank + plan.steps_done)  # the data of a step does not depend on the process
        tokens = torch.randint(0, 256, (case["sequences"], 16), generator=numbers)
        held = plan.held_experts(0)
        seen.clear()
        model(input_ids=tokens, labels=tokens).loss.backward()
        foreign = foreign or not seen <= set(held)
        optimizer.step()
        optimizer.zero_grad()
        plan.step()
        if plan.steps_done == case.get("save_after"):
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "plan": plan.state_dict()}, states)
            dist.barrier()
        if plan.steps_done == case.get("die_after") and rank == 1:
            os.kill(os.getpid(), 9)
        if plan.steps_done == case.get("stop_after"):
            return
    torch.save({"weights": {key: values.detach() for key, values in model.named_parameters()}, "foreign": foreign}, folder / f"{name}.{rank}.pt")


def run_example(case, folder, rank):
    """The first example of the page. The processes have met already."""
    os.chdir(case["folder"])
    meet, part = dist.init_process_group, dist.destroy_process_group
    dist.init_process_group, dist.destroy_process_group = lambda backend: None, lambda *group: part(*group) if group else None
    exec(compile(pathlib.Path("train.py").read_text(), "train.py", "exec"), {})  # noqa: S102 - our own text
    dist.init_process_group, dist.destroy_process_group = meet, part
    os.chdir(folder)


def main():
    folder = pathlib.Path(sys.argv[1])
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for case in json.loads((folder / "cases.json").read_text()):
        {"twin": train_twin, "transformer": train_transformer, "example": run_example}[case["kind"]](case, folder, dist.get_rank())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
