"""Values of the types that a message may have, as bytes.

A layout follows from a type alone: numbers big-endian, texts, bytes and tuples after their length
in two bytes, an optional value after a byte that says whether it is there.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from msgspec import Struct

IN_HEADER = ("event_id", "hop_count")  # fields of a message that are in the header

Field = tuple[str, Any]  # its name and its type
_Encode = Callable[[Any], bytes]
_Decode = Callable[[bytes, int], tuple[Any, int]]  # a value, and where the next one begins


@dataclass(frozen=True, slots=True)
class Coder:
    """The functions that encode values of one type, and decode them from an offset."""

    encode: _Encode
    decode: _Decode


def fields_of(cls: type[Struct]) -> list[Field]:
    """The fields of a struct without those in the header."""
    _check_struct(cls)
    hints = get_type_hints(cls, include_extras=True)
    return [(name, hints[name]) for name in cls.__struct_fields__ if name not in IN_HEADER]


def record_coder(fields: Sequence[Field]) -> Coder:
    """The coder of some fields of a record: in order, consecutive ones of fixed size together.

    It decodes to a sequence of values, which its user turns into the record.
    """
    left, steps = list(fields), []
    while left:
        fixed = count_fixed(left)
        if fixed:
            steps.append(_fixed_step(left[:fixed]))
            left = left[fixed:]
        else:
            steps.append(_variable_step(*left.pop(0)))
    return steps[0] if len(steps) == 1 else _chain(steps)


def count_fixed(fields: Sequence[Field]) -> int:
    """The number of fields of fixed size at the beginning."""
    formats = [fixed_format(hint) for _, hint in fields]
    return formats.index("") if "" in formats else len(formats)


def fixed_format(hint: Any) -> str:
    """The struct letter of a type of fixed size, or an empty text."""
    if hint is bool:
        return "?"
    if get_origin(hint) is Annotated and isinstance(get_args(hint)[1], str):
        return str(get_args(hint)[1])
    return ""


def _check_struct(cls: type) -> None:
    """Raise if a class is not a frozen struct with positional fields, as `decode` requires."""
    if not issubclass(cls, Struct):
        found = "another class"
    elif not cls.__struct_config__.frozen:
        found = "one that is not frozen"
    elif cls.__match_args__ != cls.__struct_fields__:
        found = "one with such fields"
    else:
        return
    raise TypeError(
        f"{cls.__name__}: expected a frozen msgspec struct without keyword-only fields, "
        f"found {found}"
    )


def _chain(steps: Sequence[Coder]) -> Coder:
    def encode_all(record: Any) -> bytes:
        return b"".join([step.encode(record) for step in steps])

    def decode_all(data: bytes, offset: int) -> tuple[Any, int]:
        values: list[Any] = []
        for step in steps:
            part, offset = step.decode(data, offset)
            values += part
        return values, offset

    return Coder(encode_all, decode_all)


def _fixed_step(fields: Sequence[Field]) -> Coder:
    layout = struct.Struct(">" + "".join(fixed_format(hint) for _, hint in fields))
    read = attrgetter(*(name for name, _ in fields))
    pack, unpack_from, size = layout.pack, layout.unpack_from, layout.size
    is_single = len(fields) == 1

    def encode_fields(record: Any) -> bytes:
        return pack(read(record)) if is_single else pack(*read(record))

    def decode_fields(data: bytes, offset: int) -> tuple[Any, int]:
        return unpack_from(data, offset), offset + size

    return Coder(encode_fields, decode_fields)


def _variable_step(name: str, hint: Any) -> Coder:
    coder, read = _coder(hint), attrgetter(name)

    def decode_field(data: bytes, offset: int) -> tuple[Any, int]:
        value, offset = coder.decode(data, offset)
        return (value,), offset

    return Coder(lambda record: coder.encode(read(record)), decode_field)


def _coder(hint: Any) -> Coder:
    """The coder of a value of any type that a message may have."""
    letter = fixed_format(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if letter:
        return _fixed_coder(letter)
    if hint is bytes:
        return _bytes_coder()
    if hint is str:
        return _text_coder()
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return _sequence_coder(arguments[0])
    if origin in (UnionType, Union) and len(arguments) == 2 and arguments[1] is NoneType:
        return _optional_coder(_coder(arguments[0]))
    if isinstance(hint, type) and issubclass(hint, Struct):
        if not set(IN_HEADER).isdisjoint(hint.__struct_fields__):
            raise TypeError(f"{hint.__name__}: only a message itself has {' or '.join(IN_HEADER)}")
        body = record_coder(fields_of(hint))
        return Coder(body.encode, lambda data, at: _build(hint, *body.decode(data, at)))
    raise TypeError(
        f"messages cannot carry {hint}: use U8 to U64, I64, F64, bool, str, bytes, tuples, structs"
    )


def _build(cls: type[Struct], values: Sequence[Any], offset: int) -> tuple[Struct, int]:
    return cls(*values), offset


def _fixed_coder(letter: str) -> Coder:
    layout = struct.Struct(">" + letter)
    return Coder(layout.pack, lambda data, at: (layout.unpack_from(data, at)[0], at + layout.size))


def _bytes_coder() -> Coder:
    def decode_bytes(data: bytes, offset: int) -> tuple[bytes, int]:
        (length,) = struct.unpack_from(">H", data, offset)
        end = offset + 2 + length
        if end > len(data):
            raise ValueError("cut short")
        return data[offset + 2 : end], end

    return Coder(lambda value: struct.pack(">H", len(value)) + value, decode_bytes)


def _text_coder() -> Coder:
    raw = _bytes_coder()

    def decode_text(data: bytes, offset: int) -> tuple[str, int]:
        value, offset = raw.decode(data, offset)
        return value.decode(), offset

    return Coder(lambda value: raw.encode(value.encode()), decode_text)


def _optional_coder(inner: Coder) -> Coder:
    def decode_optional(data: bytes, offset: int) -> tuple[Any, int]:
        if offset >= len(data) or data[offset] > 1:
            raise ValueError("neither present nor absent")
        return inner.decode(data, offset + 1) if data[offset] else (None, offset + 1)

    return Coder(
        lambda value: b"\0" if value is None else b"\1" + inner.encode(value), decode_optional
    )


def _sequence_coder(hint: Any) -> Coder:
    letter = fixed_format(hint)
    if letter:
        return _number_sequence_coder(letter)
    item = _coder(hint)

    def encode_items(values: tuple[Any, ...]) -> bytes:
        return struct.pack(">H", len(values)) + b"".join([item.encode(v) for v in values])

    def decode_items(data: bytes, offset: int) -> tuple[tuple[Any, ...], int]:
        (count,) = struct.unpack_from(">H", data, offset)
        offset += 2
        if count > len(data) - offset:
            raise ValueError("more items than bytes")
        values = []
        for _ in range(count):
            value, offset = item.decode(data, offset)
            values.append(value)
        return tuple(values), offset

    return Coder(encode_items, decode_items)


def _number_sequence_coder(letter: str) -> Coder:
    size = struct.calcsize(">" + letter)

    def decode_numbers(data: bytes, offset: int) -> tuple[tuple[Any, ...], int]:
        (count,) = struct.unpack_from(">H", data, offset)
        end = offset + 2 + count * size
        return struct.unpack_from(f">{count}{letter}", data, offset + 2), end

    return Coder(
        lambda values: struct.pack(f">H{len(values)}{letter}", len(values), *values), decode_numbers
    )
