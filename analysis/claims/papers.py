"""The table of papers whose claims are reproduced; a folder is loaded when it is needed.

To add a paper, add a folder with a module `catalogue` that has a `CATALOGUE`, and a line here.
"""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module

from analysis.claims.catalogue import Catalogue, Section
from analysis.claims.claim import Claim
from analysis.errors import AnalysisError


class UnknownClaim(AnalysisError):
    """Neither the id of a claim nor the letter of a paper."""


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper: the letter that its claims' ids begin with, its title, and its folder."""

    group: str
    title: str
    folder: str

    @property
    def module(self) -> str:
        """The module that has its catalogue."""
        return f"analysis.claims.{self.folder}.catalogue"

    @property
    def catalogue(self) -> Catalogue:
        """Its claims and what they need, loaded on first use."""
        found: Catalogue = import_module(self.module).CATALOGUE
        return found


PAPERS: tuple[Paper, ...] = (
    Paper(
        "T",
        "Tariq, Koldehofe and Rothermel, “Efficient content-based routing with network topology "
        "inference”, DEBS 2013",
        "topology_discovery",
    ),
    Paper(
        "S",
        "Chen and Tock, “Design of routing protocols and overlay topologies for topic-based "
        "publish/subscribe on small-world networks”, Middleware Industry 2015",
        "small_world",
    ),
    Paper(
        "B",
        "Chen, Tock and Girdzijauskas, “BeaConvey: co-design of overlay and routing for "
        "topic-based publish/subscribe on small-world networks”, DEBS 2018",
        "beaconvey",
    ),
    Paper(
        "G",
        "Networks of the programs BRITE (Medina et al., 2001) and GT-ITM (Zegura et al., 1996)",
        "generators",
    ),
)


def find_claims(wanted: Sequence[str] = ()) -> list[Claim]:
    """The claims of these ids and groups, in the order of the table; all of them without any."""
    texts = [text.upper() for text in wanted]
    papers = [paper for paper in PAPERS if not texts or _is_named(paper, texts)]
    known = [(paper, claim) for paper in papers for claim in paper.catalogue.claims]
    _check_known(wanted, {name for paper, claim in known for name in (paper.group, claim.id)})
    return [claim for paper, claim in known if not texts or {paper.group, claim.id} & set(texts)]


def paper_of(claim: Claim) -> Paper:
    """The paper that makes a claim."""
    return next(paper for paper in PAPERS if claim.id.rstrip("0123456789") == paper.group)


def list_claims(claims: Sequence[Claim]) -> Iterator[tuple[Paper, Section, Claim]]:
    """Some claims, each with its paper and section."""
    for paper in dict.fromkeys(map(paper_of, claims)):
        for section in paper.catalogue.sections:
            yield from ((paper, section, claim) for claim in section.claims if claim in claims)


def _is_named(paper: Paper, texts: Sequence[str]) -> bool:
    return any(text.rstrip("0123456789") == paper.group for text in texts)


def _check_known(wanted: Sequence[str], found: set[str]) -> None:
    """Raise for the first text that is neither an id nor a group."""
    unknown = [text for text in wanted if text.upper() not in found]
    if unknown:
        ids = [claim.id for paper in PAPERS for claim in paper.catalogue.claims]
        groups = [paper.group for paper in PAPERS]
        near = difflib.get_close_matches(unknown[0].upper(), ids, n=1)
        raise UnknownClaim(
            f"{unknown[0]}: expected one of {', '.join(ids)}, or all of a paper: "
            f"{', '.join(groups)}{f'; the nearest is {near[0]}' if near else ''}"
        )
