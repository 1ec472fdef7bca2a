"""Claims about the generators of networks that experiments begin with: Waxman networks as BRITE
grows them (Medina, Lakhina, Matta and Byers, MASCOTS 2001), and transit-stub networks as GT-ITM
makes them (Zegura, Calvert and Bhattacharjee, INFOCOM 1996).

The values beside ours are of networks of the original programs, in the sizes of the paper on
topology discovery (group T). Those of GT-ITM come from its algorithm and its random numbers,
reimplemented, which make GT-ITM's own files exactly (docs/underlays.md). No network is built: each
point generates one and counts.
"""

from collections.abc import Mapping
from typing import Any

from analysis.claims.catalogue import Catalogue, Section
from analysis.claims.claim import Claim, Source
from analysis.claims.computation import Computation
from analysis.claims.generators.networks import measure_transit_stub, measure_waxman
from analysis.claims.generators.relations import (
    TRANSIT_STUB,
    TRANSIT_STUB_ROUTERS,
    WAXMAN,
    WAXMAN_ROUTERS,
    transit_stub_is_like_gt_itm,
    waxman_is_like_brite,
)
from analysis.figures.sweep import Figure

_WAXMAN = Claim(
    "G1",
    "our Waxman networks are like those that BRITE grows",
    "",
    "BRITE, 1,640 routers with 2 links each: 3,280 links, mean degree 4.00, largest 18 to 23, mean "
    "hops 5.20 to 5.24, longest 8 to 9",
    "exactly as many links and the same mean degree; the 95 % interval of our mean hops overlaps "
    "the range",
    (Source(WAXMAN, (), {"routers": WAXMAN_ROUTERS}),),
    waxman_is_like_brite,
    (Source(WAXMAN, ("waxman-hops", "waxman-degree")),),
)
_TRANSIT_STUB = Claim(
    "G2",
    "our transit-stub networks are like those that GT-ITM makes",
    "",
    "GT-ITM, 1,584 routers, mean of 100 networks with its 95 % interval: 2,840 links [2,831, "
    "2,848], mean degree 3.59 [3.57, 3.60], mean hops 8.38 [8.30, 8.46]; largest degree 12 to 19, "
    "longest 15 to 23",
    "exactly 1,584 routers; the 95 % intervals of both means overlap in links, mean degree and "
    "mean hops",
    (Source(TRANSIT_STUB, (), {"routers": TRANSIT_STUB_ROUTERS}),),
    transit_stub_is_like_gt_itm,
    (Source(TRANSIT_STUB, ("transit-stub-hops", "transit-stub-degree")),),
)


def _figures(name: str, title: str) -> tuple[Figure, ...]:
    """Mean hops and the largest degree against the number of routers."""
    return tuple(
        Figure(
            f"{name}-{what}",
            "routers",
            column,
            title=title,
            x_label="routers",
            y_label=label,
            log_x=True,
        )
        for what, column, label in (
            ("hops", "hops.mean", "mean hops between routers"),
            ("degree", "degree.max", "largest degree"),
        )
    )


# Mean hops of single transit-stub networks vary by half a hop, so fewer seeds would say little.
_TEN_SEEDS: Mapping[str, Any] = {"seed": tuple(range(1, 11))}

CATALOGUE = Catalogue(
    sections=(
        Section("BRITE: Waxman", (_WAXMAN,)),
        Section("GT-ITM: transit-stub", (_TRANSIT_STUB,)),
    ),
    scales={
        "small": "the original sizes and two smaller ones, 10 seeds",
        "paper": "the original sizes and two smaller ones, 50 seeds",
    },
    changes={
        "small": {WAXMAN: _TEN_SEEDS, TRANSIT_STUB: _TEN_SEEDS},
        "paper": {WAXMAN: {}, TRANSIT_STUB: {}},
    },
    computations=(
        Computation(
            WAXMAN,
            measure_waxman,
            {"routers": (410, 820, WAXMAN_ROUTERS)},
            tuple(range(1, 51)),
            _figures("waxman", "Waxman networks"),
        ),
        Computation(
            TRANSIT_STUB,
            measure_transit_stub,
            {"routers": (396, 792, TRANSIT_STUB_ROUTERS)},
            tuple(range(1, 51)),
            _figures("transit-stub", "Transit-stub networks"),
        ),
    ),
)
