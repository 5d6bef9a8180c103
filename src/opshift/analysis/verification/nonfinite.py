"""Comparison on inputs with infinities and NaN, as far as two runtimes define the results."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from opshift.analysis.verification.compare import agreeing_elements
from opshift.analysis.verification.dimension_sizes import ModelInput
from opshift.analysis.verification.inputs import Feeds
from opshift.analysis.verification.numpy_types import Array
from opshift.analysis.verification.runtimes import CannotRun, Runner, RuntimeModel, openers
from opshift.model.graphs import nested_nodes
from opshift.registry.registry import Registry

NONFINITE_VALUES = ((np.nan,), (np.inf, -np.inf), (np.nan, np.inf, -np.inf, -0.0))
"""Values of each sample; separate, because NaN hides the results of infinities."""

TYPES = ("bfloat16", "double", "float", "float16")

ELEMENTS_PER_VALUE = 8
"""Number of elements for each one that is replaced: most remain, so that sums are not NaN everywhere."""

MAX_BYTES, MAX_NODES, MAX_ELEMENTS = 4 << 20, 500, 1 << 16
"""Limits of the model and its inputs, because onnx.reference is up to 1,000 times as slow as onnxruntime."""


class NonfiniteRun(NamedTuple):
    """Samples with infinities and NaN, and the outputs of both models.

    Where the runtimes disagree about a model, the output of the converted one is that of the original.
    """

    samples: Sequence[Feeds]
    original: Sequence[Sequence[object]]
    converted: Sequence[Sequence[object]]


@dataclass(frozen=True)
class NonfiniteInputs:
    """Models to run, a sample that both accept, and the inputs whose values may be replaced."""

    original: RuntimeModel
    converted: RuntimeModel
    sample: Feeds
    replaceable: tuple[ModelInput, ...]
    seed: int

    @property
    def is_small(self) -> bool:
        """Whether onnx.reference runs the models fast enough."""
        elements = sum(np.asarray(each).size for each in self.sample.values() if isinstance(each, np.ndarray))
        return elements <= MAX_ELEMENTS and all(map(_is_small, (self.original, self.converted)))


def run_nonfinite(inputs: NonfiniteInputs, tolerance: float | None, registry: Registry) -> NonfiniteRun:
    """Run both models in both runtimes on samples with infinities and NaN; without samples if that fails.

    The specification leaves many results open, such as the maximum of NaN and a number. Two independent
    runtimes that agree show that a result is defined.
    """
    if not inputs.replaceable or not inputs.is_small:
        return NonfiniteRun((), (), ())
    runners = [list(_runners(each, registry)) for each in (inputs.original, inputs.converted)]
    found = NonfiniteRun([], [], [])
    if any(len(each) < 2 for each in runners):
        return found
    samples, originals, conversions = list[Feeds](), list[Sequence[object]](), list[Sequence[object]]()
    for feeds in _samples(inputs):
        try:
            one, other = ([runner.run(feeds) for runner in each] for each in runners)
        except CannotRun:
            continue
        samples.append(feeds)
        originals.append(one[0])
        conversions.append(_defined(one, other, tolerance))
    return NonfiniteRun(samples, originals, conversions)


def replaceable_inputs(inputs: Sequence[ModelInput], given: Collection[str]) -> tuple[ModelInput, ...]:
    """Return the generated inputs whose types have infinities and NaN."""
    return tuple(each for each in inputs if each.element_type in TYPES and each.name not in given)


def _is_small(source: RuntimeModel) -> bool:
    count = sum(1 for _ in nested_nodes(source.model.graph, *source.model.functions))
    return count <= MAX_NODES and source.model.ByteSize() <= MAX_BYTES


def _runners(source: RuntimeModel, registry: Registry) -> Iterator[Runner]:
    for opener in openers("auto"):
        try:
            yield opener(source, registry)
        except CannotRun:
            continue


def _samples(inputs: NonfiniteInputs) -> Iterator[Feeds]:
    for position, values in enumerate(NONFINITE_VALUES):
        random = np.random.default_rng([inputs.seed, position])
        names = [each.name for each in inputs.replaceable]
        yield {**inputs.sample, **{name: _replace(inputs.sample[name], values, random) for name in names}}


def _replace(array: Array, values: Sequence[float], random: np.random.Generator) -> Array:
    found = np.array(array)
    count = -(-found.size // ELEMENTS_PER_VALUE)
    places = random.permutation(found.size)[: max(count, min(len(values), found.size))]
    found.reshape(-1)[places] = np.resize(np.array(values), places.size).astype(found.dtype)
    return found


def _defined(
    originals: Sequence[Sequence[object]], conversions: Sequence[Sequence[object]], tolerance: float | None
) -> list[object]:
    """Return the outputs of the converted model, with elements of the original where one is not defined."""
    found: list[object] = []
    for one, another, first, second in zip(*originals, *conversions, strict=True):
        is_defined = _agreement(one, another, tolerance) & _agreement(first, second, tolerance)
        if not isinstance(one, np.ndarray) or not isinstance(first, np.ndarray) or not is_defined.any():
            found.append(one)
        elif first.shape != one.shape or first.dtype != one.dtype:
            found.append(first if is_defined.all() else one)
        else:
            found.append(np.where(is_defined, first, one))
    return found


def _agreement(one: object, other: object, tolerance: float | None) -> Array:
    """Return for each element whether two runtimes agree; false for values that they cannot define.

    No operator defines which integer an infinity or NaN becomes.
    """
    if not isinstance(one, np.ndarray) or not isinstance(other, np.ndarray):
        return np.array(False)
    if one.shape != other.shape or one.dtype != other.dtype or one.dtype.kind in "iuOSU":
        return np.array(False)
    return agreeing_elements(one, other, tolerance)
