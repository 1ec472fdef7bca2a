"""Messages as bytes, and bytes that are no messages."""

import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from agents.wire.codec import (
    F64,
    HEADER,
    I64,
    MAX_DATAGRAM_BYTES,
    U8,
    U16,
    U32,
    U64,
    WANTS_ACK,
    Datagram,
    DecodeError,
    decode,
    encode,
    message,
)


class Point(Struct, frozen=True):
    x: I64
    name: str


@message(242, role="event")
class Everything(Struct, frozen=True):
    byte: U8
    event_id: U64
    short: U16
    number: U32
    is_true: bool
    text: str
    raw: bytes
    real: F64
    numbers: tuple[U16, ...]
    points: tuple[Point, ...]
    names: tuple[str, ...]
    point: Point
    maybe: U32 | None
    maybe_point: Point | None
    hop_count: U8
    long: U64


@message(243, role="event")
class Empty(Struct, frozen=True):
    pass


@message(244, role="event")
class Text(Struct, frozen=True):
    text: str


class Corner(Struct, frozen=True):
    x: U16
    name: str


@message(246, role="event")
class Move(Struct, frozen=True):
    hop_count: U8
    start: Corner
    event_id: U64
    ways: tuple[Corner, ...]


@message(247, role="event")
class Step(Struct, frozen=True):
    event_id: U64
    x: U16
    is_last: bool


def whole(bits: int) -> st.SearchStrategy[int]:
    return st.integers(0, (1 << bits) - 1)


SHORT_TEXT = st.text(max_size=12)
POINTS = st.builds(Point, st.integers(-(1 << 63), (1 << 63) - 1), SHORT_TEXT)
EVERYTHING = st.builds(
    Everything,
    byte=whole(8),
    event_id=whole(64),
    short=whole(16),
    number=whole(32),
    is_true=st.booleans(),
    text=SHORT_TEXT,
    raw=st.binary(max_size=30),
    real=st.floats(allow_nan=False),
    numbers=st.lists(whole(16), max_size=8).map(tuple),
    points=st.lists(POINTS, max_size=4).map(tuple),
    names=st.lists(SHORT_TEXT, max_size=4).map(tuple),
    point=POINTS,
    maybe=st.none() | whole(32),
    maybe_point=st.none() | POINTS,
    hop_count=whole(8),
    long=whole(64),
)
SAMPLE = Everything(
    1, 2, 3, 4, True, "five", b"six", 7.5, (8, 9), (Point(-10, "ten"),), ("a", "b"),
    Point(11, ""), 12, None, 13, 14,
)  # fmt: skip


@given(EVERYTHING, whole(8), whole(32), whole(32), whole(32), whole(32), whole(64))
def test_decoding_reverses_encoding(
    content: Everything, flags: int, run: int, sender: int, receiver: int, number: int, sent: int
) -> None:
    datagram = Datagram(content, flags, run, sender, receiver, number, sent)
    assert decode(encode(datagram)) == datagram


@pytest.mark.parametrize(
    "content", [Move(1, Corner(2, "a"), 3, (Corner(4, "b"), Corner(5, ""))), Step(1, 2, True)]
)
def test_nested_structs_and_header_fields_are_restored(
    content: Move | Step,
) -> None:
    found = decode(encode(Datagram(content, 0, 1, 2, 3, 4, 5))).content
    assert found == content
    assert type(found) is type(content)
    if isinstance(found, Move):
        assert {type(corner) for corner in (found.start, *found.ways)} == {Corner}


def test_header_fields_are_those_of_the_message() -> None:
    class Part(Struct, frozen=True):
        event_id: U64

    class Whole(Struct, frozen=True):
        parts: tuple[Part, ...]

    Whole.__annotations__["parts"] = tuple[Part, ...]
    with pytest.raises(TypeError, match="Part: only a message itself has event_id"):
        message(216, role="event")(Whole)


def test_nan_and_empty_values_are_encoded() -> None:
    assert decode(encode(Datagram(Empty(), 0, 1, 2, 3, 4, 5))).content == Empty()
    nan = replace(SAMPLE, real=math.nan)
    assert math.isnan(decode(encode(Datagram(nan, 0, 1, 2, 3, 4, 5))).content.real)


def test_the_header_has_the_documented_layout() -> None:
    datagram = encode(Datagram(Text("hi"), WANTS_ACK, 0x01020304, 0x0A000102, 0x0A000103, 7, 8))
    assert datagram[:40].hex() == (
        "5444" "01" "f4" "01" "00" "0004" "01020304" "0a000102" "0a000103" "00000007"
        "0000000000000000" "0000000000000008"
    )  # fmt: skip
    assert datagram[40:] == b"\0\2hi"


@given(st.binary(max_size=1_600))
def test_random_bytes_are_no_message(noise: bytes) -> None:
    with pytest.raises(DecodeError):
        decode(noise)


@given(EVERYTHING, st.data())
def test_a_mutated_datagram_decodes_or_is_refused(content: Everything, data: st.DataObject) -> None:
    datagram = bytearray(encode(Datagram(content, 0, 1, 2, 3, 4, 5)))
    for _ in range(data.draw(st.integers(1, 4))):
        datagram[data.draw(st.integers(0, len(datagram) - 1))] = data.draw(whole(8))
    cut = data.draw(st.integers(0, len(datagram)))
    for bytes_ in (bytes(datagram), bytes(datagram[:cut]), bytes(datagram) + b"\0"):
        try:
            found = decode(bytes_).content
        except DecodeError:
            continue
        assert type(found) in (Everything, Empty, Text)


@given(st.binary(max_size=200), st.sampled_from([242, 243, 244, 250]))
def test_a_valid_header_does_not_make_an_invalid_body_valid(body: bytes, kind: int) -> None:
    header = HEADER.pack(0x5444, 1, kind, 0, 0, len(body), 1, 2, 3, 4, 5, 6)
    try:
        found = decode(header + body).content
    except DecodeError:
        return
    assert found.__class__ in (Everything, Empty, Text)


def test_the_size_limit_holds_for_encoding_and_decoding() -> None:
    room = MAX_DATAGRAM_BYTES - HEADER.size - 2
    assert len(encode(Datagram(Text("x" * room), 0, 1, 2, 3, 4, 5))) == MAX_DATAGRAM_BYTES
    with pytest.raises(ValueError, match="expected at most 1472 bytes, found 1473"):
        encode(Datagram(Text("x" * (room + 1)), 0, 1, 2, 3, 4, 5))
    header = HEADER.pack(0x5444, 1, 244, 0, 0, room + 3, 1, 2, 3, 4, 5, 6)
    with pytest.raises(DecodeError):
        decode(header + (room + 1).to_bytes(2) + b"x" * (room + 1))


@pytest.mark.parametrize("kind", [0, 256, 242])
def test_kinds_are_unique_and_fit_in_a_byte(kind: int) -> None:
    with pytest.raises(ValueError, match="expected a free kind"):
        message(kind, role="event")(type("Another", (Empty,), {}))


class Thawed(Struct):
    x: U16


class Named(Struct, frozen=True, kw_only=True):
    x: U16


@dataclass(frozen=True)
class Plain:
    x: U16


class Around(Struct, frozen=True):
    inner: Named


@pytest.mark.parametrize(
    ("cls", "name", "found"),
    [
        (Thawed, "Thawed", "one that is not frozen"),
        (Named, "Named", "one with such fields"),
        (Plain, "Plain", "another class"),
        (Around, "Named", "one with such fields"),
    ],
)
def test_only_a_frozen_struct_is_a_message(cls: Any, name: str, found: str) -> None:
    expected = "expected a frozen msgspec struct without keyword-only fields"
    with pytest.raises(TypeError, match=f"^{name}: {expected}, found {found}$"):
        message(217, role="event")(cls)


def test_a_type_without_a_layout_is_refused() -> None:
    with pytest.raises(TypeError, match="messages cannot carry"):

        @message(245, role="event")
        class Unsized(Struct, frozen=True):
            number: int
