"""Shapes that onnx infers make conversions possible where opshift's own inference finds none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnx.shape_inference
import pytest
from onnx import numpy_helper
from support.execution import assert_equal, run
from support.runtimes import fictional_runtime

import opshift
from opshift.analysis.reach import reach
from opshift.converter.onnx_shapes import USED, with_onnx_shapes
from opshift.inference.evaluator import rule_table
from opshift.model.types import declared_dims
from opshift.registry.registry import default_registry
from opshift.registry.runtimes.runtime import Kernel


@pytest.fixture(autouse=True)
def differences_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take a rule away from opshift's own inference, which otherwise knows these shapes, too."""
    monkeypatch.setitem(rule_table._RULES, "Sub", lambda _: ())


LENGTHS = np.array([1, 2, 2, 1])

FORMS = {
    "main graph": """
        <ir_version: 8, opset_import: ["" : 16]>
        main (float[12] x, float[6, 8] like, int64[4] lengths) => (float[A, B] y) <int64[2] rest = {3, 4}> {
            sizes = Shape (like)
            reduced = Sub (sizes, rest)
            h = Reshape (x, reduced)
            y = ReverseSequence (h, lengths)
        }
    """,
    "after a function": """
        <ir_version: 8, opset_import: ["" : 16, "local" : 1]>
        main (float[12] x, float[6, 8] like, int64[4] lengths) => (float[A, B] y) <int64[2] rest = {3, 4}> {
            sizes = Shape (like)
            reduced = Sub (sizes, rest)
            h = Reshape (x, reduced)
            y = local.turn (h, lengths)
        }
        <domain: "local", opset_import: ["" : 16]>
        turn (a, b) => (c) { c = ReverseSequence (a, b) }
    """,
    "inside of a branch": """
        <ir_version: 8, opset_import: ["" : 16]>
        main (float[12] x, float[6, 8] like, int64[4] lengths) => (float[A, B] y) <bool c = {1}> {
            y = If (c) <
                then_branch = yes () => (float[A, B] p) {
                    sizes = Shape (like)
                    rest = Constant <value_ints = [3, 4]> ()
                    reduced = Sub (sizes, rest)
                    h = Reshape (x, reduced)
                    p = ReverseSequence (h, lengths)
                },
                else_branch = no () => (float[A, B] q) { q = Abs (like) }
            >
        }
    """,
    "read by a branch": """
        <ir_version: 8, opset_import: ["" : 16]>
        main (float[12] x, float[6, 8] like, int64[4] lengths) => (float[A, B] y)
        <int64[2] rest = {3, 4}, bool c = {1}> {
            sizes = Shape (like)
            reduced = Sub (sizes, rest)
            h = Reshape (x, reduced)
            y = If (c) <
                then_branch = yes () => (float[A, B] p) {
                    p = ReverseSequence (h, lengths)
                },
                else_branch = no () => (float[A, B] q) { q = Abs (like) }
            >
        }
    """,
}


def feeds() -> dict[str, Any]:
    x = np.linspace(0, 1, 12, dtype=np.float32)
    return {"x": x, "like": np.ones((6, 8), np.float32), "lengths": LENGTHS}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("arguments", [{}, {"inplace": True}, {"reversible": True}], ids=str)
def test_inferred_shape_makes_conversion_possible(form: str, arguments: Any) -> None:
    model = onnx.parser.parse_model(FORMS[form])
    expected = run(model, feeds())
    (refusal,) = opshift.plan_version(model, 9).refusals
    assert refusal.remedy.endswith("try --infer-shapes (infer_shapes=True)")
    result: Any
    result, report = opshift.convert(model, 9, infer_shapes=True, **arguments)
    assert report.repairs == (USED,)
    assert not result.graph.value_info
    assert_equal(run(result, feeds()), expected)


def test_shapes_in_a_branch_are_inferred_for_a_condition_of_unknown_type() -> None:
    model = onnx.parser.parse_model(FORMS["inside of a branch"])
    model.opset_import.add(domain="acme", version=1)
    del model.graph.initializer[:]
    model.graph.node.insert(0, onnx.helper.make_node("Condition", ["x"], ["c"], domain="acme"))
    plan = opshift.plan_version(model, 9, infer_shapes=True)
    assert (plan.refusals, plan.repairs) == ((), (USED,))


def test_other_repairs_stay_in_the_report() -> None:
    model = onnx.parser.parse_model(FORMS["main graph"])
    model.opset_import.add(domain="ai.onnx.ml", version=5)
    removed, used = opshift.convert(model, 9, infer_shapes=True).report.repairs
    assert removed.startswith("model: the import of ai.onnx.ml 5 was removed")
    assert used == USED


def test_bytes_and_files_are_converted(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(FORMS["main graph"])
    big = numpy_helper.from_array(np.ones((600, 600), np.float32), "unused_weight")
    model.graph.initializer.append(big)
    onnx.save(model, tmp_path / "in.onnx")
    data = opshift.convert_version(model.SerializeToString(), 9, infer_shapes=True)
    report = opshift.convert_file(tmp_path / "in.onnx", tmp_path / "out.onnx", 9, infer_shapes=True)
    assert report.repairs == (USED,)
    for result in (onnx.load_from_string(data), onnx.load(tmp_path / "out.onnx")):
        assert_equal(run(result, feeds()), run(model, feeds()))
        assert any(numpy_helper.to_array(each).shape == (600, 600) for each in result.graph.initializer)


def test_reach_uses_inferred_shapes() -> None:
    model = onnx.parser.parse_model(FORMS["main graph"])
    assert reach(model).lowest == 10
    assert reach(model, infer_shapes=True).lowest < 10


def test_fit_uses_inferred_shapes() -> None:
    model = onnx.parser.parse_model(FORMS["main graph"])
    kernels = {f"ai.onnx.{each}": (Kernel(versions=(1, 9)),) for each in default_registry().names()}
    runtime = fictional_runtime(opsets={"ai.onnx": 9}, operators=kernels)
    with pytest.raises(opshift.DoesNotFit, match="--infer-shapes"):
        opshift.fit(model, runtime)
    fitted = opshift.fit(model, runtime, infer_shapes=True).model
    assert not fitted.graph.value_info
    assert_equal(run(fitted, feeds()), run(model, feeds()))


def test_possible_conversion_does_not_infer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", None)
    model = onnx.parser.parse_model(FORMS["main graph"])
    assert opshift.convert_version(model, 17, infer_shapes=True) == opshift.convert_version(model, 17)


def test_refuses_without_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("onnx", "onnx.shape_inference"):
        monkeypatch.setitem(sys.modules, name, None)
    model = onnx.parser.parse_model(FORMS["main graph"])
    (refusal,) = opshift.plan_version(model, 9, infer_shapes=True).refusals
    assert refusal.remedy.endswith("or install onnx, which --infer-shapes uses")


def test_refuses_if_onnx_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **named: object) -> None:
        raise onnx.shape_inference.InferenceError("broken")

    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", fail)
    model = onnx.parser.parse_model(FORMS["main graph"])
    assert opshift.plan_version(model, 9, infer_shapes=True).refusals


def _claims(monkeypatch: pytest.MonkeyPatch, *dims: int) -> list[Any]:
    """Return the shapes of `h` that a plan may use if onnx infers `dims`."""
    model = onnx.parser.parse_model(FORMS["main graph"])
    inferred = onnx.ModelProto()
    inferred.CopyFrom(model)
    inferred.graph.value_info.append(onnx.helper.make_tensor_value_info("h", 11, dims))
    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", lambda *arguments, **named: inferred)
    copy = with_onnx_shapes(model, opshift.default_registry())
    assert copy is not None
    (value,) = copy.graph.value_info
    assert value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    plan = opshift.plan_version(model, 9, infer_shapes=True)
    return [declared_dims(value.type), bool(plan.refusals)]


def test_types_and_contradicted_shapes_of_onnx_are_not_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _claims(monkeypatch, 3, 4) == [(3, 4), False]
    assert _claims(monkeypatch, 3, 4, 1) == [(3, 4, 1), True]


def test_shape_without_type_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 16, "acme" : 1]>
        main (float[4] x) => (float[2, 2] y) { h = acme.Mystery (x) y = acme.Mystery (h) }
    """
    model, inferred = onnx.parser.parse_model(text), onnx.parser.parse_model(text)
    inferred.graph.value_info.append(onnx.helper.make_tensor_value_info("h", 0, [2, 2]))
    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", lambda *arguments, **named: inferred)
    assert with_onnx_shapes(model, opshift.default_registry()) is None


def test_declared_sizes_and_unknown_dimensions_stay() -> None:
    model = onnx.parser.parse_model(FORMS["main graph"])
    model.graph.value_info.append(onnx.helper.make_tensor_value_info("h", 1, ["rows", None]))
    copy = with_onnx_shapes(model, opshift.default_registry())
    assert copy is not None
    assert declared_dims(copy.graph.value_info[0].type) == (3, 4)
    assert declared_dims(model.graph.value_info[0].type) == ("rows", None)


HEADER = '<ir_version: 8, opset_import: ["": 16, "a": 1, "l": 1]> g (float[2] x, bool k) => (float[A, B] y)'

UNTYPED = {
    "result of an unknown operator": f"{HEADER} {{ c = a.Unknown (x) y = EyeLike <dtype = 1> (c) }}",
    "in a subgraph": f"""{HEADER} {{
        y = If (k) <
            then_branch = t () => (float[2, 2] u) {{ c = a.Unknown (x) u = EyeLike <dtype = 1> (c) }},
            else_branch = e () => (float[2, 2] v) {{ v = Abs (x) }}
        >
    }}""",
    "in a function": f"""{HEADER} {{ y = l.F (x) }}
        <domain: "l", opset_import: ["": 16, "a": 1]>
        F (p) => (q) {{ c = a.Unknown (p) q = EyeLike <dtype = 1> (c) }}
    """,
    "result of a function that calls an unknown operator": f"""{HEADER} {{ y = l.F (x) }}
        <domain: "l", opset_import: ["": 16, "a": 1, "l": 1]>
        F (p) => (q) {{ c = l.G (p) q = EyeLike <dtype = 1> (c) }}
        <domain: "l", opset_import: ["": 16, "a": 1]> G (p) => (q) {{ q = a.Unknown (p) }}
    """,
    "operator without inference in onnx": f"""{HEADER} {{ y = l.F (x) }}
        <domain: "l", opset_import: ["": 16, "ai.onnx.ml": 3]>
        F (p) => (q) {{ c = ai.onnx.ml.Imputer (p) q = EyeLike <dtype = 1> (c) }}
    """,
    "input that one of two calls omits": f"""{HEADER} {{ w = l.F (x, x) y = l.F (x) }}
        <domain: "l", opset_import: ["": 16]> F (r, p) => (q) {{ q = EyeLike <dtype = 1> (p) }}
    """,
    "initializer that is not a graph input": """
        <ir_version: 3, opset_import: ["": 16]> g () => (float[2, 2] y)
        <float[2, 2] c = {1, 2, 3, 4}> { y = EyeLike <dtype = 1> (c) }
    """,
    "undefined value": f"{HEADER} {{ y = EyeLike <dtype = 1> (missing) }}",
}
"""Models for which `onnx.shape_inference` ends the process: EyeLike reads a value without a known type."""


@pytest.mark.parametrize("name", UNTYPED)
def test_values_without_types_do_not_end_the_process(name: str) -> None:
    model = onnx.parser.parse_model(UNTYPED[name])
    code = (
        "import sys, opshift.analysis; from opshift.converter.onnx_shapes import with_onnx_shapes;"
        "from opshift.model.files import read_bytes; from opshift.registry.registry import default_registry;"
        "with_onnx_shapes(read_bytes(bytes.fromhex(sys.argv[1])), default_registry())"
    )
    arguments = [sys.executable, "-c", code, model.SerializeToString().hex()]
    assert subprocess.run(arguments, check=False).returncode == 0
