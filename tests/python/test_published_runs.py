"""Tests the table of published runs (experiments/validation/published/runs.csv): its form, its scenarios, and that the program still predicts what it says."""

import csv
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = os.environ.get("FOMOE", str(ROOT / "build/release/bin/fomoe"))
FOLDER = ROOT / "experiments/validation/published"
FIELDS = [
    "id", "system", "run", "status", "scenario", "plan", "set", "set2", "quantity", "published", "published_low", "published_high",
    "predicted", "predicted_low", "predicted_high", "ratio", "known", "source", "inferred", "why",
]  # fmt: skip
ALWAYS = ["id", "system", "run", "status", "quantity", "known", "source", "why"]
# Systems that issue 56 names; each needs a row.
SYSTEMS = {
    "Covenant-72B", "INTELLECT-1", "OpenDiLoCo", "DiLoCoX", "Photon", "Scaling Laws for DiLoCo", "Streaming DiLoCo", "NoLoCo", "DES-LOC", "DT-FM",
    "SWARM", "Varuna", "CocktailSGD", "Atlas", "StellaTrain", "NeMo across 1,000 km", "Pluralis-8B", "OLMo over Sydney and Virginia", "Psyche",
    "central server", "sharded server", "NCCL rings",
}  # fmt: skip
QUICK = ["bandwidth-", "iperf-eu-australia", "tc-transfer", "nccl-2x", "dt-fm-single-5G1ms"]


def rows():
    with open(FOLDER / "runs.csv", newline="") as file:
        reader = csv.DictReader(file)
        assert reader.fieldnames == FIELDS
        return list(reader)


def test_every_named_run_has_a_row():
    assert {row["system"] for row in rows()} >= SYSTEMS


def test_ids_are_unique():
    ids = [row["id"] for row in rows()]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["id"])
def test_every_row_is_complete(row):
    for field in ALWAYS:
        assert row[field], field
    assert row["known"] in ("yes", "partly", "no")
    assert row["status"] in ("complete", "inferred", "range", "missing")
    for field in ("published", "published_low", "published_high", "predicted", "predicted_low", "predicted_high", "ratio"):
        assert row[field] == "" or float(row[field]) > 0, field
    if row["status"] == "missing":
        assert row["why"].startswith("Missing: ")
        assert not row["scenario"] and not row["predicted"] and not row["ratio"]
        return
    assert (FOLDER / "scenarios" / row["scenario"]).is_file()
    assert row["plan"] == "" or (FOLDER / "plans" / row["plan"]).is_file()
    assert float(row["published"]) > 0
    if row["status"] == "range":
        assert row["set2"] and float(row["predicted_low"]) < float(row["predicted_high"])
    else:
        assert float(row["ratio"]) == pytest.approx(float(row["predicted"]) / float(row["published"]), abs=2e-3)
    if row["status"] in ("inferred", "range"):
        assert row["inferred"]


def test_no_file_is_left_over():
    for folder, field in (("scenarios", "scenario"), ("plans", "plan")):
        named = {row[field] for row in rows()} - {""}
        assert {path.name for path in (FOLDER / folder).iterdir()} == {name for name in named if "/" not in name}


@pytest.mark.parametrize("path", sorted((FOLDER / "scenarios").iterdir()), ids=lambda path: path.name)
def test_every_scenario_says_what_hosts_are(path):
    assert re.search(r'^host = "(linux|ideal)"', path.read_text().partition("[network_model]")[2], re.MULTILINE)


@pytest.mark.parametrize("scenario", sorted({(row["scenario"], row["set"]) for row in rows() if row["scenario"]}), ids=lambda pair: "-".join(pair)[:80])
def test_the_program_accepts_every_scenario(scenario):
    name, settings = scenario
    command = [PROGRAM, "cost", str(FOLDER / "scenarios" / name)]
    for setting in settings.split():
        command += ["--unset", setting[1:]] if setting.startswith("!") else ["--set", setting]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("beginning", [""] if os.environ.get("FOMOE_ALL_PUBLISHED_RUNS") else QUICK)
def test_the_program_predicts_what_the_table_says(beginning):
    """With FOMOE_ALL_PUBLISHED_RUNS=1 all rows are predicted, which takes about half an hour."""
    command = [sys.executable, str(FOLDER / "runs.py"), "--check", "--only", beginning, "--fomoe", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_shows_the_table():
    done = subprocess.run([sys.executable, str(FOLDER / "runs.py"), "--check", "--only", "no such row"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_platforms_are_those_of_the_script():
    subprocess.run([sys.executable, str(FOLDER / "platforms/dt_fm.py"), "--check"], check=True)


def test_no_page_of_this_machine_is_named():
    for path in FOLDER.rglob("*"):
        if path.suffix in (".toml", ".csv", ".md", ".py", ".json"):
            assert not re.search(r"""(?:^|[\s"'`=(:,])/[\w.-]+/""", path.read_text(), re.MULTILINE), path  # an absolute path
