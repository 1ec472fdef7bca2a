"""Underlay nodes as Mininet nodes; a shell starts only when it is needed."""

from subprocess import Popen
from typing import Any

from mininet.link import Intf
from mininet.link import Link as MininetLink
from mininet.node import Node

from testbed.emulation.namespaces import Namespace


class UnderlayNode(Node):
    """A router or host in an existing namespace.

    Mininet starts a shell for each node, 8 ms and half a megabyte each; here the first command
    starts it, so a large network has few shells.
    """

    def __init__(self, name: str, namespace: Namespace, address: str, env: dict[str, str]) -> None:
        self.namespace = namespace
        self.address = address
        self._env = env
        # With inNamespace, Mininet would create another namespace.
        super().__init__(name, inNamespace=False)

    @classmethod
    def checkSetup(cls) -> None:
        """Nothing to check: missing requirements are reported before anything is built."""

    def startShell(self, mnopts: str | None = None) -> None:
        """Do nothing: the shell starts with the first command."""

    def cmd(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command in the node's shell and return its output."""
        self._wake()
        return super().cmd(*args, **kwargs)

    def sendCmd(self, *args: Any, **kwargs: Any) -> None:
        """Start a command in the node's shell."""
        self._wake()
        super().sendCmd(*args, **kwargs)

    def popen(self, *args: Any, **kwargs: Any) -> Any:
        """Start a command in the node's namespace, without its shell."""
        return super().popen(*args, **{"mncmd": ["mnexec", "-d"], **kwargs})

    def _wake(self) -> None:
        if self.shell is None:
            super().startShell()

    def _popen(self, cmd: list[str], **params: Any) -> Popen[Any]:
        params.setdefault("env", self._env)
        into_namespace = ["nsenter", f"--net={self.namespace.path}"]
        process: Popen[Any] = super()._popen([*into_namespace, *cmd], **params)
        return process


class UnderlayInterface(Intf):
    """One end of a link; it has no address of its own, only that of its node."""

    def __init__(self, name: str, node: UnderlayNode) -> None:
        super().__init__(name, node=node, moveIntfFn=lambda *_args, **_kwargs: True)
        self.ip, self.prefixLen = node.address, 32

    def config(self, **_params: Any) -> dict[str, Any]:
        """Nothing to configure: the device is complete."""
        return {}

    def updateIP(self) -> str:
        """The address of the node, which does not change."""
        return str(self.ip)


class UnderlayLink(MininetLink):
    """An existing link for Mininet's commands."""

    def __init__(self, intf1: UnderlayInterface, intf2: UnderlayInterface) -> None:
        self.intf1, self.intf2 = intf1, intf2
        intf1.link = intf2.link = self
