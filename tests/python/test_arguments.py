"""What fomoe's functions take, and what they refuse in one sentence."""

import json
import pathlib

import pytest

import fomoe

SCENARIO = fomoe.example("two-sites")


def test_a_recommendation_can_be_given_back():
    plan = fomoe.plan(SCENARIO, vary={"strategy.method": ["ddp", "diloco"]}, top=3)
    row = plan.frontier[0]
    assert isinstance(row.set, list)
    assert fomoe.simulate(SCENARIO, set=row.set).wall_clock_s == row.simulated.wall_clock_s


def test_the_plan_of_a_dict_names_no_file_that_is_gone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    vary = {"strategy.method": ["ddp", "diloco"]}
    assert all(row.command.startswith("fomoe simulate") for row in fomoe.plan(SCENARIO, vary=vary, top=2).frontier)
    plan = fomoe.plan({"model": {"preset": "small"}, "workload": {"tokens": 1e8, "global_batch_sequences": 256}, "strategy": {"method": "diloco", "local_steps": 16},
                       "compute": {"step_time": "420ms"}, "platform": {"sites": 2, "bandwidth": "1Gbps", "latency": "25ms"}}, vary=vary, top=2)
    assert ".scenario-" not in json.dumps(plan)


@pytest.mark.parametrize("text", ["😀", "𠮷", "é", "a\x7fb"])
def test_texts_of_any_characters_reach_the_program(text):
    assert fomoe.simulate(SCENARIO, set={"name": text}, engine="closed-form").scenario.name == text
    assert fomoe.compare(SCENARIO, [{"name": text}], engine="closed-form").cases[0].report.scenario.name == text


def test_a_sweep_over_three_axes_draws_a_line_for_each_combination():
    matplotlib = pytest.importorskip("matplotlib", reason="the library matplotlib is not installed")
    matplotlib.use("agg")
    table = fomoe.sweep(SCENARIO, {"strategy.method": ["ddp", "diloco"], "platform.rate_factor": [1, 2, 4], "strategy.local_steps": [4, 16]},
                        engine="closed-form")
    axes = table.plot()
    assert len(axes.lines) == 6
    assert all(list(line.get_xdata()) == [4, 16] for line in axes.lines)
    with pytest.raises(fomoe.InputError, match="platform.rate_factor varies too"):
        table.plot(by="strategy.method")
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize("call,said", [
    (lambda: fomoe.simulate(None), "scenario: got a NoneType; expected the path of a file, or a dict"),
    (lambda: fomoe.simulate([]), "scenario: got a list"),
    (lambda: fomoe.simulate(SCENARIO, set="a=b"), "set: got 'a=b'; expected a dict, or a list"),
    (lambda: fomoe.sweep(SCENARIO, {"strategy.local_steps": 16}), r"vary: got 16; expected a list of values, .*for example \[16\]"),
    (lambda: fomoe.compare(SCENARIO, {"strategy.local_steps": 16}), "cases: got 'strategy.local_steps'; expected a list of dicts"),
    (lambda: fomoe.compare(SCENARIO, [{"compute.profile": pathlib.Path("p.json")}]), "compute.profile: got a PosixPath"),
    (lambda: fomoe.sweep(SCENARIO, {"seed": [1]}, client=object(), shards=0), "shards: got 0; expected at least 1"),
    (lambda: fomoe.validate("no-such-run.json"), "no-such-run.json"),
    (lambda: fomoe.validate(pathlib.Path("no-such-run.json")), "no-such-run.json")])
def test_a_wrong_argument_is_an_input_error(call, said):
    with pytest.raises(fomoe.InputError, match=said):
        call()


def test_bytes_per_token_are_those_of_all_sites():
    report = fomoe.simulate(SCENARIO, engine="closed-form")
    sent = sum(site.bytes_sent for site in report.sites)
    assert report.bytes_per_token == pytest.approx(sent / report.tokens, rel=1e-9)
    assert "bytes that all sites send" in fomoe.Report.__doc__
    assert json.dumps(report)
