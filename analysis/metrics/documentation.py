"""The table of metrics in docs/tables.md, written by `python -m analysis.metrics.documentation`."""

from collections.abc import Iterator
from pathlib import Path

from analysis.metrics.table import METRICS

PAGE = Path(__file__).parents[2] / "docs" / "tables.md"
_BEGIN = "<!-- written by python -m analysis.metrics.documentation -->\n"
_END = "<!-- end of what is written -->\n"


def metrics_table() -> str:
    """A Markdown table of all metrics."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "| key | name | unit | needs | meaning |"
    yield "|---|---|---|---|---|"
    for metric in METRICS:
        needs = ", ".join(needed.value for needed in metric.inputs)
        names = f"| `{metric.name}` | {metric.label}"
        yield f"{names} | {metric.unit} | {needs} | {metric.explanation} |"


def renewed(page: str) -> str:
    """A page with the current table."""
    before, _, rest = page.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}{metrics_table()}{_END}{after}"


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
