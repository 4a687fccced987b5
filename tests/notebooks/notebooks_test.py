"""Runs each notebook from start to end, and compares the texts that it stores with what the program answers now.

With FOMOE_STORE_OUTPUTS=1, the new outputs of cells that have outputs are stored instead. Pictures, and texts that describe
objects of this process, are not compared.
"""

import os
import pathlib
import re

import nbclient
import nbformat
import pytest

NOTEBOOKS = pathlib.Path(__file__).resolve().parents[2] / "notebooks"


def texts(cell):
    """What a reader of the cell's outputs sees as text, without widgets and addresses of objects."""
    found = []
    for output in cell.get("outputs", []):
        if output["output_type"] == "stream" and output["name"] == "stdout":
            found.append(output["text"])
        elif output["output_type"] in ("execute_result", "display_data"):
            data = output["data"]
            if "application/vnd.jupyter.widget-view+json" not in data:
                found.append(data.get("text/html") or data.get("text/plain", ""))
    return [text for text in found if not re.match(r"<\w[\w. ]* (at 0x|size )", text)]


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebook_answers_what_it_stores(path):
    stored = nbformat.read(path, as_version=4)
    fresh = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(fresh, timeout=300, resources={"metadata": {"path": str(NOTEBOOKS)}}).execute()
    pairs = [(old, new) for old, new in zip(stored.cells, fresh.cells, strict=True) if old.get("outputs")]
    if os.environ.get("FOMOE_STORE_OUTPUTS"):
        for old, new in pairs:
            old.outputs = [output for output in new.outputs if output.get("name") != "stderr"]
        nbformat.write(stored, path)
        return
    for old, new in pairs:
        assert texts(new) == texts(old), old.source
