"""Trains a tiny Qwen3-MoE and a tiny Mixtral of the library transformers at three sites with fomoe.torch. Once a process is killed, and all
go on from saved states: they end with the same bits as sites that were not killed."""

import json
import pathlib
import re

import fomoe
import pytest
from torch_sites import run_sites, scenario, succeed

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
transformers = pytest.importorskip("transformers", reason="the library transformers is not installed")

ROOT = pathlib.Path(__file__).resolve().parents[2]
SITES = 3
COMMON = {"vocab_size": 256, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "num_experts_per_tok": 2,
          "max_position_embeddings": 64}
CONFIGS = {"qwen": lambda: transformers.Qwen3MoeConfig(**COMMON, intermediate_size=64, moe_intermediate_size=16, head_dim=16, num_experts=6),
           "mixtral": lambda: transformers.MixtralConfig(**COMMON, intermediate_size=16, num_local_experts=6)}
# Mixtral's transfers run while the site trains on; its state is saved while one is under way.
STRATEGIES = {"qwen": {"method": "fomoe", "local_steps": 4, "expert_overlap": 2, "placement": "random", "payload_dtype": "int8"},
              "mixtral": {"method": "streaming_diloco", "local_steps": 4, "fragments": 2, "overlap_steps": 1, "payload_dtype": "bf16"}}
STEPS, SAVE_AFTER = 12, 6  # in the middle of a round


def case_of(folder, name, output, **more):
    document = scenario({"hf_config": str(folder / name / "config.json"), "sequence_length": 16}, STEPS, sequence_length=16, **STRATEGIES[name])
    return {"kind": "transformer", "name": output, "config": str(folder / name), "sequences": 2, "scenario": document, **more}


def example(folder):
    """The two first blocks of the page in a folder, as a reader would have them."""
    page = (ROOT / "experiments/python/torch.md").read_text()
    code, document = (re.search(rf"```{kind}\n(.*?)```", page, re.DOTALL)[1] for kind in ("python", "toml"))
    assert len(code.splitlines()) <= 30
    CONFIGS["qwen"]().save_pretrained(folder / "my-model")
    (folder / "train.py").write_text(code)
    (folder / "scenario.toml").write_text(document)
    return {"kind": "example", "folder": str(folder)}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("transformers")
    for name, config in CONFIGS.items():
        config().save_pretrained(folder / name)
    # The model "mixtral" is left after its state was saved; then one process dies while it trains "qwen".
    statuses, text = run_sites(folder, [*(case_of(folder, name, f"{name}-whole") for name in CONFIGS),
                                        case_of(folder, "mixtral", "mixtral", save_after=SAVE_AFTER, stop_after=SAVE_AFTER + 1),
                                        case_of(folder, "qwen", "qwen", save_after=SAVE_AFTER, die_after=9)], SITES)
    assert statuses[1] == -9 and 0 not in statuses, text
    assert not (folder / "qwen.0.pt").exists()
    succeed(folder, [*(case_of(folder, name, name, resume=True) for name in CONFIGS), example(folder / "example")], SITES)
    return folder


@pytest.mark.parametrize("name", CONFIGS)
def test_a_killed_run_ends_as_one_that_was_not(trained, name):
    for site in range(SITES):
        whole, resumed = (torch.load(trained / f"{run}.{site}.pt")["weights"] for run in (f"{name}-whole", name))
        for key, values in whole.items():
            assert torch.equal(values, resumed[key]), key


@pytest.mark.parametrize("name", CONFIGS)
def test_the_report_is_read_by_fomoe_and_has_the_predicted_bytes(trained, name):
    answer = fomoe.validate([trained / f"{name}-whole.report.json"])
    assert answer["runs"][0]["errors"]["bytes"] == 0
    report = json.loads((trained / f"{name}-whole.report.json").read_text())
    assert report["executor"] == "measured" and report["optimizer_steps"] == STEPS and report["wall_clock_s"] > 0
    assert not json.loads((trained / f"{name}.report.json").read_text())["run"]["whole"]


def test_tokens_go_only_to_experts_that_the_site_holds(trained):
    """And the sites differ in the experts' weights, while the dense weights are the same at all."""
    sites = [torch.load(trained / f"qwen-whole.{site}.pt") for site in range(SITES)]
    assert not any(site["foreign"] for site in sites)
    experts, dense = "model.layers.0.mlp.experts.down_proj", "model.layers.0.self_attn.q_proj.weight"
    assert not torch.equal(sites[0]["weights"][experts], sites[1]["weights"][experts])
    for site in sites[1:]:
        assert torch.equal(sites[0]["weights"][dense], site["weights"][dense])


def test_the_example_of_the_page_ran_with_the_predicted_bytes(trained):
    assert fomoe.validate([trained / "example/run.json"])["runs"][0]["errors"]["bytes"] == 0


def test_the_shape_of_a_model_of_transformers_is_exact():
    model = transformers.AutoModelForCausalLM.from_config(CONFIGS["mixtral"]())
    document = fomoe.torch.shape(model)
    assert document["guessed"] == [] and document["model"]["architecture"] == "mixtral"
    model.more = torch.nn.Linear(2, 2)
    with pytest.raises(fomoe.InputError, match=r"shape: got a model of \d+ parameters, whose config describes \d+"):
        fomoe.torch.shape(model)


def test_the_profile_of_the_page_is_read_by_fomoe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = re.findall(r"```python\n(.*?)```", (ROOT / "experiments/python/torch.md").read_text(), re.DOTALL)[1]
    model = transformers.AutoModelForCausalLM.from_config(CONFIGS["qwen"]())
    CONFIGS["qwen"]().save_pretrained("my-model")
    tokens = torch.randint(0, 256, (2, 64))
    exec(code, {"fomoe": fomoe, "model": model, "tokens": tokens, "optimizer": torch.optim.AdamW(model.parameters())})  # noqa: S102 - our own text
    document = scenario({"hf_config": "my-model/config.json", "sequence_length": 64}, 8, method="diloco", local_steps=4)
    report = fomoe.simulate({**document, "compute": {"profile": "profile.json", "micro_batch_sequences": 2}})
    samples = json.loads((tmp_path / "profile.json").read_text())["points"][0]["samples"]
    assert len(samples) == 20
    assert min(sum(sample.values()) for sample in samples) < report.round.compute_s / 4 < max(sum(sample.values()) for sample in samples)
