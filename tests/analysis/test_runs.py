"""Runtimes that run a model, as it is or after a conversion."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper
from support.toy_runtime import model, toy_runtime

import opshift
from fuzzing.corpus import model_paths
from opshift.analysis.runs import MIN_FAILURES
from opshift.converter.convert import try_convert
from opshift.converter.options import Options
from opshift.model.errors import OpshiftError, UsageError
from opshift.model.messages import ModelProto
from opshift.registry.registry import default_registry
from opshift.registry.runtimes.runtime import Runtime
from opshift.runtimes.check_support import RuntimeCheck
from opshift.runtimes.kernel_lookup import KernelLookup
from opshift.runtimes.model_nodes import ModelNodes

TRY_CONVERT = "opshift.analysis.runs.try_convert"

OLD = toy_runtime(opsets={"ai.onnx": 13}, ir_version=7)


def test_runs_as_it_is() -> None:
    found = opshift.runs(model("y = Relu (x)"), toy_runtime())
    (result,) = found.results
    assert (bool(found), result.verdict, result.conversion) == (True, "runs", None)
    assert found.opsets["ai.onnx"] == 20


def test_finds_the_nearest_opset_and_the_ir_version() -> None:
    found = opshift.runs(model("y = Gelu (x)"), OLD)
    (result,) = found.results
    assert (bool(found), result.verdict) == (False, "after conversion")
    assert result.conversion is not None
    assert result.conversion.opsets["ai.onnx"] == 13
    assert result.conversion.added_nodes > 0
    converted = opshift.convert_version(
        model("y = Gelu (x)"), {"ai.onnx": 13}, ir_version=result.conversion.ir_version
    )
    assert bool(opshift.runs(converted, OLD))


ADD, RELU, SCATTER = (
    model("y = Add (x, x)", opset=13),
    model("y = Relu (x)"),
    model("y = Scatter (x, i, u)", "float[2] x, int64[1] i, float[1] u", opset=9),
)
NEW = [{"reason": "fails in newer opsets", "when": {"opsets": [15, 99]}}]


@pytest.mark.parametrize(
    ("source", "runtime", "nearest"),
    [
        (ADD, toy_runtime(operators={"ai.onnx.Add": [{"versions": [1, 7]}, {"versions": [14, 14]}]}), 14),
        (RELU, toy_runtime(restrictions={"ai.onnx.Relu": NEW}), 14),
        (SCATTER, toy_runtime(operators={"ai.onnx.ScatterElements": [{"versions": [11, 18]}]}), 11),
    ],
    ids=["kernels with a gap", "restriction of newer opsets", "replaced operator"],
)
def test_finds_the_nearest_opset(source: onnx.ModelProto, runtime: Runtime, nearest: int) -> None:
    (result,) = opshift.runs(source, runtime).results
    assert (result.verdict, result.conversion and result.conversion.opsets) == (
        "after conversion",
        {"ai.onnx": nearest},
    )


@pytest.mark.parametrize(("newest", "tried"), [(20, 0), (19, 1)])
def test_tries_no_conversion_for_an_unknown_attribute(
    newest: int, tried: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first conversion is reported if the opset of the model is too new."""
    converted = _count_conversions(monkeypatch)
    runtime = toy_runtime(opsets={"ai.onnx": newest, "com.microsoft": 1}, validates_nodes=True)
    (result,) = opshift.runs(model("y = Relu <odd = 1> (x)"), runtime).results
    assert (result.verdict, len(converted)) == ("does not run", tried)
    assert (result.conversion is None) == (not tried)


def test_refuses_models_without_a_graph() -> None:
    with pytest.raises(opshift.InvalidModel, match="it has no graph"):
        opshift.runs(onnx.ModelProto(ir_version=8), toy_runtime())


@pytest.mark.parametrize("path", model_paths(), ids=lambda each: f"{each.parent.name}-{each.stem}")
def test_conversions_beyond_a_refused_opset_are_refused(path: Path) -> None:
    """`runs` relies on it: it does not try farther opsets after a refusal."""
    source = onnx.load_model(path, load_external_data=False)
    own = next((each.version for each in source.opset_import if not each.domain), 0)
    newest = opshift.default_registry().newest_opset()
    for opsets in (range(own - 1, 0, -1), range(own + 1, newest + 1)):
        refused = [bool(opshift.plan_version(source, each).refusals) for each in opsets]
        assert refused == sorted(refused)


def test_sorts_nodes() -> None:
    unordered = model("y = Relu (h) h = Relu (x)")
    before = unordered.SerializeToString()
    (result,) = opshift.runs(unordered, toy_runtime()).results
    assert result.verdict == "runs"
    assert unordered.SerializeToString() == before
    unordered = model("y = Gelu (h) h = Gelu (x)")
    (result,) = opshift.runs(unordered, OLD).results
    assert result.verdict == "after conversion"
    with pytest.raises(opshift.InvalidModel):
        opshift.runs(model("y = Relu (h) h = Relu (y)"), toy_runtime())


def test_operators_for_one_processor_may_run() -> None:
    nodes = (
        "h = com.microsoft.nchwc.ReorderInput (x) y = com.microsoft.nchwc.ReorderOutput <channels = 8> (h)"
    )
    text = model(nodes, "float[1, 8, 4, 4] x", opset=13)
    text.opset_import.add(domain="com.microsoft.nchwc", version=1)
    text.opset_import.add(domain="com.ms.internal.nhwc", version=1)
    text.ir_version = 8
    names = ["onnxruntime-1.16.3", "onnxruntime-1.31.1", "onnxruntime-cuda-1.20.1", "tract-0.23.9"]
    results = opshift.runs(text, names).results
    assert [each.verdict for each in results] == ["may run", "may run", "may run", "does not run"]
    assert "depends on the processor" in results[0].support.uncertain[0]
    (missing,) = results[3].support.missing[:1]
    assert missing.remedy.startswith("save or export the model without layout optimization")


def test_names_the_nodes_that_prevent_it() -> None:
    (result,) = opshift.runs(model("a = Relu (x) b = Abs (a) y = Abs (b)"), toy_runtime()).results
    assert (result.verdict, result.conversion) == ("does not run", None)
    (missing,) = result.support.missing
    assert missing.operator == "ai.onnx.Abs:13"
    assert missing.places == ("graph, node Abs -> b", "graph, node Abs -> y")


@pytest.mark.parametrize(
    ("opset", "reason", "remedy"),
    [
        (13, "has no kernel of ai.onnx.Gelu; ai.onnx has Gelu since opset 20", "correct the opset import"),
        (20, "has no kernel of ai.onnx.Gelu", ""),
    ],
    ids=["newer than the import", "without a kernel"],
)
def test_only_the_import_is_wrong_for_operators_that_are_newer(opset: int, reason: str, remedy: str) -> None:
    runtime = toy_runtime(expands_functions=False)
    (result,) = opshift.runs(model("y = Gelu (x)", opset=opset), runtime).results
    (missing,) = result.support.missing
    assert missing.reason == f"{runtime.name} {reason}"
    assert missing.remedy.startswith(remedy)
    assert missing.is_convertible is not bool(remedy)


@pytest.mark.parametrize(("node", "is_convertible"), [("Gelu (x)", False), ("Det (x)", True)])
def test_fit_agrees_on_what_a_conversion_may_help(node: str, *, is_convertible: bool) -> None:
    runtime, tested = toy_runtime(), model(f"y = {node}", opset=13)
    (result,) = opshift.runs(tested, runtime).results
    with pytest.raises(opshift.DoesNotFit) as error:
        opshift.fit(tested, runtime)
    for missing in (result.support.missing, error.value.missing):
        assert [each.is_convertible for each in missing] == [is_convertible]


def test_names_nodes_that_prevent_it_after_the_conversion() -> None:
    (result,) = opshift.runs(model("y = Abs (x)"), OLD).results
    assert result.verdict == "does not run"
    assert result.conversion is not None
    assert result.conversion.support is not None
    assert [each.operator for each in result.conversion.support.missing] == ["ai.onnx.Abs:13"]


def test_reports_refusals_of_the_conversion() -> None:
    oldest = toy_runtime(opsets={"ai.onnx": 6})
    (result,) = opshift.runs(model("y = Sin (x)"), oldest).results
    assert result.conversion is not None
    assert (result.verdict, result.conversion.support) == ("does not run", None)
    (cause,) = result.conversion.refusals
    assert "no operator of opset 6" in cause


def _count_conversions(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list that each later conversion becomes part of."""
    converted: list[object] = []
    convert = try_convert

    def count_and_convert(*arguments: Any, **named: Any) -> Any:
        converted.append(arguments)
        return convert(*arguments, **named)

    monkeypatch.setattr(TRY_CONVERT, count_and_convert)
    return converted


def test_runtimes_share_conversions(monkeypatch: pytest.MonkeyPatch) -> None:
    converted = _count_conversions(monkeypatch)
    runtimes = [toy_runtime(version=str(each), opsets={"ai.onnx": 13}) for each in range(5)]
    assert len(opshift.runs(model("y = Gelu (x)"), runtimes).results) == 5
    assert len(converted) == 1


@pytest.mark.parametrize(("newest", "opset", "is_copied"), [(13, 14, True), (5, 4, False)])
def test_tries_a_copy_without_repeated_nodes_after_some_failures(
    newest: int, opset: int, is_copied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    converted: list[tuple[int, object]] = []
    convert = try_convert

    def count_and_convert(source: ModelProto, options: Options, **named: Any) -> Any:
        converted.append((len(source.graph.node), options.target.opsets["ai.onnx"]))
        return convert(source, options, **named)

    monkeypatch.setattr(TRY_CONVERT, count_and_convert)
    nodes = " ".join(f"h{number} = Abs (x)" for number in range(9))
    always = {"ai.onnx.Relu": [{"reason": "in no opset", "when": {"opsets": [1, 99]}}]}
    operators = {"ai.onnx.Abs": [{"versions": [1, newest]}], "ai.onnx.Relu": [{"versions": [1, 14]}]}
    opsets = {"ai.onnx": max(newest, opset)}
    runtimes = [
        toy_runtime(version=f"{number}.0", operators=operators, restrictions=always, opsets=opsets)
        for number in range(6)
    ]
    found = opshift.runs(model(f"{nodes} y = Relu (x)", opset=opset), runtimes).results
    assert {each.verdict for each in found} == {"does not run"}
    assert len(converted) == len(set(converted)) > MIN_FAILURES
    counts = [count for count, _ in converted]
    assert counts == [10] * MIN_FAILURES + [2 if is_copied else 10] * (len(counts) - MIN_FAILURES)


SOME_PATHS = Random(0).sample(model_paths(), 12)


@pytest.mark.parametrize("path", SOME_PATHS, ids=lambda each: f"{each.parent.name}-{each.stem}")
def test_answers_about_groups_agree_with_those_about_each_node(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = onnx.load_model(path, load_external_data=False)
    expected = opshift.runs(source)
    monkeypatch.setattr(KernelLookup, "has_kernel_without_notes", lambda *_: None)
    assert opshift.runs(source) == expected


@pytest.mark.parametrize("form", ["message", "bytes", "path"])
def test_conversions_do_not_copy_weights(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    convert = try_convert

    def measure_and_convert(source: Any, options: Any, **named: Any) -> Any:
        sizes.append(source.ByteSize())
        return convert(source, options, **named)

    monkeypatch.setattr(TRY_CONVERT, measure_and_convert)
    large = model("h = Add (x, w) y = Gelu (h)")
    large.graph.initializer.append(numpy_helper.from_array(np.zeros(1 << 19, np.float32), "w"))
    path = tmp_path / "large.onnx"
    onnx.save(large, path)
    forms = {"message": large, "bytes": large.SerializeToString(), "path": path}
    (result,) = opshift.runs(forms[form], OLD).results
    assert result.verdict == "after conversion"
    assert sizes
    assert max(sizes) < 10_000


def test_answers_for_all_runtimes_of_the_project_by_default() -> None:
    found = opshift.runs(model("y = Relu (x)", opset=13))
    verdicts = {each.runtime: each.verdict for each in found.results}
    assert len(verdicts) > 15
    assert verdicts["onnxruntime-1.31.1"] == "runs"
    assert {each.evidence for each in found.results} >= {"kernel_registry", "documentation"}


def test_results_pickle_and_become_json() -> None:
    found = opshift.runs(model("y = Gelu (x)"), [OLD, toy_runtime(), "onnxruntime-1.31"])
    assert pickle.loads(pickle.dumps(found)) == found
    data = found.to_dict()
    assert json.loads(json.dumps(data)) == data
    assert [each["verdict"] for each in data["runtimes"]] == ["after conversion", "runs", "runs"]  # type: ignore[index, union-attr, call-overload]


DEVICE = """
runtime: device
version: "1.0"
extends: onnxruntime-1.31.1
evidence: {kind: documentation, source: tests, date: 2026-11-23}
"""


def test_accepts_paths_of_files(tmp_path: Path) -> None:
    path = tmp_path / "device.yaml"
    path.write_text(DEVICE, "utf-8")
    for runtimes in (path, [path], str(path), (str(path),)):
        found = opshift.runs(model("y = Relu (x)"), runtimes)
        assert [each.runtime for each in found.results] == ["device-1.0"]


@pytest.mark.parametrize("runtimes", [5, b"tensorrt", [None], [["tensorrt"]]], ids=repr)
def test_refuses_what_names_no_runtime(runtimes: Any) -> None:
    with pytest.raises(UsageError, match="expected a Runtime, its name or the path of a YAML file"):
        opshift.runs(model("y = Relu (x)"), runtimes)


def test_refuses_unknown_runtimes() -> None:
    with pytest.raises(OpshiftError, match="no data about the runtime"):
        opshift.runs(model("y = Relu (x)"), "onnxruntime-0.1")


@pytest.mark.parametrize(
    ("nodes", "types", "opset"),
    [
        ("y = Gelu (x)", "float[2] x", 20),
        ("a = Mish (x) y = HardSwish (a)", "float[2] x", 22),
        ("y = Swish (x)", "double[2] x", 24),
        ("y = Add (x, x)", "bfloat16[2] x", 14),
        ("y = Relu (x)", "float16[2] x", 14),
        ("y = Sin (x)", "int32[2] x", 22),
        ("y = Erf (x)", "float16[2] x", 13),
        ("y = RMSNormalization (x, x)", "float[2] x", 23),
        ("y = com.microsoft.FastGelu (x)", "float[2] x", 18),
        ("y = com.microsoft.Unknown (x)", "float[2] x", 18),
    ],
)
def test_agrees_with_the_installed_onnxruntime(nodes: str, types: str, opset: int) -> None:
    tested = model(nodes, types, opset)
    tested.ir_version = 10
    del tested.opset_import[1]
    try:
        found = opshift.runs(tested, f"onnxruntime-{onnxruntime.__version__}")
    except OpshiftError:
        pytest.skip("no data about this onnxruntime")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(tested.SerializeToString(), options, ["CPUExecutionProvider"])
        loads = True
    except Exception:
        loads = False
    assert bool(found) == loads


def test_changes_only_the_ir_version_if_that_helps() -> None:
    (result,) = opshift.runs(model("y = Relu (x)"), toy_runtime(ir_version=8)).results
    assert result.conversion is not None
    assert (result.verdict, dict(result.conversion.opsets)) == ("after conversion", {})
    assert result.conversion.ir_version == 8


@pytest.mark.parametrize("nodes", ["y = Relu (x)", "y = Gelu (x)", "h = Abs (x) y = Gelu (h)"])
def test_support_after_a_change_of_only_the_ir_version(nodes: str) -> None:
    source = model(nodes)
    source.ir_version = 10
    source.graph.node[0].metadata_props.add(key="origin", value="layer 1")
    runtime = toy_runtime(
        ir_version=8, falls_back="onnxruntime-1.31.1", wrong={"ai.onnx.Erf:13": "off by one"}
    )
    (result,) = opshift.runs(source, runtime).results
    assert result.conversion is not None
    converted = opshift.convert_version(source, ir_version=8).SerializeToString()
    nodes_after = ModelNodes(ModelProto.FromString(converted), default_registry())
    expected = RuntimeCheck(runtime).check(nodes_after)
    assert (result.conversion.ir_version, result.conversion.support) == (8, expected)


DOCUMENTED = {"evidence": {"kind": "documentation", "source": "tests", "date": "2026-11-23"}}
UNTYPED = {"operators": {"ai.onnx.Relu": [{"versions": [6, 14]}]}, **DOCUMENTED}


@pytest.mark.parametrize(
    ("types", "fallback", "verdict"),
    [
        ("float[2] x", "", "runs"),
        ("bfloat16[2] x", "", "may run"),
        ("bfloat16[2] x", "onnxruntime-1.31.1", "may run"),
        ("double[2] x", "onnxruntime-1.31.1", "runs"),
    ],
)
def test_does_not_promise_types_without_documentation(types: str, fallback: str, verdict: str) -> None:
    runtime = toy_runtime(**UNTYPED, falls_back=fallback)
    found = opshift.runs(model("y = Relu (x)", types), runtime)
    (result,) = found.results
    assert (bool(found), result.verdict) == (True, verdict)
    assert bool(result.support.uncertain) == (verdict == "may run")


def test_conversions_leave_the_model_unchanged() -> None:
    source = model("h = Gelu (x) y = Relu (h)")
    before = source.SerializeToString()
    (result,) = opshift.runs(source, toy_runtime(opsets={"ai.onnx": 13})).results
    assert result.conversion is not None
    assert source.SerializeToString() == before
