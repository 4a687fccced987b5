"""Tests the report of fomoe.torch: means of a run by hand, and the scenario's text that a report contains."""

import datetime
import json
import os
import tomllib

import fomoe
import pytest
from torch_sites import scenario

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from fomoe.torch import _plan_file, _profile, _report, _scenario, _timeline  # noqa: E402

MODEL = {"d_model": 16, "layers": 1, "heads": 2, "experts": 4, "active_experts": 2, "d_expert": 8, "vocabulary": 32, "sequence_length": 8}


def intervals_by_hand():
    """One round: site 0 computes for 1 s and waits; site 1 computes for 2 s; then bytes flow for 1 s, and both compute for half a second."""
    parts = [(0, 0, "compute", 0.0, 1.0), (1, 0, "compute", 0.0, 2.0), (0, 1, "transfer", 1.0, 3.0), (1, 1, "transfer", 2.0, 3.0),
             (0, 2, "compute", 3.0, 3.5), (1, 2, "compute", 3.0, 3.5)]
    return [_timeline.Interval(node, op, 0, activity, start, end) for node, op, activity, start, end in parts]


def test_means_by_hand():
    means = _timeline.means_of(intervals_by_hand(), nodes=2, rounds=1)
    assert means.wall_clock_s == 3.5 and means.round_ends_s == [3.5]
    assert means.compute_s == [1.5, 2.5]
    assert means.exposed_s == [1.0, 1.0]  # from when the second site has entered the transfer
    assert means.transferring_s == 1.0
    assert means.communication_s == 2.0  # from when the first site was ready


def test_bytes_that_flow_while_a_site_computes_are_not_exposed():
    hidden = [_timeline.Interval(node, op, 0, activity, *span) for node in range(2)
              for op, activity, span in ((0, "compute", (0.0, 3.0)), (1, "transfer", (1.0, 4.0)))]
    means = _timeline.means_of(hidden, nodes=2, rounds=1)
    assert means.exposed_s == [1.0, 1.0] and means.transferring_s == 3.0


def test_the_critical_path_leads_through_the_slower_site():
    path = _timeline.critical_path(intervals_by_hand(), [3.5], 0, lambda one: ("steps", "average", "outer")[one.op], lambda node: f"site-{node}")
    assert [(step["what"], step["kind"], step["seconds"]) for step in path] == [("steps", "compute", 2.0), ("average", "transfer", 1.0), ("outer", "compute", 0.5)]
    assert [step["site"] for step in path[:2]] == ["site-1", "site-1"]


@pytest.mark.parametrize("computes_s, upkeeps_s, delay_s", [
    ((4, 4), (0, 0), 0), ((4, 4), (3, 3), 12),
    ((2, 6), (3, 0), 0),  # the site would wait for the other one anyway
    ((2, 6), (5, 0), 4), ((2, 6), (0, 3), 12)])
def test_upkeep_delays_those_who_wait_for_it(computes_s, upkeeps_s, delay_s):
    # Five rounds of two sites that compute, exchange for a second, and do their upkeep before the next round.
    intervals, begin_s = [], 0.0
    for turn in range(5):
        starts = []
        for node in range(2):
            at_s = begin_s
            if turn > 0 and upkeeps_s[node] > 0:
                intervals.append(_timeline.Interval(node, -1, turn, "upkeep", at_s, at_s + upkeeps_s[node]))
                at_s += upkeeps_s[node]
            intervals.append(_timeline.Interval(node, 0, turn, "compute", at_s, at_s + computes_s[node]))
            starts.append(at_s + computes_s[node])
        begin_s = max(starts) + 1
        intervals += [_timeline.Interval(node, 1, turn, "transfer", starts[node], begin_s) for node in range(2)]
    assert _timeline.upkeep_delay_s(intervals, 2) == pytest.approx(delay_s)


def test_the_drawn_round_is_the_middle_one():
    """Of three equal rounds; two computations without a gap are one span if one of them is too short to be seen."""
    intervals = []
    for at in range(3):
        begin = 10.0 * at
        parts = [(0, "compute", 0.0, 4.0), (1, "compute", 4.0, 4.001), (2, "transfer", 4.001, 10.0)]
        intervals += [_timeline.Interval(node, op, at, activity, begin + start, begin + end) for node in range(2) for op, activity, start, end in parts]
    drawn = _timeline.drawn_round(intervals, [10.0, 20.0, 30.0], 0, lambda one: ("steps", "outer", "average")[one.op], ["a", "b"])
    assert (drawn["round"], drawn["duration_s"], drawn["nodes"]) == (1, 10.0, ["a", "b"])
    own = [(span["kind"], span["what"], round(span["end_s"], 3)) for span in drawn["spans"] if span["node"] == 1]
    assert own == [("compute", "steps and others", 4.001), ("transfer", "average", 10.0), ("bytes under way", "", 10.0)]


def test_validation_between_steps_is_drawn_and_part_of_the_critical_path():
    """Two rounds; before the second one both sites validate for 3 s."""
    parts = [(0, 0, "compute", 0.0, 4.0), (1, 0, "transfer", 4.0, 5.0), (-1, 1, "upkeep", 5.0, 8.0), (0, 1, "compute", 8.0, 12.0), (1, 1, "transfer", 12.0, 13.0)]
    intervals = [_timeline.Interval(node, op, at, activity, start, end) for node in range(2) for op, at, activity, start, end in parts]
    means = _timeline.means_of(intervals, nodes=2, rounds=2)
    assert means.compute_s == [4.0, 4.0] and means.round_ends_s == [5.0, 13.0]
    names = lambda one: {0: "steps", 1: "average", -1: "validation, checkpoints, logs"}[one.op]  # noqa: E731
    path = _timeline.critical_path(intervals, means.round_ends_s, 1, names, lambda node: f"site-{node}")
    assert [(step["kind"], step["seconds"]) for step in path] == [("upkeep", 3.0), ("compute", 4.0), ("transfer", 1.0)]
    drawn = _timeline.drawn_round(intervals, means.round_ends_s, 0, names, ["a", "b"])
    assert [(span["start_s"], span["end_s"]) for span in drawn["spans"] if span["kind"] == "upkeep"] == [(0.0, 3.0), (0.0, 3.0)]


def test_a_profile_on_a_gpu_says_how_much_of_the_time_is_beyond_the_fastest_steps():
    assert _profile._beyond_fastest([[1.0, 2.0, 1.0]] * 20) == 0
    assert abs(_profile._beyond_fastest([[4.0]] * 2 + [[8.0]] * 18) - (1 - 20 * 4 / (2 * 4 + 18 * 8))) < 1e-12


def test_a_report_by_hand(tmp_path, monkeypatch):
    """8 bits at 1 Gbit/s: 1.25e8 bytes take a second of the uplink, of a run of 3.5 s."""
    document = scenario(MODEL, 4, sites=2, sequence_length=8, method="diloco", local_steps=4)
    answered = _scenario.ask(document)
    plan = _plan_file.TrafficPlan(answered.plan)
    seen = []
    for node in range(2):
        own = [(one.op, 0, one.activity, one.start_s, one.end_s) for one in intervals_by_hand() if one.node == node]
        seen.append(_report.Observation(node, own, {(1 - node, "dense"): 125_000_000 // (node + 1)}, 1000, upkeep_s=0.25))
    report = _report.measured_report(answered, plan, seen, first_round=0, steps=4, device=torch.device("cpu"),
                                     started_at=datetime.datetime(2026, 1, 2, 3, 4, 5))
    first = report["sites"][0]
    assert (first["bytes_sent"], first["bytes_received"], first["idle_s"], first["upkeep_s"]) == (125e6, 62.5e6, 0.75, 0.25)
    assert report["tokens"] == 4 * 4 * 8 and report["bytes_per_token"] == 187.5e6 / 128
    assert report["compute_utilization"] == 2 / 3.5
    assert report["bottleneck"] == {"limited_by": "compute", "link": "uplink of site-0", "link_busy_share": 1 / 3.5}
    (tmp_path / "run.json").write_text(json.dumps(report))
    answer = fomoe.validate([tmp_path / "run.json"])
    assert answer["runs"][0]["errors"]["wall_clock"] != 0
    monkeypatch.chdir(tmp_path)
    fomoe.torch._scenario.run_fomoe("report", "run.json", "--output", "page.html")
    assert os.path.getsize("page.html") > 10_000


def test_the_scenario_is_written_as_toml(tmp_path):
    """With the files that it names; data are left out."""
    (tmp_path / "shape.json").write_text("{}")
    (tmp_path / "sites.toml").write_text('name = "two"\npaths_csv = "paths.csv"\n')
    (tmp_path / "paths.csv").write_text("from,to\n")
    tables = {"name": 'a "name" – and more', "model": {"shape": "shape.json", "sequence_length": 8}, "prices": {"as_of": datetime.date(2026, 1, 15)},
              "strategy": {"compression": {"kind": "top_k", "kept_share": 0.5}, "list": [1, 2.5, True]}, "platform": {"file": "sites.toml"},
              "trainer": {"data": "corpus.bin", "learning_rate": 1e-3}, "site": [{"name": "a", "batch_share": 2}, {"name": "b", "profile": "none.json"}]}
    text, files = _scenario._source_of(tables, tmp_path)
    del tables["trainer"]["data"]
    assert tomllib.loads(text) == tables
    assert files["shape.json"] == "{}" and files["paths.csv"] == "from,to\n"
    assert tomllib.loads(files["sites.toml"]) == {"name": "two", "paths_csv": "paths.csv"}
