"""An open domain accepts nodes of operators without a definition, and of other forms than defined."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

import opshift
from opshift.registry.registry import Registry, default_registry

REGISTRY = default_registry()

MODEL = """
<ir_version: 8, opset_import: ["" : 13, "com.microsoft" : {opset}]>
g (float[2, 3] x) => (float[2, 3] y) {{
    a = com.microsoft.{op_type} <strange = 3> (x)
    ratio = Constant <value = float {{0.5}}> ()
    b = Dropout (a, ratio)
    y = com.microsoft.{op_type} <strange = 3> (b)
}}
"""

UNDEFINED = {"an unknown operator": ("FutureOperator", 1), "an unknown opset": ("GatherND", 7)}


@pytest.mark.parametrize(("op_type", "opset"), UNDEFINED.values(), ids=UNDEFINED)
def test_an_open_domain_may_have_other_operators(op_type: str, opset: int) -> None:
    assert REGISTRY.has_domain("com.microsoft")
    assert REGISTRY.is_open("com.microsoft")
    assert REGISTRY.is_undefined(op_type, opset, "com.microsoft")
    assert not REGISTRY.is_undefined("GatherND", 1, "com.microsoft")


def test_domains_without_definitions_are_open_and_those_of_onnx_are_not() -> None:
    assert REGISTRY.is_open("com.acme")
    assert REGISTRY.is_undefined("Scale", 1, "com.acme")
    assert not REGISTRY.is_open("")
    assert not REGISTRY.is_undefined("FutureOperator", 1, "")
    assert not REGISTRY.is_open("ai.onnx.ml")


CASES = {**UNDEFINED, "a node that does not match its definition": ("GatherND", 1)}


@pytest.mark.parametrize(("op_type", "opset"), CASES.values(), ids=CASES)
def test_conversion_check_and_diagnosis_accept_nodes_of_an_open_domain(op_type: str, opset: int) -> None:
    model = onnx.parser.parse_model(MODEL.format(op_type=op_type, opset=opset))
    for target in 9, 21:
        converted = opshift.convert_version(model, target)
        kept = [each for each in model.graph.node if each.domain]
        assert [each for each in converted.graph.node if each.domain] == kept
        assert {each.domain: each.version for each in converted.opset_import}["com.microsoft"] == opset
    # the check compares nodes of operators that have a definition with it
    errors = [each for each in opshift.check(model) if each.level == "error"]
    is_reported = any("com.microsoft" in str(each) for each in errors)
    assert is_reported is not REGISTRY.is_undefined(op_type, opset, "com.microsoft")
    assert opshift.diagnose(model).fits


def test_the_newest_opset_needs_no_definition() -> None:
    registry = Registry(REGISTRY.folders)
    assert registry.newest_opset("com.microsoft") == 1
    assert not registry._operators


def test_definitions_are_read_when_a_model_uses_them() -> None:
    registry = Registry(REGISTRY.folders)
    node = helper.make_node("Relu", ["x"], ["y"])
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    imports = [helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph([node], "g", [x], [y]), opset_imports=imports)
    opshift.convert_version(model, 21, registry=registry)
    assert not [domain for domain, _ in registry._operators if domain == "com.microsoft"]


INTERNAL = """
<ir_version: 8, opset_import: ["" : 13, "{domain}" : 1]>
g (float[1, 8, 4, 4] x) => (float[1, 8, 4, 4] y) {{ y = {domain}.ReorderInput (x) }}
"""


@pytest.mark.parametrize("domain", ["com.microsoft.nchwc", "com.ms.internal.nhwc"])
def test_operators_for_one_kind_of_device_are_kept_or_refused_with_a_remedy(domain: str) -> None:
    model = onnx.parser.parse_model(INTERNAL.format(domain=domain))
    assert opshift.convert_version(model, 17).graph.node == model.graph.node
    with pytest.raises(opshift.ConversionRefused) as caught:
        opshift.convert_version(model, 17, without=domain)
    (refusal,) = caught.value.refusals
    assert "ORT_ENABLE_EXTENDED" in refusal.remedy


@pytest.mark.parametrize(
    ("domain", "runtime", "meaning"),
    [
        ("com.microsoft.nchwc", "openvino-2026.4.1", "whose channels are in blocks"),
        ("com.ms.internal.nhwc", "openvino-2026.4.1", "whose channels are the last dimension"),
        ("com.ms.internal.nhwc", "onnxruntime-1.31.1", "whose channels are the last dimension"),
    ],
)
def test_operators_for_one_kind_of_device_are_explained(domain: str, runtime: str, meaning: str) -> None:
    model = onnx.parser.parse_model(INTERNAL.format(domain=domain))
    (result,) = opshift.runs(model, runtime).results
    (missing,) = result.support.missing
    assert missing.reason.startswith(
        f"{runtime} does not support the domain {domain}; onnxruntime saves operators"
    )
    assert meaning in missing.reason
    assert missing.remedy.startswith("save or export the model without layout optimization")
    with pytest.raises(opshift.DoesNotFit, match=meaning) as caught:
        opshift.fit(model, runtime)
    assert "without layout optimization" in caught.value.remedy
