"""Files that are sent to another machine, and the SSH configuration."""

import subprocess
from pathlib import Path, PurePosixPath

import pytest

from testbed.errors import ExperimentError, UsageError
from testbed.remote import ssh_settings
from testbed.remote.errors import RemoteError
from testbed.remote.parcels import pack, pack_experiment, pack_project
from testbed.sweeps.file import load_sweep

ROOT = Path(__file__).parents[3]


def make_project(folder: Path) -> Path:
    """A small checkout with a committed file, a new one, and an ignored one."""
    (folder / "scripts").mkdir(parents=True)
    for name in ("setup.py", "pyproject.toml", "scripts/setup"):
        (folder / name).write_text(name)
    (folder / ".gitignore").write_text("results/\n")
    (folder / "results").mkdir()
    (folder / "results" / "large").write_text("not sent")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    subprocess.run(["git", "-C", str(folder), "add", "."], check=True)
    (folder / "new.py").write_text("sent")
    return folder


def names_in(parcel_bytes: bytes) -> set[str]:
    listed = subprocess.run(["tar", "tz"], input=parcel_bytes, capture_output=True, check=True)
    return set(listed.stdout.decode().split())


def test_the_project_has_the_files_that_git_would_keep_and_a_digest_of_them(
    tmp_path: Path,
) -> None:
    project = make_project(tmp_path / "a")
    first = pack_project(project)
    assert names_in(first.content) == {
        ".gitignore", "new.py", "pyproject.toml", "scripts/setup", "setup.py",
    }  # fmt: skip
    (project / "results" / "large").write_text("changed")
    assert pack_project(make_project(tmp_path / "b")).digest == first.digest
    assert pack_project(project) == first
    (project / "scripts/setup").chmod(0o755)
    executable = pack_project(project)
    (project / "setup.py").unlink()
    assert executable.digest != first.digest
    with pytest.raises(RemoteError, match="found no setup.py"):
        pack_project(project)


def test_an_experiment_is_sent_with_its_topologies_at_their_paths(tmp_path: Path) -> None:
    (tmp_path / "a" / "experiments").mkdir(parents=True)
    for name in ("one.json", "a/two.json"):
        (tmp_path / name).write_text("{}")
    file = tmp_path / "a" / "experiments" / "mine.toml"
    file.write_text('[topology]\nkind = "file"\nfile = ["../../one.json", "../two.json"]\n')
    parcel, name = pack_experiment(file, load_sweep(file, {}))
    assert name == PurePosixPath("a/experiments/mine.toml")
    assert names_in(parcel.content) == {str(name), "one.json", "a/two.json"}
    file.write_text('[topology]\nkind = "file"\nfile = "gone.json"\n')
    with pytest.raises(ExperimentError, match="found gone.json"):
        pack_experiment(file, load_sweep(file, {}))
    assert pack({name: file}).digest != parcel.digest


@pytest.mark.parametrize("has_ssh", [True, False])
def test_the_ssh_configuration_is_read_with_and_without_ssh(
    has_ssh: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_ssh:
        monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("key", "known"):
        (tmp_path / name).touch()
    config = tmp_path / "config"
    config.write_text(
        f"Host box\n  HostName 127.0.0.1\n  User vagrant\n  Port 2222\n"
        f"  UserKnownHostsFile /dev/null\n  StrictHostKeyChecking no\n"
        f'  IdentityFile "{tmp_path}/key"\n  IdentitiesOnly yes\n'
        f"Host lab\n  HostName lab.example.org\n  ProxyJump gate\n  HostKeyAlias rack\n"
        f"  UserKnownHostsFile {tmp_path}/known\n  StrictHostKeyChecking no\n"
    )
    box = ssh_settings.find_destination("box", config)
    assert (box.host, box.port, box.user, box.key_name) == (
        "127.0.0.1", 2222, "vagrant", "[127.0.0.1]:2222",
    )  # fmt: skip
    assert box.identity_files == (tmp_path / "key",) and box.identities_only
    assert box.is_unchecked_wanted
    lab = ssh_settings.find_destination("me@lab", config)
    assert (lab.user, lab.port, lab.proxy_jump, lab.key_name) == ("me", 22, "gate", "rack")
    assert tmp_path / "known" in lab.known_hosts
    assert not lab.is_unchecked_wanted
    for name, file in (("-oProxyCommand=x", config), ("box", tmp_path / "none")):
        with pytest.raises(UsageError):
            ssh_settings.find_destination(name, file)
