"""DFT and STFT: the sums that define them are a product with a matrix of cosines and sines."""

from __future__ import annotations

import math
from typing import NamedTuple

from opshift.adapters.casts import cast
from opshift.adapters.node import Node, Tensor
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter

LARGEST = 1 << 23
"""The most elements of a matrix that is written out."""


@adapter("DFT", 17, 16)
def transform_is_a_product(node: Node, out: Rewriter) -> None:
    """The axis goes next to the dimension of real and imaginary parts, and both are multiplied as one."""
    data = node.inputs[0]
    rank = out.rank(data)
    axis = node.attribute("axis", 1) % rank
    sums = _sums(node, axis, out)
    matrix = sums.matrix()
    element_type = out.element_type(data)
    wide = "double" if element_type == "double" else "float"
    moved = [*(place for place in range(rank - 1) if place != axis), axis, rank - 1]
    value = out.emit("Transpose", [data if wide == element_type else cast(data, wide, out)], perm=moved)
    if sums.taken < sums.size:
        bounds = [out.constant([each], "int64") for each in (0, sums.taken, rank - 2)]
        value = out.emit("Slice", [value, *bounds])
    kept = [0] * (rank - 2)
    value = out.emit("Reshape", [value, out.constant([*kept, matrix.dims[0]], "int64")])
    value = out.emit("MatMul", [value, out.tensor(matrix._replace(element_type=wide))])
    shape = out.constant([*kept, sums.results, matrix.dims[1] // sums.results], "int64")
    value = out.emit("Reshape", [value, shape])
    back = [moved.index(place) for place in range(rank)]
    result = out.emit("Transpose", [value], node.outputs if wide == element_type else 1, perm=back)
    if wide != element_type:
        cast(result, element_type, out, node.outputs)


@adapter("STFT", 17, 16)
def frames_are_transformed(node: Node, out: Rewriter) -> None:
    """Each frame is gathered, weighted by the window, and transformed by DFT."""
    signal, window = node.inputs[0], node.input(2)
    if node.input(3):
        size = int(out.require_constant(node.input(3), "input frame_length").values[0])
    else:
        size = _known(window, 0, out) if window else _known(signal, 1, out)
    places = _frames(node.inputs[1], signal, size, out)
    if out.rank(signal) == 2:
        signal = out.emit("Unsqueeze", [signal, out.constant([2], "int64")])
    frames = out.emit("Gather", [signal, places], axis=1)
    if window:
        column = out.emit("Reshape", [window, out.constant([-1, 1], "int64")])
        frames = out.emit("Mul", [frames, column])
    onesided = node.attribute("onesided", 1)
    out.emit("DFT", [frames], node.outputs, opset=17, axis=2, onesided=onesided)


def _frames(step: str, signal: str, size: int, out: Rewriter) -> str:
    """For each frame the places of its elements in the signal."""
    known = out.constant_value(step)
    shape = out.shape(signal) or (None, None)
    length = shape[1]
    if known is not None and length is not None:
        starts = range(0, length - size + 1, int(known.values[0]))
        places = tuple(start + place for start in starts for place in range(size))
        return out.tensor(Tensor("int64", (len(starts), size), places))
    end = _end(signal, length, size, out)
    whole = out.emit("Reshape", [cast(step, "int64", out), out.constant([], "int64")])
    begun = out.emit("Range", [out.constant(0, "int64"), end, whole])
    column = out.emit("Reshape", [begun, out.constant([-1, 1], "int64")])
    return out.emit("Add", [column, out.constant(range(size), "int64")])


def _end(signal: str, length: int | None, size: int, out: Rewriter) -> str:
    """The place behind the last at which a frame can start."""
    if length is not None:
        return out.constant(length - size + 1, "int64")
    measured = out.emit("Gather", [out.emit("Shape", [signal]), out.constant(1, "int64")], axis=0)
    return out.emit("Sub", [measured, out.constant(size - 1, "int64")])


class _Sums(NamedTuple):
    """The sums of one transform: how many values there are and are taken, of how many parts each."""

    size: int
    parts: int
    length: int
    is_inverse: bool
    is_onesided: bool

    @property
    def gives_real(self) -> bool:
        """Whether it rebuilds a real signal from the half of its spectrum."""
        return self.is_inverse and self.is_onesided

    @property
    def taken(self) -> int:
        """How many values are summed; those missing up to the length are zero."""
        return min(self.size, self.length // 2 + 1 if self.gives_real else self.length)

    @property
    def results(self) -> int:
        """How many sums there are."""
        return self.length // 2 + 1 if self.is_onesided and not self.is_inverse else self.length

    def matrix(self) -> Tensor:
        """A row for each part of each value, a column for each part of each sum."""
        parts = 1 if self.gives_real else 2
        dims = self.taken * self.parts, self.results * parts
        if math.prod(dims) > LARGEST:
            raise CannotConvert(f"it would take a matrix of {dims[0]} by {dims[1]} numbers")
        turn = 2 * math.pi / self.length if self.length else 0.0
        cosines, sines = (
            [function(turn * step) for step in range(self.length)] for function in (math.cos, math.sin)
        )
        rows: list[float] = []
        for place in range(self.taken):
            weight = self._weight(place)
            steps = [place * number % self.length for number in range(self.results)]
            real = [weight * cosines[step] for step in steps]
            imaginary = [(weight if self.is_inverse else -weight) * sines[step] for step in steps]
            rows += real if parts == 1 else _interleaved(real, imaginary)
            if self.parts == 2:
                opposite = [-each for each in imaginary]
                rows += opposite if parts == 1 else _interleaved(opposite, real)
        return Tensor("float", dims, tuple(rows))

    def _weight(self, place: int) -> float:
        """Of half a spectrum all but both ends count twice, for the half that mirrors them."""
        if not self.is_inverse:
            return 1.0
        is_mirrored = self.gives_real and place > 0 and 2 * place < self.length
        return (2.0 if is_mirrored else 1.0) / self.length


def _sums(node: Node, axis: int, out: Rewriter) -> _Sums:
    size, parts = (_known(node.inputs[0], place, out) for place in (axis, out.rank(node.inputs[0]) - 1))
    is_inverse, is_onesided = (bool(node.attribute(name, 0)) for name in ("inverse", "onesided"))
    length = 2 * (size - 1) if is_inverse and is_onesided else size
    if node.input(1):
        length = int(out.require_constant(node.input(1), "input dft_length").values[0])
    return _Sums(size, parts, length, is_inverse, is_onesided)


def _known(name: str, place: int, out: Rewriter) -> int:
    shape = out.shape(name)
    size = shape[place] if shape is not None and place < len(shape) else None
    if size is None:
        raise CannotConvert(
            f"the size of dimension {place} of {name!r} is not known",
            remedy=f"state it: add a value_info for {name!r}",
        )
    return size


def _interleaved(first: list[float], second: list[float]) -> list[float]:
    return [value for pair in zip(first, second, strict=True) for value in pair]
