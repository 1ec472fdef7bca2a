"""The other machine: what was sent to it, and the testbed as it runs there.

~/.tdo/
  projects/<digest>/       versions of the project, each in a folder of its own
                           (those with the same needs share a Python environment)
  experiments/<digest>/    experiment files with the topologies they name
  results/                 runs, as in any results folder
"""

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from testbed.remote import far_side
from testbed.remote.connection import Connection, Done
from testbed.remote.errors import RemoteError
from testbed.remote.parcels import Parcel, environment_digest
from testbed.remote.session import Say, Session

_ENVIRONMENT_MB = 2_000  # what `scripts/setup` installs, and what pip needs meanwhile
_SPARE_MB = 20
_NOT_FOUND = 127
_OLDEST_PYTHON = (3, 11)
_PROMPT = "tdo-asks-for-the-password"
_SCRIPT = Path(far_side.__file__)


@dataclass(frozen=True, slots=True)
class Facts:
    """The properties of the other machine."""

    folder: PurePosixPath
    is_root: bool
    python: tuple[int, ...]
    free_mb: float
    projects: tuple[str, ...]  # digests of usable ones, the latest first
    sent: frozenset[str]
    environments: Mapping[str, str]  # folders, by the digest of the packages they contain


class FarMachine:
    """A machine that runs are sent to; all files of the testbed are in `folder` there."""

    def __init__(self, session: Session, folder: str, say: Say) -> None:
        self.session = session
        self.name = session.destination.name
        self._say = say
        self._root: tuple[str, str] | None = None
        self.facts = self._look(folder)

    @property
    def results(self) -> PurePosixPath:
        """The folder of runs there."""
        return self.facts.folder / "results"

    def call(self, action: str, **arguments: Any) -> dict[str, Any]:
        """The result of an action of the script, which is repeated if the connection is cut."""
        return self.session.persist(lambda connection: self.ask_on(connection, action, **arguments))

    def ask_on(self, connection: Connection, action: str, **arguments: Any) -> dict[str, Any]:
        """The same on a given connection, for actions that are repeated together."""
        return self._answer(connection.run(_script_command(action, arguments)))

    def call_as_root(self, action: str, **arguments: Any) -> dict[str, Any]:
        """The same as root on that machine."""
        before, given = self.become_root()
        command = f"{before}{_script_command(action, arguments)}"
        return self._answer(self.session.persist(lambda c: c.run(command, given)))

    def send(self, parcel: Parcel, kind: str) -> PurePosixPath:
        """Send a parcel unless it is there already; returns its folder."""
        place = f"{kind}/{parcel.digest}"
        if place not in self.facts.sent:
            self._require_mb(2 * parcel.unpacked_bytes / 1e6 + len(parcel.content) / 1e6, "to send")
            self._say(f"sending {kind}/{parcel.digest[:12]}, {len(parcel.content) / 1e6:.1f} MB")
            self.session.persist(lambda connection: self._send_on(connection, parcel, place))
        return self.facts.folder / place

    def prepare(self, project: PurePosixPath, environment: str | None) -> None:
        """Create the Python environment of a project with its own script, unless it has one."""
        if environment is not None:
            self.call("link", project=str(project), environment=environment)
            return
        ours = self.facts.environments.get(environment_digest())
        if ours is None:
            if self.facts.python < _OLDEST_PYTHON:
                raise RemoteError(
                    f"{self.name}: expected Python 3.11 or newer, found "
                    f"{'.'.join(map(str, self.facts.python))}; use Debian 12 or Ubuntu 24.04"
                )
            self._require_mb(_ENVIRONMENT_MB, "to install the testbed")
            self._say("setting up; the first time this takes minutes")
        self.call("link", project=str(project), environment=ours)
        password = self._password_for_setup() if ours is None else ""
        self._set_up(project, password)

    def tdo(self, project: PurePosixPath, arguments: Sequence[str], as_root: bool) -> str:
        """The shell command for `tdo` of a project there."""
        before, _ = self.become_root() if as_root else ("", "")
        path = shlex.quote(str(project))
        words = " ".join(shlex.quote(word) for word in arguments)
        # The user could not remove bytecode that root wrote.
        return (
            f"cd {path} && {before}env PYTHONDONTWRITEBYTECODE=1 PYTHONPATH={path} "
            f".venv/bin/tdo {words}"
        )

    def run_tdo(
        self, project: PurePosixPath, arguments: Sequence[str], as_root: bool = False
    ) -> Done:
        """The result of a `tdo` command of a project there; it may be repeated."""
        command = self.tdo(project, arguments, as_root)
        given = self.become_root()[1] if as_root else ""
        return self.session.persist(lambda connection: connection.run(command, given))

    def become_root(self) -> tuple[str, str]:
        """The prefix of a command that requires root, and its standard input."""
        if self._root is None:
            self._root = ("", "") if self.facts.is_root else self._find_sudo()
        return self._root

    def find_project(self) -> PurePosixPath | None:
        """The latest usable version of the project there."""
        known = self._look(str(self.facts.folder)).projects
        return self.facts.folder / "projects" / known[0] if known else None

    def follow(self, run_id: str, on_output: Callable[[bytes], None]) -> None:
        """Print the log of a run from its beginning until the run has ended."""
        received = 0

        def go_on(connection: Connection) -> int:
            def take(piece: bytes) -> None:
                nonlocal received
                received += len(piece)
                self.session.note_progress()
                on_output(piece)

            arguments = {"run": str(self.results / ".runs" / run_id), "offset": received}
            return connection.stream(_script_command("follow", arguments), take)

        status = self.session.persist(go_on)
        if status != 0:
            raise RemoteError(f"{self.name}: expected the log of {run_id}, found status {status}")

    def _look(self, folder: str) -> Facts:
        found = self.call("look", folder=folder)
        return Facts(
            folder=PurePosixPath(found["folder"]),
            is_root=found["uid"] == 0,
            python=tuple(found["python"]),
            free_mb=found["free_bytes"] / 1e6,
            projects=tuple(found["projects"]),
            sent=frozenset(found["sent"]),
            environments=found["environments"],
        )

    def _answer(self, done: Done) -> dict[str, Any]:
        if done.status == _NOT_FOUND:
            raise RemoteError(
                f"{self.name}: expected python3 there, found none; run there: sudo apt-get "
                "install -y python3 python3-venv"
            )
        if done.status != 0:
            raise self._failure(done.last_words)
        return last_object(self.name, done)

    def _failure(self, words: str) -> RemoteError:
        if "No space left" in words:
            return RemoteError(f"{self.name}: the disk there is full ({words}); make room there")
        return RemoteError(f"{self.name}: {words}")

    def _send_on(self, connection: Connection, parcel: Parcel, place: str) -> None:
        folder, archive = str(self.facts.folder), f"parcels/{parcel.digest}.tar.gz"
        self.ask_on(connection, "make_room", folder=folder, archive=archive)
        try:
            with connection.guarded(), connection.sftp.open(f"{folder}/{archive}", "wb") as file:
                file.write(parcel.content)
        except OSError as error:
            found_mb = self._look(folder).free_mb
            raise RemoteError(
                f"{self.name}: {folder}: expected to write {len(parcel.content) / 1e6:.1f} MB, "
                f"found: {error or 'it failed'}, {found_mb:.1f} MB free"
            ) from error
        self.ask_on(
            connection, "unpack", folder=folder, archive=archive, place=place, digest=parcel.digest
        )

    def _require_mb(self, wanted_mb: float, purpose: str) -> None:
        wanted_mb += _SPARE_MB
        if self.facts.free_mb < wanted_mb:
            raise RemoteError(
                f"{self.name}: {self.facts.folder}: expected {wanted_mb:.0f} MB free {purpose}, "
                f"found {self.facts.free_mb:.0f} MB; make room there, try `tdo remote clean "
                f"{self.name}`, or choose another folder with --folder"
            )

    def _password_for_setup(self) -> str:
        """The password that `sudo` may ask for in the script."""
        try:
            return self.become_root()[1].strip()
        except RemoteError:
            return ""

    def _set_up(self, project: PurePosixPath, password: str) -> None:
        """Run the project's setup script; a lock ensures that only one runs at a time."""
        lock = shlex.quote(str(self.facts.folder / "lock"))
        command = (
            f"cd {shlex.quote(str(project))} && SUDO_PROMPT={_PROMPT} flock {lock} scripts/setup"
        )
        said = ""

        def take(piece: bytes) -> None:
            nonlocal said
            self.session.note_progress()
            before = said.count("\n")
            said += piece.decode(errors="replace")
            for line in said.splitlines()[before : said.count("\n")]:
                self._say(f"  {line.strip()}")

        if password:
            status = self.session.persist(
                lambda connection: connection.converse(command, _PROMPT, password, take)
            )
        else:
            status = self.session.persist(lambda connection: connection.stream(command, take))
        if status != 0:
            words = Done(status, said, "").last_words
            raise self._failure(f"scripts/setup failed there: {words}")

    def _find_sudo(self) -> tuple[str, str]:
        """The command line of sudo, and the user's password if sudo requires one."""
        asking = "env LC_ALL=C sudo -n true"  # messages in English
        tried = self.session.persist(lambda connection: connection.run(asking))
        if tried.status == 0:
            return "sudo -n ", ""
        if tried.status == _NOT_FOUND or "password" not in tried.errors:
            raise RemoteError(
                f"{self.name}: expected root or sudo there, found: {tried.last_words}"
            )
        destination = self.session.destination
        password = self.session.secrets.ask(f"sudo password of {destination.user} there")
        if password is None:
            raise RemoteError(
                f"{self.name}: sudo asks for a password there, and there is no terminal to type it "
                f"at; run this command in one, or let {destination.user} use sudo without"
            )
        before, given = "sudo -k -S -p '' ", f"{password}\n"
        checked = self.session.persist(lambda connection: connection.run(f"{before}true", given))
        if checked.status != 0:
            raise RemoteError(f"{self.name}: sudo did not take the password: {checked.last_words}")
        return before, given


def last_object(name: str, done: Done) -> dict[str, Any]:
    """The JSON object in the last line of a command's output.

    Lines before it may come from the shell's start files.
    """
    last_line = done.output.strip().rpartition("\n")[2]
    try:
        answer = json.loads(last_line)
    except ValueError:
        answer = None
    if isinstance(answer, dict):
        return answer
    if done.status != 0:
        raise RemoteError(f"{name}: {done.last_words.removeprefix('tdo: ')}")
    raise RemoteError(
        f"{name}: expected a JSON object as the last line from there, found "
        f"{last_line or 'nothing'}; let the shell's start files there print nothing"
    )


def _script_command(action: str, arguments: Mapping[str, Any]) -> str:
    words = ("python3", "-c", _SCRIPT.read_text(), action, json.dumps(arguments))
    return " ".join(shlex.quote(word) for word in words)
