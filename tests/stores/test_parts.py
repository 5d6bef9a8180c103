"""Parts of multipart uploads."""

from random import Random

import pytest

from opshift.model.tensor_pieces import Piece, Range, total_size
from opshift.stores.uploads import divide, join_ranges

SIZE = 400


def content(pieces: list[Piece], source: bytes) -> bytes:
    return b"".join(each if isinstance(each, bytes) else source[each.start : each.end] for each in pieces)


@pytest.mark.parametrize("seed", range(300))
def test_divides_any_pieces(seed: int) -> None:
    random = Random(seed)
    source = random.randbytes(SIZE)
    pieces: list[Piece] = []
    for _ in range(random.randint(0, 12)):
        start = random.randint(0, SIZE)
        pieces += [random.randbytes(random.randint(0, 40)), Range(start, random.randint(start, SIZE))]
    random.shuffle(pieces)
    joined = join_ranges(pieces, lambda start, end: source[start:end])
    assert content(joined, source) == content(pieces, source)
    least = random.randint(1, 60)
    most = random.randint(least, 200)
    parts = list(divide(joined, least, most))
    assert b"".join(content(list(part), source) for part in parts) == content(pieces, source)
    assert all(parts)
    assert all(least <= total_size(part) <= most for part in parts[:-1])


def test_joins_ranges_with_unchanged_bytes_between_them() -> None:
    source = bytes(range(100))
    pieces: list[Piece] = [
        b"new",
        Range(10, 20),
        source[20:22],
        Range(22, 30),
        Range(30, 40),
        b"??",
        Range(42, 50),
        b"end",
    ]
    assert join_ranges(pieces, lambda start, end: source[start:end]) == [
        b"new",
        Range(10, 40),
        b"??",
        Range(42, 50),
        b"end",
    ]


def test_fills_a_short_part_from_the_range_that_follows() -> None:
    assert list(divide([b"abc", Range(0, 100), b"d"], 10, 50)) == [
        [b"abc", Range(0, 7)],
        [Range(7, 57)],
        [Range(57, 100)],
        [b"d"],
    ]
    assert list(divide([b"abc", Range(0, 12), b"d"], 10, 50)) == [[b"abc", Range(0, 7)], [Range(7, 12), b"d"]]
    assert list(divide([], 10, 50)) == []
