"""Tests the objects that the functions of the Python package return."""

import importlib.util
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import typing

import fomoe
import pytest
from fomoe import _fomoe
from test_fomoe import PROGRAM, SCENARIO, program

ROOT = pathlib.Path(__file__).parents[2]


def names_of(answer_type):
    return {name for name in answer_type.__annotations__ if not name.startswith("_")}


def check_annotated(answer):
    """Each annotated entry exists, and its type is the annotated one, without the types of lists' entries."""
    for name, kind in typing.get_type_hints(type(answer)).items():
        origin = typing.get_origin(kind) or kind
        if origin is not typing.Union and str(origin) != "<class 'types.UnionType'>":
            assert isinstance(answer[name], (int, float) if origin is float else origin), name
        assert getattr(answer, name) is answer[name]  # no method of dict hides the entry


needs_unions = pytest.mark.skipif(sys.version_info < (3, 10), reason="the annotations need Python 3.10 to be evaluated")


@needs_unions
def test_a_report_has_attributes():
    report = fomoe.simulate(SCENARIO)
    check_annotated(report)
    assert report.round.duration_s == report["round"]["duration_s"] > 0
    assert report.sites[0].name == "site-0"
    with pytest.raises(AttributeError, match="Report has no entry 'wall_clock'; it has schema, executor, wall_clock_s"):
        report.wall_clock  # noqa: B018
    same = json.loads(program("simulate", SCENARIO, "--output", "-"))
    assert report.to_dict() == same == report
    assert type(report.to_dict()["round"]) is dict and type(report.to_dict()["sites"][0]) is dict
    assert "wall_clock_s" in dir(report)


@needs_unions
def test_the_other_answers_have_attributes():
    check_annotated(fomoe.solve(SCENARIO, "platform.bandwidth", "compute_utilization=0.9"))
    plan = fomoe.plan(SCENARIO, vary={"strategy.method": ["diloco", "ddp"]}, top=2)
    check_annotated(plan)
    assert len(plan.to_pandas()) == len(plan.frontier)
    assert plan.scenario == fomoe.simulate(SCENARIO).scenario and plan.provenance[0].origin
    assert fomoe.solve(SCENARIO, "platform.bandwidth").scenario == plan.scenario
    comparison = fomoe.compare(SCENARIO, [{}, {"strategy.method": "ddp"}])
    check_annotated(comparison)


def test_a_plan_with_a_choice_has_a_ranking_in_every_form():
    plan = fomoe.plan(SCENARIO, vary={"strategy.method": ["diloco", "fomoe"]}, top=3, set={"quality.equal_loss_factor": 1.1})
    assert plan.rows == plan.ranking and plan.rows[0] == plan.choice
    assert plan.to_pandas()["method"].tolist() == [row["method"] for row in plan.ranking]
    assert plan._repr_html_().count("<tr>") == 1 + len(plan.ranking)
    if importlib.util.find_spec("matplotlib"):
        assert len(plan.plot().patches) == len(plan.ranking)


def test_compare_is_what_the_program_answers():
    comparison = fomoe.compare(SCENARIO, [{}, {"strategy.method": "diloco", "strategy.local_steps": 64}])
    same = program("compare", SCENARIO, "--case", "", "--case", "strategy.method=diloco strategy.local_steps=64", "--output", "-")
    mine, theirs = comparison.to_dict(), json.loads(same)
    assert [case["report"] for case in mine["cases"]] == [case["report"] for case in theirs["cases"]]
    assert isinstance(comparison.cases[1].report, fomoe.Report)
    assert comparison.cases[1].report.wall_clock_s < comparison.cases[0].report.wall_clock_s
    with pytest.raises(fomoe.InputError, match="without spaces"):
        fomoe.compare(SCENARIO, [{"platform.use_sites": "a, b"}])


VARY = {"strategy.local_steps": [4, 16], "platform.bandwidth": "1Gbps,2Gbps,4Gbps"}


def test_a_sweep_is_a_table():
    table = fomoe.sweep(SCENARIO, VARY, engine="closed-form")
    assert table.axes == ["strategy.local_steps", "platform.bandwidth_bytes_per_s"]
    assert table.column("platform.bandwidth") == 2 * [1.25e8, 2.5e8, 5e8]
    assert table.executor == "closed-form" and table.columns[:2] == table.axes
    with pytest.raises(KeyError, match="no such column"):
        table.column("bandwidth")
    same = program("sweep", SCENARIO, "--vary", "strategy.local_steps=4,16", "--vary", "platform.bandwidth=1Gbps,2Gbps,4Gbps",
                   "--engine", "closed-form", "--output", "-")
    assert table.to_dict() == json.loads(same)


def test_tables_of_pandas():
    pandas = pytest.importorskip("pandas", reason="the library pandas is not installed")
    frame = fomoe.sweep(SCENARIO, VARY, engine="closed-form").to_pandas()
    assert isinstance(frame, pandas.DataFrame) and frame.shape[0] == 6
    assert frame["strategy.local_steps"].tolist() == [4, 4, 4, 16, 16, 16]
    report = fomoe.simulate(SCENARIO)
    row = report.to_pandas()
    assert len(row) == 1 and row["round.duration_s"][0] == report.round.duration_s
    assert fomoe.compare(SCENARIO, [{}, {"strategy.local_steps": 4}]).to_pandas()["case"].tolist() == [
        "", "strategy.local_steps=4"]
    assert fomoe.solve(SCENARIO, "platform.bandwidth").to_pandas()["target_value"].tolist() == [0.5, 0.8, 0.9, 0.95, 0.99]


def test_html_for_notebooks():
    page = fomoe.simulate(SCENARIO)._repr_html_()
    assert "<td>wall clock</td><td>90.85 s in 12 rounds, simulated</td>" in page
    page = fomoe.sweep(SCENARIO, {"strategy.local_steps": list(range(1, 31))}, engine="closed-form")._repr_html_()
    assert page.count("<tr>") == 21 and "10 more rows" in page  # the head and 20 rows
    # Names come from the user's files.
    page = fomoe.compare(SCENARIO, [{"name": "<b>bold</b>"}])._repr_html_()
    assert "&lt;b&gt;" in page and "<b>" not in page
    prices = {"prices.file": str(ROOT / "experiments/data/prices-example.toml")}
    page = fomoe.compare(SCENARIO, [{"strategy.local_steps": 64, "strategy.method": "diloco"}], set=prices)._repr_html_()
    assert "<td>diloco K=64</td>" in page and re.search(r"<td>\d+\.\d\d USD</td>", page)
    page = fomoe.plan(SCENARIO, vary={"strategy.method": ["ddp"]}, top=1, set=prices)._repr_html_()
    assert "<th>wall clock</th><th>cost</th>" in page and re.search(r"<td>\d+\.\d\d USD</td>", page)
    assert "<table>" in fomoe.solve(SCENARIO, "platform.bandwidth")._repr_html_()


def test_plots():
    matplotlib = pytest.importorskip("matplotlib", reason="the library matplotlib is not installed")
    matplotlib.use("agg")
    table = fomoe.sweep(SCENARIO, VARY, engine="closed-form")
    axes = table.plot()
    assert len(axes.lines) == 2  # one for each K
    assert list(axes.lines[0].get_xdata()) == [1.25e8, 2.5e8, 5e8]
    assert list(axes.lines[1].get_ydata()) == table.column("compute_utilization")[3:]
    axes = table.plot(x="strategy.local_steps", y="wall_clock_s")
    assert len(axes.lines) == 3
    report = fomoe.simulate(SCENARIO)
    widths = [bar.get_width() for bar in report.plot().patches]
    assert widths[:2] == [site.compute_s for site in report.sites]
    comparison = fomoe.compare(SCENARIO, [{}, {"strategy.local_steps": 4}])
    total = [sum(bar.get_width() for bar in comparison.plot().patches[case::2]) for case in (0, 1)]
    assert total == pytest.approx([case.report.wall_clock_s / 3600 for case in comparison.cases], rel=0.01)
    plan = fomoe.plan(SCENARIO, vary={"strategy.method": ["ddp", "diloco"]}, top=3)
    assert len(plan.plot().patches) == len(plan.frontier)
    axes = fomoe.compare(SCENARIO, [{}, {"strategy.local_steps": 4, "strategy.payload_dtype": "bf16", "strategy.collective": "ring"}]).plot()
    assert "K=4 payload_dtype=bf16 collective=ring" in [label.get_text() for label in axes.get_yticklabels()]
    # No name is cut off at the edge of the picture, however long it is.
    axes.figure.canvas.draw()
    assert all(label.get_window_extent().x0 >= 0 for label in axes.get_yticklabels())
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize("library,call", [("pandas", "to_pandas"), ("matplotlib.pyplot", "plot")])
def test_a_missing_library_is_named(monkeypatch, library, call):
    monkeypatch.setitem(sys.modules, library, None)  # its import fails
    with pytest.raises(ImportError, match=f"needs the library {library.split('.')[0]}; install it with: pip install"):
        getattr(fomoe.simulate(SCENARIO), call)()


def test_examples_are_installed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert {"two-sites", "four-regions", "eight-regions"} <= {*fomoe.examples()}
    for name in fomoe.examples():
        # One of them names a step profile that `fomoe-train profile` has to write; a step time replaces it.
        step_time = {"compute.step_time": "420ms"} if name == "eight-regions" else {}
        assert fomoe.cost(fomoe.example(name), set=step_time)["parameters"]["total"] > 0
    with pytest.raises(fomoe.InputError, match="expected one of"):
        fomoe.example("no-such")


def test_numbers_of_numpy(tmp_path, monkeypatch):
    numpy = pytest.importorskip("numpy", reason="the library numpy is not installed")
    assert fomoe.simulate(SCENARIO, set={"strategy.local_steps": numpy.int64(64)}) == fomoe.simulate(
        SCENARIO, set={"strategy.local_steps": 64})


def test_the_command_is_the_program(tmp_path):
    text = subprocess.run([sys.executable, "-m", "fomoe", "simulate", str(SCENARIO)], capture_output=True, text=True, check=True)
    assert text.stdout == subprocess.run([PROGRAM, "simulate", str(SCENARIO)], capture_output=True, text=True, check=True).stdout
    wrong = subprocess.run([sys.executable, "-m", "fomoe", "simulat"], capture_output=True, text=True)
    assert wrong.returncode == 2 and "did you mean simulate?" in wrong.stderr
    text = subprocess.run([sys.executable, "-m", "fomoe", "list", "platforms"], capture_output=True, text=True, check=True,
                          cwd=tmp_path).stdout
    assert "eight-regions.toml" in text  # of the package


def test_the_package_is_typed():
    folder = os.path.dirname(fomoe.__file__)
    assert os.path.exists(os.path.join(folder, "py.typed"))
    for name in fomoe.__all__:
        assert getattr(fomoe, name).__doc__, name


# Numbers for people are formatted by one rule: Python asks the C++ code (experiments/text/human.cpp), and the page of `fomoe explore`, which has
# its own copy in JavaScript, gives the same texts.
NAMES = {"human_time": "humanTime", "human_bytes": "humanBytes", "human_count": "humanCount", "human_percent": "humanPercent"}


def values():
    """Of all sizes, and beside the limits at which units change."""
    numbers = random.Random(5)
    drawn = [10 ** numbers.uniform(-10, 12) for _ in range(3000)]
    limits = [1e-9, 0.9995e-3, 0.9995, 119.95, 3600, 2 * 86400, 999.95, 999.95e3, 999.95e6, 0.1]
    return [0, *drawn, *(limit * factor for limit in limits for factor in (0.9999, 0.99999999, 1, 1.00000001, 1.0001))]


def test_python_formats_as_the_program_does():
    assert _fomoe.human_time(5 * 3600 + 12 * 60) == "5 h 12 min"
    assert _fomoe.human_bytes(1.234e6) == "1.234 MB"
    assert _fomoe.human_percent(0.1234) == "12.3 %"
    assert _fomoe.human_money(1234.4, "USD") == "1,234 USD"
    with pytest.raises(TypeError):
        _fomoe.human_time("a")


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_page_formats_as_the_program_does():
    script = (ROOT / "experiments/explore/formats.js").read_text()
    numbers = values()
    program = f"""const of = new Function({json.dumps(script)} + "; return {{{', '.join(NAMES.values())}, humanMoney}};")();
const numbers = {json.dumps(numbers)};
const texts = {{}};
for (const name of {json.dumps(list(NAMES.values()))}) texts[name] = numbers.map(of[name]);
texts.humanMoney = numbers.map((value) => of.humanMoney(value, "EUR"));
console.log(JSON.stringify(texts));"""
    texts = json.loads(subprocess.run(["node", "-"], input=program, capture_output=True, text=True, check=True).stdout)
    for name, of_page in NAMES.items():
        ours = [getattr(_fomoe, name)(value) for value in numbers]
        # In shares of 1e9, doubles have halves of the last digit, which the two languages round differently.
        different = [(value, a, b) for value, a, b in zip(numbers, ours, texts[of_page]) if a != b and (name != "human_percent" or value < 1e9)]
        assert not different, (name, different[:5], len(different))
    ours = [_fomoe.human_money(value, "EUR") for value in numbers]
    different = [(value, a, b) for value, a, b in zip(numbers, ours, texts["humanMoney"]) if a != b]
    assert not different, (different[:5], len(different))


def test_a_recommendation_can_be_given_back():
    plan = fomoe.plan(SCENARIO, vary={"strategy.method": ["ddp", "diloco"]}, top=3)
    row = plan.frontier[0]
    assert isinstance(row.set, list)
    assert fomoe.simulate(SCENARIO, set=row.set).wall_clock_s == row.simulated.wall_clock_s
    assert fomoe.simulate(SCENARIO, set=(text for text in row.set)).wall_clock_s == row.simulated.wall_clock_s


def test_the_plan_of_a_dict_names_no_file_that_is_gone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    vary = {"strategy.method": ["ddp", "diloco"]}
    assert all(row.command.startswith("fomoe simulate") for row in fomoe.plan(SCENARIO, vary=vary, top=2).frontier)
    plan = fomoe.plan({"model": {"preset": "small"}, "workload": {"tokens": 1e8, "global_batch_sequences": 256}, "strategy": {"method": "diloco", "local_steps": 16},
                       "compute": {"step_time": "420ms"}, "platform": {"sites": 2, "bandwidth": "1Gbps", "latency": "25ms"}}, vary=vary, top=2)
    assert ".scenario-" not in json.dumps(plan)
    (tmp_path / "plan.json").write_text(json.dumps(plan.to_dict()))
    subprocess.run([PROGRAM, "report", "plan.json", "--output", "plan.html"], check=True, cwd=tmp_path)


def test_a_path_is_no_option():
    with pytest.raises(fomoe.InputError):
        fomoe.simulate("-h")


def test_rows_of_impossible_combinations_have_no_results():
    table = fomoe.sweep(SCENARIO, {"strategy.expert_overlap": [3, 1]}, engine="closed-form")
    assert "wall_clock_s" in table.columns
    impossible, possible = table.column("wall_clock_s")
    assert impossible is None and possible > 0
    matplotlib = pytest.importorskip("matplotlib", reason="the library matplotlib is not installed")
    matplotlib.use("agg")
    assert len(table.plot().lines[0].get_xdata()) == 1


@pytest.mark.parametrize("text", ["😀", "𠮷", "é", "a\x7fb"])
def test_texts_of_any_characters_reach_the_program(text):
    assert fomoe.simulate(SCENARIO, set={"name": text}, engine="closed-form").scenario.name == text
    assert fomoe.compare(SCENARIO, [{"name": text}], engine="closed-form").cases[0].report.scenario.name == text


def test_a_dict_with_any_characters_where_the_locale_has_none(tmp_path):
    code = "import fomoe; print(ascii(fomoe.simulate(eval(input()), engine='closed-form').scenario.name))"
    document = {"name": "Zürich 😀", "model": {"preset": "small"}, "workload": {"tokens": 1e8, "global_batch_sequences": 256}, "strategy": {"method": "ddp"},
                "compute": {"step_time": "420ms"}, "platform": {"sites": 2, "bandwidth": "1Gbps", "latency": "25ms"}}
    done = subprocess.run([sys.executable, "-c", code], input=ascii(document), capture_output=True, text=True, cwd=tmp_path,
                          env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == ascii(document["name"])


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
    (lambda: fomoe.simulate(SCENARIO, set=5), "set: got 5; expected a dict, or a list"),
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
