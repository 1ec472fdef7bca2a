"""The published claims that we stand beside: what they say, what feeds them, when they hold."""

from analysis.claims.claim import Claim, Source
from analysis.claims.evidence import Finding, Part, SweepRows
from analysis.claims.page import ClaimResult, Request, SweepFiles, describe_interval, write_page
from analysis.claims.topology_discovery.catalogue import CLAIMS, SCALES, UnknownClaim, find_claims

__all__ = [
    "CLAIMS",
    "SCALES",
    "Claim",
    "ClaimResult",
    "Finding",
    "Part",
    "Request",
    "Source",
    "SweepFiles",
    "SweepRows",
    "UnknownClaim",
    "describe_interval",
    "find_claims",
    "write_page",
]
