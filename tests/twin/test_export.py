"""Checks that the library transformers load what `fomoe-train export` writes, and compute what fomoe-train computes."""

import json
import os
import pathlib
import subprocess
import tempfile

import pytest
import torch

os.environ["HF_MODULES_CACHE"] = tempfile.mkdtemp()  # where transformers keep modelling files
transformers = pytest.importorskip("transformers", reason="the library transformers is not installed")

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRAIN = os.environ["FOMOE_TRAIN"]
TINY = str(ROOT / "experiments/scenarios/tiny-training.toml")
SHAPES = {"experts": ["trainer.rope_theta=5000", "trainer.router_temperature=2"],
          "skip-token": ["strategy.skip_token=true"],
          "dense": ["model.experts=0", "strategy.method=diloco"]}


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True)


@pytest.fixture(scope="module", params=sorted(SHAPES))
def exported(request, tmp_path_factory):
    """A trained model, the loss that fomoe-train evaluates on validation tokens, and these tokens."""
    folder = tmp_path_factory.mktemp("exported")
    tokens = torch.randint(0, 200, (8 * 64 + 1,), generator=torch.Generator().manual_seed(1)).to(torch.int16)
    tokens[1::2] = (tokens[:-1:2] + 7) % 200
    (folder / "train.bin").write_bytes(tokens.repeat(4).numpy().tobytes())
    validation = tokens.roll(64)
    (folder / "validation.bin").write_bytes(validation.numpy().tobytes())
    settings = ["platform.sites=2", "workload.tokens=65536", "trainer.device=cpu", "trainer.dtype=fp32", "trainer.validation_sequences=8",
                f"trainer.data={folder}/train.bin", f"trainer.validation_data={folder}/validation.bin", *SHAPES[request.param]]
    options = [f"--set={setting}" for setting in settings]
    for command in (["run", TINY, "--in-turn", "--checkpoints", folder / "checkpoints", *options],
                    ["export", folder / "checkpoints", "--output", folder / "model"],
                    ["evaluate", folder / "model", "--scenario", TINY, "--output", folder / "loss.json", *options]):
        done = run(TRAIN, *command)
        assert done.returncode == 0, done.stderr
    return folder / "model", json.loads((folder / "loss.json").read_text())["loss"], validation.long()


def load(folder, **how):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True, **how).eval()


def test_transformers_compute_the_loss_that_fomoe_train_evaluates(exported):
    folder, expected, tokens = exported
    model = load(folder)
    with torch.no_grad():
        logits = model(input_ids=tokens[:-1].view(8, 64)).logits
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[1:]).item()
        assert loss == pytest.approx(expected, abs=2e-5)
        row = tokens[:64][None]
        own = model(input_ids=row, labels=row).loss.item()
        assert own == pytest.approx(torch.nn.functional.cross_entropy(logits[0, :-1], row[0, 1:]).item(), abs=2e-5)


def test_texts_that_are_filled_up_have_the_same_logits_and_are_continued(exported):
    folder, _, tokens = exported
    model = load(folder)
    text = tokens[:20][None]
    padded = torch.cat((torch.zeros(1, 5, dtype=torch.long), text), 1)
    mask = (torch.arange(25) >= 5).long()[None]
    with torch.no_grad():
        assert torch.allclose(model(input_ids=padded, attention_mask=mask).logits[:, 5:], model(input_ids=text).logits, atol=1e-4)
        continued = model.generate(text, max_new_tokens=3, do_sample=False, pad_token_id=0)
        assert continued.shape == (1, 23)
        assert continued[0, 20] == model(input_ids=text).logits[0, -1].argmax()


def test_the_model_is_saved_and_loaded_again_by_transformers(exported, tmp_path):
    folder, _, tokens = exported
    model = load(folder)
    model.save_pretrained(tmp_path)
    again = load(tmp_path)
    with torch.no_grad():
        assert torch.equal(again(input_ids=tokens[None, :8]).logits, model(input_ids=tokens[None, :8]).logits)


def test_a_tokenizer_is_copied(exported, tmp_path):
    folder, _, _ = exported
    tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
                 "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
                 "model": {"type": "WordLevel", "vocab": {"a": 0, "b": 1, "?": 2}, "unk_token": "?"}}
    (tmp_path / "words.json").write_text(json.dumps(tokenizer))
    assert run(TRAIN, "export", folder.parent / "checkpoints", "--tokenizer", tmp_path / "words.json", "--output", tmp_path / "model").returncode == 0
    loaded = transformers.AutoTokenizer.from_pretrained(tmp_path / "model", trust_remote_code=True)
    assert loaded("a b a")["input_ids"] == [0, 1, 0]
    wrong = run(TRAIN, "export", folder.parent / "checkpoints", "--tokenizer", tmp_path / "model" / "nothing", "--output", tmp_path / "model")
    assert wrong.returncode == 2
    assert "expected a file tokenizer.json or a folder with one; for example --tokenizer" in wrong.stderr
