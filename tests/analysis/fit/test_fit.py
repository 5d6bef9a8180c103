"""Models converted to what a runtime implements; results run in onnxruntime."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto, helper
from support.execution import assert_equal, build, run, run_reference
from support.forms import in_form
from support.runtimes import fictional_runtime

import opshift
from opshift import DoesNotFit, fit
from opshift.analysis.fit import cheapest
from opshift.analysis.fit.attempt import Attempt
from opshift.analysis.fit.targets import rank_targets
from opshift.model.graphs import nested_nodes
from opshift.registry.runtimes.files import get_runtime
from opshift.registry.runtimes.restrictions import Condition, Restriction
from opshift.registry.runtimes.runtime import Kernel, Runtime
from opshift.runtimes.check_support import check_support
from opshift.runtimes.model_nodes import ModelNodes

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
FLOAT = ("tensor(float)",)


def _runtime(operators: Mapping[str, tuple[Kernel, ...]], **options: Any) -> Runtime:
    fields = {"opsets": {"ai.onnx": 22}, "ir_version": 10, **options}
    return fictional_runtime(operators=dict(operators), **fields)


def _kernels(*names: str, types: tuple[str, ...] = FLOAT, versions: tuple[int, int] = (1, 99)) -> Any:
    return {f"ai.onnx.{name}": (Kernel(versions=versions, types={"T": types}),) for name in names}


ANY = {f"ai.onnx.{name}": (Kernel(versions=(1, 99)),) for name in ("Cast", "Constant")}


def _op_types(model: Any) -> set[str]:
    return {each.op_type for each in nested_nodes(model.graph, *model.functions)}


def _assert_fits(model: onnx.ModelProto, runtime: Runtime, **options: Any) -> Any:
    before = model.SerializeToString(deterministic=True)
    fitted = fit(model, runtime, **options)
    assert model.SerializeToString(deterministic=True) == before
    assert not check_support(fitted.model, runtime)
    return fitted


def test_domains_without_nodes_keep_their_opset() -> None:
    model = build([helper.make_node("Relu", ["x"], ["y"])], {"x": X}, ["y"], 13)
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 4))
    registry, runtime = opshift.default_registry(), get_runtime("onnxruntime-1.31.1")
    ranked = rank_targets(ModelNodes(model, registry), runtime, registry, ())
    assert sorted(each.opsets["ai.onnx"] for each in ranked) == list(range(1, runtime.opsets["ai.onnx"] + 1))
    assert {each.opsets["ai.onnx.ml"] for each in ranked} == {4}


def test_keeps_a_model_that_runs() -> None:
    model = build([helper.make_node("Relu", ["x"], ["y"])], {"x": X}, ["y"], 13)
    fitted = _assert_fits(model, _runtime(_kernels("Relu")))
    assert fitted.model.SerializeToString() == model.SerializeToString()
    assert (fitted.report.cost, fitted.report.nodes, fitted.report.tried) == (0, (1, 1), 1)


@pytest.mark.parametrize(("versions", "opset"), [((13, 13), 13), ((14, 99), 14), ((6, 6), 12)])
def test_converts_to_the_nearest_opset_with_a_kernel(versions: tuple[int, int], opset: int) -> None:
    model = build([helper.make_node("Relu", ["x"], ["y"])], {"x": X}, ["y"], 13)
    fitted = _assert_fits(model, _runtime(_kernels("Relu", versions=versions)))
    assert fitted.report.opsets == {"ai.onnx": opset}


def test_chooses_one_opset_for_all_nodes() -> None:
    nodes = [
        helper.make_node("Clip", ["x"], ["h"], min=-1.0, max=1.0),
        helper.make_node("Relu", ["h"], ["y"]),
    ]
    model = build(nodes, {"x": X}, ["y"], 9)
    kernels = {**_kernels("Clip", versions=(11, 13)), **_kernels("Relu", versions=(13, 13))}
    fitted = _assert_fits(model, _runtime(kernels))
    assert fitted.report.opsets == {"ai.onnx": 13}
    assert_equal(run(fitted.model, {"x": X}), run(model, {"x": X}))


@pytest.mark.parametrize("form", ["fed", "symbolic", "function", "branch", "no shapes"])
def test_other_operators_express_nodes_without_a_kernel(form: str) -> None:
    nodes = [helper.make_node("Mish", ["x"], ["h"]), helper.make_node("Softplus", ["h"], ["y"])]
    model, feeds = in_form(form, nodes, {"x": X}, {"y": TensorProto.FLOAT}, 18)
    kernels = {**_kernels("Mul", "Tanh", "Exp", "Add", "Log", "Max", "Neg", "Sub", "Abs", "If"), **ANY}
    fitted = _assert_fits(model, _runtime(kernels, expands_functions=form == "function"))
    assert form == "function" or {"Mish", "Softplus"}.isdisjoint(_op_types(fitted.model))
    assert_equal(run(fitted.model, feeds), run(model, feeds))


def test_keeps_nodes_with_a_kernel_when_others_lack_one() -> None:
    bfloat16 = np.array(X, ml_dtypes.bfloat16)
    nodes = [helper.make_node("Gelu", ["x"], ["y"]), helper.make_node("Gelu", ["b"], ["z"])]
    model = build(nodes, {"x": X, "b": bfloat16}, {"y": 1, "z": TensorProto.BFLOAT16}, 20, ir_version=9)
    fitted = _assert_fits(model, _runtime({**_kernels("Gelu"), **ANY}))
    assert [each.op_type for each in fitted.model.graph.node] == ["Gelu", "Cast", "Gelu", "Cast"]
    assert fitted.report.bridges == ("ai.onnx.Gelu:20: T in float instead of bfloat16",)


@pytest.mark.parametrize("form", ["fed", "initializer", "computed", "function", "branch"])
def test_computes_in_a_wider_type(form: str) -> None:
    half = X.astype(np.float16)
    nodes = [helper.make_node("Add", ["x", "b"], ["h"]), helper.make_node("Transpose", ["h"], ["y"])]
    model, feeds = in_form(form, nodes, {"x": half, "b": half + 1}, {"y": TensorProto.FLOAT16}, 13)
    kernels = {
        **_kernels("Add", "Transpose", "If"),
        **_kernels("Identity", types=("tensor(float16)",)),
        **ANY,
    }
    fitted = _assert_fits(model, _runtime(kernels, expands_functions=form == "function"))
    assert_equal(run(fitted.model, feeds), run(model, feeds), 0)


def test_moves_narrow_values_in_a_wider_type() -> None:
    values = X.astype(ml_dtypes.float8_e4m3fn)
    nodes = [helper.make_node("Transpose", ["x"], ["y"])]
    model = build(nodes, {"x": values}, {"y": TensorProto.FLOAT8E4M3FN}, 21, ir_version=10)
    fitted = _assert_fits(model, _runtime({**_kernels("Transpose"), **ANY}))
    assert [each.op_type for each in fitted.model.graph.node] == ["Cast", "Transpose", "Cast"]
    (found,) = run_reference(fitted.model, {"x": values})
    assert found.tobytes() == np.ascontiguousarray(values.T).tobytes()


def test_computes_in_float_instead_of_double_only_if_allowed() -> None:
    double = X.astype(np.float64)
    model = build([helper.make_node("Exp", ["x"], ["y"])], {"x": double}, {"y": TensorProto.DOUBLE}, 13)
    runtime = _runtime({**_kernels("Exp"), **ANY})
    with pytest.raises(DoesNotFit, match=r"has no kernel of ai\.onnx\.Exp:13 for T: double"):
        fit(model, runtime)
    fitted = _assert_fits(model, runtime, allow="approximate")
    assert fitted.report.allowances == (
        ("approximate", "ai.onnx.Exp:13 computes in float instead of double"),
    )
    with pytest.warns(DeprecationWarning, match=r"FitReport\.concessions is deprecated .* read allowances"):
        assert fitted.report.concessions == fitted.report.allowances
    assert fitted.report.cost > 1000
    assert_equal(run(fitted.model, {"x": double}), run(model, {"x": double}), 1e-5)


def test_inlines_functions_for_a_runtime_without_them() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    model, feeds = in_form("function", nodes, {"x": X}, {"y": TensorProto.FLOAT}, 15)
    fitted = _assert_fits(model, _runtime(_kernels("Relu")))
    assert [each.op_type for each in fitted.model.graph.node] == ["Relu"]
    assert not fitted.model.functions
    assert_equal(run(fitted.model, feeds), run(model, feeds))


CALLS = "h = l.f (x) y = Relu (h)"


@pytest.mark.parametrize(
    ("calls", "body", "conversions", "kept"),
    [
        pytest.param(CALLS, "y = Relu (x)", 1, 1, id="fits"),
        pytest.param("h = l.f (x) y = Sin (h)", "y = Relu (x)", 1, None, id="missing in the graph"),
        pytest.param(CALLS, "y = Sin (x)", 2, None, id="missing in the function"),
        pytest.param(
            "a = Cast <to = 10> (x) b = l.f (a) c = Cast <to = 1> (b) d = l.f (x) y = Add (c, d)",
            "y = Relu (x)",
            2,
            0,
            id="missing in one call",
        ),
    ],
)
def test_inlines_functions_only_if_the_runtime_refuses_nodes_of_them(
    monkeypatch: pytest.MonkeyPatch, calls: str, body: str, conversions: int, kept: int | None
) -> None:
    started: list[Attempt] = []
    start = Attempt._convert_copy

    def record(self: Attempt, *arguments: Any) -> None:
        started.append(self)
        start(self, *arguments)

    monkeypatch.setattr(Attempt, "_convert_copy", record)
    model = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 15, "l" : 1]> g (float[3,4] x) => (float[3,4] y) {{ {calls} }}
        <domain: "l", opset_import: ["" : 15]> f (x) => (y) {{ {body} }}
    """)
    runtime = _runtime({**_kernels("Relu", "Add"), **ANY}, expands_functions=True)
    if kept is None:
        with pytest.raises(DoesNotFit, match=r"ai\.onnx\.Sin"):
            fit(model, runtime)
    else:
        fitted = _assert_fits(model, runtime)
        assert len(fitted.model.functions) == kept
        feeds = {"x": X.astype(np.float16).astype(np.float32)}  # onnxruntime may remove the casts
        assert_equal(run(fitted.model, feeds), run(model, feeds))
    assert {started.count(each) for each in started} == {conversions}


def test_removes_imports_that_the_runtime_does_not_know() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    model = build(nodes, {"x": X}, ["y"], {"": 13, "com.acme": 3})
    fitted = _assert_fits(model, _runtime(_kernels("Relu")))
    assert fitted.report.opsets == {"ai.onnx": 13}


def test_ignores_operators_that_only_training_uses() -> None:
    model = build([helper.make_node("Relu", ["x"], ["y"])], {"x": X}, ["y"], {"": 13, "com.acme": 3})
    step = model.training_info.add().algorithm
    step.node.append(helper.make_node("Secret", ["y"], ["new"], domain="com.acme"))
    runtime = _runtime(_kernels("Relu"))
    assert not check_support(model, runtime)
    assert _assert_fits(model, runtime).model.training_info == model.training_info
    model.graph.node.append(helper.make_node("Secret", ["y"], ["z"], domain="com.acme"))
    with pytest.raises(DoesNotFit):
        fit(model, runtime)


def test_lists_all_nodes_that_prevent_it() -> None:
    nodes = [
        helper.make_node("Sin", ["x"], ["a"], "one"),
        helper.make_node("Sin", ["a"], ["b"], "two"),
        helper.make_node("Det", ["b"], ["y"]),
    ]
    model = build(nodes, {"x": X[:, :3]}, ["y"], 13)
    with pytest.raises(DoesNotFit) as caught:
        fit(model, _runtime(_kernels("Relu")))
    error = caught.value
    assert error.nodes >= 2
    assert error.missing[0].places == ("graph, node 'one'", "graph, node 'two'")
    assert error.missing[0].reason == "device-1 has no kernel of ai.onnx.Sin"
    assert error.missing[0].remedy.startswith("choose another runtime")
    assert pickle.loads(pickle.dumps(error)).missing == error.missing


def test_lists_refused_nodes_and_those_without_a_kernel() -> None:
    nodes = [
        helper.make_node("StringSplit", ["s"], ["a", "n"]),
        helper.make_node("Det", ["x"], ["y"]),
        helper.make_node("Relu", ["x"], ["z"]),
    ]
    feeds = {"x": X[:, :3], "s": np.array(["a b"])}
    outputs = {
        "a": TensorProto.STRING,
        "n": TensorProto.INT64,
        "y": TensorProto.FLOAT,
        "z": TensorProto.FLOAT,
    }
    model = build(nodes, feeds, outputs, 20)
    with pytest.raises(DoesNotFit) as caught:
        fit(model, _runtime(_kernels("Relu"), opsets={"ai.onnx": 19}))
    assert [each.operator for each in caught.value.missing] == ["ai.onnx.StringSplit:20", "ai.onnx.Det:11"]


def test_lists_the_nodes_of_the_opset_with_the_fewest() -> None:
    """The same operators lack kernels at all opsets, but restrictions refuse more nodes at the nearest."""
    restriction = Restriction(reason="never", versions=(14, 14), when=Condition())
    nodes = [helper.make_node("Det", ["x"], ["y"]), helper.make_node("Relu", ["x"], ["z"])]
    model = build(nodes, {"x": X[:, :3]}, ["y", "z"], 14)
    runtime = _runtime(
        _kernels("Relu"), opsets={"ai.onnx": 14}, restrictions={"ai.onnx.Relu": (restriction,)}
    )
    with pytest.raises(DoesNotFit) as caught:
        fit(model, runtime)
    assert (caught.value.opset, [each.operator for each in caught.value.missing]) == (13, ["ai.onnx.Det:11"])


def test_added_nodes_count_as_one() -> None:
    """At opset 16, four nodes that express the node lack a kernel; below opset 5, one node is refused."""
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> '
        "g (float[N, 4, H, W] x, float[4] s, float[4] b) => (float[N, 4, H, W] y) "
        "{ y = GroupNormalization <num_groups = 2> (x, s, b) }"
    )
    kernels = _kernels("Add", "InstanceNormalization", "Mul", "Shape")
    with pytest.raises(DoesNotFit) as caught:
        fit(model, _runtime(kernels, opsets={"ai.onnx": 16}))
    found = [(each.operator, each.places) for each in caught.value.missing]
    place = "graph, node GroupNormalization -> y (a node that replaces it)"
    assert (caught.value.opset, found) == (16, [("ai.onnx.Reshape:14", (place,))])


@pytest.mark.parametrize(("limit", "tried"), [(100, 2), (3, 1)])
def test_compares_no_opsets_after_many_added_nodes(
    limit: int, tried: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cheapest, "MAX_ADDED", limit)
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 21]> '
        "g (float[N, 4, H, W] x, float[4] s, float[4] b) => (float[N, 4, H, W] y) "
        "{ y = GroupNormalization <num_groups = 2> (x, s, b) }"
    )
    assert fit(model, "onnxruntime-1.16.3").report.tried == tried


def test_nodes_may_fall_back_to_the_cpu_only_if_that_is_allowed() -> None:
    model = build([helper.make_node("Det", ["x"], ["y"])], {"x": X[:, :3]}, ["y"], 13)
    assert fit(model, "onnxruntime-coreml").report.cost == 0
    with pytest.raises(DoesNotFit, match="without --provider-only"):
        fit(model, "onnxruntime-coreml", provider_only=True)


def test_declares_shapes_first() -> None:
    """Softmax before opset 13 flattens its input at `axis`, so its conversion needs the rank."""
    node = helper.make_node("Softmax", ["x"], ["y"], axis=0)
    model = build([node], {"x": X}, ["y"], 13, shapes=False)
    runtime = _runtime(_kernels("Softmax", "Transpose"), opsets={"ai.onnx": 12}, needs_input_ranks=True)
    with pytest.raises(DoesNotFit) as caught:
        fit(model, runtime)
    assert all("--shape x=..." in each.remedy for each in caught.value.missing)
    fitted, report = _assert_fits(model, runtime, shapes={"x": ("N", 4)})
    assert report.declared_shapes == ("input 'x' is declared as [N, 4]; the result may require this shape",)
    assert_equal(run(fitted, {"x": X}), run(model, {"x": X}))


def test_sorts_nodes_and_lowers_the_ir_version() -> None:
    nodes = [helper.make_node("Relu", ["h"], ["y"]), helper.make_node("Abs", ["x"], ["h"])]
    model = build(nodes, {"x": X}, ["y"], 13, ir_version=13)
    fitted = _assert_fits(model, _runtime(_kernels("Relu", "Abs")))
    assert (fitted.model.ir_version, fitted.report.ir_version) == (10, 10)
    assert [each.op_type for each in fitted.model.graph.node] == ["Abs", "Relu"]


def test_accepts_bytes_paths_and_names(tmp_path: Any) -> None:
    model = build([helper.make_node("Gelu", ["x"], ["y"])], {"x": X}, ["y"], 20, ir_version=9)
    onnx.save(model, tmp_path / "model.onnx")
    expected = run(model, {"x": X})
    from_bytes = opshift.fit(model.SerializeToString(), "onnxruntime-1.16.3")
    assert from_bytes.report.opsets == {"ai.onnx": 19, "com.microsoft": 1}
    assert_equal(run(onnx.ModelProto.FromString(from_bytes.model), {"x": X}), expected)
    for path in (tmp_path / "model.onnx", str(tmp_path / "model.onnx")):
        fitted = opshift.fit(path, "onnxruntime-1.16.3").model
        assert fitted.SerializeToString() == from_bytes.model
    with pytest.raises(opshift.OpshiftError, match="no data about the runtime"):
        fit(model, "onnxruntime-0.1")


def test_accepts_the_path_of_a_file(tmp_path: Path) -> None:
    text = "{extends: onnxruntime-1.16.3, runtime: device, version: '1.0', evidence: {kind: documentation, "
    (tmp_path / "device.yaml").write_text(f"{text}source: tests, date: 2026-11-23}}}}", "utf-8")
    model = build([helper.make_node("Gelu", ["x"], ["y"])], {"x": X}, ["y"], 20, ir_version=9)
    assert fit(model, tmp_path / "device.yaml").report.runtime == "device-1.0"


@pytest.mark.parametrize("runtime", [None, ["onnxruntime-1.20.1"], 1, b"tensorrt"], ids=repr)
def test_refuses_what_names_no_runtime(runtime: Any) -> None:
    with pytest.raises(opshift.UsageError, match="expected a Runtime, its name or the path of a YAML file"):
        fit("missing.onnx", runtime)


def test_fits_a_bfloat16_model_to_the_installed_onnxruntime() -> None:
    text = """<ir_version: 10, opset_import: ["": 21]>
    main (float[N, 4] x) => (float[N, 4] y) {
        b = Cast <to = 16> (x)
        a = Add (b, b)
        g = Gelu (a)
        s = Softmax (g)
        y = Cast <to = 1> (s)
    }"""
    model = onnx.parser.parse_model(text)
    with pytest.raises(Exception, match="NOT_IMPLEMENTED"):
        run(model, {"x": X})
    fitted = fit(model, f"onnxruntime-{onnxruntime.__version__}")
    exact = run_reference(model, {"x": X})
    assert_equal(run(fitted.model, {"x": X}), exact, 0.02)
    assert len(fitted.report.bridges) >= 2
