"""What the paper on BeaConvey prints: tables 3 to 5, and values in the text on figures 4 to 8."""

from collections.abc import Mapping
from dataclasses import dataclass

_FAMILIES = {"pie": "({}, Pie)", "iscribe": "iScribe({})", "scribe": "Scribe({})"}
_OVERLAYS = {"sl": "SL", "s": "S", "l": "L", "none": "-"}

# The names of systems as in the paper.
LABELS: Mapping[str, str] = {
    **{
        f"{way}_{overlay}": form.format(name)
        for way, form in _FAMILIES.items()
        for overlay, name in _OVERLAYS.items()
    },
    "po_sl": "(SL, Po)",
    "pal_sl": "(SL, Pal)",
}


@dataclass(frozen=True, slots=True)
class Published:
    """A row of a table: ratios against Scribe(-) on samples of 1,000 and of 10,000 users."""

    overhead_1k: float
    overhead_10k: float
    path_1k: float
    path_10k: float

    def at(self, sample: str) -> tuple[float, float]:
        """Overhead and path of the paper's sample whose size is nearest."""
        if sample.endswith("1K"):
            return self.overhead_1k, self.path_1k
        return self.overhead_10k, self.path_10k


TABLES: Mapping[str, Mapping[str, Published]] = {
    "Facebook": {
        "pie_sl": Published(0.266, 0.449, 0.700, 0.968),
        "pie_s": Published(0.355, 0.612, 0.902, 1.629),
        "pie_l": Published(0.683, 0.827, 0.780, 1.15),
        "pie_none": Published(0.908, 1.127, 1.07, 2.088),
        "iscribe_sl": Published(0.427, 0.636, 0.992, 1.035),
        "iscribe_s": Published(0.428, 0.591, 0.975, 1.007),
        "iscribe_l": Published(0.993, 1.109, 0.987, 1.024),
        "iscribe_none": Published(1.007, 1.049, 1.004, 0.9999),
        "scribe_sl": Published(0.914, 0.908, 1.014, 1.040),
        "scribe_s": Published(1.05, 1.024, 0.976, 1.007),
        "scribe_l": Published(0.675, 0.819, 0.985, 1.031),
        "scribe_none": Published(1, 1, 1, 1),
        "po_sl": Published(0.182, 0.319, 0.794, 1.300),
        "pal_sl": Published(0.341, 0.557, 0.729, 0.981),
    },
    "Twitter": {
        "pie_sl": Published(0.573, 0.748, 0.902, 1.131),
        "pie_s": Published(0.617, 0.797, 1.273, 1.252),
        "pie_l": Published(0.757, 1.018, 0.931, 1.121),
        "pie_none": Published(0.853, 1.17, 1.357, 1.310),
        "iscribe_sl": Published(0.664, 0.768, 1.041, 1.058),
        "iscribe_s": Published(0.596, 0.671, 1.020, 1.001),
        "iscribe_l": Published(0.913, 1.167, 1.007, 1.040),
        "iscribe_none": Published(0.817, 1.016, 1.008, 1.004),
        "scribe_sl": Published(0.853, 0.894, 1.035, 1.051),
        "scribe_s": Published(1.096, 1.012, 1.019, 0.999),
        "scribe_l": Published(0.714, 0.841, 0.996, 1.040),
        "scribe_none": Published(1, 1, 1, 1),
        "po_sl": Published(0.359, 0.489, 1.145, 1.688),
        "pal_sl": Published(0.712, 0.917, 0.928, 1.179),
    },
}

# Figure 8, means over the nodes: Po, Pie, Pal.
PUBLISHED_RULES: Mapping[str, str] = {
    "overhead": "0.592, 0.835, 1.006",
    "path": "1.96, about 1.3, about 1.3",
    "longest_path": "6.61, 3.80, 3.35",
}
