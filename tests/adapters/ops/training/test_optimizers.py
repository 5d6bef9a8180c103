"""Standard operators instead of Adagrad, Adam and Momentum, for runtimes without them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from support.execution import Array, assert_equal, run, run_reference
from support.forms import FORMS, in_form

from opshift import convert_version

DOMAIN = "ai.onnx.preview.training"
KINDS = {"Adagrad": ("X", "G", "H"), "Adam": ("X", "G", "V", "H"), "Momentum": ("X", "G", "V")}
RANDOM = np.random.default_rng(5)

CASES: list[tuple[str, dict[str, Any]]] = [
    ("Adagrad", {}),
    ("Adagrad", {"norm_coefficient": 0.01, "epsilon": 1e-3, "decay_factor": 0.1}),
    ("Adam", {}),
    ("Adam", {"alpha": 0.95, "beta": 0.85, "epsilon": 1e-2, "norm_coefficient": 0.1}),
    ("Adam", {"norm_coefficient_post": 0.3}),
    ("Momentum", {"alpha": 0.95, "beta": 0.1, "norm_coefficient": 0.001, "mode": "standard"}),
    ("Momentum", {"alpha": 0.9, "beta": 0.3, "norm_coefficient": 0.01, "mode": "nesterov"}),
]
IDS = [f"{name} {' '.join(map(str, options.values()))}" for name, options in CASES]


def _case(
    op_type: str, count: int, types: tuple[Any, ...], form: str, options: dict[str, Any]
) -> tuple[onnx.ModelProto, dict[str, Array]]:
    kinds = KINDS[op_type]
    feeds = {"R": np.array(0.1, types[0]), "T": np.array(count, np.int64)}
    for kind in kinds:
        for position, dtype in enumerate(types):
            values = RANDOM.random((2, 3) if position else (4,)) * 2
            feeds[f"{kind}{position}"] = (values - (kind in "XG")).astype(dtype)
    names = [f"{kind}{position}_new" for kind in kinds if kind != "G" for position in range(len(types))]
    outputs = {
        name: helper.np_dtype_to_tensor_dtype(feeds[name.removesuffix("_new")].dtype) for name in names
    }
    node = helper.make_node(op_type, list(feeds), names, domain=DOMAIN, **options)
    model, fed = in_form(form, [node], feeds, outputs, 17)
    for proto in (model, *model.functions):
        proto.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    return model, dict(fed)


def _expected(model: onnx.ModelProto, feeds: dict[str, Array]) -> list[Array]:
    """Return the outputs in their declared types; onnx.reference computes some in double."""
    types = [helper.tensor_dtype_to_np_dtype(each.type.tensor_type.elem_type) for each in model.graph.output]
    return [each.astype(dtype) for each, dtype in zip(run_reference(model, feeds), types, strict=True)]


@pytest.mark.parametrize("count", [0, 1, 7])
@pytest.mark.parametrize("types", [(np.float32,), (np.float64, np.float32)], ids=["float", "mixed"])
@pytest.mark.parametrize(("op_type", "options"), CASES, ids=IDS)
def test_computes_the_same_update(
    op_type: str, options: dict[str, Any], types: tuple[Any, ...], count: int
) -> None:
    model, feeds = _case(op_type, count, types, "fed", options)
    expected = _expected(model, feeds)
    for opset in (8, 13, 24):
        result = convert_version(model, opset, without=DOMAIN)
        assert DOMAIN not in {each.domain for each in result.opset_import}
        assert_equal(run(result, feeds), expected)


@pytest.mark.parametrize("form", [form for form in FORMS if form != "fed"])
@pytest.mark.parametrize("op_type", KINDS)
def test_replaces_nodes_in_any_form(op_type: str, form: str) -> None:
    options = next(each for name, each in reversed(CASES) if name == op_type)
    model, feeds = _case(op_type, 3, (np.float32, np.float32), form, options)
    result = convert_version(model, 17, without=DOMAIN)
    assert_equal(run(result, feeds), _expected(model, feeds))
