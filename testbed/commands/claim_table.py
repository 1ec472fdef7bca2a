"""Claims for the terminal and for scripts: the table of results, and the list of all."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analysis.claims import Claim, ClaimResult

_COLUMNS = ("claim", "paper", "ours (mean over seeds [95 % interval])", "interval", "holds")
_NARROW = {"claim": 5, "paper": 20, "interval": 26, "holds": 7}
_WIDEST, _NARROWEST = 160, 100
_INDENT = " " * 11


def to_json(result: "ClaimResult") -> dict[str, Any]:
    """A claim and its result for scripts; undecided values are null."""
    finding = result.finding
    interval = finding.interval
    return {
        "id": result.claim.id,
        "paper": result.claim.published,
        "ours": finding.ours,
        "interval": interval and interval.bounds,
        "interval_of": finding.interval_of or None,
        "holds": finding.holds,
        "in_part": finding.is_in_part,
        "runs": result.runs,
        "failed": result.failed,
        "commits": dict(result.commits),
    }


def format_table(results: Sequence["ClaimResult"], width: int) -> str:
    """A table with wrapped cells, at most as wide as the terminal."""
    left = max(_NARROWEST, min(width, _WIDEST)) - sum(_NARROW.values()) - 2 * (len(_COLUMNS) - 1)
    widths = [_NARROW.get(column, left) for column in _COLUMNS]
    lines = [_lay_out([[column] for column in _COLUMNS], widths)]
    for result in results:
        lines += ["-" * (sum(widths) + 2 * (len(widths) - 1)), _lay_out(_cells(result), widths)]
    return "\n".join(lines)


def _cells(result: "ClaimResult") -> list[list[str]]:
    """The paragraphs of each cell."""
    from analysis.claims import describe_interval

    finding = result.finding
    marks = {True: "+ ", False: "- ", None: "  "}
    ours = [marks[part.holds] + part.text for part in finding.parts]
    interval = [] if finding.interval is None else [describe_interval(finding.interval)]
    return [
        [result.claim.id],
        [result.claim.cited],
        [*([finding.reason] if finding.reason else []), *ours],
        [*interval, *([finding.interval_of] if finding.interval_of else [])],
        [finding.verdict],
    ]


def _lay_out(cells: Sequence[Sequence[str]], widths: Sequence[int]) -> str:
    """One row of the table."""
    wrapped = [
        [
            line
            for text in cell
            for line in textwrap.wrap(text, width, subsequent_indent=_hang(text))
        ]
        for cell, width in zip(cells, widths, strict=True)
    ]
    lines = []
    for number in range(max(map(len, wrapped))):
        texts = [cell[number] if number < len(cell) else "" for cell in wrapped]
        padded = "  ".join(text.ljust(width) for text, width in zip(texts, widths, strict=True))
        lines.append(padded.rstrip())
    return "\n".join(lines)


def _hang(text: str) -> str:
    return "  " if text[:2] in ("+ ", "- ", "  ") else ""


def list_for_scripts(claims: Sequence["Claim"]) -> list[dict[str, Any]]:
    """Claims with paper and section, as plain data."""
    from analysis.claims import list_claims

    return [
        {
            "id": claim.id,
            "group": paper.group,
            "paper": paper.title,
            "section": section.name,
            "figure": claim.figure or None,
            "claim": claim.claim,
            "needs": list(dict.fromkeys(source.experiment for source in claim.sweeps)),
        }
        for paper, section, claim in list_claims(claims)
    ]


def format_list(claims: Sequence["Claim"], width: int) -> str:
    """Claims under their sections, under their papers."""
    return "\n".join(_list_lines(claims, max(_NARROWEST, min(width, _WIDEST))))


def _list_lines(claims: Sequence["Claim"], width: int) -> Iterator[str]:
    from analysis.claims import list_claims

    before: tuple[str, str] = ("", "")
    for paper, section, claim in list_claims(claims):
        if paper.group != before[0]:
            yield from textwrap.wrap(
                f"{paper.group}  {paper.title}", width, subsequent_indent="   "
            )
        if (paper.group, section.name) != before:
            yield f"   {section.name}"
        before = (paper.group, section.name)
        shown = f" (figure {claim.figure})" if claim.figure else ""
        text = f"     {claim.id:<5} {claim.claim}{shown}"
        yield from textwrap.wrap(text, width, subsequent_indent=_INDENT)
