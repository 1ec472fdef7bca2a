"""The page of reproduced claims: one self-contained HTML file with figures and data."""

import base64
import html
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from analysis.claims.claim import Claim
from analysis.claims.evidence import Estimate, Finding, Part
from analysis.claims.papers import Paper, paper_of

_MARKS = {True: ("yes", "✓"), False: ("no", "✗"), None: ("aside", "·")}


@dataclass(frozen=True, slots=True)
class SweepFiles:
    """The files of a sweep or computation: figures by name, and a table of its runs or points."""

    name: str
    folder: Path
    runs: int
    unit: str = "run"

    def figure(self, name: str, suffix: str) -> Path:
        """A file of a figure, which need not be there."""
        return self.folder / "figures" / f"{name}{suffix}"

    @property
    def table(self) -> Path:
        """The rows of its runs or points."""
        return self.folder / f"{self.unit}s.csv"


@dataclass(frozen=True, slots=True)
class Request:
    """The request: the scale of runs, the backend, and changes."""

    scale: str
    backend: str
    changes: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        """Where its pages are."""
        return self.scale if self.backend == "simulation" else f"{self.scale}-{self.backend}"

    @property
    def options(self) -> str:
        """The options of the command."""
        backend = "" if self.backend == "simulation" else f" --backend {self.backend}"
        changes = "".join(f" --set {shlex.quote(change)}" for change in self.changes)
        return f"--scale {self.scale}{backend}{changes}"

    def describe(self, paper: Paper) -> str:
        """The description of our runs beside a paper's values, for readers."""
        kind = {"simulation": "simulated", "emulation": "emulated"}[self.backend]
        changed = f"; changed by {', '.join(self.changes)}" if self.changes else ""
        catalogue = paper.catalogue
        sources = {source.experiment for claim in catalogue.claims for source in claim.sweeps}
        is_run = any(catalogue.computation(name) is None for name in sources)
        what = f"{kind} runs" if is_run else "computations"
        return f"{what} of this testbed at {catalogue.scales[self.scale]}{changed}"


@dataclass(frozen=True, slots=True)
class ClaimResult:
    """A claim with its finding and number of runs, and the number of failed or invalid ones.

    `commits` has the number of runs of each commit of the testbed.
    """

    claim: Claim
    finding: Finding
    runs: int
    failed: int
    commits: Mapping[str, int]


def write_page(
    target: Path,
    request: Request,
    results: Sequence[ClaimResult],
    sweeps: Mapping[str, SweepFiles],
) -> Path:
    """Write the page of some claims; returns where it is."""
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.new")
    draft.write_text(compose(request, results, sweeps), encoding="utf-8")
    draft.replace(target)
    return target


def compose(
    request: Request, results: Sequence[ClaimResult], sweeps: Mapping[str, SweepFiles]
) -> str:
    """The page as a text."""
    parts = {
        "papers": "\n".join(_papers(request, results)),
        "summary": html.escape(_summary(results)),
        "rows": "\n".join(_row(result) for result in results),
        "claims": "\n".join(_section(result, request, sweeps) for result in results),
        "tables": "\n".join(_table_link(sweep) for sweep in sweeps.values()),
        "version": html.escape(version("tdo-testbed")),
    }
    text = files("analysis.claims").joinpath("page.html").read_text("utf-8")
    for name, part in parts.items():
        before, _, after = text.partition(f"<!--{name}-->")
        text = before + part + after
    return text


def _papers(request: Request, results: Sequence[ClaimResult]) -> list[str]:
    """A paragraph for each paper: its title, and what stands beside it."""
    papers = dict.fromkeys(paper_of(result.claim) for result in results)
    return [
        f"<p>{html.escape(paper.title)},\nbeside {html.escape(request.describe(paper))}.</p>"
        for paper in papers
    ]


def _summary(results: Sequence[ClaimResult]) -> str:
    verdicts = [result.finding.verdict for result in results]
    words = {"yes": "yes", "in part": "in part", "no": "no", "?": "undecided"}
    counted = [f"{verdicts.count(name)} {word}" for name, word in words.items() if name in verdicts]
    return f"Do they hold? {', '.join(counted)}"


def _row(result: ClaimResult) -> str:
    claim, finding = result.claim, result.finding
    shown = f" <span class=soft>(figure {html.escape(claim.figure)})</span>" if claim.figure else ""
    return (
        f'<tr><th scope="row"><a href="#{claim.id}">{claim.id}</a></th>'
        f"<td>{html.escape(claim.claim)}{shown}</td><td>{html.escape(claim.published)}</td>"
        f"<td>{_ours(finding)}</td>"
        f"<td>{_interval(finding)}</td><td>{_badge(finding)}</td></tr>"
    )


def _ours(finding: Finding) -> str:
    reason = f"<p class=reason>{html.escape(finding.reason)}</p>" if finding.reason else ""
    return f"{reason}<ul class=parts>{''.join(map(_part, finding.parts))}</ul>"


def _part(part: Part) -> str:
    kind, mark = _MARKS[part.holds]
    return f'<li class="{kind}"><b aria-label="{kind}">{mark}</b> {html.escape(part.text)}</li>'


def _interval(finding: Finding) -> str:
    if finding.interval is None:
        return "none"
    what = f"<br><span class=soft>{html.escape(finding.interval_of)}</span>"
    return html.escape(describe_interval(finding.interval)) + what


def describe_interval(interval: Estimate) -> str:
    """An interval in a few characters; of one seed there is none."""
    if interval.bounds is None:
        return f"{interval.mean:.3g} (one seed)"
    low, high = interval.bounds
    return f"{interval.mean:.3g} [{low:.3g}, {high:.3g}]"


def _badge(finding: Finding) -> str:
    kind = {"yes": "yes", "no": "no", "in part": "part", "?": "open"}[finding.verdict]
    return f'<span class="badge {kind}">{finding.verdict}</span>'


def _section(result: ClaimResult, request: Request, sweeps: Mapping[str, SweepFiles]) -> str:
    claim = result.claim
    shown = (*claim.pictures, *claim.sources)
    chosen = [(sweeps[source.experiment], source.figures) for source in shown]
    figures = [_figure(claim.id, sweep, name) for sweep, names in chosen for name in names]
    units = " and ".join(sorted({f"{sweeps[source.experiment].unit}s" for source in claim.sources}))
    failed = f", {result.failed} failed or not valid" if result.failed else ""
    command = f"tdo reproduce {claim.id} {request.options}"
    commits = ", ".join(f"{count} of commit {name}" for name, count in result.commits.items())
    return (
        f'<section id="{claim.id}"><h2>{claim.id} {_badge(result.finding)}</h2>'
        f"<p>{html.escape(claim.claim[0].upper() + claim.claim[1:])}.</p>"
        f"<dl><dt>Paper</dt><dd>{html.escape(claim.cited)}</dd>"
        f"<dt>Holds when</dt><dd>{html.escape(claim.relation)}</dd>"
        f"<dt>Ours</dt><dd>{_ours(result.finding)}</dd>"
        f"<dt>Interval</dt><dd>{_interval(result.finding)}</dd>"
        f"<dt>Again</dt><dd><code>{html.escape(command)}</code> ({result.runs} {units}{failed})"
        f"</dd><dt>{units.capitalize()}</dt><dd>{html.escape(commits) or 'none'}</dd></dl>"
        f"{''.join(figures)}</section>"
    )


def _figure(claim_id: str, sweep: SweepFiles, name: str) -> str:
    drawn, data = sweep.figure(name, ".svg"), sweep.figure(name, ".csv")
    if not drawn.is_file():
        return (
            f"<p class=soft>{html.escape(name)} was not drawn: its {sweep.unit}s are not there.</p>"
        )
    svg = _inline(drawn.read_text("utf-8"), f"{claim_id}-{sweep.name}-{name}")
    link = _download(data, f"{name}.csv", "data of this figure") if data.is_file() else ""
    return f"<figure>{svg}<figcaption>{link}</figcaption></figure>"


def _inline(svg: str, prefix: str) -> str:
    """A picture as part of a page that may have others: without a prologue, ids of its own."""
    picture = svg[svg.index("<svg") :]
    picture = re.sub(r"<metadata>.*?</metadata>", "", picture, flags=re.DOTALL)
    picture = re.sub(r'\bid="', f'id="{prefix}-', picture)
    picture = re.sub(r"url\(#", f"url(#{prefix}-", picture)
    picture = re.sub(r'href="#', f'href="#{prefix}-', picture)
    return picture.replace("<svg", f'<svg role="img" aria-label="{html.escape(prefix)}"', 1)


def _table_link(sweep: SweepFiles) -> str:
    if not sweep.table.is_file():
        return ""
    label = f"{sweep.name}: {sweep.runs} {sweep.unit}s"
    link = _download(sweep.table, f"{sweep.name}-{sweep.unit}s.csv", label)
    return f"<li>{link}</li>"


def _download(file: Path, name: str, label: str) -> str:
    content = base64.b64encode(file.read_bytes()).decode("ascii")
    return (
        f'<a class=csv download="{html.escape(name)}" href="data:text/csv;base64,{content}">'
        f"{html.escape(label)}</a>"
    )
