"""Published claims: their statements, the evidence that they need, and when they hold."""

from analysis.claims.catalogue import SCALES, Catalogue, Section
from analysis.claims.claim import Claim, Source
from analysis.claims.computation import Computation, Point, UnfitChange
from analysis.claims.evidence import Finding, Part, SweepRows
from analysis.claims.page import ClaimResult, Request, SweepFiles, describe_interval, write_page
from analysis.claims.papers import (
    PAPERS,
    Paper,
    UnknownClaim,
    find_claims,
    list_claims,
    paper_of,
)

__all__ = [
    "PAPERS",
    "SCALES",
    "Catalogue",
    "Claim",
    "ClaimResult",
    "Computation",
    "Finding",
    "Paper",
    "Part",
    "Point",
    "Request",
    "Section",
    "Source",
    "SweepFiles",
    "SweepRows",
    "UnfitChange",
    "UnknownClaim",
    "describe_interval",
    "find_claims",
    "list_claims",
    "paper_of",
    "write_page",
]
