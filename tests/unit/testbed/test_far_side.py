"""What the script does that is run on the other machine; here it is this one."""

from pathlib import Path

import pytest

from testbed.remote.far_side import link


@pytest.mark.parametrize("named", ["environments/x", "~/environments/x"])
def test_an_environment_may_be_named_from_home(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)  # where commands over SSH begin
    command = tmp_path / "environments" / "x" / "bin" / "tdo"
    command.parent.mkdir(parents=True)
    command.touch()
    project = tmp_path / "projects" / "one"
    project.mkdir(parents=True)
    for _ in range(2):
        link(str(project), named)
        assert (project / ".venv" / "bin" / "tdo").resolve() == command
