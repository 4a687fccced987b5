"""Tests the manual: it is built without network, its pages load nothing from elsewhere, and a broken link is found."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from test_fomoe import PROGRAM

pytest.importorskip("material", reason="mkdocs-material is not installed")

ROOT = pathlib.Path(__file__).parents[2]


def without_network():
    """A prefix that runs a command without any network, where the system allows this."""
    try:
        works = subprocess.run(["unshare", "-rn", "true"], capture_output=True).returncode == 0
    except OSError:
        works = False
    return ["unshare", "-rn"] if works else []


def build(root):
    return subprocess.run([*without_network(), sys.executable, root / "tools/manual/build.py", "--fomoe", PROGRAM],
                          capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})


def test_the_manual_is_built_and_all_links_lead_somewhere():
    ran = build(ROOT)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    site = ROOT / "build/manual/site"
    for page in site.rglob("*.html"):
        # What a page loads must come with it; links that a reader may follow may lead elsewhere.
        loaded = re.findall(r'<(?:script|img|iframe)[^>]* src="([^"]+)"|<link[^>]*rel="stylesheet"[^>]*href="([^"]+)"', page.read_text())
        assert not [url for urls in loaded for url in urls if re.match("(https?:)?//", url)], page
    commands = (site / "reference/commands.html").read_text()
    assert "fomoe simulate" in commands and "--sensitivity" in commands and "fomoe profile scale" in commands
    assert "expert_overlap" in (site / "reference/keys.html").read_text()
    for page in (ROOT / "tools/manual/pages").rglob("*.md"):
        written = (ROOT / "build/manual/docs" / page.relative_to(ROOT / "tools/manual/pages")).read_text()
        assert "@@" not in written, page
        assert not [line for line in written.splitlines() if re.match(r"fomoe [a-z]+ .*--", line) and len(line) > 90], page
        written = re.sub(r" \\\n +", " ", written)  # lines that were wrapped
        # Each command that a page wants answered is there with its answer.
        for command in re.findall(r"^@@\S* (fomoe .*)$", page.read_text(), re.MULTILINE):
            assert f"```bash\n{command}\n```" in written, (page, command)
            if "--output" not in command:
                assert f"{command}\n```\n\n```text\n" in written, (page, command)
    assert "wall clock" in (site / "tutorial.html").read_text()
    assert re.search(r"cost +1\.\d\d EUR", (site / "howto/my-prices.html").read_text())


@pytest.fixture
def small(tmp_path):
    """A repository with the same table of contents and short pages."""
    shutil.copytree(ROOT / "tools/manual", tmp_path / "tools/manual")
    model = "experiments/models/qwen3-30b-a3b.json"
    (tmp_path / model).parent.mkdir(parents=True)
    shutil.copyfile(ROOT / model, tmp_path / model)
    pages = "".join(page.read_text() for page in (tmp_path / "tools/manual/pages").rglob("*.md"))
    headings = "".join(f"## {anchor}\n\nText.\n\n" for anchor in sorted(set(re.findall(r"\.md#([\w-]+)", pages))))
    shutil.copytree(ROOT / "experiments/python/fomoe", tmp_path / "experiments/python/fomoe",
                    ignore=shutil.ignore_patterns("__pycache__"))
    for name in re.findall(r": (\S+\.md)$", (ROOT / "tools/manual/mkdocs.yml").read_text(), re.MULTILINE):
        if (ROOT / name).exists():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(f"# Title\n\n{headings}")
    return tmp_path


def test_short_pages_are_enough(small):
    ran = build(small)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("text, broken", [
    ("[no page](no-such-page.md), [no file](no-such.toml), [`code`](no-such.cpp)", ["no-such-page.md", "no-such.toml", "no-such.cpp"]),
    ("[no heading](EXTENDING.md#no-such-heading)", ["no-such-heading"])])
def test_broken_links_are_found(small, text, broken):
    (small / "README.md").write_text(f"# Title\n\n{text}, `[not a link](at-all)`\n")
    ran = build(small)
    assert ran.returncode != 0
    said = ran.stdout + ran.stderr
    assert [link for link in broken if link not in said] == [] and "at-all" not in said
