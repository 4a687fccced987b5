"""Checks that the Python twin computes what fomoe-train computes: parameters, loss of the same weights, readable step profiles."""

import json
import os
import pathlib
import subprocess
import sys

import numpy
import pytest
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "experiments" / "twin"))
import twin  # noqa: E402

FOMOE, TRAIN = os.environ["FOMOE"], os.environ["FOMOE_TRAIN"]
TWO_SITES = str(ROOT / "experiments/scenarios/two-sites.toml")
TINY = str(ROOT / "experiments/scenarios/tiny-training.toml")
TINY_SHAPE = twin.Shape("custom", 64, 2, 2, 8, 2, 32, 256, 64)
SHAPE_OPTION = "d_model=64,layers=2,heads=2,experts=8,active_experts=2,d_expert=32,vocabulary=256"


def run(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("preset", sorted(twin.PRESETS))
def test_parameters_are_as_many_as_fomoe_counts(preset):
    cost = json.loads(run(FOMOE, "cost", TWO_SITES, "--set", f"model.preset={preset}", "--output", "-"))
    model = twin.Model(twin.PRESETS[preset], device="meta")
    assert twin.parameter_count(model) == cost["parameters"]["total"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Trains the tiny model at one site on a corpus; gives its checkpoint, its validation loss and the validation sequences."""
    folder = tmp_path_factory.mktemp("trained")
    length, kept = TINY_SHAPE.sequence_length, 8
    tokens = numpy.random.default_rng(3).integers(0, TINY_SHAPE.vocabulary, 64 * length + 1).astype(numpy.uint16)
    tokens[1::2] = (5 * tokens[:-1:2] + 7) % TINY_SHAPE.vocabulary  # so that there is something to learn
    numpy.save(folder / "corpus.npy", tokens)
    settings = {"strategy.method": "diloco", "strategy.expert_overlap": 1, "strategy.placement": "fixed",
                "strategy.local_steps": 8, "platform.sites": 1, "workload.global_batch_sequences": 8,
                "workload.tokens": 16 * 8 * length, "trainer.data": str(folder / "corpus.npy"),
                "trainer.validation_sequences": kept, "trainer.device": "cpu", "trainer.dtype": "fp32"}
    options = [f"--set={key}={value}" for key, value in settings.items()]
    run(TRAIN, "run", TINY, "--in-turn", "--checkpoints", str(folder / "ckpt"), "--log", str(folder / "log.jsonl"), *options)
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in lines if line["kind"] == "validation"]
    checkpoint = max((folder / "ckpt").glob("round-*")) / "node-0.safetensors"
    last = torch.from_numpy(tokens[-(kept * length + 1):].astype(numpy.int64))
    return checkpoint, losses[-1], last[:-1].view(kept, length), last[1:].view(kept, length)


@pytest.mark.parametrize("experts", ["loop", "grouped"])
def test_the_loss_of_the_same_weights_is_the_trainers(trained, experts):
    checkpoint, expected, tokens, targets = trained
    model = twin.Model(TINY_SHAPE, experts=experts)
    untrained = model.loss(tokens, targets).item()
    twin.load_checkpoint(model, checkpoint)
    with torch.no_grad():
        loss = model.loss(tokens, targets).item()
    # Both are fp32 sums in different orders; the losses are means of 512 terms of order 5.
    assert loss == pytest.approx(expected, rel=1e-5)
    assert abs(untrained - expected) > 0.05  # the loss depends on the weights


@pytest.mark.parametrize("skip_token", ["false", "true"])
def test_another_program_computes_the_same_loss_with_the_exported_model(tmp_path, skip_token):
    """Four sites with two of each expert's owners; the whole model is put together from their checkpoints."""
    length, kept = TINY_SHAPE.sequence_length, 8
    tokens = numpy.random.default_rng(5).integers(0, TINY_SHAPE.vocabulary, 64 * length + 1).astype(numpy.uint16)
    tokens[1::2] = (5 * tokens[:-1:2] + 7) % TINY_SHAPE.vocabulary
    numpy.save(tmp_path / "corpus.npy", tokens)
    settings = {"strategy.local_steps": 8, "workload.global_batch_sequences": 8, "workload.tokens": 16 * 8 * length,
                "strategy.skip_token": skip_token, "trainer.data": str(tmp_path / "corpus.npy"),
                "trainer.validation_sequences": kept, "trainer.device": "cpu", "trainer.dtype": "fp32"}
    options = [f"--set={key}={value}" for key, value in settings.items()]
    report = json.loads(run(TRAIN, "run", TINY, "--in-turn", "--checkpoints", str(tmp_path / "ckpt"), "--output", "-", *options))
    run(TRAIN, "export", str(tmp_path / "ckpt"), "--output", str(tmp_path / "exported"))
    model = twin.load_exported(tmp_path / "exported")
    last = torch.from_numpy(tokens[-(kept * length + 1):].astype(numpy.int64))
    with torch.no_grad():
        loss = model.loss(last[:-1].view(kept, length), last[1:].view(kept, length)).item()
    assert loss == pytest.approx(numpy.log(report["quality"]["perplexity"]), rel=1e-5)


@pytest.mark.parametrize("settings", [
    {"trainer.rope_theta": 500, "trainer.router_temperature": 3},
    {"model.experts": 0, "trainer.rope_theta": 500},
    {"model.experts": 0, "model.d_ffn": 96},
])
def test_an_exported_model_carries_its_constants_and_may_be_dense(tmp_path, settings):
    """Trained with large learning rates, so that a router's temperature and the angles of positions matter."""
    settings = {"strategy.method": "diloco", "strategy.local_steps": 8, "platform.sites": 2, "workload.global_batch_sequences": 8,
                "workload.tokens": 32 * 8 * 64, "trainer.learning_rate": 0.05, "trainer.warmup_steps": 1, "trainer.device": "cpu",
                "trainer.dtype": "fp32", **settings}
    tokens = numpy.random.default_rng(5).integers(0, TINY_SHAPE.vocabulary, 64 * 64 + 1).astype(numpy.uint16)
    tokens[1::2] = (5 * tokens[:-1:2] + 7) % TINY_SHAPE.vocabulary
    numpy.save(tmp_path / "corpus.npy", tokens)
    settings.update({"trainer.data": str(tmp_path / "corpus.npy"), "trainer.validation_sequences": 8})
    options = [f"--set={key}={value}" for key, value in settings.items()]
    report = json.loads(run(TRAIN, "run", TINY, "--in-turn", "--checkpoints", str(tmp_path / "ckpt"), "--output", "-", *options))
    expected = numpy.log(report["quality"]["perplexity"])
    run(TRAIN, "export", str(tmp_path / "ckpt"), "--output", str(tmp_path / "exported"))
    last = torch.from_numpy(tokens[-(8 * 64 + 1):].astype(numpy.int64))

    def loss_of(model):
        with torch.no_grad():
            return model.loss(last[:-1].view(8, 64), last[1:].view(8, 64)).item()

    model = twin.load_exported(tmp_path / "exported")
    assert loss_of(model) == pytest.approx(expected, rel=1e-5)
    evaluated = json.loads(run(TRAIN, "evaluate", str(tmp_path / "exported"), "--scenario", TINY, "--output", "-", *options))
    assert evaluated["loss"] == pytest.approx(expected, rel=1e-6)
    # Without the constants, the loss is another one.
    config = json.loads((tmp_path / "exported/config.json").read_text())
    for key, usual in (("rope_theta", 10000.0), ("router_temperature", 1.0)):
        if config.get(key, usual) == usual:
            continue
        (tmp_path / "exported/config.json").write_text(json.dumps({**config, key: usual}))
        assert abs(loss_of(twin.load_exported(tmp_path / "exported")) - expected) > 1e-4, key
    (tmp_path / "exported/config.json").write_text(json.dumps(config))
    # Training on from it needs the same constants.
    done = subprocess.run([TRAIN, "run", TINY, "--in-turn", *options, f"--set=trainer.initial_weights={tmp_path}/exported",
                           "--set=trainer.rope_theta=77"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "trainer.rope_theta: got 77" in done.stderr


def test_a_dense_model_has_as_many_parameters_as_fomoe_counts():
    cost = json.loads(run(FOMOE, "cost", TWO_SITES, "--set", "model.preset=small", "--set", "model.experts=0",
                          "--set", "strategy.method=diloco", "--output", "-"))
    shape = twin.Shape("small", 256, 4, 4, 0, 0, 0, 200_019, d_ffn=256)
    assert twin.parameter_count(twin.Model(shape, device="meta")) == cost["parameters"]["total"]


@pytest.mark.parametrize("skip_token", [False, True])
def test_grouped_experts_are_the_loop_of_experts(skip_token):
    torch.manual_seed(1)
    loop = twin.Model(TINY_SHAPE, held=3, skip_token=skip_token)
    grouped = twin.Model(TINY_SHAPE, held=3, skip_token=skip_token, experts="grouped")
    grouped.load_state_dict(loop.state_dict())
    text = torch.randint(TINY_SHAPE.vocabulary, (2, 65))
    losses = [model.loss(text[:, :-1], text[:, 1:]) for model in (loop, grouped)]
    assert losses[1].item() == pytest.approx(losses[0].item(), rel=1e-6)
    for loss in losses:
        loss.backward()
    for (name, a), b in zip(loop.named_parameters(), grouped.parameters()):
        assert torch.isfinite(b.grad).all(), name
        assert torch.allclose(a.grad, b.grad, atol=1e-6 * a.grad.abs().max().item(), rtol=1e-4), name


def test_ghosts_add_nothing():
    """If all weights of the experts are 1, the output of a token is proportional to the sum of its gates of local experts."""
    model = twin.Model(TINY_SHAPE, held=2, skip_token=True, experts="grouped")
    x = torch.randn(5, TINY_SHAPE.d_model)
    chosen = torch.tensor([[0, 1], [1, 7], [6, 0], [5, 4], [3, 2]])
    gate = torch.tensor([[0.5, 0.25], [0.5, 0.25], [0.5, 0.25], [0.5, 0.25], [0.5, 0.25]])
    one = torch.ones(2, TINY_SHAPE.d_model, TINY_SHAPE.d_expert)
    for product in (model.looped, model.grouped):
        y = product(x, chosen, gate, one, one.transpose(1, 2).contiguous())
        whole = torch.nn.functional.silu(x.sum(1)) * TINY_SHAPE.d_expert
        here = torch.tensor([0.75, 0.5, 0.25, 0, 0])  # sums of the gates of experts 0 and 1
        assert torch.allclose(y, (here * whole)[:, None].expand_as(y), rtol=1e-4, atol=1e-5)


# Compiling takes a minute or two, so it runs only if TWIN_COMPILE is set.
compiled = pytest.mark.skipif("TWIN_COMPILE" not in os.environ, reason="TWIN_COMPILE is not set")


@pytest.mark.parametrize("mode", ["eager", pytest.param("compile", marks=compiled)])
def test_a_profile_of_the_twin_answers_for_the_same_model(tmp_path, mode):
    profile = tmp_path / "twin.json"
    run(sys.executable, str(ROOT / "experiments/twin/profile_twin.py"), "--shape", SHAPE_OPTION, "--sequence-length", "64",
        "--mode", mode, "--experts", "grouped", "--dtype", "bf16", "--local-experts", "4,8", "--steps", "3", "--warmup", "1", "--device", "cpu",
        "--output", str(profile))
    report = json.loads(run(FOMOE, "simulate", TINY, "--set", f"compute.profile={profile}", "--output", "-"))
    said = [entry for entry in report["provenance"] if entry["what"] == "step time"]
    assert said[0]["origin"] == "measured"
    assert f"pytorch-{mode}" in said[0]["detail"] and "experts grouped" in said[0]["detail"]


@pytest.mark.parametrize("wrong, expected", [
    (["--model", "small", "--shape", SHAPE_OPTION], "expected either --model or --shape"),
    (["--shape", "d_model=64"], "--shape: got 'd_model=64'"),
    (["--model", "small", "--local-experts", "9"], "expected at most the model's 8"),
    (["--model", "small", "--local-experts", "none"], "--local-experts"),
    (["--model", "small", "--mode", "compile", "--experts", "grouped", "--dtype", "fp32"], "expected bf16"),
])
def test_wrong_options_are_named(tmp_path, wrong, expected):
    done = subprocess.run([sys.executable, str(ROOT / "experiments/twin/profile_twin.py"), *wrong, "--output",
                           str(tmp_path / "p.json")], capture_output=True, text=True)
    assert done.returncode == 2
    assert expected in done.stderr
    assert not list(tmp_path.iterdir())
