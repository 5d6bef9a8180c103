"""Correction of wrong opset imports and IR versions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from support.execution import assert_equal, run
from support.ir_models import MODELS, X, function, node, plain_model

from opshift.analysis.doctor.restamp import restamp
from opshift.model.errors import InvalidModel


def mislabeled_model() -> onnx.ModelProto:
    nodes = [node("Clip", ["x", "low"], ["h"]), node("Unsqueeze", ["h"], ["y"], axes=[0])]
    model = plain_model(13, nodes, initializers={"low": np.float32(0)})
    model.graph.output[0].type.tensor_type.shape.dim.add().dim_value = 3
    for dim, size in zip(model.graph.output[0].type.tensor_type.shape.dim, (1, 2, 3), strict=True):
        dim.dim_value = size
    model.ir_version = 3
    return model


def test_changes_only_declared_versions() -> None:
    model = mislabeled_model()
    before = model.SerializeToString()
    result = restamp(model)
    assert model.SerializeToString() == before
    assert (result.opset_import[0].version, result.ir_version) == (12, 7)
    model.opset_import[0].version = 12
    model.ir_version = 7
    assert result == model
    onnx.checker.check_model(result)
    assert_equal(run(result, {"x": X}), [np.maximum(X, 0)[None]])


def test_keeps_fitting_model() -> None:
    model = plain_model()
    assert restamp(model) == model


@pytest.mark.parametrize("kind", ["bytes", "path", "in place"])
def test_accepts_bytes_path_and_message(kind: str, tmp_path: Path) -> None:
    model = mislabeled_model()
    if kind == "bytes":
        assert onnx.load_from_string(restamp(model.SerializeToString())).opset_import[0].version == 12
    elif kind == "path":
        onnx.save(model, tmp_path / "m.onnx")
        assert restamp(tmp_path / "m.onnx").opset_import[0].version == 12
    else:
        assert restamp(model, inplace=True) is model
        assert model.opset_import[0].version == 12


def test_adds_missing_import() -> None:
    scaler = node("Scaler", ["x"], ["h"], "ai.onnx.ml", offset=[0.0], scale=[1.0])
    result = restamp(plain_model(15, [scaler, node("Neg", ["h"], ["y"])]))
    assert {each.domain: each.version for each in result.opset_import} == {
        "": 15,
        "local": 1,
        "ai.onnx.ml": 2,
    }
    assert_equal(run(result, {"x": X}), [-X])


def test_restamps_functions_separately() -> None:
    model = MODELS["functions"]()
    model.functions.append(function("Newer"))
    model.functions[1].node[0].CopyFrom(node("Gelu", ["a"], ["b"]))
    model.functions[1].opset_import[0].version = 13
    result = restamp(model)
    assert [each.opset_import[0].version for each in result.functions] == [21, 20]
    assert result.opset_import[0].version == 21


def test_refuses_model_without_fitting_opset() -> None:
    model = plain_model(9, [node("Clip", ["x"], ["h"], min=0.0), node("Gelu", ["h"], ["y"])])
    before = model.SerializeToString()
    with pytest.raises(InvalidModel, match=r"no opset of ai\.onnx is valid for all nodes"):
        restamp(model, inplace=True)
    assert model.SerializeToString() == before


def test_imports_com_microsoft() -> None:
    model = plain_model(17, [node("Gelu", ["x"], ["y"], "com.microsoft")])
    result = restamp(model)
    assert {each.domain: each.version for each in result.opset_import}["com.microsoft"] == 1
    onnx.checker.check_model(result, full_check=True)
    assert_equal(run(result, {"x": X}), run(model, {"x": X}))


def test_refuses_private_domain_without_import() -> None:
    with pytest.raises(InvalidModel, match="domain acme has no opset import") as error:
        restamp(plain_model(17, [node("Own", ["x"], ["y"], "acme")]))
    assert error.value.remedy.startswith("add the import of acme")


@pytest.mark.parametrize("versions", [(11, 13), (13, 11)])
def test_keeps_one_of_repeated_imports(versions: tuple[int, int]) -> None:
    model = plain_model(versions[0], [node("Softmax", ["x"], ["y"])])
    model.opset_import.add(domain="", version=versions[1])
    result = restamp(model)
    assert [(each.domain, each.version) for each in result.opset_import] == [("", versions[1]), ("local", 1)]
    assert_equal(run(result, {"x": X}), run(model, {"x": X}))  # onnxruntime uses the last import


NORMALIZATION = node("LayerNormalization", ["x", "s"], ["h"])


@pytest.mark.parametrize("declared", [11, 13, 16])
def test_converts_a_model_with_a_nonstandard_operator(declared: int) -> None:
    """Softmax of opset 11 normalizes all dimensions from axis 1 together."""
    nodes = [NORMALIZATION, node("Softmax", ["h"], ["y"], axis=0)]
    model = plain_model(declared, nodes, initializers={"s": np.ones(3, np.float32)})
    result = restamp(model)
    assert result.opset_import[0].version == 17
    assert result.graph.node[0].op_type == "LayerNormalization"
    onnx.checker.check_model(result, full_check=True)
    assert_equal(run(result, {"x": X}), run(model, {"x": X}), 1e-5)


def test_replaces_a_nonstandard_operator_if_no_opset_has_all() -> None:
    nodes = [
        NORMALIZATION,
        node("Unsqueeze", ["h"], ["u"], axes=[0]),
        node("Squeeze", ["u"], ["y"], axes=[0]),
    ]
    model = plain_model(13, nodes, initializers={"s": np.ones(3, np.float32)})
    result = restamp(model)
    assert result.opset_import[0].version == 12
    assert "LayerNormalization" not in {each.op_type for each in result.graph.node}
    onnx.checker.check_model(result, full_check=True)
    model.opset_import[0].version = 12
    assert_equal(run(result, {"x": X}), run(model, {"x": X}), 1e-5)
