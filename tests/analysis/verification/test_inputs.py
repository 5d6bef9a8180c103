"""Inputs of both models: generated, given by the caller, or both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from opshift import CannotVerify, UsageError, verify
from opshift.analysis.verification.inputs import Feeds, generate_inputs, inputs_of, read_provided

FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING
Dims = Sequence[int | str | None] | None


def make_graph(inputs: Mapping[str, tuple[int, Dims]], initializers: Sequence[str] = ()) -> onnx.GraphProto:
    """Build a graph without nodes; inputs with an initializer have a default."""
    values = [
        helper.make_tensor_value_info(name, element_type, dims)
        for name, (element_type, dims) in inputs.items()
    ]
    defaults = [numpy_helper.from_array(np.zeros(2, np.float32), name) for name in initializers]
    return helper.make_graph([], "g", values, [], defaults)


def samples_of_attempts(
    model_graph: onnx.GraphProto, given: Feeds | None = None, samples: int = 3
) -> list[list[Feeds]]:
    """Return the samples of each attempt."""
    inputs = inputs_of(model_graph)
    attempts = generate_inputs(inputs, read_provided(given, model_graph), samples, seed=0)
    return [list(attempt.samples) for attempt in attempts]


def test_leaves_inputs_with_initializer_at_default() -> None:
    model_graph = make_graph({"x": (FLOAT, [2]), "w": (FLOAT, [2])}, ["w"])
    assert [each.name for each in inputs_of(model_graph)] == ["x"]
    assert set(samples_of_attempts(model_graph)[0][0]) == {"x"}
    assert set(samples_of_attempts(model_graph, {"w": np.ones(2, np.float32)})[0][0]) == {"x", "w"}


def test_samples_differ_and_are_reproducible() -> None:
    model_graph = make_graph({"x": (FLOAT, [4])})
    (first,) = samples_of_attempts(model_graph)
    (repeated,) = samples_of_attempts(model_graph)
    assert len(first) == 3
    assert len({each["x"].tobytes() for each in first}) == 3
    assert [each["x"].tobytes() for each in first] == [each["x"].tobytes() for each in repeated]


def test_one_attempt_for_floats_of_fixed_shape() -> None:
    assert len(samples_of_attempts(make_graph({"x": (FLOAT, [4])}))) == 1


def test_each_attempt_has_different_integer_range() -> None:
    attempts = [
        np.stack([each["x"] for each in samples])
        for samples in samples_of_attempts(make_graph({"x": (INT64, [200])}))
    ]
    assert [(values.min(), values.max()) for values in attempts] == [(0, 9), (1, 4), (0, 1), (1, 1), (0, 0)]


def test_given_inputs_bind_symbolic_dimensions() -> None:
    model_graph = make_graph({"x": (FLOAT, ["N", 3]), "mask": (INT64, ["N"])})
    for samples in samples_of_attempts(model_graph, {"x": np.ones((5, 3), np.float32)}):
        assert all(each["mask"].shape == (5,) for each in samples)
        assert all(each["x"].shape == (5, 3) for each in samples)


def test_one_sample_if_all_inputs_are_given() -> None:
    model_graph = make_graph({"x": (FLOAT, ["N"])})
    assert [len(samples) for samples in samples_of_attempts(model_graph, {"x": np.ones(2, np.float32)})] == [
        1
    ]
    assert [len(samples) for samples in samples_of_attempts(make_graph({}))] == [1]


@pytest.mark.parametrize(
    ("value", "element", "expected"),
    [
        pytest.param([1, 2], FLOAT, np.float32, id="list"),
        pytest.param(3, INT64, np.int64, id="number"),
        pytest.param(np.array(["a", "b"]), STRING, object, id="strings"),
        pytest.param(np.array([1, 2], np.float32), FLOAT, np.float32, id="array"),
        pytest.param(
            np.array([1, 2], ml_dtypes.bfloat16).view("V2"),
            TensorProto.BFLOAT16,
            ml_dtypes.bfloat16,
            id="raw bits",
        ),
    ],
)
def test_converts_values_to_declared_type(value: Any, element: int, expected: Any) -> None:
    arrays = read_provided({"x": value}, make_graph({"x": (element, None)}))
    assert arrays["x"].dtype == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param({"y": 1}, "'y' is not an input", id="unknown input"),
        pytest.param(
            {"x": np.ones(2, np.float64)},
            "input 'x' has the type double instead of float",
            id="different type",
        ),
        pytest.param({"x": [[1], [2, 3]]}, "input 'x' is not an array", id="ragged list"),
        pytest.param({"x": ["a"]}, "input 'x' is not an array", id="strings instead of floats"),
        pytest.param("missing.npz", "cannot be read as arrays", id="missing file"),
    ],
)
def test_refuses_invalid_input(given: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_provided(given, make_graph({"x": (FLOAT, [2])}))


@pytest.mark.parametrize(
    ("element", "value"),
    [
        pytest.param(TensorProto.INT8, [300, 1], id="int8"),
        pytest.param(TensorProto.UINT8, [-1], id="uint8"),
        pytest.param(INT64, 2**70, id="int64"),
        pytest.param(FLOAT, [10**400], id="float"),
        pytest.param(TensorProto.BFLOAT16, [10**400], id="bfloat16"),
    ],
)
def test_refuses_numbers_out_of_the_range_of(element: int, value: Any) -> None:
    with pytest.raises(UsageError, match="input 'x' is not an array of"):
        read_provided({"x": value}, make_graph({"x": (element, None)}))


def test_reads_inputs_from_file(tmp_path: Path) -> None:
    model_graph = make_graph({"x": (FLOAT, [2]), "t": (STRING, [1]), "h": (TensorProto.BFLOAT16, [2])})
    halves = np.ones(2, ml_dtypes.bfloat16)
    np.savez(tmp_path / "inputs.npz", x=np.ones(2, np.float32), t=np.array(["a"]), h=halves)
    arrays = read_provided(tmp_path / "inputs.npz", model_graph)
    assert {name: each.tolist() for name, each in arrays.items()} == {"x": [1, 1], "t": ["a"], "h": [1, 1]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "cannot be read as arrays", id="empty file"),
        pytest.param(b"PK\x03\x04 no archive", "cannot be read as arrays", id="broken archive"),
        pytest.param(b"\x93NUMPY\x01\x00", "cannot be read as arrays", id="broken array"),
    ],
)
def test_refuses_invalid_file(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "inputs.npz"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=message):
        read_provided(path, make_graph({"x": (FLOAT, [2])}))


def test_refuses_single_array_and_pickled_objects(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", np.ones(2, np.float32))
    np.savez(tmp_path / "objects.npz", x=np.array([None]))
    for name in ("one.npy", "objects.npz"):
        with pytest.raises(UsageError, match="cannot be read as arrays"):
            read_provided(tmp_path / name, make_graph({"x": (FLOAT, [2])}))


def sequence_model(
    input_type: onnx.TypeProto, op: str, inputs: Sequence[str], output: int = FLOAT
) -> onnx.ModelProto:
    """Build a model with one node that reads input `s` of the given type, and perhaps an index."""
    values = [helper.make_value_info("s", input_type), helper.make_tensor_value_info("i", INT64, [])][
        : len(inputs)
    ]
    out = helper.make_tensor_value_info("y", output, None)
    model_graph = helper.make_graph([helper.make_node(op, inputs, ["y"])], "g", values, [out])
    return helper.make_model(model_graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


TENSOR = helper.make_tensor_type_proto(FLOAT, None)
SEQUENCE = helper.make_sequence_type_proto(TENSOR)


STRINGS = helper.make_sequence_type_proto(helper.make_tensor_type_proto(STRING, ["N"]))
GENERATED = {
    "sequence": sequence_model(SEQUENCE, "SequenceAt", ["s", "i"]),
    "sequence of strings": sequence_model(STRINGS, "SequenceAt", ["s", "i"], STRING),
    "optional": sequence_model(helper.make_optional_type_proto(TENSOR), "OptionalGetElement", ["s"]),
    "optional sequence": sequence_model(
        helper.make_optional_type_proto(SEQUENCE), "OptionalHasElement", ["s"], TensorProto.BOOL
    ),
}


@pytest.mark.parametrize("runtime", ["onnxruntime", "reference"])
@pytest.mark.parametrize("model", GENERATED.values(), ids=GENERATED)
def test_generates_sequences_and_optionals(model: onnx.ModelProto, runtime: Any) -> None:
    found = verify(model, model, runtime=runtime)
    assert (found.equal, found.inputs[0].given) == (True, False)
    assert found.outputs[0].count


def test_tensors_of_a_sequence_share_the_sizes_of_other_inputs() -> None:
    tensors = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, ["N", 4]))
    graph = make_graph({"x": (FLOAT, ["N"])})
    graph.input.append(helper.make_value_info("s", tensors))
    for samples in samples_of_attempts(graph):
        for each in samples:
            assert [tensor.shape for tensor in each["s"]] == [(each["x"].size, 4)] * 3


def test_does_not_generate_maps() -> None:
    kind = onnx.TypeProto()
    kind.map_type.key_type = INT64
    kind.map_type.value_type.CopyFrom(TENSOR)
    model = sequence_model(kind, "Identity", ["s"])
    with pytest.raises(CannotVerify, match=r"input 's' of type map\(int64, float\)") as error:
        verify(model, model)
    assert error.value.remedy == "provide a value: inputs={'s': ...} in Python"


@pytest.mark.parametrize(
    "dims",
    [
        pytest.param([100_000, 100_000], id="elements of 37 GiB"),
        pytest.param([2**40, 2**40], id="more elements than 64 bits count"),
        pytest.param([1] * 65, id="more dimensions than numpy has"),
        pytest.param(["N", 2**40], id="one large dimension"),
    ],
)
def test_generates_no_values_for_hostile_sizes(dims: Dims) -> None:
    model_graph = make_graph({"small": (FLOAT, [2]), "x": (FLOAT, dims)})
    with pytest.raises(CannotVerify, match=r"input 'x' with the shape .* is too large") as error:
        samples_of_attempts(model_graph)
    assert error.value.remedy == "provide a value: --input x=FILE (inputs={'x': ...} in Python)"


def test_provided_inputs_do_not_count_as_generated() -> None:
    model_graph = make_graph({"x": (FLOAT, [2**15, 2**15]), "y": (FLOAT, [2])})
    given = {"x": np.broadcast_to(np.float32(1), (2**15, 2**15))}
    attempts = generate_inputs(inputs_of(model_graph), given, 3, seed=0)
    assert [each["y"].shape for each in next(attempts).samples] == [(2,)] * 3


LARGER = {
    "fixed": ([2, 3], []),
    "symbol": (["N", 5], [(5, 5)]),
    "a batch of one": ([1, "N"], [(1, 7)]),
    "too many elements": (["N", 10000], []),
}


@pytest.mark.parametrize(("dims", "expected"), LARGER.values(), ids=LARGER)
def test_larger_sizes_of_the_last_sample(dims: Dims, expected: object) -> None:
    inputs = inputs_of(make_graph({"x": (FLOAT, dims)}))
    attempt = next(generate_inputs(inputs, {}, 3, 0))
    assert [each["x"].shape for each in attempt.larger] == expected


def test_reads_a_sequence_from_an_npz_file(tmp_path: Path) -> None:
    model = sequence_model(SEQUENCE, "SequenceAt", ["s", "i"])
    np.savez(tmp_path / "s.npz", np.ones(2, np.float32), np.zeros(3, np.float32))
    value = read_provided({"s": tmp_path / "s.npz"}, model.graph)["s"]
    assert [each.shape for each in value] == [(2,), (3,)]
    assert verify(model, model, {"s": tmp_path / "s.npz"}).equal


def test_accepts_given_sequence() -> None:
    model = sequence_model(SEQUENCE, "SequenceAt", ["s", "i"])
    arrays = [np.ones(2, np.float32), np.zeros(2, np.float32)]
    verification = verify(model, model, {"s": arrays})
    assert [(each.name, each.shape, each.given) for each in verification.inputs] == [
        ("s", None, True),
        ("i", (), False),
    ]
    assert verification.equal


VALUES = {
    "float": np.array([[1.5, -2.0]], np.float32),
    "double": np.array([[1.5, -2.0]]),
    "float16": np.array([[1.5, -2.0]], np.float16),
    "bfloat16": np.array([[1.5, -2.0]], ml_dtypes.bfloat16),
    "int64": np.array([[1, -2]]),
    "uint8": np.array([[1, 255]], np.uint8),
    "bool": np.array([[True, False]]),
    "string": np.array([["a", "é"]], object),
}


def _write_tensor(path: Path, array: Any) -> None:
    element = helper.np_dtype_to_tensor_dtype(array.dtype)
    raw = element not in (STRING, TensorProto.BOOL)
    values = array.tobytes() if raw else [str(each).encode() for each in array.ravel()]
    if element == TensorProto.BOOL:
        values = array.ravel().tolist()
    path.write_bytes(helper.make_tensor("", element, array.shape, values, raw).SerializeToString())


@pytest.mark.parametrize("suffix", [".npy", ".npz", ".pb"])
@pytest.mark.parametrize("array", VALUES.values(), ids=VALUES)
def test_reads_value_from_file(tmp_path: Path, array: Any, suffix: str) -> None:
    graph = make_graph({"x": (helper.np_dtype_to_tensor_dtype(array.dtype), ["N", 2])})
    path = tmp_path / f"x{suffix}"
    stored = array.astype(str) if array.dtype == object else array
    if suffix == ".pb":
        _write_tensor(path, array)
    elif suffix == ".npy":
        np.save(path, stored)
    else:
        np.savez(path, stored)
    (value,) = read_provided({"x": path}, graph).values()
    assert (value.dtype, value.tolist()) == (array.dtype, array.tolist())


def test_reads_array_of_npz_file_by_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.ones(2, np.float32), y=np.zeros(2, np.float32))
    given = dict.fromkeys("xy", tmp_path / "a.npz")
    found = read_provided(given, make_graph({"x": (FLOAT, [2]), "y": (FLOAT, [2])}))
    assert [found[name].tolist() for name in "xy"] == [[1, 1], [0, 0]]
    with pytest.raises(UsageError, match=r"a.npz: contains x, y, but not 'z' \(rename the array\)"):
        read_provided({"z": tmp_path / "a.npz"}, make_graph({"z": (FLOAT, [2])}))


def _huge_array() -> bytes:
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000000,), }".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()


BAD_FILES = {
    "missing": ("x.npy", None),
    "empty": ("x.npy", b""),
    "no array": ("x.npy", b"text"),
    "larger than its file": ("x.npy", _huge_array()),
    "cut off": ("x.npy", _huge_array()[:40]),
    "broken archive": ("x.npz", b"PK\x03\x04nothing"),
    "no message": ("x.pb", b"\xff\xff"),
    "empty message": ("x.pb", b""),
    "elements missing": ("x.pb", helper.make_tensor("", FLOAT, [1], [1.0]).SerializeToString() + b"\x08\x05"),
    "invalid UTF-8": ("x.pb", helper.make_tensor("", STRING, [1], [b"\xff"]).SerializeToString()),
    "type that numpy lacks": (
        "x.pb", helper.make_tensor("", TensorProto.FLOAT8E5M2, [1], [1.0]).SerializeToString(),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "content"), BAD_FILES.values(), ids=BAD_FILES)
def test_refuses_bad_file_of_input(tmp_path: Path, name: str, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match="cannot be read as arrays: ") as error:
        read_provided({"x": tmp_path / name}, make_graph({"x": (FLOAT, [5])}))
    assert str(error.value.place) == str(tmp_path / name)


@pytest.mark.parametrize(
    ("declared", "shape", "message"),
    [
        pytest.param(["N", 3], (2, 4), r"\[2, 4\] instead of \[N, 3\]", id="size"),
        pytest.param(["N", 3], (2, 3, 1), r"\[2, 3, 1\] instead of \[N, 3\]", id="rank"),
        pytest.param([], (1,), r"\[1\] instead of \[\]", id="scalar"),
        pytest.param([None, 0], (2, 1), r"\[2, 1\] instead of \[\?, 0\]", id="no elements"),
    ],
)
def test_refuses_input_of_different_shape(declared: Dims, shape: tuple[int, ...], message: str) -> None:
    graph = make_graph({"x": (FLOAT, declared)})
    with pytest.raises(UsageError, match=f"input 'x' has the shape {message}"):
        read_provided({"x": np.ones(shape, np.float32)}, graph)


@pytest.mark.parametrize("declared", [["N", 3], [None, "M"], [2, 3], None])
def test_accepts_input_of_declared_shape(declared: Dims) -> None:
    given = {"x": np.ones((2, 3), np.float32)}
    assert read_provided(given, make_graph({"x": (FLOAT, declared)}))["x"].shape == (2, 3)
