"""A claim of a paper as data, and its decision on the rows of sweeps."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from analysis.claims.evidence import Evidence, Finding, SweepRows, UnfitRows, matches
from analysis.figures.sweep import Row

FEWEST_SEEDS = 3


@dataclass(frozen=True, slots=True)
class Source:
    """A source of evidence for a claim, and its figures: a file of `experiments/`, which is
    a sweep of runs, or a computation of the claim's paper.

    `only` selects the needed runs or points, if not all are: keys with their values.
    """

    experiment: str
    figures: tuple[str, ...]
    only: Mapping[str, Any] = field(default_factory=dict)

    def needs(self, row: Row) -> bool:
        """Whether a run is needed, by its row or its keys."""
        return matches(row, self.only)


@dataclass(frozen=True, slots=True)
class Claim:
    """The statement of a paper, its place, and the relation that decides whether our results agree.

    The relation is decided on `sources`; `pictures` only show it with the paper's axes.
    """

    id: str
    claim: str
    figure: str
    published: str
    relation: str
    sources: tuple[Source, ...]
    decide: Callable[[Evidence], Finding]
    pictures: tuple[Source, ...] = ()

    @property
    def cited(self) -> str:
        """The result of the paper, with its figure, if there is one."""
        return f"figure {self.figure}: {self.published}" if self.figure else self.published

    @property
    def sweeps(self) -> tuple[Source, ...]:
        """All sources that it needs."""
        return (*self.sources, *self.pictures)

    def evaluate(self, sweeps: Mapping[str, SweepRows], failed: int = 0) -> Finding:
        """The finding; it has a reason if rows are missing or too few, or runs failed."""
        evidence = {
            source.experiment: _needed(source, sweeps[source.experiment]) for source in self.sources
        }
        try:
            finding = self.decide(evidence)
        except UnfitRows as error:
            return Finding((), reason=f"undecided: {error}")
        if failed:
            units = " and ".join(sorted({f"{some.unit}s" for some in evidence.values()}))
            reason = f"not decided: {failed} of its {units} failed or are not valid"
            return replace(finding, reason=reason)
        least = min(finding.comparisons, key=lambda some: len(some.seeds))
        if len(least.seeds) < FEWEST_SEEDS:
            few = f"{len(least.seeds)} of at least {FEWEST_SEEDS} seeds for {least.label}"
            return replace(finding, reason=f"not decided: {few}")
        return finding

    def runs(self, sweeps: Mapping[str, SweepRows]) -> list[Row]:
        """The runs on which the claim is decided."""
        needed = [_needed(source, sweeps[source.experiment]) for source in self.sources]
        return [row for some in needed for row in some.rows]


def _needed(source: Source, sweep: SweepRows) -> SweepRows:
    rows: Sequence[Row] = [row for row in sweep.rows if source.needs(row)]
    return replace(sweep, rows=rows)
