"""Inputs of both models: arrays from the caller or from files, and generated arrays for other inputs.

Dynamic dimensions with the same name get the same size. Files are .npy and .npz files of numpy, and .pb
files with a TensorProto.
"""

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, product
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.lib.npyio import NpzFile

from opshift.analysis.verification.numpy_types import NUMPY_TYPES, Array, array_element_type, dtype_of
from opshift.analysis.verification.result import CannotVerify
from opshift.model.errors import UsageError, path_argument
from opshift.model.graphs import nested_nodes
from opshift.model.messages import DecodeError, GraphProto, ModelProto, TensorProto, ValueInfoProto
from opshift.model.tensors import read_tensor
from opshift.model.types import (
    Dim,
    declared_dims,
    dims_text,
    element_type_of,
    shape_to_string,
    type_to_string,
)

READ_ERRORS = (OSError, EOFError, ValueError, BadZipFile, DecodeError, MemoryError)
"""Errors that missing and invalid files raise; MemoryError for an array that is larger than its file."""

READABLE_TYPES = {*NUMPY_TYPES, "bfloat16"}
"""Element types that are read from .pb files; .npy and .npz files may have any type."""


def read_arrays(path: str | os.PathLike[str]) -> Mapping[str, Array]:
    """Return the arrays of an .npz file by name; raise UsageError for other and unreadable files."""
    arrays = _read_file(path_argument("inputs", path))
    if not isinstance(arrays, Mapping):
        reason = "cannot be read as arrays: it contains a single array without a name"
        raise UsageError(reason, place=str(path), remedy="write it with numpy.savez")
    return arrays


def read_array(path: os.PathLike[str], name: str) -> Array:
    """Return the value of an input from a file; raise UsageError if it cannot be read.

    An .npz file must contain an array with the name of the input, or only one array.
    """
    found = _read_file(Path(path))
    if not isinstance(found, Mapping):
        return found
    if name in found:
        return found[name]
    if len(found) == 1:
        return next(iter(found.values()))
    names = ", ".join(found) or "no arrays"
    raise UsageError(f"contains {names}, but not {name!r}", place=str(path), remedy="rename the array")


def _read_sequence(path: os.PathLike[str]) -> list[Array]:
    """Return the tensors of a sequence from a file: all arrays of an .npz file in order, or one array."""
    found = _read_file(Path(path))
    return list(found.values()) if isinstance(found, Mapping) else [found]


def _read_file(path: Path) -> Array | Mapping[str, Array]:
    try:
        if path.suffix == ".pb":
            return _read_tensor(path)
        # numpy does not close a file that it opened itself if the archive is broken: open it here
        with path.open("rb") as stream:
            found: Array | NpzFile = np.load(stream, allow_pickle=False)
            return {**found} if isinstance(found, NpzFile) else found
    except READ_ERRORS as error:
        reason = f"cannot be read as arrays: {error}"
        remedy = "check the path; write with numpy.save or numpy.savez, or a TensorProto with the suffix .pb"
        raise UsageError(reason, place=str(path), remedy=remedy) from error


def _read_tensor(path: Path) -> Array:
    tensor = read_tensor(TensorProto.FromString(path.read_bytes()))
    if tensor is None or tensor.element_type not in READABLE_TYPES:
        raise ValueError("not a TensorProto with its data in the file and an element type that numpy has")
    values = tensor.values
    if tensor.element_type == "string":
        values = tuple(each.decode() for each in values)
    return np.array(values, dtype_of(tensor.element_type)).reshape(tensor.dims)


MAX_CANDIDATES = 16
"""Maximum number of attempts with different shapes of the inputs."""


MAX_GENERATED_ELEMENTS = 2**28
"""Maximum number of elements in all generated inputs of an attempt: 2 GiB as the doubles that are generated.

The model declares the sizes, so even a small file may declare inputs that do not fit into memory.
"""

MAX_GENERATED_RANK = 32
"""Maximum rank of a generated input: the limit of numpy before version 2."""


class SizePattern(NamedTuple):
    """Sizes to try: `leading` for first dimensions; others get `other`, `other + step`, and so on."""

    leading: int
    other: int
    step: int


SIZE_PATTERNS = (
    SizePattern(2, 3, 1),
    SizePattern(2, 3, 0),
    SizePattern(3, 3, 0),
    SizePattern(1, 3, 1),
    SizePattern(1, 3, 0),
    SizePattern(2, 8, 0),
    SizePattern(2, 1, 0),
    SizePattern(1, 1, 0),
    SizePattern(1, 64, 0),
    SizePattern(1, 224, 0),
)
"""Different sizes first; then equal sizes, for models that require equal sizes without declaring them; then a
leading size of 1, for models of batch size 1; then larger sizes, for models with operators that reduce sizes,
such as pooling. Other sizes of 1 are last, because they hide differences: Softmax of one element is 1."""

ENLARGED_SIZES = {1: 2, 2: 5, 3: 7, 4: 9, 5: 11, 6: 13, 7: 15, 8: 17}
"""Sizes to try for the last sample, by accepted size; odd sizes leave a remainder for a stride of 2."""

MAX_ENLARGED_ELEMENTS = 1 << 13
"""Maximum number of elements of a sample with enlarged sizes, because larger samples cost time."""

CANDIDATE_RANKS = (2, 1, 3, 4, 0)
"""Ranks to try for inputs without a declared rank."""


class ModelInput(NamedTuple):
    """Graph input: a tensor, or a sequence or optional of tensors.

    `element_type` is `None` for a non-tensor, `dims` is `None` if no rank of the tensors is declared.
    """

    name: str
    type: str
    element_type: str | None
    dims: tuple[Dim, ...] | None

    @property
    def is_sequence(self) -> bool:
        """Whether the value of the input is a list of tensors."""
        return self.type.removeprefix("optional(").startswith("seq(tensor(")

    @property
    def generated_type(self) -> str | None:
        """Element type of the tensors in the input; `None` if no value can be generated, as for maps."""
        kind = TENSORS.fullmatch(self.type)
        return kind[1] if kind else None


TENSORS = re.compile(r"(?:optional\()?(?:seq\()?tensor\((\w+)\)+")
"""Types of inputs for which values are generated."""

SEQUENCE_LENGTH = 3
"""Number of tensors in a generated sequence, whose shapes are equal."""

InputShapes = Mapping[str, tuple[int, ...]]
"""Shape of each input."""

_Key = int | str | tuple[str, int]


def candidate_shapes(inputs: Sequence[ModelInput], bound: Mapping[str, int]) -> Iterator[InputShapes]:
    """Yield candidate shapes of all inputs; `bound` contains known sizes by dimension name."""
    ranks = CANDIDATE_RANKS if any(each.dims is None for each in inputs) else CANDIDATE_RANKS[:1]
    layouts = (_shapes_for_sizes(inputs, bound, sizes, rank) for rank, sizes in product(ranks, SIZE_PATTERNS))
    for shapes in islice(dict.fromkeys(layouts), MAX_CANDIDATES):
        yield {each.name: shape for each, shape in zip(inputs, shapes, strict=True)}


def _shapes_for_sizes(
    inputs: Sequence[ModelInput], bound: Mapping[str, int], sizes: SizePattern, rank: int
) -> tuple[tuple[int, ...], ...]:
    keys = [_dimension_keys(each, rank) for each in inputs]
    leading = {each[0] for each in keys if each}
    assigned: dict[_Key, int] = dict(bound.items())
    other = sizes.other
    for key in chain.from_iterable(keys):
        if key in assigned:
            continue
        if isinstance(key, int):
            assigned[key] = key
        elif key in leading:
            assigned[key] = sizes.leading
        else:
            assigned[key] = other
            other += sizes.step
    return tuple(tuple(assigned[key] for key in each) for each in keys)


def _dimension_keys(graph_input: ModelInput, rank: int) -> tuple[_Key, ...]:
    """Return a key for each dimension: size, name, or (input, axis); equal keys get equal sizes."""
    dims = (None,) * rank if graph_input.dims is None else graph_input.dims
    return tuple((graph_input.name, axis) if dim is None else dim for axis, dim in enumerate(dims))


Feeds = Mapping[str, Any]
"""Values by input name: arrays, and lists or `None` for inputs that are not tensors."""

ProvidedInputs = Mapping[str, object] | str | os.PathLike[str] | None
"""Input values or their files by name, or the path of an .npz file with them."""


def inputs_of(graph: GraphProto) -> tuple[ModelInput, ...]:
    """Return the graph inputs without a default value."""
    defaults = {each.name for each in graph.initializer}
    defaults |= {each.values.name for each in graph.sparse_initializer}
    return tuple(_model_input(value) for value in graph.input if value.name not in defaults)


def with_sizes_of(inputs: Iterable[ModelInput], graph: GraphProto) -> tuple[ModelInput, ...]:
    """Return inputs with the sizes of a converted graph, which may be valid for these sizes only."""
    declared = {value.name: _model_input(value).dims for value in graph.input}
    return tuple(each._replace(dims=_refined_dims(each.dims, declared.get(each.name))) for each in inputs)


def _refined_dims(dims: tuple[Dim, ...] | None, sizes: tuple[Dim, ...] | None) -> tuple[Dim, ...] | None:
    if dims is None or sizes is None or len(dims) != len(sizes):
        return sizes if dims is None else dims
    return tuple(size if isinstance(size, int) else dim for dim, size in zip(dims, sizes, strict=True))


def read_provided(given: ProvidedInputs, graph: GraphProto, converted: GraphProto | None = None) -> Feeds:
    """Return the caller's input values; those of tensors are arrays of the declared types and shapes.

    Raises UsageError for unknown names, other types or shapes, and files that cannot be read.
    """
    inputs = with_sizes_of(map(_model_input, graph.input), converted or graph)
    declared = {each.name: each for each in inputs}
    if not isinstance(given, Mapping | str | os.PathLike | None):
        reason = f"expected arrays by input name, or a path, as inputs, got {type(given).__name__}"
        raise UsageError(reason, remedy="pass a dictionary, or the path of an .npz file")
    values = given if isinstance(given, Mapping) else read_arrays(given) if given is not None else {}
    for name in values:
        if name not in declared:
            remedy = f"the inputs are {', '.join(declared) or 'none'}"
            raise UsageError(f"{name!r} is not an input of the model", remedy=remedy)
    return {name: _convert_provided(value, declared[name]) for name, value in values.items()}


def words_of(model: ModelProto) -> tuple[str, ...]:
    """Return strings in attributes of a model, such as the keys of a LabelEncoder, at most `MAX_WORDS`."""
    attributes = (each for node in nested_nodes(model.graph, *model.functions) for each in node.attribute)
    texts = (text for each in attributes for text in (*each.strings, *each.t.string_data))
    return tuple(islice(dict.fromkeys(each.decode("utf-8", "replace") for each in texts), MAX_WORDS))


class Attempt(NamedTuple):
    """Input sets of equal shapes, and replacements of the last one that have larger sizes."""

    samples: Sequence[Feeds]
    larger: Iterator[Feeds]


def generate_inputs(
    inputs: Sequence[ModelInput], given: Feeds, samples: int, seed: int, words: Sequence[str] = ()
) -> Iterator[Attempt]:
    """Yield attempts with different shapes and integers; the caller stops when the model accepts one.

    `words` are strings that the model may look up: half of the strings in the first attempts are such words.

    Each attempt has `samples` input sets, or one if the caller provides all inputs in `given`. Raises
    CannotVerify if values of an input's type cannot be generated, or if declared sizes are too large.
    """
    missing = [each for each in inputs if each.name not in given]
    for each in missing:
        if each.generated_type is None:
            reason = f"no value can be generated for input {each.name!r} of type {each.type or 'unknown'}"
            raise CannotVerify(reason, remedy=_remedy_for_missing(each))
    known = _known_sizes(inputs, given)
    # integers and strings of digits may be indices or sizes, which models accept only in small ranges
    ranges = INTEGER_RANGES if any(map(_has_range, missing)) else INTEGER_RANGES[:1]
    layouts = _limited_shapes(missing, candidate_shapes(missing, known), samples)

    def feeds_of(layout: InputShapes, sample: int, integer_range: tuple[int, int]) -> Feeds:
        # A seed for each sample makes its values independent of earlier attempts.
        random = np.random.default_rng([seed, sample])
        feeds: dict[str, object] = {}
        for each in missing:
            draw = each.generated_type or "", layout[each.name], sample, integer_range, random, words
            values = [generate_values(*draw) for _ in range(SEQUENCE_LENGTH if each.is_sequence else 1)]
            feeds[each.name] = values if each.is_sequence else values[0]
        return {**feeds, **given}

    used = range(samples if missing else 1)
    for integer_range, layout in product(ranges, layouts):
        larger = (feeds_of(each, used[-1], integer_range) for each in _larger_shapes(missing, layout, known))
        yield Attempt([feeds_of(layout, sample, integer_range) for sample in used], larger)


def _larger_shapes(
    missing: Sequence[ModelInput], layout: InputShapes, known: Mapping[str, int]
) -> Iterator[InputShapes]:
    """Yield shapes with larger sizes for unknown dimensions: first for all, then only for sizes above 1."""
    tried = layout
    for least in (1, 2):  # some models accept only a batch of one element
        larger = {each.name: _enlarge(each, layout[each.name], known, least) for each in missing}
        if (
            larger not in (layout, tried)
            and sum(map(_count_elements, larger.values())) <= MAX_ENLARGED_ELEMENTS
        ):
            yield larger
        tried = larger


def _enlarge(
    each: ModelInput, shape: tuple[int, ...], known: Mapping[str, int], least: int
) -> tuple[int, ...]:
    """Return the shape with larger sizes for unknown dimensions whose size is at least `least`."""
    dims = (None,) * len(shape) if each.dims is None else each.dims
    return tuple(
        size if isinstance(dim, int) or dim in known or size < least else ENLARGED_SIZES.get(size, size)
        for dim, size in zip(dims, shape, strict=True)
    )


def _remedy_for_missing(missing: ModelInput) -> str:
    in_python = f"inputs={{{missing.name!r}: ...}} in Python"
    if missing.generated_type is None:  # files contain tensors only
        return f"provide a value: {in_python}"
    example = f"--input {missing.name}=FILE{'.npz' if missing.is_sequence else ''}"
    return f"provide a value: {example} ({in_python})"


def _limited_shapes(
    missing: Sequence[ModelInput], layouts: Iterable[InputShapes], samples: int
) -> list[InputShapes]:
    """Return the shapes within the limits of generated inputs; raise CannotVerify if there are none."""
    all_layouts = list(layouts)
    found = [each for each in all_layouts if _can_be_generated(each.values(), samples)]
    if found or not all_layouts:
        return found
    shapes = all_layouts[0]
    largest = max(missing, key=lambda each: (len(shapes[each.name]), _count_elements(shapes[each.name])))
    if all(len(shape) <= MAX_GENERATED_RANK for shape in shapes.values()):
        largest = max(missing, key=lambda each: _count_elements(shapes[each.name]))
    shape = shape_to_string(shapes[largest.name])
    reason = f"input {largest.name!r} with the shape {shape} is too large: no values were generated"
    raise CannotVerify(reason, remedy=_remedy_for_missing(largest))


def _can_be_generated(shapes: Iterable[tuple[int, ...]], samples: int) -> bool:
    sizes = list(shapes)
    has_ranks = all(len(shape) <= MAX_GENERATED_RANK for shape in sizes)
    return has_ranks and samples * sum(map(_count_elements, sizes)) <= MAX_GENERATED_ELEMENTS


def _count_elements(shape: tuple[int, ...]) -> int:
    """Return the product of the nonzero sizes, which numpy limits even if the array has no elements."""
    return math.prod(size or 1 for size in shape)


def _has_range(each: ModelInput) -> bool:
    kind = each.generated_type
    return kind is not None and ("int" in kind or kind == "string")


def _known_sizes(inputs: Sequence[ModelInput], given: Feeds) -> dict[str, int]:
    """Return the sizes of named dimensions in the caller's arrays, by name."""
    return {
        dim: size
        for each in inputs
        if isinstance(array := given.get(each.name), np.ndarray)
        for dim, size in zip(each.dims or (), array.shape, strict=False)
        if isinstance(dim, str)
    }


def _model_input(value: ValueInfoProto) -> ModelInput:
    is_tensor = value.type.WhichOneof("value") == "tensor_type"
    element_type = element_type_of(value.type) if is_tensor else None
    inner = value.type
    while inner.WhichOneof("value") in ("sequence_type", "optional_type"):
        inner = getattr(inner, str(inner.WhichOneof("value"))).elem_type
    return ModelInput(value.name, type_to_string(value.type) or "", element_type, declared_dims(inner))


def _convert_provided(value: object, declared: ModelInput) -> object:
    """Return a tensor as an array of the declared type and shape, or raise UsageError; keep non-tensors."""
    if isinstance(value, os.PathLike):
        value = _read_sequence(value) if declared.is_sequence else read_array(value, declared.name)
    if declared.element_type is None:
        return value
    dtype = dtype_of(declared.element_type)
    try:
        array = np.asarray(value, None if isinstance(value, np.ndarray | np.generic) else dtype)
    except (TypeError, ValueError, OverflowError) as error:
        reason = f"input {declared.name!r} is not an array of {declared.element_type}: {error}"
        raise UsageError(reason, remedy="provide an array of this type") from error
    if array.dtype.kind == "V" and array.dtype.itemsize == dtype.itemsize:
        array = array.view(dtype)  # numpy files store the types of ml_dtypes as raw bytes
    element_type = array_element_type(array)
    if element_type != declared.element_type:
        reason = f"input {declared.name!r} has the type {element_type} instead of {declared.element_type}"
        raise UsageError(reason, remedy="convert the array")
    dims = array.shape if declared.dims is None else declared.dims
    sizes = zip(dims, array.shape, strict=False)
    if len(dims) != array.ndim or any(isinstance(dim, int) and dim != size for dim, size in sizes):
        found = shape_to_string(array.shape)
        reason = f"input {declared.name!r} has the shape {found} instead of {dims_text(dims)}"
        raise UsageError(reason, remedy="provide an array of this shape")
    return array.astype(dtype, copy=False)


WORDS = ("", "a", "B", "opshift", "12", "-3.5")

NUMERALS = ("0", "1")
"""Strings to try after `WORDS`, for models that convert text to numbers."""

MAX_WORDS = 100
"""Maximum number of strings of a model to choose inputs from."""

INTEGER_RANGES = ((0, 9), (1, 4), (0, 1), (1, 1), (0, 0))
"""Inclusive ranges to try in turn: indices into small tables, sizes, flags, only ones, only zeros."""

FULL_RANGES = {"int8": (-128, 127), "uint8": (0, 255)}
"""Ranges of types that usually hold quantized values; in most samples, they replace the first range above."""

MAX_VALUES = {"int4": 7, "uint4": 15, "int2": 1, "uint2": 3}
"""Largest values of 2-bit and 4-bit integers, which limit INTEGER_RANGES."""


def generate_values(
    element_type: str,
    shape: tuple[int, ...],
    sample: int,
    integer_range: tuple[int, int],
    random: np.random.Generator,
    words: Sequence[str] = (),
) -> Array:
    """Return an array of random values; `sample` selects the distribution of floats and 8-bit integers."""
    values: Array
    if element_type == "string":
        is_first = integer_range == INTEGER_RANGES[0]
        values = random.choice(np.array(WORDS if is_first else NUMERALS, object), shape)
        if words and is_first:
            found = random.choice(np.array(words, object), shape)
            values = np.where(random.random(shape) < 0.5, found, values)
    elif element_type == "bool":
        values = random.integers(0, 2, shape)
    elif "int" in element_type:
        limits = _integer_limits(element_type, integer_range, sample)
        values = random.integers(*limits, shape, endpoint=True)
    elif element_type.startswith("complex"):
        values = _random_floats(shape, sample, random) + 1j * _random_floats(shape, sample, random)
    else:
        values = _random_floats(shape, sample, random)
    return np.asarray(values, dtype_of(element_type))


def _integer_limits(element_type: str, integer_range: tuple[int, int], sample: int) -> tuple[int, int]:
    # As for floats, one of three samples has many equal values.
    if integer_range == INTEGER_RANGES[0] and element_type in FULL_RANGES and sample % 3 != 1:
        return FULL_RANGES[element_type]
    least, most = integer_range
    return least, min(most, MAX_VALUES.get(element_type, most))


def _random_floats(shape: tuple[int, ...], sample: int, random: np.random.Generator) -> Array:
    """Return, by sample: floats near 0; multiples of 0.5 with zeros, ties and duplicates; or large floats."""
    if sample % 3 == 1:
        return np.asarray(random.integers(-8, 8, shape, endpoint=True) / 2)
    return np.asarray(random.normal(0, 100 if sample % 3 else 1, shape))
