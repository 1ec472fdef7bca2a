"""The declarations of a paper's folder: claims by section, scales, computations."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from analysis.claims.claim import Claim
from analysis.claims.computation import Computation

SCALES = ("small", "paper")

# For each scale, the changes of each source of evidence, by its name.
Changes = Mapping[str, Mapping[str, Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a paper, as in `6.1 Performance of TDO`, and the claims made there."""

    name: str
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The claims of a paper, and the scales and computations of their evidence.

    `scales` describes each scale for readers; `changes` has its changes. A source of a claim
    that is not in `computations` is a file of `experiments/`.
    """

    sections: tuple[Section, ...]
    scales: Mapping[str, str]
    changes: Changes
    computations: tuple[Computation, ...] = ()

    @property
    def claims(self) -> tuple[Claim, ...]:
        """All claims in the order of the paper."""
        return tuple(claim for section in self.sections for claim in section.claims)

    def computation(self, name: str) -> Computation | None:
        """The computation of this name, if it is one."""
        return next((some for some in self.computations if some.name == name), None)
