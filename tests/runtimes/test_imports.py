"""Imports that no node needs, but which releases of onnxruntime refuse to load."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper
from support.execution import build

import opshift
from opshift import runs

DOMAINS = (
    "ai.onnx.ml",
    "ai.onnx.preview",
    "ai.onnx.preview.training",
    "ai.onnx.training",
    "com.example",
    "com.microsoft",
    "com.microsoft.experimental",
    "com.microsoft.nchwc",
    "com.ms.internal.nhwc",
    "org.pytorch.aten",
)


def model_of(domain: str, version: int, opset: int = 15) -> onnx.ModelProto:
    x = np.zeros(2, np.float32)
    imports = {"": opset, domain: version}
    return build([helper.make_node("Relu", ["x"], ["y"])], {"x": x}, ["y"], imports)


def loads(model: onnx.ModelProto) -> bool:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception:  # onnxruntime's errors have no common base class
        return False
    return True


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("version", [1, 2, 3, 5, 6, 15, 26, 27])
def test_verdict_is_that_of_the_installed_release(domain: str, version: int) -> None:
    model = model_of(domain, version)
    (result,) = runs(model, f"onnxruntime-{onnxruntime.__version__}").results
    assert (result.verdict == "runs") == loads(model)
    if result.verdict == "after conversion" and result.conversion is not None:
        target = dict(result.conversion.opsets)
        assert loads(opshift.convert_version(model, target, ir_version=result.conversion.ir_version))


@pytest.mark.parametrize(
    ("release", "domain", "newest"),
    [
        # measured by loading models in these releases
        ("1.15.1", "com.ms.internal.nhwc", 19),
        ("1.17.3", "com.ms.internal.nhwc", 20),
        ("1.17.3", "ai.onnx.ml", 4),
        ("1.23.2", "com.ms.internal.nhwc", 23),
        ("1.27.0", "com.microsoft.nchwc", 1),
        ("1.28.0", "ai.onnx.preview", 1),
        ("1.32.0", "com.ms.internal.nhwc", 28),
        ("cuda-1.17.3", "com.ms.internal.nhwc", 20),
    ],
)
def test_knows_the_newest_import_of_each_release(release: str, domain: str, newest: int) -> None:
    name = f"onnxruntime-{release}"
    assert runs(model_of(domain, newest), name).results[0].verdict == "runs"
    assert runs(model_of(domain, newest + 1), name).results[0].verdict != "runs"


def test_an_opset_unknown_to_the_registry_is_not_a_target() -> None:
    """Opset 2 of ai.onnx.preview does not exist, and onnxruntime 1.17.3 does not know the domain."""
    (result,) = runs(model_of("ai.onnx.preview", 2, 21), "onnxruntime-1.17.3").results
    assert result.verdict == "after conversion"
