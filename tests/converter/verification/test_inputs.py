"""What both models are given: generated, from the caller, or both."""

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
from opshift.converter.verification.inputs import Feeds, draw, inputs_of, read_given

FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING
Dims = Sequence[int | str | None] | None


def graph(inputs: Mapping[str, tuple[int, Dims]], initializers: Sequence[str] = ()) -> onnx.GraphProto:
    """A graph that only has inputs, some of them with defaults."""
    values = [helper.make_tensor_value_info(name, kind, dims) for name, (kind, dims) in inputs.items()]
    defaults = [numpy_helper.from_array(np.zeros(2, np.float32), name) for name in initializers]
    return helper.make_graph([], "g", values, [], defaults)


def drawn(of: onnx.GraphProto, given: Feeds | None = None, samples: int = 3) -> list[tuple[Feeds, ...]]:
    """The samples of every try."""
    inputs = inputs_of(of)
    return [each.samples for each in draw(inputs, read_given(given, of), samples, seed=0)]


def test_inputs_with_a_default_are_left_at_it() -> None:
    of = graph({"x": (FLOAT, [2]), "w": (FLOAT, [2])}, ["w"])
    assert [each.name for each in inputs_of(of)] == ["x"]
    assert set(drawn(of)[0][0]) == {"x"}
    assert set(drawn(of, {"w": np.ones(2, np.float32)})[0][0]) == {"x", "w"}


def test_samples_differ_and_come_again() -> None:
    of = graph({"x": (FLOAT, [4])})
    (first,) = drawn(of)
    (again,) = drawn(of)
    assert len(first) == 3
    assert len({each["x"].tobytes() for each in first}) == 3
    assert [each["x"].tobytes() for each in first] == [each["x"].tobytes() for each in again]


def test_floats_of_fixed_shape_leave_one_try() -> None:
    assert len(drawn(graph({"x": (FLOAT, [4])}))) == 1


def test_integers_have_another_range_with_every_try() -> None:
    tries = [np.stack([each["x"] for each in samples]) for samples in drawn(graph({"x": (INT64, [200])}))]
    assert [(values.min(), values.max()) for values in tries] == [(0, 9), (1, 4), (0, 1), (1, 1), (0, 0)]


def test_what_the_caller_gives_binds_the_names_of_dimensions() -> None:
    of = graph({"x": (FLOAT, ["N", 3]), "mask": (INT64, ["N"])})
    for samples in drawn(of, {"x": np.ones((5, 3), np.float32)}):
        assert all(each["mask"].shape == (5,) for each in samples)
        assert all(each["x"].shape == (5, 3) for each in samples)


def test_one_sample_is_enough_if_all_is_given() -> None:
    of = graph({"x": (FLOAT, ["N"])})
    assert [len(samples) for samples in drawn(of, {"x": np.ones(2, np.float32)})] == [1]
    assert [len(samples) for samples in drawn(graph({}))] == [1]


@pytest.mark.parametrize(
    ("value", "element", "expected"),
    [
        pytest.param([1, 2], FLOAT, np.float32, id="a list"),
        pytest.param(3, INT64, np.int64, id="a number"),
        pytest.param(np.array(["a", "b"]), STRING, object, id="text"),
        pytest.param(np.array([1, 2], np.float32), FLOAT, np.float32, id="an array"),
        pytest.param(
            np.array([1, 2], ml_dtypes.bfloat16).view("V2"),
            TensorProto.BFLOAT16,
            ml_dtypes.bfloat16,
            id="bits",
        ),
    ],
)
def test_values_become_arrays_of_the_declared_type(value: Any, element: int, expected: Any) -> None:
    found = read_given({"x": value}, graph({"x": (element, None)}))
    assert found["x"].dtype == expected


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param({"y": 1}, "'y' is not an input", id="no input"),
        pytest.param(
            {"x": np.ones(2, np.float64)}, "input 'x' has the type double instead of float", id="another type"
        ),
        pytest.param({"x": [[1], [2, 3]]}, "input 'x' is not an array", id="a ragged list"),
        pytest.param({"x": ["a"]}, "input 'x' is not an array", id="text for numbers"),
        pytest.param("missing.npz", "cannot be read as arrays", id="no file"),
    ],
)
def test_what_is_no_input_of_the_model_is_refused(given: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_given(given, graph({"x": (FLOAT, [2])}))


def test_inputs_are_read_from_a_file(tmp_path: Path) -> None:
    of = graph({"x": (FLOAT, [2]), "t": (STRING, [1]), "h": (TensorProto.BFLOAT16, [2])})
    halves = np.ones(2, ml_dtypes.bfloat16)
    np.savez(tmp_path / "inputs.npz", x=np.ones(2, np.float32), t=np.array(["a"]), h=halves)
    found = read_given(tmp_path / "inputs.npz", of)
    assert {name: each.tolist() for name, each in found.items()} == {"x": [1, 1], "t": ["a"], "h": [1, 1]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "cannot be read as arrays", id="an empty file"),
        pytest.param(b"PK\x03\x04 no archive", "cannot be read as arrays", id="a broken archive"),
        pytest.param(b"\x93NUMPY\x01\x00", "cannot be read as arrays", id="a broken array"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "inputs.npz"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=message):
        read_given(path, graph({"x": (FLOAT, [2])}))


def test_a_single_array_and_pickled_objects_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", np.ones(2, np.float32))
    np.savez(tmp_path / "objects.npz", x=np.array([None]))
    for name in ("one.npy", "objects.npz"):
        with pytest.raises(UsageError, match="cannot be read as arrays"):
            read_given(tmp_path / name, graph({"x": (FLOAT, [2])}))


def sequence_model(kind: onnx.TypeProto, op: str, inputs: Sequence[str]) -> onnx.ModelProto:
    """A node that takes `s` of some type and an index."""
    values = [helper.make_value_info("s", kind), helper.make_tensor_value_info("i", INT64, [])][: len(inputs)]
    out = helper.make_tensor_value_info("y", FLOAT, None)
    of = helper.make_graph([helper.make_node(op, inputs, ["y"])], "g", values, [out])
    return helper.make_model(of, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


TENSOR = helper.make_tensor_type_proto(FLOAT, None)
SEQUENCE = helper.make_sequence_type_proto(TENSOR)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        pytest.param(
            sequence_model(SEQUENCE, "SequenceAt", ["s", "i"]), "seq(tensor(float))", id="a sequence"
        ),
        pytest.param(
            sequence_model(helper.make_optional_type_proto(TENSOR), "OptionalGetElement", ["s"]),
            "optional(tensor(float))",
            id="an optional",
        ),
    ],
)
def test_no_sequences_and_optionals_are_made_up(model: onnx.ModelProto, said: str) -> None:
    with pytest.raises(CannotVerify) as error:
        verify(model, model)
    assert f"no value can be generated for input 's' of type {said}" in str(error.value)
    assert error.value.remedy == "provide a value: inputs={'s': ...}"


def test_a_sequence_may_be_given() -> None:
    model = sequence_model(SEQUENCE, "SequenceAt", ["s", "i"])
    arrays = [np.ones(2, np.float32), np.zeros(2, np.float32)]
    found = verify(model, model, {"s": arrays})
    assert [(each.name, each.shape, each.given) for each in found.inputs] == [
        ("s", None, True),
        ("i", (), False),
    ]
    assert found.equal
