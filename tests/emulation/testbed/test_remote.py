"""Runs on another machine: a real OpenSSH server, an interrupted connection, full disks."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

import paramiko
import pytest

from testbed.cli import main
from testbed.emulation.links import has_netem
from testbed.errors import UsageError
from testbed.remote.errors import RemoteError
from testbed.remote.far_machine import FarMachine
from testbed.remote.far_side import tidy
from testbed.remote.host_keys import KeyCheck
from testbed.remote.jobs import (
    Place,
    Run,
    fetch_run,
    reach,
    require_emulation,
    require_quiet,
)
from testbed.remote.parcels import pack, pack_project
from testbed.remote.session import Session
from testbed.remote.ssh_settings import find_destination
from tests.fixtures.ssh_server import SSHD, FrailWay, SshServer, make_key, serving

pytestmark = pytest.mark.skipif(SSHD is None, reason="needs sshd: scripts/test installs it")
ENVIRONMENT = str(Path(sys.prefix))
TDO = str(Path(sys.executable).with_name("tdo"))
PASSWORD = "quite-right"
EXPERIMENT = """
name = "far-gossip"
backend = "simulation"
duration_s = 10
[topology]
kind = "file"
file = "../underlays/ring.json"
[overlay]
kind = "gossip"
period_us = 20_000
rounds = 400
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    with serving(tmp_path_factory.mktemp("ssh")) as running:
        yield running


@pytest.fixture(scope="module")
def guarded_server() -> Iterator[SshServer]:
    """A server where the user has a password, sudo asks for it, and no tun device exists.

    All of this is only in the server's mount namespace.
    """
    with tempfile.TemporaryDirectory(prefix="tdo-guarded-") as name:  # accessible to all users
        Path(name).chmod(0o755)
        yield from _serve_guarded(Path(name))


def _serve_guarded(folder: Path) -> Iterator[SshServer]:
    _write_accounts(folder)
    binds = " && ".join(f"mount --bind {folder}/{n} /etc/{n}" for n in _ACCOUNT_FILES)
    script = f'{binds} && mount -t tmpfs none /dev/net && exec "$@"'
    before = ("unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh")
    allowed = subprocess.run([*before, "true"], check=False, capture_output=True, text=True)
    if allowed.returncode != 0 or shutil.which("sudo") is None:
        pytest.skip(f"needs sudo, and mounts in a namespace of one's own: {allowed.stderr}")
    with serving(folder / "ssh", "PasswordAuthentication yes\n", before) as running:
        yield running


_ACCOUNT_FILES = ("passwd", "shadow", "sudoers")


def _write_accounts(folder: Path) -> None:
    home = folder / "home"
    home.mkdir()
    os.chown(home, 4242, 4242)
    for name in ("passwd", "shadow"):
        shutil.copy2(Path("/etc", name), folder / name)
    hashed = subprocess.run(
        ["openssl", "passwd", "-6", PASSWORD], capture_output=True, text=True, check=True
    ).stdout.strip()
    with (folder / "passwd").open("a") as file:
        file.write(f"tdo-far:x:4242:4242::{home}:/bin/sh\n")
    with (folder / "shadow").open("a") as file:
        file.write(f"tdo-far:{hashed}:20000:0:99999:7:::\n")
    (folder / "sudoers").write_text("Defaults env_reset\ntdo-far ALL=(ALL) ALL\n")
    (folder / "sudoers").chmod(0o440)


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    """An experiment that names a topology in another folder."""
    (tmp_path / "experiments").mkdir()
    (tmp_path / "underlays").mkdir()
    ring = tmp_path / "underlays" / "ring.json"
    words = ["topology", "generate", "waxman", "--routers", "20", "--hosts", "40", "-o", str(ring)]
    assert main([*words, "--seed", "1"]) == 0
    file = tmp_path / "experiments" / "far-gossip.toml"
    file.write_text(EXPERIMENT)
    return file


@contextlib.contextmanager
def small_disk(folder: Path, size_kb: int) -> Iterator[Path]:
    """A folder on a small file system; the test is skipped where mounting is not allowed."""
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={size_kb}k", "none", str(folder)]
    mounted = subprocess.run(words, check=False, capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"needs to mount a small disk: {mounted.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def describe(directory: Path) -> dict[str, tuple[object, ...]]:
    """Everything about a directory that must be equal on the other machine."""
    found: dict[str, tuple[object, ...]] = {}
    for path in (directory, *directory.rglob("*")):
        about = path.lstat()
        content = path.read_bytes() if path.is_file() else None
        name = path.relative_to(directory).as_posix()
        found[name] = (about.st_mode, about.st_mtime_ns, content)
    return found


def run_cut_off(arguments: list[str], way: FrailWay, far: Path) -> tuple[list[str], str]:
    """Do a remote run, and cut the connection three times after the run has begun."""
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([TDO, *arguments], **both) as run:
        assert run.stdout is not None and run.stderr is not None
        said = [run.stdout.readline()]
        state = next(far.glob("results/.runs/*/state.json"))
        pid = json.loads(state.read_text())["pid"]
        os.kill(pid, signal.SIGSTOP)  # so that it does not end too early
        for _ in range(3):
            way.wait_for_login()
            way.cut()
        os.kill(pid, signal.SIGCONT)
        said += run.stdout.readlines()
        errors = run.stderr.read()
    assert run.returncode == 0, errors
    return [line.rstrip() for line in said], errors


def test_a_run_and_a_fetch_that_are_cut_three_times_copy_the_identical_directory(
    server: SshServer, experiment: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    way = FrailWay(server.port)
    server.know(way.port)
    config = server.write_config("cut_config", port=way.port)
    place = ["far", "--ssh-config", str(config), "--folder", str(tmp_path / "far")]
    run = ["remote", "run", *place, str(experiment), "--environment", ENVIRONMENT, "--seed", "5"]
    options = ["--no-report", "--no-fetch", "--json"]
    said, errors = run_cut_off([*run, *options], way, tmp_path / "far")
    assert errors.count("connection lost") == 1  # and retried until the server was back
    progress = [line.strip() for line in said if " of 10 s" in line]
    assert progress == [f"{second} of 10 s" for second in (2, 4, 6, 8, 10)]
    outcome = json.loads(said[-1])
    assert (outcome["phase"], outcome["verdict"]) == ("finished", "valid")

    there = Path(outcome["directory"])
    size = sum(path.stat().st_size for path in there.rglob("*") if path.is_file())
    near = tmp_path / "near"
    way.cut_every(size // 5, times=3)
    capfd.readouterr()
    assert main(["remote", "fetch", *place, outcome["id"], "--out", str(near)]) == 0
    assert way.cuts == 6
    assert "connection lost" in capfd.readouterr().err
    here = near / "far-gossip" / there.name
    assert describe(here) == describe(there)
    assert json.loads((here / "run.json").read_text())["experiment"]["seed"] == 5
    assert (near / "far-gossip" / "latest").resolve() == here
    assert {path.name for path in here.parent.iterdir()} == {"latest", there.name}

    with reach(Place("far", config, str(tmp_path / "far")), print) as far:
        _check_fetching_again(far, outcome, near, way)
        _check_small_near_disk(far, outcome, tmp_path / "small")
    assert main(["remote", "clean", *place]) == 0
    assert f"left alone: run {outcome['id']}" in capfd.readouterr().out
    assert {path.name for path in (tmp_path / "far").iterdir()} == {"projects", "results"}
    _check_tidying_runs(tmp_path / "far", outcome)
    way.close()


def _check_fetching_again(far: FarMachine, run: Run, near: Path, way: FrailWay) -> None:
    """Fetch again: complete files are kept, partial files are continued if correct, else fetched
    again.
    """
    there = Path(run["directory"])
    here = near / "far-gossip" / there.name
    assert fetch_run(far, run, near, print) == here
    (here / "verdict.json").write_text("mine")
    with pytest.raises(UsageError, match="found another verdict.json"):
        fetch_run(far, run, near, print)

    begun = here.with_name(f"{here.name}.partial")
    here.rename(begun)
    with pytest.raises(UsageError, match="found something else"):
        fetch_run(far, run, near, print)
    begun.with_name(f".{begun.name}.from").write_text(f"far:{there}")
    packets = max(begun.rglob("*.parquet"), key=lambda path: path.stat().st_size)
    whole = packets.read_bytes()
    packets.write_bytes(whole[: len(whole) * 9 // 10])
    (begun / "underlay.json").write_text("something else")
    (begun / "stray").touch()
    before = way.total
    assert fetch_run(far, run, near, print) == here
    assert way.total - before < len(whole) // 2
    assert describe(here) == describe(there)


def _check_tidying_runs(folder: Path, run: Run) -> None:
    """Remove the runs: then nothing is left of the project, and other files are not touched."""
    outside = folder.with_name("outside")
    outside.mkdir()
    tidy(str(folder), [], [("none", str(outside))], is_busy=False)
    assert outside.exists() and Path(run["directory"]).exists()
    tidy(str(folder), [], [(run["id"], run["directory"])], is_busy=False)
    assert not folder.exists()


def _check_small_near_disk(far: FarMachine, run: Run, folder: Path) -> None:
    with (
        small_disk(folder, 200) as small,
        pytest.raises(RemoteError, match="MB free for the results, found 0 MB"),
    ):
        fetch_run(far, run, small, print)


def test_a_run_that_is_only_started_ends_with_one_json_object(
    server: SshServer, experiment: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    place = ["far", "--ssh-config", f"{server.folder}/config", "--folder", str(tmp_path / "far")]
    options = ["--environment", ENVIRONMENT, "--no-report", "--detach", "--json"]
    capfd.readouterr()
    assert main(["remote", "run", *place, str(experiment), *options]) == 0
    started = json.loads(capfd.readouterr().out.splitlines()[-1])
    assert (started["name"], started["backend"]) == ("far-gossip", "simulation")
    followed = ["far", started["id"], *place[1:], "--follow", "--json"]
    assert main(["remote", "status", *followed]) == 0
    assert json.loads(capfd.readouterr().out.splitlines()[-1])["phase"] == "finished"


def test_an_unknown_changed_or_foreign_key_is_refused_in_one_line(
    server: SshServer, capfd: pytest.CaptureFixture[str]
) -> None:
    server.know(server.port, "other_host", known="changed")
    cases = {
        server.write_config("c1", known="nothing"): (
            "unknown host key ssh-ed25519 SHA256:",
            "ssh-",
        ),
        server.write_config("c2", known="changed"): ("the host key CHANGED", "ssh-keygen -R"),
        server.write_config("c3", key="stranger"): ("no key was accepted", "ssh-copy-id"),
        server.write_config("c4", port=1): ("Connection refused", ""),
        server.write_config("c5", known="nothing", more="  StrictHostKeyChecking no\n"): (
            "unknown host key",
            "ssh-keyscan",
        ),
    }
    for config, texts in cases.items():
        assert main(["remote", "status", "far", "--ssh-config", str(config)]) == 1
        said = capfd.readouterr().err.strip()
        assert "\n" not in said
        assert all(text in said for text in texts), said


@pytest.mark.parametrize("kind", ["rsa", "ecdsa", "ed25519"])
def test_a_key_of_any_type_is_accepted_or_refused_in_one_line(
    kind: str, server: SshServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    make_key(server.folder / f"friend_{kind}", kind)
    config = server.write_config(f"{kind}_config", key=f"friend_{kind}")
    status = ["remote", "status", "far", "--ssh-config", str(config), "--folder", str(tmp_path)]
    assert main(status) == 1
    said = capfd.readouterr().err.strip()
    assert "no key was accepted (the server accepts: publickey" in said and "\n" not in said
    with (server.folder / "authorized_keys").open("a") as file:
        file.write((server.folder / f"friend_{kind}.pub").read_text())
    assert main(status) == 0


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An agent only for the test, with no keys."""
    with tempfile.TemporaryDirectory(prefix="tdo-agent-") as folder:
        socket = Path(folder, "socket")
        words = ["ssh-agent", "-D", "-a", str(socket)]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL) as it:
            while not socket.exists():
                assert it.poll() is None
                time.sleep(0.01)
            monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
            yield
            it.terminate()


@pytest.mark.usefixtures("agent")
def test_an_encrypted_key_is_used_from_the_agent_and_no_other_under_identities_only(
    server: SshServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    key, ask = server.folder / "locked", tmp_path / "ask"
    make_key(key, passphrase="secret")
    with (server.folder / "authorized_keys").open("a") as file:
        file.write((server.folder / "locked.pub").read_text())
    config = server.write_config("locked_config", key="locked")
    status = ["remote", "status", "far", "--ssh-config", str(config), "--folder", str(tmp_path)]
    subprocess.run(["ssh-add", "-q", server.folder / "client"], check=True)
    assert main(status) == 1
    assert "a key is locked: unlock it with ssh-add" in capfd.readouterr().err
    config.write_text(config.read_text().replace("IdentitiesOnly yes", "IdentitiesOnly no"))
    assert main(status) == 0

    subprocess.run(["ssh-add", "-q", "-D"], check=True)
    ask.write_text("#!/bin/sh\necho secret\n")
    ask.chmod(0o755)
    typed = {**os.environ, "SSH_ASKPASS": str(ask), "SSH_ASKPASS_REQUIRE": "force"}
    subprocess.run(["ssh-add", "-q", key], env=typed, check=True)
    config.write_text(config.read_text().replace("IdentitiesOnly no", "IdentitiesOnly yes"))
    assert main(status) == 0


def test_vagrants_configuration_is_followed_only_on_loopback(server: SshServer) -> None:
    config = server.folder / "vagrant"
    config.write_text(
        f"Host default\n  HostName 127.0.0.1\n  User root\n  Port {server.port}\n"
        f"  UserKnownHostsFile /dev/null\n  StrictHostKeyChecking no\n"
        f'  PasswordAuthentication no\n  IdentityFile "{server.folder}/client"\n'
        f"  IdentitiesOnly yes\n  LogLevel FATAL\n"
    )
    said: list[str] = []
    with Session(find_destination("default", config), said.append) as session:
        assert session.persist(lambda connection: connection.run("echo there")).output == "there\n"
    assert len(said) == 1 and "is not checked" in said[0]

    check, destination = KeyCheck(said.append), find_destination("default", config)
    first, other = (
        paramiko.Ed25519Key(filename=str(server.folder / n)) for n in ("host", "other_host")
    )
    check.judge_unknown(destination, "127.0.0.1", first)
    with pytest.raises(RemoteError, match="CHANGED"):
        check.judge_unknown(destination, "127.0.0.1", other)
    with pytest.raises(RemoteError, match="unknown host key"):
        check.judge_unknown(destination, "192.168.121.7", first)


def test_a_machine_is_reached_through_a_jump_host(server: SshServer) -> None:
    config = server.write_config("jump")
    text = config.read_text()
    config.write_text(text + text.replace("Host far", "Host behind") + "  ProxyJump far\n")
    with Session(find_destination("behind", config), print) as session:
        assert session.persist(lambda connection: connection.run("echo $0 >&2; exit 7")).status == 7


def test_a_remote_machine_without_python_is_refused_in_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with serving(tmp_path / "bare", "SetEnv PATH=/nonexistent\n") as server:
        assert main(["remote", "status", "far", "--ssh-config", f"{server.folder}/config"]) == 1
    assert "expected python3 there, found none" in capfd.readouterr().err


def test_a_remote_shell_may_print_a_greeting_but_must_run_the_command(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    answers = {'echo hello; eval "$SSH_ORIGINAL_COMMAND"': (0, ""), "echo hello": (1, "hello; let")}
    for number, (shell, (status, told)) in enumerate(answers.items()):
        with serving(tmp_path / f"greeting{number}", f"ForceCommand {shell}\n") as server:
            place = ["--ssh-config", f"{server.folder}/config", "--folder", str(tmp_path / "far")]
            assert main(["remote", "status", "far", *place]) == status
        said = capfd.readouterr().err
        assert told in said and "Traceback" not in said


def test_messages_of_sudo_are_recognised_in_any_language(tmp_path: Path) -> None:
    sudo = tmp_path / "bin" / "sudo"
    sudo.parent.mkdir()
    sudo.write_text(
        '#!/bin/sh\n[ "$LC_ALL" = C ] && echo "sudo: a password is required" >&2 ||\n'
        'echo "sudo: Ein Passwort ist notwendig" >&2\nexit 1\n'
    )
    sudo.chmod(0o755)
    setting = f"SetEnv PATH={sudo.parent}:/usr/bin:/bin LC_ALL=de_DE.UTF-8\n"
    with serving(tmp_path / "ssh", setting) as server:
        place = Place("far", server.folder / "config", str(tmp_path / "far"))
        with reach(place, print) as far:
            far.facts = replace(far.facts, is_root=False)
            with pytest.raises(RemoteError, match="sudo asks for a password there"):
                far.become_root()


def test_a_full_remote_disk_is_reported_before_and_while_sending(
    server: SshServer, tmp_path: Path
) -> None:
    big = tmp_path / "big"
    big.write_bytes(os.urandom(3_000_000))
    parcel = pack({PurePosixPath("big"): big})
    with small_disk(tmp_path / "full", 2_000) as full:
        place = Place("far", server.folder / "config", str(full))
        with reach(place, print) as far, pytest.raises(RemoteError, match="MB free to send, found"):
            far.send(parcel, "projects")
        with reach(place, print) as far:
            far.facts = replace(far.facts, free_mb=1e6)  # The disk filled up after the check.
            with pytest.raises(RemoteError, match=r"expected to write 3.0 MB, found"):
                far.send(parcel, "projects")
    with small_disk(tmp_path / "tight", 5_000) as tight:
        with reach(replace(place, folder=str(tight)), print) as far:
            far.facts = replace(far.facts, free_mb=1e6)
            with pytest.raises(RemoteError, match="the disk there is full"):
                far.send(parcel, "projects")
        assert not [path for path in tight.rglob("*") if path.is_file()]


@pytest.mark.usefixtures("network")  # which keeps running
def test_other_runs_and_missing_devices_there_stop_an_emulated_run(
    server: SshServer, guarded_server: SshServer, tmp_path: Path
) -> None:
    place = Place("far", server.folder / "config", str(tmp_path / "far"))
    with reach(place, print) as far:
        project = far.send(pack_project(), "projects")
        far.prepare(project, ENVIRONMENT)
        with pytest.raises(RemoteError, match="found network .* --beside"):
            require_quiet(far, project)
    if has_netem():
        return  # then no tun device is needed
    blind = replace(place, ssh_config=guarded_server.folder / "config")
    with reach(blind, print) as far, pytest.raises(RemoteError, match="tun devices.*modprobe tun"):
        require_emulation(far, project)


def type_at_prompts(arguments: list[str], answers: dict[str, str]) -> tuple[int, str]:
    """Run a command at a terminal, and type an answer when its prompt appears."""
    command = " ".join([TDO, *arguments])
    words = ["script", "--quiet", "--return", "--command", command, "/dev/null"]
    said = ""
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as typed:
        assert typed.stdin is not None and typed.stdout is not None
        while letter := typed.stdout.read(1):
            said += letter
            for prompt in [p for p in answers if said.endswith(f"{p}: ")]:
                typed.stdin.write(f"{answers[prompt]}\n")
                typed.stdin.flush()
    return typed.returncode, said


@pytest.mark.slow
def test_passwords_for_ssh_and_sudo_are_requested_at_the_terminal(
    guarded_server: SshServer, capfd: pytest.CaptureFixture[str]
) -> None:
    config = guarded_server.write_config("typed", key="stranger", more="  User tdo-far\n")
    clean = ["remote", "clean", "far", "--ssh-config", str(config)]
    login, sudo = "password of tdo-far on 127.0.0.1", "sudo password of tdo-far there"
    status, said = type_at_prompts(clean, {login: "quite-wrong"})
    assert (status, "the password is wrong" in said) == (1, True), said
    status, said = type_at_prompts(clean, {login: PASSWORD, sudo: "quite-wrong"})
    assert (status, "sudo did not take the password" in said) == (1, True), said
    status, said = type_at_prompts(clean, {login: PASSWORD, sudo: PASSWORD})
    assert (status, "nothing to remove" in said) == (0, True), said
    assert PASSWORD not in said

    unattended = guarded_server.write_config("unattended", more="  User tdo-far\n")
    assert main(["remote", "clean", "far", "--ssh-config", str(unattended)]) == 1
    assert "sudo asks for a password there, and there is no terminal" in capfd.readouterr().err
