"""Random models with other element types are valid, and compute the same in onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import opshift
from comparison.sampler import Sampler
from random_graphs.execution import CannotRun, run_in_onnxruntime
from random_graphs.models import sample_case
from random_graphs.sameness import assert_same
from random_graphs.values import dtype_of, type_of

UNSUPPORTED = "not supported with Scatter", "does not support double"
"""Parts of messages of onnxruntime about nodes that its kernels for the CPU refuse."""
UNLIKE = {"BatchNormalization"}
"""In training mode, onnxruntime computes it in float16 by another formula."""


def converted(value: Any, types: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [converted(each, types) for each in value]
    return value.astype(dtype_of(types[type_of(value)])) if type_of(value) in types else value


def like(value: Any, wanted: Any) -> Any:
    """Return outputs in the types of the original model."""
    if isinstance(value, list):
        return [like(*each) for each in zip(value, wanted, strict=True)]
    return value.astype(wanted.dtype) if isinstance(wanted, np.ndarray) and wanted.dtype != object else value


def is_large(value: Any) -> bool:
    """Return whether float16 may overflow in a computation with a value."""
    if isinstance(value, list):
        return any(map(is_large, value))
    is_float = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    return is_float and bool((np.abs(value[np.isfinite(value)]) > 200).any())


def compare(seed: int, types: dict[str, str], *, keep_interface: bool) -> bool:
    """Compare a model before and after a conversion, and return whether onnxruntime runs it."""
    case = sample_case(Sampler([seed]), (11, 21), (1, 6))
    if UNLIKE & {each.op_type for each in case.model.graph.node} or case.model.functions:
        return False
    if "float16" in types.values() and any(map(is_large, (*case.feeds.values(), *case.values.values()))):
        return False
    try:
        wanted = run_in_onnxruntime(case.model, case.feeds)
        onnx.shape_inference.infer_shapes(case.model, check_type=True, strict_mode=True)
        result = opshift.convert_types(
            case.model, types, allow=("approximate", "clamp"), keep_interface=keep_interface
        )
    except (CannotRun, opshift.ConversionRefused, onnx.shape_inference.InferenceError):
        return False
    onnx.shape_inference.infer_shapes(result, check_type=True, strict_mode=True)
    feeds = case.feeds if keep_interface else {k: converted(v, types) for k, v in case.feeds.items()}
    try:
        found = run_in_onnxruntime(result, feeds)
    except CannotRun as error:
        if "NOT_IMPLEMENTED" in str(error) or any(each in str(error) for each in UNSUPPORTED):
            return False
        raise
    assert_same(like(found, wanted), wanted, 3e-2 if "float16" in types.values() else 1e-3)
    return True


@pytest.mark.parametrize("keep_interface", [False, True])
@pytest.mark.parametrize("types", [{"float": "float16"}, {"float16": "float"}, {"float": "double"}])
def test_computes_the_same(types: dict[str, str], keep_interface: bool) -> None:
    ran = [compare(seed, types, keep_interface=keep_interface) for seed in range(12)]
    assert any(ran)


@pytest.mark.full
@pytest.mark.parametrize("start", range(1000, 3000, 250))
@pytest.mark.parametrize("keep_interface", [False, True])
@pytest.mark.parametrize("types", [{"float": "float16"}, {"float16": "float"}, {"double": "float"}])
def test_computes_the_same_in_many_models(types: dict[str, str], keep_interface: bool, start: int) -> None:
    ran = [compare(seed, types, keep_interface=keep_interface) for seed in range(start, start + 250)]
    assert sum(ran) > 10
