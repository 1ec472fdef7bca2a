"""The HTML file: the page with its style, its scripts and its data."""

import html
import json
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

from analysis.report import network, summary
from analysis.report.distributions import Distribution, read_distributions
from analysis.report.print_figures import draw_figures
from analysis.report.reported_run import ReportedRun
from analysis.report.timeline import read_timeline
from analysis.report.topics import topic_section

_SCRIPTS = (
    "elements",
    "colours",
    "charts",
    "faults",
    "grid",
    "map",
    "topology",
    "scatter",
    "topics",
    "page",
)


def write_report(run: Path) -> Path:
    """Write `analysis/report.html` of a run, and `analysis/figures/`; returns the former."""
    read = ReportedRun(run)
    distributions, timeline = read_distributions(read), read_timeline(read)
    target = run / "analysis" / "report.html"
    target.parent.mkdir(exist_ok=True)
    draft = target.with_name(".report.html.new")
    draft.write_text(compose_page(gather(read, distributions, timeline)), encoding="utf-8")
    draft.replace(target)
    draw_figures(read, distributions, timeline, target.parent / "figures")
    return target


def gather(
    run: ReportedRun, distributions: list[Distribution], timeline: dict[str, Any]
) -> dict[str, Any]:
    """The content of the page."""
    return {
        "title": summary.title(run),
        "subtitle": summary.subtitle(run),
        "path": str(run.path.resolve()),
        "version": version("tdo-testbed"),
        "verdict": summary.verdict(run),
        "missing": summary.missing(run),
        "headlines": summary.headlines(run.metrics),
        "metrics": summary.metric_groups(run.metrics),
        "flat": summary.flat_metrics(run.metrics),
        "part_words": summary.part_words(run.metrics),
        "shares": summary.shares(run.metrics),
        "seconds": summary.seconds(run.metrics),
        "metrics_words": "Point at a name for its meaning, at a number for all digits.",
        "facts": summary.facts(run),
        "setup_words": "tdo rerun with the run's directory repeats the run.",
        "experiment": run.text or "The experiment file is missing.",
        "cdfs": [distribution.to_dict() for distribution in distributions],
        "timeline": timeline,
        **_map(run),
    }


def _map(run: ReportedRun) -> dict[str, Any]:
    underlay = run.underlay
    if underlay is None:
        return {
            "nodes": None,
            "topics": None,
            "map_words": "The run has no underlay.json that can be read, so there is no map.",
        }
    sizes = (
        f"{len(underlay.routers):,} routers, {len(underlay.hosts):,} hosts, "
        f"{len(underlay.links):,} links."
    )
    return {
        "nodes": network.node_columns(underlay),
        "links": network.link_columns(run, underlay),
        "overlay": network.overlay_pairs(run, underlay),
        "trees": network.tree_list(run, underlay),
        "topics": topic_section(run, underlay),
        "map_words": f"{sizes} A link has the colour of its busier direction. Zoom with the wheel, "
        "+ and -; move by dragging or with arrow keys.",
    }


def compose_page(content: dict[str, Any]) -> str:
    """The page with this content; it loads nothing from the network."""
    page = files("analysis.report").joinpath("page")
    scripts = (page.joinpath(f"{name}.js").read_text("utf-8") for name in _SCRIPTS)
    parts = {
        "title": html.escape(f"{content['title']} · TDO report"),
        "style": page.joinpath("report.css").read_text("utf-8"),
        "data": _embed(content),
        "script": '(() => {\n"use strict";\n' + "\n".join(scripts) + "})();",
    }
    text = page.joinpath("report.html").read_text("utf-8")
    for name, part in parts.items():
        before, _, after = text.partition(f"<!--{name}-->")
        text = before + part + after
    return text


def _embed(content: dict[str, Any]) -> str:
    """JSON in which no name can end a script element or begin a comment."""
    text = json.dumps(_finite(content), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def _finite(value: Any) -> Any:
    """The same without infinities and NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {str(key): _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    is_wild = isinstance(value, float) and (
        value != value or value in (float("inf"), -float("inf"))
    )
    return str(value) if is_wild else value
