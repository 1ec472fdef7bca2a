"""The claims of Chen and Tock, "Design of routing protocols and overlay topologies for topic-based
publish/subscribe on small-world networks", Middleware Industry 2015.

Each point computes the three overlays for the same interests, and publishes on each of them; there
are no agents and no network. The paper states neither the number of publications nor of seeds.
"""

from analysis.claims.catalogue import Catalogue, Section
from analysis.claims.claim import Claim, Source
from analysis.claims.computation import Computation
from analysis.claims.small_world.overlays import measure_small_world
from analysis.claims.small_world.relations import (
    BY_NODES,
    BY_TOPICS,
    greedy_fingers_do_so_with_topics,
    greedy_fingers_forward_less,
    greedy_fingers_support_more,
    greedy_paths_grow_slowly,
)
from analysis.figures.sweep import Figure, Published

_GRSWICO, _CHORD, _RANDOM = "GrSwico", "Chord", "RandomSW"
_LABELS = ((_GRSWICO, "greedy"), (_CHORD, "chord"), (_RANDOM, "random"))
_SIZES = tuple(range(1_000, 10_001, 1_000))
_SEEDS = (1, 2, 3)
_TITLES = {BY_NODES: "2,000 topics, Unif", BY_TOPICS: "1,023 nodes, Unif"}


def _figure(
    name: str, source: str, what: tuple[str, str], *published: tuple[str, float, int | None]
) -> Figure:
    """A figure of one column of each overlay, against the paper's axis."""
    column, label = what
    x = "nodes" if source == BY_NODES else "topics"
    lines = _LABELS if not column.startswith("extra") else _LABELS[1:]
    return Figure(
        name,
        x,
        column,
        title=_TITLES[source],
        x_label=x,
        y_label=label,
        columns=tuple((line, f"{kind}.{column}") for line, kind in lines),
        published=tuple(Published(*value) for value in published),
    )


_OVERHEAD = ("extra_overhead_percent", "pure forwarding messages above GrSwico's, %")
_PATH = ("path", "mean path length, hops")
_SUPPORT = ("support", "TCO support ratio")

_FIGURE_2 = (
    _figure("fig2a", BY_NODES, _OVERHEAD, (_CHORD, 32, None), (_RANDOM, 29, None)),
    _figure("fig2b", BY_NODES, _PATH, (_GRSWICO, 24.7, 10_000), (_CHORD, 112, 10_000),
            (_RANDOM, 107, 10_000)),
    _figure("fig2c", BY_NODES, _SUPPORT, (_GRSWICO, 0.753, None), (_CHORD, 0.116, None),
            (_RANDOM, 0.116, None)),
)  # fmt: skip
_FIGURE_3 = (
    _figure("fig3a", BY_TOPICS, _OVERHEAD, (_CHORD, 37.1, None), (_RANDOM, 33.5, None),
            (_CHORD, 44.5, 10_000), (_RANDOM, 39.3, 10_000)),
    _figure("fig3b", BY_TOPICS, _PATH, (_GRSWICO, 7.8, None), (_CHORD, 13, None),
            (_RANDOM, 13, None)),
    _figure("fig3c", BY_TOPICS, _SUPPORT, (_GRSWICO, 0.44, None), (_CHORD, 0.06, None),
            (_RANDOM, 0.06, None)),
)  # fmt: skip

_NODES = (
    Claim(
        "S1",
        "greedy fingers need fewer pure forwarding messages than Chord's and random ones",
        "2 (a)",
        "Chord +32 %, RandomSW +29 % on average",
        "both 20 to 45 % above GrSwico, mean over the nodes",
        (Source(BY_NODES, ("fig2a",)),),
        greedy_fingers_forward_less,
    ),
    Claim(
        "S2",
        "paths on greedy fingers are shorter, the more so the more nodes",
        "2 (b)",
        "at 10,000 nodes GrSwico 24.7, Chord 112, RandomSW 107 hops; above 3.3 times on average",
        "the ratio of paths rises with the nodes, and is above 3.3 at 10,000",
        (Source(BY_NODES, ("fig2b",)),),
        greedy_paths_grow_slowly,
    ),
    Claim(
        "S3",
        "greedy fingers connect more subscribers of the same topics",
        "2 (c)",
        "TCO support GrSwico 75.3 %, the others 11.6 % on average",
        "GrSwico's support at least 5 times theirs, mean over the nodes, and rising with the nodes",
        (Source(BY_NODES, ("fig2c",)),),
        greedy_fingers_support_more,
    ),
)
_TOPICS = (
    Claim(
        "S4",
        "greedy fingers do so with any number of topics",
        "3",
        "Chord +37.1 %, RandomSW +33.5 % on average, at 10,000 topics +44.5 %, +39.3 %; path 7.8 "
        "against over 13; support up to 44 % against 6 %",
        "both 20 to 45 % above GrSwico, mean over the topics; shorter paths and more support at "
        "each number of topics",
        (Source(BY_TOPICS, ("fig3a", "fig3b", "fig3c")),),
        greedy_fingers_do_so_with_topics,
    ),
)

_SMALL_SIZES, _SMALL_PUBLICATIONS = (1_000, 4_000, 10_000), 100

CATALOGUE = Catalogue(
    sections=(
        Section("5.2 Impact of |V|", _NODES),
        Section("5.3 Impact of |T|", _TOPICS),
    ),
    scales={
        "small": "3 of the 10 sizes of each sweep, 100 publications a point, 3 seeds",
        "paper": "the sizes of the paper, 1,000 publications (figure 2) and 5,000 (figure 3) a "
        "point, 3 seeds",
    },
    changes={
        "small": {
            BY_NODES: {"nodes": _SMALL_SIZES, "publications": _SMALL_PUBLICATIONS},
            BY_TOPICS: {"topics": (1_000, 5_000, 10_000), "publications": _SMALL_PUBLICATIONS},
        },
        "paper": {BY_NODES: {}, BY_TOPICS: {}},
    },
    computations=(
        Computation(
            BY_NODES,
            measure_small_world,
            {"nodes": _SIZES, "topics": (2_000,), "publications": (1_000,), "phases": ("floor",)},
            _SEEDS,
            _FIGURE_2,
        ),
        Computation(
            BY_TOPICS,
            measure_small_world,
            {"nodes": (1_023,), "topics": _SIZES, "publications": (5_000,), "phases": ("floor",)},
            _SEEDS,
            _FIGURE_3,
        ),
    ),
)
