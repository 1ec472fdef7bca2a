"""The table of metrics is complete; summary, report and documentation are made from it."""

import importlib
import pkgutil
import shutil
from pathlib import Path
from typing import Any

import pytest

import analysis.metrics
from analysis.metrics.delays import delivery_rdp
from analysis.metrics.documentation import PAGE, renewed
from analysis.metrics.evidence import Evidence, Input
from analysis.metrics.metric import Group, Headline, Metric, Part
from analysis.metrics.names import name_number, number_order
from analysis.metrics.table import METRICS, summary_lines
from analysis.report import explanations, summary
from analysis.run_directory import open_run

FIXTURES = Path(__file__).parents[2] / "fixtures"
EXTRA = Metric(
    "extra", "things", "Extra", "Things that are extra.", Group.TRAFFIC, (Input.RECORDS,),
    lambda _: 7, headline=Headline("Extra, all"), summary=(Part("", "Extra, all"),),
)  # fmt: skip


def test_every_metric_that_a_module_defines_is_in_the_table() -> None:
    found: set[str] = set()
    for module in pkgutil.iter_modules(analysis.metrics.__path__):
        names = vars(importlib.import_module(f"analysis.metrics.{module.name}"))
        found |= {metric.name for metric in names.get("METRICS", ())}
        found |= {value.name for value in names.values() if isinstance(value, Metric)}
    assert found == {metric.name for metric in METRICS}
    assert len(METRICS) == len(found)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_has_a_description(metric: Metric) -> None:
    assert metric.label and metric.explanation.endswith(".") and metric.inputs


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_has_one_name_in_summary_and_report(metric: Metric) -> None:
    names = [part.words for part in (*metric.summary, *metric.parts)]
    names += [metric.headline.label] if metric.headline else []
    assert all(name == metric.label or name.startswith(f"{metric.label}, ") for name in names)


@pytest.mark.parametrize(
    ("name", "words", "unit"),
    [
        ("rdp.p90", "RDP, 90th percentile", "times unicast delay"),
        ("delivery_rdp.count", "RDP of deliveries, number of values", ""),
        ("warm_up.until_s", "Warm-up, until", "s"),
        ("communication_cost.events", "Communication cost, events", "s"),
        ("last_tree.events.crossings", "Last tree: Events, link crossings", "crossings"),
        ("peers", "Peers", "hosts"),
        ("table_entries.pubsub.max", "Routing-table entries, pubsub, maximum", "entries"),
        ("of_nobody.two_words", "Of nobody, two words", ""),
    ],
)
def test_a_number_has_a_name_and_a_unit(name: str, words: str, unit: str) -> None:
    assert name_number(name) == (words, unit)


def test_numbers_are_in_the_order_of_the_table() -> None:
    names = ["zeta", "last_tree.routing_cost", "last_tree.events.own", "rdp.max", "rdp.mean"]
    assert sorted(names, key=number_order) == [*reversed(names[3:]), names[2], names[1], names[0]]


def test_the_page_of_metrics_is_up_to_date() -> None:
    """`python -m analysis.metrics.documentation` writes it."""
    page = PAGE.read_text()
    assert renewed(page) == page


def test_the_example_metric_in_the_documentation_works(tmp_path: Path) -> None:
    """It is computed for a run of format 1 and compared with an existing metric."""
    text = PAGE.read_text().partition("```python\nMetric(")[2].partition("```")[0]
    names = {"Metric": Metric, "Group": Group, "Input": Input, "Part": Part}
    metric = eval(f"Metric({text}", names)
    run = shutil.copytree(FIXTURES / "format-1-simulation", tmp_path / "run")
    evidence = Evidence(open_run(run))
    spread = delivery_rdp(evidence)
    assert spread is not None
    assert metric.evaluate(evidence) == (pytest.approx(spread["max"]), "")


def test_names_in_summary_and_report_are_those_of_the_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (
        "analysis.metrics.table",
        "analysis.report.explanations",
        "analysis.report.summary",
    ):
        monkeypatch.setattr(f"{module}.METRICS", (*METRICS, EXTRA))
    metrics: dict[str, Any] = {"extra": 7}
    assert list(summary_lines(metrics)) == [("Extra, all", "7 things")]
    assert [row["label"] for row in summary.headlines(metrics)] == ["Extra, all"]
    (group,) = summary.metric_groups(metrics)
    assert (group["title"], group["rows"][0]["explain"]) == ("Traffic", "Things that are extra.")
    assert explanations.explain("extra").label == "Extra"
