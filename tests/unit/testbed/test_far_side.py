"""The script that runs on the other machine; here it runs on this one."""

from pathlib import Path

import pytest

from testbed.remote.far_side import link


@pytest.mark.parametrize("named", ["environments/x", "~/environments/x"])
def test_an_environment_can_be_relative_to_the_home_folder(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)  # the current folder of commands over SSH
    command = tmp_path / "environments" / "x" / "bin" / "tdo"
    command.parent.mkdir(parents=True)
    command.touch()
    project = tmp_path / "projects" / "one"
    project.mkdir(parents=True)
    for _ in range(2):
        link(str(project), named)
        assert (project / ".venv" / "bin" / "tdo").resolve() == command
