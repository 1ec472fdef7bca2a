"""The table of protocols: its kinds, and the messages of all of them."""

import pkgutil
from importlib import import_module
from types import ModuleType
from typing import get_args

import pytest
from msgspec import Struct

import agents
from agents.agent import OWN_MESSAGES
from agents.failure_detector import FailureDetector
from agents.kinds import LAYERS, find_protocol, messages_of
from agents.overlays.random_walk.targets import GIVEN, RULES, Heuristic
from agents.pubsub.custody import Custody
from agents.routing.cores.settings import Strategy
from agents.routing.cores.strategies import BY_PATHS, BY_VOTES
from agents.wire.codec import ROLES, MessageKind, describe_message, kind_names, message


@pytest.fixture(scope="module")
def modules() -> list[ModuleType]:
    """Import every module below `agents`; a message number that is used twice raises here."""
    found = pkgutil.walk_packages(agents.__path__, "agents.")
    return [import_module(module.name) for module in found]


def test_every_message_belongs_to_a_protocol_and_has_a_role(modules: list[ModuleType]) -> None:
    names = {module.__name__ for module in modules}
    kinds = {
        kind
        for section, table in LAYERS.items()
        for name in table
        for kind in messages_of({section: {"kind": name}})
    }
    kinds |= {describe_message(cls, "overlay") for cls in FailureDetector.messages}
    kinds |= {describe_message(cls, "pubsub") for cls in Custody.messages}
    assert {kind.role for kind in kinds} == set(ROLES)
    sent = {
        cls for s, table in LAYERS.items() for k in table for cls in find_protocol(s, k).messages
    }
    sent |= {*OWN_MESSAGES, *FailureDetector.messages, *Custody.messages}
    assert {cls.__module__ for cls in sent} <= names
    numbers = {kind.number for kind in kinds}
    assert len(numbers) == len(kinds) == len(sent)
    of_tests = range(240, 256)
    assert numbers == {number for number in kind_names() if number not in of_tests}


def test_messages_of_a_run_are_those_of_its_layers() -> None:
    layers = {"overlay": {"kind": "hello"}, "pubsub": {"kind": "content"}}
    found = messages_of(layers)
    assert found[:4] == [
        MessageKind(1, "Acknowledgement", "agent", "upkeep"),
        MessageKind(2, "Ping", "agent", "upkeep"),
        MessageKind(3, "Pong", "agent", "upkeep"),
        MessageKind(10, "Hello", "overlay", "upkeep"),
    ]
    assert MessageKind(122, "Event", "pubsub", "event") in found
    assert {kind.layer for kind in found} == {"agent", "overlay", "pubsub"}


def test_a_used_message_number_is_refused() -> None:
    with pytest.raises(ValueError, match="Twin: expected a free kind from 1 to 255, found 2"):

        @message(2, role="upkeep")
        class Twin(Struct, frozen=True):
            pass


def test_an_unknown_role_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a role of join, upkeep, .*; found 'gossip'"):

        @message(252, role="gossip")  # type: ignore[arg-type]
        class Strange(Struct, frozen=True):
            pass


def test_choices_in_experiment_files_are_those_of_the_protocols() -> None:
    assert get_args(Heuristic) == (*RULES, *GIVEN)
    assert get_args(Strategy) == (*BY_VOTES, *BY_PATHS)
