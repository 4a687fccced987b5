"""What the package writes: whole files, and never over what it reads."""

import errno
import os
import pathlib
import stat

import fomoe
import pytest
from fomoe import _files


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
