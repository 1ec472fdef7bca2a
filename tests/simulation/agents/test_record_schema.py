"""Records follow the schema field by field in runs of every protocol."""

from pathlib import Path
from typing import Any

import pytest

from agents.record_schema import RECORDS, Field
from tests.simulation.agents.test_golden_records import RUNS, records_of

KNOWN = {what: fields for kinds in RECORDS.values() for what, fields in kinds.items()}


def field_of(what: str, key: str) -> Field | None:
    fields = KNOWN[what]
    group = "sent_*" if key.startswith("sent_") and "sent_*" in fields else "*"
    return fields.get(key) or fields.get(group)


def faults_of(what: str, values: dict[str, Any]) -> list[str]:
    """Deviations of a record from the schema."""
    if what not in KNOWN:
        return [f"{what} is not in the schema"]
    required = {key for key, field in KNOWN[what].items() if not field.is_optional}
    wrong = [f"{what} lacks {key}" for key in sorted(required - values.keys())]
    for key, value in values.items():
        field = field_of(what, key)
        if field is None:
            wrong.append(f"{what}.{key} is not in the schema")
        elif type(value) is not field.type and (type(value), field.type) != (int, float):
            wrong.append(f"{what}.{key} is {value!r}")
    return wrong


def test_every_record_is_listed_once() -> None:
    assert len(KNOWN) == sum(map(len, RECORDS.values()))


@pytest.mark.parametrize("name", RUNS)
def test_records_of_a_run_follow_the_schema(name: str, tmp_path: Path) -> None:
    rows = records_of(name, tmp_path)
    assert rows
    assert {wrong for _, _, what, values in rows for wrong in faults_of(what, values)} == set()


def test_an_unknown_record_is_found() -> None:
    assert faults_of("event_lost", {}) == ["event_lost is not in the schema"]
    assert faults_of("delivered", {"event_id": "3", "hop_count": 1, "by": 2}) == [
        "delivered.event_id is '3'",
        "delivered.by is not in the schema",
    ]
    assert faults_of("event_not_offered", {}) == ["event_not_offered lacks event_id"]
