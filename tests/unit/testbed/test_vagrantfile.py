"""The Vagrantfile is valid, and which files it sends; no machine is created."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

VAGRANTFILE = Path(__file__).parents[3] / "Vagrantfile"


@pytest.mark.skipif(shutil.which("vagrant") is None, reason="needs vagrant")
def test_vagrant_accepts_the_file(tmp_path: Path) -> None:
    shutil.copy(VAGRANTFILE, tmp_path)
    done = subprocess.run(
        ["vagrant", "validate", "--ignore-provider"],
        cwd=tmp_path,
        env={**os.environ, "VAGRANT_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(shutil.which("rsync") is None, reason="needs rsync")
def test_results_are_not_sent_but_other_folders_of_that_name_are(tmp_path: Path) -> None:
    listed = re.search(r"rsync__exclude: \[(.*?)\]", VAGRANTFILE.read_text(), re.DOTALL)
    assert listed is not None
    excludes = [f"--exclude={name}" for name in re.findall(r'"(.*?)"', listed[1])]
    for name in (".git/a", ".venv/a", "results/a", "docs/results/a", "docs/__pycache__/a"):
        (tmp_path / "here" / name).parent.mkdir(parents=True)
        (tmp_path / "here" / name).touch()
    here, there = f"{tmp_path}/here/", tmp_path / "there"
    subprocess.run(["rsync", "-a", *excludes, here, str(there)], check=True)
    sent = {str(path.relative_to(there)) for path in there.rglob("*") if path.is_file()}
    assert sent == {"docs/results/a"}
