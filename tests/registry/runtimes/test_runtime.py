"""Kernels of a runtime: answers, with reasons and remedies."""

from __future__ import annotations

import pickle

import pytest

from opshift.model.operator_ids import OperatorId
from opshift.registry.record import from_plain_data
from opshift.registry.runtimes.runtime import Runtime

RUNTIME = from_plain_data(
    Runtime,
    {
        "runtime": "toy",
        "version": "1.0",
        "opsets": {"ai.onnx": 13, "com.toy": 1},
        "ir_version": 7,
        "expands_functions": False,
        "computes_in": {"float16": "float"},
        "evidence": {"kind": "measurement", "source": "tests", "date": "2026-11-23"},
        "operators": {
            "ai.onnx.Add": [
                {"versions": [7, 7], "types": {"T": ["float"]}},
                {"versions": [13, 14], "types": {"T": ["all_integer_types", "float"]}},
            ],
            "ai.onnx.OneHot": [
                {"versions": [9, 11], "types": {"T1": ["int64"], "T2": ["int64"], "T3": ["float", "int64"]}},
                {"versions": [9, 11], "types": {"T1": ["float"], "T2": ["float"], "T3": ["float"]}},
            ],
            "ai.onnx.Constant": [{"versions": [1, 13]}],
            "ai.onnx.Abs": [],
            "com.toy.Blur": [{"versions": [1, 1], "types": {"T": ["seq(tensor(float))"]}}],
        },
        "restrictions": {"ai.onnx.OneHot": "the axis must be the last"},
        "wrong": {"ai.onnx.OneHot:9": "negative indices are off by one"},
    },
)

INT64, FLOAT, FLOAT16 = "tensor(int64)", "tensor(float)", "tensor(float16)"


@pytest.mark.parametrize(
    ("operator", "types"),
    [
        pytest.param("Add:13", {"T": "tensor(uint8)"}, id="type in a set"),
        pytest.param("Add:7", {"T": FLOAT}, id="older version"),
        pytest.param("Add:7", {"T": FLOAT16}, id="type that is computed in another one"),
        pytest.param("Add:13", {}, id="unknown types"),
        pytest.param("Add:13", {"T": FLOAT, "A": INT64}, id="types of other names"),
        pytest.param("OneHot:11", {"T1": INT64, "T2": INT64, "T3": INT64}, id="combination"),
        pytest.param("OneHot:11", {"T1": FLOAT16, "T2": FLOAT16}, id="wider combination"),
        pytest.param("Constant:13", {"": "tensor(string)"}, id="all types"),
        pytest.param("com.toy.Blur:1", {"T": "seq(tensor(float))"}, id="sequence in a private domain"),
    ],
)
def test_finds_a_kernel(operator: str, types: dict[str, str]) -> None:
    support = RUNTIME.kernel(OperatorId.parse(operator), types)
    assert support
    assert (
        support.kernel
        in RUNTIME.operators[
            operator.rpartition(":")[0] if "." in operator else f"ai.onnx.{operator.partition(':')[0]}"
        ]
    )
    assert (support.reason, support.remedy) == ("", "")


@pytest.mark.parametrize(
    ("operator", "types", "reason", "remedy"),
    [
        pytest.param(
            "Add:7",
            {"T": INT64},
            "toy-1.0 has no kernel of ai.onnx.Add:7 for T: int64",
            "it has T: float",
            id="type",
        ),
        pytest.param(
            "OneHot:11",
            {"T1": INT64, "T2": FLOAT},
            "toy-1.0 has no kernel of ai.onnx.OneHot:11 for T1: int64, T2: float",
            "it has T1: int64, T2: int64, T3: float int64; or T1: float, T2: float, T3: float",
            id="combination of types that each exist",
        ),
        pytest.param(
            "Add:6",
            {"T": FLOAT},
            "toy-1.0 has no kernel of ai.onnx.Add:6",
            "convert to an opset with a version that has kernels: 7, 13 to 14",
            id="version",
        ),
        pytest.param("Mul:13", {"T": FLOAT}, "toy-1.0 has no kernel of ai.onnx.Mul", "", id="operator"),
        pytest.param("Abs:13", {"T": FLOAT}, "toy-1.0 has no kernel of ai.onnx.Abs", "", id="empty list"),
        pytest.param(
            "Add:14",
            {"T": FLOAT},
            "toy-1.0 supports ai.onnx up to opset 13, not ai.onnx.Add:14",
            "convert the model to opset 13 or older",
            id="newer opset",
        ),
        pytest.param(
            "com.acme.Blur:1",
            {},
            "toy-1.0 does not support the domain com.acme",
            "it supports the domains ai.onnx, com.toy",
            id="domain",
        ),
    ],
)
def test_gives_the_reason_of_a_missing_kernel(
    operator: str, types: dict[str, str], reason: str, remedy: str
) -> None:
    support = RUNTIME.kernel(OperatorId.parse(operator), types)
    assert not support
    assert (support.kernel, support.reason, support.remedy) == (None, reason, remedy)
    assert pickle.loads(pickle.dumps(support)) == support


def test_reports_restrictions_and_wrong_results() -> None:
    new, old = (RUNTIME.kernel(OperatorId.parse(f"OneHot:{each}"), {}) for each in (11, 9))
    assert new.caveats == ("the axis must be the last",)
    assert old.caveats == ("the axis must be the last", "negative indices are off by one")
    assert RUNTIME.kernel(OperatorId.parse("Add:7"), {}).caveats == ()
