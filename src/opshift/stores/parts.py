"""Division of a new object into the parts of a multipart upload."""

from collections.abc import Iterable, Iterator, Sequence

from opshift.model.tensor_pieces import Piece, Range, total_size
from opshift.model.wire_format import ReadBytes

Part = Sequence[Piece]
"""Pieces of a part: one range that the store can copy, or bytes and ranges that pass through memory."""


def join_ranges(pieces: Iterable[Piece], read: ReadBytes) -> list[Piece]:
    """Return the pieces with two ranges joined if the source has the same bytes between them.

    Large tensors that are neighbors in the source, with unchanged heads between them, become one range.
    """
    joined: list[Piece] = []
    last, between = None, b""
    for piece in pieces:
        if not isinstance(piece, Range):
            between += piece
            continue
        if last is not None and _continues(last, between, piece, read):
            last = Range(last.start, piece.end)
        else:
            joined += [each for each in (last, between) if each]
            last = piece
        between = b""
    return [*joined, *(each for each in (last, between) if each)]


def _continues(first: Range, between: bytes, second: Range, read: ReadBytes) -> bool:
    return second.start - first.end == len(between) and read(first.end, second.start) == between


def divide(pieces: Iterable[Piece], least: int, most: int) -> Iterator[Part]:
    """Yield parts of at least `least` bytes, except the last, that are read in the order of the object.

    A part with one range has at most `most` bytes, any other `least` bytes.
    """
    waiting: list[Piece] = []
    missing = least
    for piece in pieces:
        rest = piece
        while size := total_size([rest]):
            is_copied = isinstance(rest, Range) and not waiting and size >= least
            cut = min(size, most if is_copied else missing)
            first, rest = _split(rest, cut)
            if is_copied:
                yield [first]
                continue
            waiting.append(first)
            missing -= cut
            if not missing:
                yield waiting
                waiting, missing = [], least
    if waiting:
        yield waiting


def _split(piece: Piece, size: int) -> tuple[Piece, Piece]:
    if isinstance(piece, Range):
        middle = piece.start + size
        return Range(piece.start, middle), Range(middle, piece.end)
    return piece[:size], piece[size:]
