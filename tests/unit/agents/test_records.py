"""Records in files that are complete, or cut at any byte."""

import io
from pathlib import Path

from agents.records import RecordLog, read_records


def write(path: Path, count: int) -> bytes:
    text = io.StringIO()
    log = RecordLog(text)
    for number in range(count):
        log.write(number, f"h{number}", "happened", {"number": number, "text": 'a "b" é'})
    path.write_text(text.getvalue())
    return path.read_bytes()


def test_written_records_are_read(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    write(path, 3)
    rows = list(read_records(path))
    assert [row.time_us for row in rows] == [0, 1, 2]
    assert rows[2].values == {"number": 2, "text": 'a "b" é'}


def test_a_file_cut_at_any_byte_has_all_complete_lines(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    whole = write(path, 5)
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        assert len(list(read_records(path))) == whole[:size].count(b"\n")
