"""Tests the tables of published losses (experiments/data/published_quality*.csv): their form, their ranges, and that rows agree with each other."""

import collections
import csv
import math
import pathlib
import re

import pytest

DATA = pathlib.Path(__file__).parents[2] / "experiments/data"
PAGE = DATA / "published_quality.md"
FILES = ["published_quality.csv", "published_quality_check.csv"]
STREAMING_DILOCO = "2501.18512"

CHOICES = {
    "family": {"nesterov", "averaging", "local_adamw", "muon", "streaming", "overlap", "async", "sparse", "gossip", "partial", "data_parallel", "other"},
    "architecture": {"dense", "mixture"},
    "steps_basis": {"stated", "computed", ""},
    "batch_rule": {"each_tuned", "global_equal", "replica_equal", "baseline_smaller", "unknown"},
    "same_data": {"yes", "no"},
    "baseline_tuned": {"yes", "partly", "recipe", "extrapolated", "no", "unknown", ""},
    "method_tuned": {"yes", "partly", "extrapolated", "no", "unknown"},
    "metric": {"loss", "perplexity", "bits_per_byte", "accuracy_percent", "perplexity_ratio", "loss_difference", "token_ratio"},
    "outcome": {"finished", "diverged"},
    "hand": {"first", "second"},
    "checked": {"yes", "no"},
    "wire_bits": {"", "2", "4", "8", "16", "32"},
}
RANGES = {  # of numbers; an empty cell means that the source does not state it
    "parameters_active": (1e5, 1e12), "tokens": (1e5, 1e14), "replicas": (1, 1000), "local_steps": (1, 1e5), "steps": (1, 1e8), "rounds": (1, 1e8),
    "outer_learning_rate": (0.01, 10), "density": (1e-4, 1), "overlap_steps": (0, 1e4), "value_sd": (0, 1), "also_perplexity": (1, 1e4), "seeds": (1, 100),
}
WHOLE = {"replicas", "local_steps", "steps", "rounds", "overlap_steps", "seeds"}
VALUES = {
    "loss": (1, 6), "perplexity": (5, 100), "bits_per_byte": (0.5, 4), "accuracy_percent": (0, 100), "perplexity_ratio": (0.5, 2), "loss_difference": (-1, 1), "token_ratio": (1, 10),
}
NEEDED = [
    "id", "paper", "method", "family", "architecture", "parameters_active", "batch_rule", "same_data", "baseline_kind", "metric", "outcome", "seeds", "place",
    "hand", "checked", "check",
]
SETTING = ["paper", "place", "method", "replicas", "local_steps", "parameters_active", "steps", "wire_bits", "baseline_kind", "metric"]
BASELINE = ["paper", "parameters_active", "architecture", "data", "metric", "baseline_kind", "inner_optimizer"]


def read(name):
    with open(DATA / name, newline="") as file:
        return list(csv.DictReader(file, strict=True))


ROWS = [(name, row) for name in FILES for row in read(name)]


def nats(row, column):
    """The loss of a cell in nats a token, or a byte."""
    value = float(row[column])
    return {"loss": value, "perplexity": math.log(value), "bits_per_byte": value * math.log(2)}[row["metric"]]


def each(condition=lambda row: True):
    chosen = [row for _, row in ROWS if condition(row)]
    assert chosen
    return pytest.mark.parametrize("row", chosen, ids=[row["id"] for row in chosen])


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_plain_csv_with_the_columns_of_the_page(name):
    text = (DATA / name).read_text()
    assert "#" not in text and "\r" not in text and text.endswith("\n")
    header = next(csv.reader([text.splitlines()[0]]))
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", column) for column in header)
    assert header == re.findall(r"^\| `([a-z0-9_]+)` \|", PAGE.read_text(), re.MULTILINE)
    assert all(None not in row and None not in row.values() for row in read(name))  # as many cells as columns


def test_the_page_is_short_and_names_no_place_of_a_machine():
    text = PAGE.read_text()
    assert len(text.splitlines()) <= 120
    assert not re.search(r"/(work|home|root|tmp)/", text)


def test_no_key_is_there_twice():
    ids = collections.Counter(row["id"] for _, row in ROWS)
    assert [key for key, count in ids.items() if count > 1] == []
    # Rows of our own runs have one file as their place, and their settings in the id.
    keys = collections.Counter(tuple(row[column] for column in SETTING) for _, row in ROWS if "rows.csv" not in row["place"])
    assert [key for key, count in keys.items() if count > 1] == []


def test_no_table_of_the_check_is_in_the_table_to_build_from():
    assert STREAMING_DILOCO not in {row["arxiv"] for row in read("published_quality.csv")}
    for row in read("published_quality_check.csv"):
        assert row["arxiv"] == STREAMING_DILOCO or STREAMING_DILOCO in row["note"], row["id"]


@each()
def test_cells_are_legal(row):
    assert all(row[column] for column in NEEDED)
    assert all(value == value.strip() for value in row.values())
    assert re.fullmatch(r"[A-Za-z0-9._+-]+", row["id"])
    assert re.fullmatch(r"(\d{4}\.\d{5})?", row["arxiv"])
    for column, choices in CHOICES.items():
        assert row[column] in choices, (column, row[column])
    for column, (low, high) in RANGES.items():
        if row[column]:
            assert low <= float(row[column]) <= high, (column, row[column])
            assert column not in WHOLE or float(row[column]).is_integer(), (column, row[column])
    low, high = VALUES[row["metric"]]
    for column in ("value", "baseline_value"):
        if row[column] and row["outcome"] == "finished":
            assert low <= float(row[column]) <= high, (column, row[column])
    assert row["value"] or row["outcome"] == "diverged"
    assert bool(row["steps"]) == bool(row["steps_basis"])


@each()
def test_a_baseline_is_given_or_said_to_be_missing(row):
    has = bool(row["baseline_value"])
    assert row["baseline_kind"] != "none" if has else row["baseline_kind"] == "none" or row["metric"] == "loss_difference"
    if row["baseline_kind"] in ("data_parallel", "centralised"):
        assert row["baseline_tuned"]
    if row["baseline_kind"] == "none":
        assert not row["baseline_tuned"]


@each(lambda row: row["steps"] and row["local_steps"] and row["rounds"])
def test_rounds_are_steps_over_local_steps(row):
    rounds, exact = float(row["rounds"]), float(row["steps"]) / float(row["local_steps"])
    # A run may end within a round, and the local steps of an adaptive method are a mean.
    assert abs(rounds - exact) <= 1


@each(lambda row: row["overlap_steps"] not in ("", "0") and row["local_steps"])
def test_an_overlap_lasts_at_most_two_rounds(row):
    assert float(row["overlap_steps"]) <= 2 * float(row["local_steps"])


@each(lambda row: row["also_perplexity"])
def test_the_perplexity_is_that_of_the_loss(row):
    # The printed perplexity may be the best of the run, and the loss the last; 0.5 % covers the three digits printed, too.
    assert math.exp(nats(row, "value")) == pytest.approx(float(row["also_perplexity"]), rel=5e-3)


@each(lambda row: row["baseline_value"] and row["outcome"] == "finished" and row["metric"] in ("loss", "perplexity", "bits_per_byte"))
def test_the_loss_is_of_the_size_of_its_baseline(row):
    assert 0.93 < nats(row, "value") / nats(row, "baseline_value") < 1.7


def test_runs_of_one_paper_and_size_have_one_baseline():
    groups = collections.defaultdict(set)
    for _, row in ROWS:
        if row["baseline_value"]:
            # Where tokens are not stated, they may grow with the replicas.
            budget = row["tokens"] or (row["replicas"], row["steps"])
            groups[(*(row[column] for column in BASELINE), budget)].add(float(row["baseline_value"]))
    assert len(groups) > 20
    for key, values in groups.items():
        # NoLoCo's and Forgather's baselines differ a little with the pipeline stages and the GPUs; DEPT's two rows start from other embeddings.
        assert max(values) <= 1.01 * min(values) or key[0].startswith("DEPT"), (key, values)


def test_a_size_has_lower_losses_with_more_parameters():
    by_paper = collections.defaultdict(set)
    for _, row in ROWS:
        if row["baseline_value"] and row["baseline_kind"] == "data_parallel" and row["metric"] in ("loss", "perplexity") and row["architecture"] == "dense":
            budget = float(row["tokens"]) / float(row["parameters_active"]) if row["tokens"] else 0
            if budget < 150:  # more are runs of more tokens with one size
                by_paper[row["paper"], row["data"], row["inner_optimizer"], row["metric"]].add((float(row["parameters_active"]), nats(row, "baseline_value")))
    for key, points in by_paper.items():
        largest = {}
        for parameters, loss in points:
            largest[parameters] = min(loss, largest.get(parameters, math.inf))
        losses = [largest[parameters] for parameters in sorted(largest)]
        assert losses == sorted(losses, reverse=True), key


def test_second_hand_rows_are_not_called_checked():
    for _, row in ROWS:
        assert row["hand"] == "first" or row["checked"] == "no", row["id"]
