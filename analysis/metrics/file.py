"""`analysis/metrics.json` of a run: one object to which every analysis adds its figures."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analysis.json_files import read_object


def merge_metrics(
    run: Path, subject: str, metrics: Mapping[str, Any], notes: Mapping[str, str]
) -> None:
    """Add the metrics of one subject to those of a run, in place of older ones of those names.

    A note says why the metric of that name is null, or how to read it; a note under the name of
    the subject is about all of its metrics.
    """
    path = run / "analysis" / "metrics.json"
    path.parent.mkdir(exist_ok=True)
    merged = read_object(path)
    renewed = {subject, *metrics}
    kept = {key: note for key, note in merged.get("notes", {}).items() if key not in renewed}
    merged |= {**metrics, "notes": kept | dict(notes)}
    draft = path.with_name(".metrics.json.new")
    draft.write_text(json.dumps(merged, indent=1, sort_keys=True) + "\n")
    draft.replace(path)
