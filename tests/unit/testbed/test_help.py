"""Every option has a help text with its default, and errors of the parser are one line."""

import argparse
from collections.abc import Iterator

import pytest

from testbed.cli import main, make_parser

Option = tuple[str, argparse.Action]


def commands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser, and the parsers of all commands below it."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from commands(below)


OPTIONS = [
    (f"{parser.prog} {'/'.join(action.option_strings) or action.dest}", action)
    for parser in commands(make_parser())
    for action in parser._actions
    if not isinstance(action, argparse._SubParsersAction)
]


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option[0])
def test_an_option_has_a_help_text_with_its_default(option: Option) -> None:
    _, action = option
    assert action.help
    if action.option_strings and action.nargs != 0:  # others are positional, or switches
        assert "default: " in action.help or (action.required and "required" in action.help)
        assert action.default in (None, []) or str(action.default) in action.help.replace("~/", "")


@pytest.mark.parametrize("parser", [*commands(make_parser())], ids=lambda parser: parser.prog)
def test_a_command_has_a_description(parser: argparse.ArgumentParser) -> None:
    assert parser.description and parser.description.endswith(".")
    assert parser.format_help()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", "tdo: the following arguments are required: COMMAND; see tdo --help"),
        ("run x.toml --seed x", "tdo: argument --seed: invalid int value: 'x'; see tdo run --help"),
        ("fly", "tdo: argument COMMAND: invalid choice: 'fly'"),
    ],
)
def test_an_error_of_the_parser_is_one_line(
    arguments: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments.split())
    assert end.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(expected)
