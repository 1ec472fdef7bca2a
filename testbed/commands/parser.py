"""The parser of the command line: errors of one line, and a description for every command."""

import argparse
from typing import Any, NoReturn

WRONG_USE = 2


class CommandParser(argparse.ArgumentParser):
    """An argument parser whose errors are one line; its commands have the same class."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.register("action", "parsers", _Commands)

    def error(self, message: str) -> NoReturn:
        """Exit with status 2 and one line that names the command's help."""
        self.exit(WRONG_USE, f"tdo: {message}; see {self.prog} --help\n")


class _Commands(argparse._SubParsersAction):  # type: ignore[type-arg]
    def add_parser(self, name: str, **settings: Any) -> Any:
        """A command; its description is its help text unless it has another."""
        text = str(settings.get("help", ""))
        sentence = f"{text[:1].upper()}{text[1:]}."
        return super().add_parser(name, **{"description": sentence, **settings})
