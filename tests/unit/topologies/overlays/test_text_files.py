"""Text files of interests, publications and weights, valid and invalid."""

from pathlib import Path

import pytest

from topologies.errors import TopologyError
from topologies.overlays.interests import make_interests
from topologies.overlays.text_files import (
    load_interests,
    load_publications,
    load_weights,
    save_interests,
)


def write(folder: Path, text: str) -> Path:
    path = folder / "given.txt"
    path.write_text(text)
    return path


def test_interests_with_comments_and_without_sizes(tmp_path: Path) -> None:
    interests = load_interests(write(tmp_path, "# mine\n3 1\n\n0 2 # a comment\n0\t1\n0 1\n"))
    assert (interests.nodes, interests.topics, len(interests)) == (4, 3, 3)
    assert interests.subscribers(1).tolist() == [0, 3]
    assert interests.subscribers(0).tolist() == []


def test_stated_sizes_are_used(tmp_path: Path) -> None:
    interests = load_interests(write(tmp_path, "# nodes 9 topics 7\n3 1\n"))
    assert (interests.nodes, interests.topics) == (9, 7)
    nobody = load_interests(write(tmp_path, "#nodes 2 topics 0\n"))
    assert (nobody.nodes, nobody.topics, len(nobody)) == (2, 0, 0)


def test_written_interests_can_be_read(tmp_path: Path) -> None:
    interests = make_interests(5, 4, [[4, 0], [1, 3], [1, 0]])
    save_interests(interests, tmp_path / "interests.txt")
    again = load_interests(tmp_path / "interests.txt")
    assert (again.nodes, again.topics) == (5, 4)
    assert again.pairs().tolist() == [[1, 0], [1, 3], [4, 0]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected lines `node topic`, found none"),
        ("1 2\n3\n", "line 2: expected `node topic`, .* found '3'"),
        ("1 2 3\n", "line 1: expected `node topic`, .* found '1 2 3'"),
        ("1 -2\n", "line 1: expected `node topic`, .* found '1 -2'"),
        ("a b\n", "line 1: expected `node topic`, .* found 'a b'"),
        ("0 99999999999\n", "line 1: expected `node topic`, whole numbers of up to 9 digits"),
        ("# nodes 2 topics 2\n0 1\n2 0\n", "line 3: expected a node number, 0 to 1; found 2"),
        ("# nodes 2 topics 2\n0 2\n", "line 2: expected a topic number, 0 to 1; found 2"),
        (f"# nodes {'9' * 5000} topics 2\n", "line 1: expected `# nodes N topics M`, .* 9 digits"),
        ("# nodes 0 topics 2\n", "nodes: expected 1 to 100,000,000, found 0"),
    ],
)
def test_an_error_of_wrong_interests_is_one_line(text: str, said: str, tmp_path: Path) -> None:
    path = write(tmp_path, text)
    with pytest.raises(TopologyError, match=said) as error:
        load_interests(path)
    assert str(error.value).startswith(str(path)) and "\n" not in str(error.value)


def test_publications_keep_their_order(tmp_path: Path) -> None:
    path = write(tmp_path, "2 0 # first\n0 1\n2 0\n")
    assert load_publications(path, 3, 2).tolist() == [[2, 0], [0, 1], [2, 0]]
    assert load_publications(write(tmp_path, "# none\n"), 3, 2).tolist() == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0\n", "line 1: expected `publisher topic`, .* found '0'"),
        ("0 0\n3 0\n", "line 2: expected a publisher number, 0 to 2; found 3"),
        ("0 2\n", "line 1: expected a topic number, 0 to 1; found 2"),
    ],
)
def test_an_error_of_wrong_publications_is_one_line(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match=said):
        load_publications(write(tmp_path, text), 3, 2)


def test_weights_are_a_matrix(tmp_path: Path) -> None:
    assert load_weights(write(tmp_path, "0 1.5 # a\n1.5 0\n"), 2).tolist() == [[0, 1.5], [1.5, 0]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0 1\n", "expected 2 rows, one for each node; found 1"),
        ("0 1\n1\n", "line 2: expected 2 weights, found 1"),
        ("0 x\n1 0\n", "line 1: expected a number, 0 or more; found 'x'"),
        ("0 -1\n-1 0\n", "line 1: expected a number, 0 or more; found '-1'"),
        ("0 nan\n1 0\n", "line 1: expected a number, 0 or more; found 'nan'"),
        ("0 1e999\n1 0\n", "line 1: expected a number, 0 or more; found '1e999'"),
        ("0 1\n2 0\n", "expected a symmetric matrix, found 1 from 0 to 1 and 2 back"),
    ],
)
def test_an_error_of_wrong_weights_is_one_line(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match=said):
        load_weights(write(tmp_path, text), 2)


def test_unreadable_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bytes"
    path.write_bytes(b"\xff\xff\xff")
    for file in (path, tmp_path / "none"):
        with pytest.raises(TopologyError, match="expected a readable text file, found"):
            load_interests(file)
