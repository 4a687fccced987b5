"""Tests the JSON Schema of scenarios: it accepts what the scenario parser accepts, and refuses typical mistakes."""

import copy
import json
import pathlib
import subprocess
import sys

import fomoe
import pytest

jsonschema = pytest.importorskip("jsonschema", reason="the library jsonschema is not installed")
tomllib = pytest.importorskip("tomllib", reason="Python 3.11 or newer reads TOML")

ROOT = pathlib.Path(__file__).parents[2]
SITES = {
    "model": {"dense_parameters": 1_000_000},
    "workload": {"tokens": 1e6, "global_batch_tokens": 1000},
    "strategy": {"method": "diloco", "local_steps": 10, "payload_dtype": "fp32"},
    "compute": {"step_time": "100ms"},
    "platform": {"sites": 2, "bandwidth": "8Mbps", "latency": "0ms"},
}


@pytest.fixture(scope="module")
def validator():
    schema = fomoe.schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def with_key(key, value):
    scenario = copy.deepcopy(SITES)
    table, _, name = key.rpartition(".")
    inner = scenario
    for part in table.split(".") if table else ():
        inner = inner.setdefault(part, {})
    inner[name] = value
    return scenario


def scenario_files():
    for folder in ("experiments", "platforms", "tests"):
        for path in sorted((ROOT / folder).rglob("*.toml")):
            text = path.read_text()
            if "\n[workload]" in text and "\n[strategy]" in text:  # else a platform, a price list, a grid, …
                yield path


def test_every_scenario_of_the_repository_is_valid(validator):
    files = list(scenario_files())
    assert ROOT / "experiments/scenarios/two-sites.toml" in files and len(files) >= 8
    for path in files:
        assert [error.message for error in validator.iter_errors(tomllib.loads(path.read_text()))] == [], path


def properties(schema):
    for name, entry in schema.get("properties", {}).items():
        yield name, entry
        yield from properties(entry.get("items", entry))


def test_defaults_and_examples_have_the_form_of_their_key(validator):
    keys = [(name, entry) for name, entry in properties(validator.schema) if "examples" in entry]
    assert len(keys) > 150
    for name, entry in keys:
        own = jsonschema.Draft202012Validator(entry)
        for value in [*entry["examples"], *([entry["default"]] if "default" in entry else [])]:
            assert own.is_valid(value), (name, value)


MISTAKES = [
    ("strategy.methd", "diloco"), ("strateggy.method", "diloco"), ("nmae", "x"),  # spelling
    ("strategy.method", "diloko"), ("strategy.collective", "rings"), ("compute.dtype", "bf32"),  # not one of the choices
    ("platform.bandwidth", 10), ("platform.bandwidth", "10"), ("platform.bandwidth", "10Gpbs"),  # no unit, wrong unit
    ("platform.bandwidth", "10GB"), ("platform.latency", "25"), ("compute.step_time", "420Mbps"),  # unit of something else
    ("platform.bandwidth", "0Gbps"), ("platform.latency", "-1ms"), ("compute.step_time", "0.0s"),  # out of range
    ("strategy.local_steps", 0), ("strategy.local_steps", 1.5), ("strategy.local_steps", "16"), ("strategy.moment1_period", 5000),
    ("strategy.skip_token", "true"), ("strategy.skip_token", 1), ("compute.mfu", 40), ("compute.mfu", "0%"), ("compute.mfu", "150%"),
    ("strategy.outer_momentum", "100.5%"), ("compute.straggler_factor", 1e30),
    ("compute.mfu", 0), ("prices.gpu_hour", 2.5), ("prices.gpu_hour", "2.50usd"), ("energy.pue", 0.5),
    ("calibration.terms", "jitter"), ("strategy.compression.kind", "top-k"), ("model.preset", "smal"), ("name", ""),
    ("platform", "two sites"), ("workload", []),
]


@pytest.mark.parametrize("key,value", MISTAKES, ids=lambda value: str(value))
def test_the_schema_refuses_what_the_parser_refuses(validator, key, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scenario = with_key(key, value)
    assert not validator.is_valid(scenario)
    with pytest.raises(fomoe.InputError):
        fomoe.cost(scenario)


VALUES = {
    "platform.bandwidth": ["1Gbps", "1 Gbps", " 1Gbps ", "1e3Mbps", "1.5e-1 Gbit/s", ".5Gbps", "5.Gbps", "1MiBps", "3MB/s",
                           "1gbps", "1.2.3Gbps", "+1Gbps", "", "Gbps", "0.0Gbps", "0e3Gbps", "1E3kb/s", "nanGbps", "infGbps"],
    "platform.latency": ["0ms", "0s", "25us", "25µs", "1min", "1m", "1e-3s", "1e-3 s", "1 e-3s", "2h", "1d", "1ms1"],
    "prices.gpu_hour": ["0USD", "2.5 EUR", "2.5", "USD", "2.5USDX", "2,5USD"],
    "network_model.background_share": ["20%", "0.5", 0.5, 0.99, 0.995, 1, "20 %", "%", "-1%", "1e1%"],
    "workload.tokens": [1, 1e6, 1e6 + 0.5, 2e16, "1e6", True],
    "platform.use_sites": ["", 3],
}


def test_the_schema_and_the_parser_agree_on_forms(validator, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    accepted = 0
    for key, values in VALUES.items():
        for value in values:
            scenario = with_key(key, value)
            try:
                fomoe.cost(scenario)
                parsed = True
            except fomoe.InputError as error:
                parsed = False
                assert key in str(error)
            assert validator.is_valid(scenario) == parsed, (key, value)
            accepted += parsed
    assert 20 < accepted < sum(map(len, VALUES.values()))


@pytest.mark.parametrize("table", ["model", "workload", "strategy", "compute", "platform"])
def test_a_needed_table_is_missing(validator, table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scenario = {name: keys for name, keys in SITES.items() if name != table}
    assert not validator.is_valid(scenario)
    with pytest.raises(fomoe.InputError):
        fomoe.simulate(scenario)


def taplo(folder, text):
    """What an editor with taplo says about a scenario that names the schema in its first line."""
    program = pathlib.Path(sys.executable).with_name("taplo")
    if not program.exists():
        pytest.skip("the program taplo is not installed")
    (folder / "scenario.schema.json").write_text(json.dumps(fomoe.schema()))
    (folder / "s.toml").write_text("#:schema ./scenario.schema.json\n" + text)
    return subprocess.run([program, "lint", "s.toml"], cwd=folder, capture_output=True, text=True)


def test_taplo_accepts_the_scenarios_of_the_repository(tmp_path):
    for path in scenario_files():
        ran = taplo(tmp_path, path.read_text())
        assert ran.returncode == 0, (path, ran.stderr)


@pytest.mark.parametrize("right,wrong,named", [("1Gbps", "1Gpbs", "1Gpbs"), ("local_steps", "local_step", "local_step"),
                                               ('"fomoe"', '"fomo"', "fomo"), ("sites = 2", "sites = 0", "0 is less")])
def test_taplo_names_the_mistake(tmp_path, right, wrong, named):
    ran = taplo(tmp_path, (ROOT / "experiments/scenarios/two-sites.toml").read_text().replace(right, wrong))
    assert ran.returncode != 0 and named in ran.stderr
