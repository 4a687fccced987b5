"""Tests the Python module `fomoe`: it gives the same answers as the program, from a file and from a dict."""

import errno
import json
import os
import pathlib
import re
import stat
import subprocess
import sys

import fomoe
import pytest
from fomoe import _files

ROOT = pathlib.Path(__file__).parents[2]
SCENARIO = ROOT / "tests/ideal/two-sites.toml"
PROGRAM = os.environ.get("FOMOE", str(ROOT / "build/release/bin/fomoe"))

SITES = {
    "model": {"dense_parameters": 1_000_000},
    "workload": {"tokens": 1e6, "global_batch_tokens": 1000},
    "strategy": {"method": "diloco", "local_steps": 10, "payload_dtype": "fp32"},
    "compute": {"step_time": "100ms"},
    "platform": {"sites": 2, "bandwidth": "8Mbps", "latency": "0ms"},
    "network_model": {"host": "ideal"},
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


MODEL = {"model_type": "mixtral", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "intermediate_size": 128, "num_local_experts": 8, "num_experts_per_tok": 2,
         "vocab_size": 100, "tie_word_embeddings": False}


def test_a_model_without_transformers_names_the_missing_library(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)  # its import fails
    with pytest.raises(ImportError, match="needs the libraries torch and transformers, and the library transformers is "
                                          "missing; install it with: pip install torch transformers"):
        fomoe.model_from_transformers(tmp_path)


def test_a_known_model_is_described_exactly(tmp_path):
    pytest.importorskip("transformers", reason="the library transformers is not installed")
    (tmp_path / "config.json").write_text(json.dumps(MODEL))
    model = fomoe.model_from_transformers(tmp_path, tmp_path / "shape.json")
    assert model["schema"] == "fomoe.model/1" and model["guessed"] == []
    assert model["model"]["architecture"] == "mixtral" and model["model"]["experts"] == 8
    assert json.loads((tmp_path / "shape.json").read_text()) == model
    by_shape = fomoe.cost(SCENARIO, set={"model.shape": str(tmp_path / "shape.json")})
    by_config = fomoe.cost(SCENARIO, set={"model.hf_config": str(tmp_path / "config.json")})
    assert by_shape["parameters"] == by_config["parameters"]
    assert by_shape["flops"] == by_config["flops"]


def test_an_unknown_architecture_is_guessed_from_its_parameters(tmp_path):
    transformers = pytest.importorskip("transformers", reason="the library transformers is not installed")
    config = transformers.AutoConfig.for_model(
        "aria_text", hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=32,
        vocab_size=100, moe_num_experts=8, moe_topk=2, moe_num_shared_experts=1, pad_token_id=0)
    model = fomoe.model_from_transformers(config, tmp_path / "shape.json")
    assert model["model"]["architecture"] == "opaque"
    assert model["model"]["opaque"]["expert_parameters"] == 2 * 8 * 3 * 64 * 32
    assert model["model"]["active_experts"] == 2
    assert any("please confirm" in guess for guess in model["guessed"])
    report = fomoe.simulate(SCENARIO, set={"model.shape": str(tmp_path / "shape.json")})
    assert any(entry["origin"] == "assumed" and "please confirm" in entry["detail"] for entry in report["provenance"])


def dense_cost(tmp_path):
    """The cost of the shape in that folder, which has no experts."""
    return fomoe.cost(SCENARIO, set={"model.shape": str(tmp_path / "shape.json"), "model.sequence_length": 1000,
                                     "strategy.method": "diloco"})


def test_a_hybrid_has_attention_only_in_the_layers_that_project_queries(tmp_path):
    transformers = pytest.importorskip("transformers", reason="the library transformers is not installed")
    config = transformers.AutoConfig.for_model(
        "bamba", hidden_size=64, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, intermediate_size=128,
        vocab_size=100, attn_layer_indices=[2], mamba_n_heads=8, mamba_d_head=16, mamba_d_state=16, pad_token_id=0)
    model = fomoe.model_from_transformers(config, tmp_path / "shape.json")
    assert model["model"]["layers_without_attention"] == 3
    assert any("4 heads in 1 of 4 layers" in guess for guess in model["guessed"])
    assert dense_cost(tmp_path)["flops"]["attention_per_token"] == 12 * 64 * 1000


def test_only_the_language_model_of_a_model_with_images_counts(tmp_path):
    transformers = pytest.importorskip("transformers", reason="the library transformers is not installed")
    text = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
            "intermediate_size": 128, "vocab_size": 100}
    (tmp_path / "config.json").write_text(json.dumps(
        {"model_type": "qwen3_vl", "tie_word_embeddings": False, "text_config": text,
         "vision_config": {"depth": 2, "hidden_size": 32, "num_heads": 2, "intermediate_size": 64, "out_hidden_size": 64,
                           "deepstack_visual_indexes": [0]}}))
    model = fomoe.model_from_transformers(tmp_path, tmp_path / "shape.json")
    assert any("only the language model, which runs for tokens of text; left out: vision_config" in guess
               for guess in model["guessed"])
    layer = 2 * 64 * 64 + 2 * 64 * 32 + 2 * 16 + 3 * 64 * 128 + 2 * 64
    assert dense_cost(tmp_path)["parameters"]["total"] == 2 * 100 * 64 + 2 * layer + 64
    # The same model by its tensors alone, as for an architecture that fomoe does not know.
    config = transformers.AutoConfig.for_model("qwen3_vl", **{
        name: value for name, value in json.loads((tmp_path / "config.json").read_text()).items() if name != "model_type"})
    config.text_config.model_type = config.model_type = "unheard_of"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(config), "to_dict", lambda self: {"model_type": "unheard_of", "num_attention_heads": 4})
        other = fomoe.model_from_transformers(config)
    assert other["model"]["opaque"]["dense_parameters"] == 2 * 100 * 64 + 2 * layer + 64
    assert any("such as model.visual" in guess for guess in other["guessed"])


def test_omitted_fields_have_the_values_of_the_library(tmp_path):
    transformers = pytest.importorskip("transformers", reason="the library transformers is not installed")
    (tmp_path / "config.json").write_text(json.dumps(
        {"model_type": "gemma3", "text_config": {"model_type": "gemma3_text", "hidden_size": 64, "num_hidden_layers": 2,
                                                 "intermediate_size": 128, "vocab_size": 100},
         "vision_config": {"model_type": "siglip_vision_model", "hidden_size": 32, "num_hidden_layers": 1,
                           "num_attention_heads": 2, "intermediate_size": 64}}))
    model = fomoe.model_from_transformers(tmp_path, tmp_path / "shape.json")
    assert (model["model"]["heads"], model["model"]["kv_heads"], model["model"]["head_dim"]) == (8, 4, 256)
    note = next(guess for guess in model["guessed"] if "the defaults of" in guess)
    assert "num_attention_heads = 8" in note
    assert f"the defaults of transformers {transformers.__version__} for gemma3_text" in note
    assert "hidden_size" not in note


def test_a_model_that_only_fomoe_knows_needs_no_library_class(tmp_path):
    pytest.importorskip("transformers", reason="the library transformers is not installed")
    (tmp_path / "config.json").write_text(json.dumps({**MODEL, "model_type": "grinmoe", "attention_bias": True,
                                                      "lm_head_bias": True}))
    model = fomoe.model_from_transformers(tmp_path, tmp_path / "shape.json")
    assert model["model"]["architecture"] == "grinmoe" and model["guessed"] == []
    assert json.loads((tmp_path / "shape.json").read_text()) == model


def test_the_python_command_of_the_message_about_an_unknown_type_works(tmp_path, monkeypatch):
    pytest.importorskip("transformers", reason="the library transformers is not installed")
    (tmp_path / "config.json").write_text(json.dumps(
        {"model_type": "bamba", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100,
         "num_key_value_heads": 2, "intermediate_size": 128, "mamba_n_heads": 8, "mamba_d_head": 16}))
    with pytest.raises(fomoe.InputError) as caught:
        fomoe.cost(SCENARIO, set={"model.hf_config": str(tmp_path / "config.json")})
    command = re.search(r'fomoe\.model_from_transformers\("[^"]*", "[^"]*"\)', str(caught.value)).group()
    monkeypatch.chdir(tmp_path)
    assert eval(command)["schema"] == "fomoe.model/1"
    (tmp_path / "model.json").rename(tmp_path / "shape.json")
    assert dense_cost(tmp_path)["parameters"]["total"] > 0


def test_wrong_configs_are_input_errors(tmp_path):
    pytest.importorskip("transformers", reason="the library transformers is not installed")
    with pytest.raises(fomoe.InputError, match="expected the config.json of a model"):
        fomoe.model_from_transformers(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(fomoe.InputError, match="config.json:1: model_type: got nothing"):
        fomoe.model_from_transformers(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "no-such-model"}))
    with pytest.raises(fomoe.InputError, match='got "no-such-model", which neither transformers .* nor fomoe knows; expected '
                                               f"the folder of the model's ..safetensors files, .*; for example fomoe model {tmp_path}"):
        fomoe.model_from_transformers(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "mixtral", "hidden_size": "wide"}))
    with pytest.raises(fomoe.InputError, match="got fields that transformers refuses"):
        fomoe.model_from_transformers(tmp_path)
    with pytest.raises(fomoe.InputError, match="config: got int; expected a folder"):
        fomoe.model_from_transformers(7)


# --- what the package writes: whole files, and never over what it reads

def test_a_file_has_its_earlier_content_or_all_of_the_new_one(tmp_path, monkeypatch):
    file = tmp_path / "report.json"
    file.write_text("old")
    file.chmod(0o640)
    (tmp_path / "link.json").symlink_to(file)
    _files.write_whole(tmp_path / "link.json", "new")
    assert file.read_text() == "new" and (tmp_path / "link.json").is_symlink() and stat.S_IMODE(file.stat().st_mode) == 0o640

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        _files.write_whole(file, "half")
    assert file.read_text() == "new" and sorted(path.name for path in tmp_path.iterdir()) == ["link.json", "report.json"]


def test_an_output_is_no_input_and_has_a_folder(tmp_path):
    scenario = tmp_path / "s.toml"
    scenario.write_text("")
    (tmp_path / "l.json").symlink_to(scenario)
    _files.check_output("report", tmp_path / "new.json", [scenario])
    for path in (scenario, tmp_path / "l.json", str(tmp_path / "." / "s.toml")):
        with pytest.raises(fomoe.InputError, match="also read as an input"):
            _files.check_output("report", path, [scenario])
    with pytest.raises(fomoe.InputError, match="expected a file in an existing folder"):
        _files.check_output("report", tmp_path / "none" / "r.json")


def test_a_report_of_fomoe_torch_does_not_replace_its_scenario(tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from fomoe.torch import Plan, profile

    scenario = tmp_path / "s.toml"
    scenario.write_text(pathlib.Path(fomoe.example("two-sites")).read_text())
    before = scenario.read_text()
    layer = torch.nn.Linear(2, 2)
    with pytest.raises(fomoe.InputError, match="report: got .* which is also read as an input"):
        Plan(str(scenario), layer, torch.optim.AdamW(layer.parameters()), report=scenario)
    with pytest.raises(fomoe.InputError, match="path: got .* which is also read as an input"):
        profile(lambda: None, scenario, model=str(scenario), sequences=1, sequence_length=8)
    assert scenario.read_text() == before
