"""The claims of Chen, Tock and Girdzijauskas, "BeaConvey: co-design of overlay and routing for
topic-based publish/subscribe on small-world networks", DEBS 2018.

Each point computes overlays for one instance, and disseminates the same publications with each
system; there are no agents and no network. The paper states neither the number of publications nor
of repetitions.
"""

from analysis.claims.beaconvey.published import LABELS
from analysis.claims.beaconvey.relations import (
    BY_NODES,
    FACEBOOK,
    TWITTER,
    UNIFORM,
    ZIPF,
    overlays_are_computed_in_seconds,
    overlays_by_follows_cost_less,
    overlays_by_friends_cost_less,
    routing_saves_where_interests_are_even,
    rules_trade_overhead_for_paths,
)
from analysis.claims.beaconvey.samples import measure_drawn, measure_rules, measure_social
from analysis.claims.beaconvey.systems import ALL_OVERLAYS, ALL_SYSTEMS, RULE_SYSTEMS
from analysis.claims.catalogue import Catalogue, Section
from analysis.claims.claim import Claim, Source
from analysis.claims.computation import Computation
from analysis.figures.sweep import Figure, Published

_SEEDS = (1, 2, 3)
_SIZES = tuple(range(1_000, 10_001, 1_000))
_OVERHEAD = ("overhead", "routing overhead / Scribe(-)")
_PATH = ("path", "mean path length / Scribe(-)")
_LONGEST = ("longest_path", "maximum path length / Scribe(-)")


def _figure(
    name: str,
    title: str,
    x: str,
    what: tuple[str, str],
    systems: tuple[str, ...],
    *published: tuple[str, float, int | None],
) -> Figure:
    column, label = what
    return Figure(
        name,
        x,
        column,
        title=title,
        x_label=x,
        y_label=label,
        columns=tuple((LABELS[system], f"{system}.{column}") for system in systems),
        published=tuple(Published(LABELS[line], y, at) for line, y, at in published),
    )


def _families(
    number: int,
    title: str,
    what: tuple[str, str],
    *published: tuple[str, float, int | None],
) -> tuple[Figure, ...]:
    """A figure of three panels: BeaConvey, Scribe, iScribe, each on four overlays."""
    ways = (("a", "pie"), ("b", "scribe"), ("c", "iscribe"))
    return tuple(
        _figure(
            f"fig{number}{letter}",
            title,
            "topics",
            what,
            tuple(f"{way}_{overlay}" for overlay in ALL_OVERLAYS),
            *(value for value in published if value[0].partition("_")[0] == way),
        )
        for letter, way in ways
    )


def _table(name: str) -> tuple[Figure, ...]:
    """A table as pictures: each system on each sample."""
    return tuple(
        _figure(f"{name}-{column}", name, "sample", (column, label), ALL_SYSTEMS)
        for column, label in (_OVERHEAD, _PATH)
    )


_ZIPF_TITLE, _EVEN_TITLE = "Zipf, 1,023 nodes", "Unif, 1,023 nodes"
_ZIPF_FIGURES = (
    *_families(4, _ZIPF_TITLE, _OVERHEAD, ("pie_sl", 0.594, None)),
    *_families(5, _ZIPF_TITLE, ("hops", "mean path length, hops"), ("pie_sl", 4.88, None),
               ("scribe_none", 7.20, None)),
)  # fmt: skip
_EVEN_FIGURES = (
    *_families(6, _EVEN_TITLE, _OVERHEAD, ("pie_sl", 0.379, 10_000), ("pie_l", 0.585, None),
               ("pie_s", 0.653, None)),
    *_families(7, _EVEN_TITLE, _PATH),
)  # fmt: skip
_RULES_TITLE = "Unif, 2,000 topics, overlay SL"
_RULE_FIGURES = (
    _figure("fig8a", _RULES_TITLE, "nodes", _OVERHEAD, RULE_SYSTEMS, ("po_sl", 0.592, None),
            ("pie_sl", 0.835, None), ("pal_sl", 1.006, None)),
    _figure("fig8b-ap", _RULES_TITLE, "nodes", _PATH, RULE_SYSTEMS, ("po_sl", 1.96, None),
            ("pie_sl", 1.3, None)),
    _figure("fig8b-mp", _RULES_TITLE, "nodes", _LONGEST, RULE_SYSTEMS, ("po_sl", 6.61, None),
            ("pie_sl", 3.80, None), ("pal_sl", 3.35, None)),
)  # fmt: skip

_ORDERINGS = (
    "(SL, Pie) least of BeaConvey's overlays, S before L; Scribe(L) below Scribe(-) and Scribe(S) "
    "not; iScribe(S) below iScribe(-) and iScribe(L) not (5 % are allowed)"
)
_SOCIAL = (
    Claim(
        "B1",
        "overlays by interests save routing overhead among friends",
        "",
        "table 3, Facebook 1K and 10K: (SL, Pie) overhead 0.266 and 0.449, path 0.700 and 0.968",
        f"on samples of 1,000 users: {_ORDERINGS}; (SL, Pie) within 0.10 of 0.266",
        (Source(FACEBOOK, ("facebook-overhead", "facebook-path")),),
        overlays_by_friends_cost_less,
    ),
    Claim(
        "B2",
        "overlays by interests save routing overhead among followers",
        "",
        "table 4, Twitter 1K and 10K: (SL, Pie) overhead 0.573 and 0.748, path 0.902 and 1.131",
        f"on synthetic graphs of the paper's density: {_ORDERINGS}; samples at hand reported",
        (Source(TWITTER, ("twitter-overhead", "twitter-path")),),
        overlays_by_follows_cost_less,
    ),
    Claim(
        "B4",
        "the overlay SL of 10,000 nodes is computed in little time",
        "",
        "14.8 minutes (Facebook 10K), 19.4 minutes (Twitter 10K)",
        "under 30 s of one core, on each instance of 10,000 nodes",
        (
            Source(BY_NODES, (), {"nodes": 10_000}),
            Source(FACEBOOK, (), {"sample": "synthetic 10K"}),
            Source(TWITTER, (), {"sample": ("10K", "synthetic 10K")}),
        ),
        overlays_are_computed_in_seconds,
    ),
)
_OVERLAY = (
    Claim(
        "B5",
        "overlays save much where interests are skewed, routing where they are not",
        "4 to 7",
        "Zipf: (SL, Pie) 0.594 of Scribe(-), path 4.88 against 7.20 hops; Unif, 10,000 topics: "
        "0.379, of which 94.9 % by routing",
        "(SL, Pie) within 0.10 of 0.594 (Zipf, mean over the topics) and of 0.379 (Unif, 10,000 "
        "topics); at least 85 % of the latter's gain by routing",
        (
            Source(ZIPF, tuple(figure.name for figure in _ZIPF_FIGURES)),
            Source(UNIFORM, tuple(figure.name for figure in _EVEN_FIGURES)),
        ),
        routing_saves_where_interests_are_even,
    ),
)
_ROUTING = (
    Claim(
        "B3",
        "Po has the least overhead, Pal the shortest longest path, Pie is between",
        "8",
        "means over the nodes: overhead Po 0.592, Pie 0.835, Pal 1.006; maximum path 6.61, 3.80, "
        "3.35; table 5: the same order of overhead",
        "Po < Pie < Pal in overhead (Facebook 1K, synthetic Twitter 1K, mean over the nodes); in "
        "the longest path Pal <= Pie < Po (mean over the nodes)",
        (
            Source(BY_NODES, tuple(figure.name for figure in _RULE_FIGURES)),
            Source(FACEBOOK, (), {"sample": "1K"}),
            Source(TWITTER, (), {"sample": "synthetic 1K"}),
        ),
        rules_trade_overhead_for_paths,
    ),
)

_PLAIN = {"fingers": ("random",), "phases": ("floor",)}
_SMALL_SIZES = (1_000, 5_000, 10_000)
_FEW = {"publications": 200}

CATALOGUE = Catalogue(
    sections=(
        Section("5.3 Online social networks", _SOCIAL),
        Section("5.4 Impact of overlay", _OVERLAY),
        Section("5.5 Impact of routing", _ROUTING),
    ),
    scales={
        "small": "3 of the 10 sizes of each sweep, all samples, 200 publications a point, 3 seeds",
        "paper": "the sizes of the paper, 1,000 publications a point (300 in figure 8), 3 seeds",
    },
    changes={
        "small": {
            FACEBOOK: _FEW,
            TWITTER: _FEW,
            BY_NODES: {"nodes": (1_000, 4_000, 10_000), "publications": 100},
            ZIPF: {"topics": _SMALL_SIZES, **_FEW},
            UNIFORM: {"topics": _SMALL_SIZES, **_FEW},
        },
        "paper": {FACEBOOK: {}, TWITTER: {}, BY_NODES: {}, ZIPF: {}, UNIFORM: {}},
    },
    computations=(
        Computation(
            FACEBOOK,
            measure_social,
            {
                "network": ("facebook",),
                "sample": ("1K", "4K", "synthetic 1K", "synthetic 10K"),
                "graph": ("",),
                "publications": (1_000,),
                **_PLAIN,
            },
            _SEEDS,
            _table("facebook"),
            {"graph": ("social/facebook_combined.txt", "facebook_combined.txt")},
        ),
        Computation(
            TWITTER,
            measure_social,
            {
                "network": ("twitter",),
                "sample": ("1K", "10K", "synthetic 1K", "synthetic 10K"),
                "graph": ("",),
                "publications": (1_000,),
                **_PLAIN,
            },
            _SEEDS,
            _table("twitter"),
            {"graph": ("social/out.ego-twitter", "out.ego-twitter")},
        ),
        Computation(
            BY_NODES,
            measure_rules,
            {"nodes": _SIZES, "topics": (2_000,), "publications": (300,), **_PLAIN},
            _SEEDS,
            _RULE_FIGURES,
        ),
        Computation(
            ZIPF,
            measure_drawn,
            {
                "popularity": ("zipf",),
                "nodes": (1_023,),
                "topics": _SIZES,
                "publications": (1_000,),
                **_PLAIN,
            },
            _SEEDS,
            _ZIPF_FIGURES,
        ),
        Computation(
            UNIFORM,
            measure_drawn,
            {
                "popularity": ("uniform",),
                "nodes": (1_023,),
                "topics": _SIZES,
                "publications": (1_000,),
                **_PLAIN,
            },
            _SEEDS,
            _EVEN_FIGURES,
        ),
    ),
)
