"""Values of examples: an element type represents them, or they are refused; bodies compute with them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.proposals import proposal, replace_text

from opshift.analysis.verification.numpy_types import array_element_type
from opshift.proposals.check import check_proposal
from opshift.proposals.content.models import Example, ExampleTensor
from opshift.proposals.evidence.cases import BadValue, case_of_example, cases_in_other_types
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.record import from_plain_data


def _read(element_type: str, values: object) -> list[object]:
    """Return the values that the input of an example has, after they are read as an element type."""
    data = {
        "domain": "com.acme",
        "name": "Copy",
        "since_version": 1,
        "inputs": [{"name": "X", "type": f"tensor({element_type})"}],
    }
    version = from_plain_data(OperatorVersion, data)
    operator = Operator(domain="com.acme", name="Copy", versions=(version,))
    example = Example(name="copy", inputs=(ExampleTensor(type=element_type, values=values),))
    (array,) = case_of_example(example, 0, operator, version).inputs
    assert array is not None
    assert array_element_type(array) == element_type
    return list(array.tolist())


@pytest.mark.parametrize(
    ("element_type", "values", "expected"),
    [
        ("int64", [2**63 - 1, -(2**63)], None),
        ("uint64", [2**64 - 1, 0], None),
        ("int64", [2**53 + 1, 0.0], [2**53 + 1, 0]),
        ("int32", [7.0, "7"], [7, 7]),
        ("int4", [-8, 7], None),
        ("bool", [True, 0], [True, False]),
        ("float", [0.1, "1e5"], [float(np.float32(0.1)), 1e5]),
        ("float16", ["inf", 65504], [float("inf"), 65504]),
        ("bfloat16", [3.14, "-inf"], [3.140625, float("-inf")]),
        ("complex64", ["inf", 0.5], [complex("inf"), 0.5]),
        ("float8e4m3fn", [460, -448], [448, -448]),
        ("float8e5m2", ["inf", "-inf"], [float("inf"), float("-inf")]),
        ("float8e8m0", [0.5, 3e38 / 2], [0.5, 2.0**127]),
        ("float4e2m1", [6.9, -5.5, 0.2], [6, -6, 0]),
        ("float6e2m3", [7.7], [7.5]),
        ("float6e3m2", [-29.9], [-28]),
        ("string", ["a", "nan"], None),
    ],
)
def test_keeps_values_that_the_type_represents(
    element_type: str, values: list[object], expected: list[object] | None
) -> None:
    assert _read(element_type, values) == (values if expected is None else expected)


@pytest.mark.parametrize(
    ("element_type", "values", "reason"),
    [
        ("uint8", [1, 300], "300 "),
        ("uint8", [-1], "-1 "),
        ("int64", [1.7], "1.7 would become 1"),
        ("int64", [2**63], ""),
        ("int32", ["nan"], ""),
        ("int4", [9], ""),
        ("bool", [2], "2 would become True"),
        ("float", [None], "None is not a number"),
        ("float", [[1], [None]], "None is not a number"),
        ("float16", [1e6], "1000000.0 would become inf"),
        ("float8e4m3fn", [1000], "1000 would become nan"),
        ("float8e4m3fn", ["inf"], "inf would become nan"),
        ("float8e5m2fnuz", [1, "-inf"], "-inf would become nan"),
        ("float8e8m0", [0.0], "0.0 would become nan"),
        ("float4e2m1", [100.0], "100.0 would become 6"),
        ("float4e2m1", [-7.1], "-7.1 would become -6"),
        ("float4e2m1", ["inf"], "inf would become 6"),
        ("float4e2m1", ["nan"], "nan would become "),
        ("float6e2m3", [7.8], "7.8 would become 7.5"),
        ("float6e3m2", [30.1], "30.1 would become 28"),
        ("string", [1], "1 is not a string"),
        ("string", [None], "None is not a string"),
        ("float", ["abc"], "could not convert"),
    ],
)
def test_refuses_values_that_a_cast_changes(element_type: str, values: list[object], reason: str) -> None:
    with pytest.raises(BadValue, match=f"invalid values for type {element_type}.*{reason}"):
        _read(element_type, values)


@pytest.mark.parametrize(
    ("values", "types"),
    [
        ([0.1, 65504.0], ["double", "float16"]),
        (["nan", "inf"], ["double", "float16"]),
        ([1e6], ["double", "int64"]),
        ([1e30], ["double"]),
        ([3.0], ["double", "float16", "int64"]),
    ],
    ids=str,
)
def test_tests_other_types_that_represent_the_values(values: list[object], types: list[str]) -> None:
    """A floating-point type may round the values, but neither overflow nor become NaN."""
    data = {
        "domain": "com.acme",
        "name": "Copy",
        "since_version": 1,
        "inputs": [{"name": "X", "type": "T"}],
        "type_constraints": {"T": [f"tensor({each})" for each in ("double", "float", "float16", "int64")]},
    }
    version = from_plain_data(OperatorVersion, data)
    operator = Operator(domain="com.acme", name="Copy", versions=(version,))
    example = Example(name="copy", inputs=(ExampleTensor(type="float", values=values),))
    case = case_of_example(example, 0, operator, version)
    assert [each.retyped for each in cases_in_other_types(case)] == types


@pytest.mark.parametrize("name", ["input_0", "output_0", "body_square"])
def test_values_of_a_body_have_any_name(tmp_path: Path, name: str) -> None:
    """The model of the body names its inputs and outputs by position, apart from values of the body."""
    edits = [
        replace_text("operator.yaml", "outputs: [square]", f"outputs: [{name}]"),
        replace_text("operator.yaml", "inputs: [square, ", f"inputs: [{name}, "),
    ]
    assert check_proposal(proposal("function", tmp_path / "sq", *edits)).errors == ()
