"""Shape rules of private domains, which may fail or return invalid shapes."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from opshift.checker.check import check
from opshift.converter.convert import convert_version
from opshift.converter.refusals import ConversionRefused
from opshift.inference.facts import OperatorStatus
from opshift.inference.scope import Scope
from opshift.inference.survey import survey
from opshift.model.extensions import ExtensionFailed
from opshift.registry.registry import Registry, default_registry
from opshift.registry.shapes.rule_table import TABLE
from opshift.shapes import ShapeContext, Shapes, data_rule, rule

THIN = """\
domain: com.acme
name: Thin
shape: acme_thin
versions:
- since_version: 1
  inputs: [{name: X, type: T}]
  outputs: [{name: Y, type: T}]
  attributes: {stride: {type: INT, default: 2}}
  type_constraints: {T: [tensor(float)]}
"""


@pytest.fixture(autouse=True)
def _temporary_rules() -> Iterator[None]:
    yield
    TABLE._rules.pop("acme_thin", None)
    TABLE._functions.pop("acme_thin", None)


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    path = tmp_path / "com.acme" / "Thin.yaml"
    path.parent.mkdir()
    path.write_text(THIN)
    return default_registry().with_folder(tmp_path)


def _model(rows: int | str = 7) -> onnx.ModelProto:
    """Return a model with a Softmax that stays one node only if its rank is known."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    nodes = [
        helper.make_node("Thin", ["x"], ["t"], domain="com.acme"),
        helper.make_node("Softmax", ["t"], ["y"], axis=1),
    ]
    imports = [helper.make_opsetid("", 11), helper.make_opsetid("com.acme", 1)]
    return helper.make_model(helper.make_graph(nodes, "g", [x], [y]), opset_imports=imports, ir_version=6)


def _thin(node: ShapeContext) -> Shapes:
    shape, stride = node.shape(0), node.integer("stride")
    if not shape:
        return []
    rows = -(-shape[0] // stride) if shape[0] is not None and stride else None
    return [(rows, *shape[1:])]


@pytest.mark.parametrize("rows", [7, "N"])
def test_refusal_names_the_unregistered_rule(registry: Registry, rows: int | str) -> None:
    """Declaring the shape of the input would not help."""
    model = _model(rows)
    model.graph.node[1].CopyFrom(helper.make_node("ReduceSum", ["t"], ["y"], axes=[-1]))
    with pytest.raises(ConversionRefused) as caught:
        convert_version(model, 9, registry=registry)
    (refusal,) = caught.value.refusals
    assert refusal.remedy.startswith("register the shape rule of com.acme.Thin:1: ")
    assert "--adapters TREE/adapters" in refusal.remedy
    assert "--shape" not in refusal.remedy
    rule("acme_thin")(_thin)
    assert convert_version(model, 9, registry=registry)


def test_conversion_reads_the_inferred_shape(registry: Registry) -> None:
    model = _model()
    unknown = convert_version(model, 13, registry=registry)
    assert len(unknown.graph.node) > 2
    rule("acme_thin")(_thin)
    converted = convert_version(model, 13, registry=default_registry().with_folder(registry.folders[1]))
    assert [each.op_type for each in converted.graph.node] == ["Thin", "Softmax"]
    assert converted.graph.node[1].attribute[0].i == -1


def test_data_rule_gets_the_shape(registry: Registry) -> None:
    seen = []

    @data_rule("acme_thin")
    def thin(node: ShapeContext, shape: Any) -> Shapes:
        seen.append(shape)
        return [shape]

    convert_version(_model("n"), 13, registry=registry)
    assert {len(each) for each in seen} == {2}


def _raise(node: ShapeContext) -> Shapes:
    raise KeyError("x")


def _generate(node: ShapeContext) -> Any:
    yield [][len(node.inputs)]


def _exit(node: ShapeContext) -> Shapes:
    sys.exit("done")


FAILING: dict[str, tuple[Callable[[ShapeContext], Any], str]] = {
    "exception": (_raise, "raises KeyError: 'x'"),
    "exception in a generator": (_generate, "raises IndexError: list index out of range"),
    "exit": (_exit, "raises SystemExit: done"),
    "no list": (lambda node: 5, "raises TypeError: 'int' object is not iterable"),
    "nothing": (lambda node: None, "raises TypeError: 'NoneType' object is not iterable"),
    "one shape": (lambda node: (3, 4), "raises TypeError: 'int' object is not iterable"),
    "float": (lambda node: [(3, 3.5)], "returns the dimension 3.5, which is not an integer"),
    "text": (lambda node: ["n3"], "returns the dimension 'n', which is not an integer"),
    "boolean": (lambda node: [(True,)], "returns the dimension True, which is not an integer"),
}


@pytest.mark.parametrize(("function", "reason"), FAILING.values(), ids=FAILING)
def test_reports_a_failing_rule(
    registry: Registry, function: Callable[[ShapeContext], Any], reason: str
) -> None:
    rule("acme_thin")(function)
    with pytest.raises(ExtensionFailed) as caught:
        convert_version(_model(), 13, registry=registry)
    assert caught.value.reason == f"the shape rule acme_thin {reason}"
    place = caught.value.place
    assert (place.file, place.node) == (__file__, "node com.acme.Thin:1")
    assert place.line >= function.__code__.co_firstlineno
    assert pickle.loads(pickle.dumps(caught.value)).as_dict() == caught.value.as_dict()


def test_check_reports_a_failing_rule(registry: Registry) -> None:
    rule("acme_thin")(_raise)
    with pytest.raises(ExtensionFailed, match="raises KeyError"):
        list(check(_model(), registry=registry))


def _half(node: ShapeContext) -> Shapes:
    shape = node.shape(0)
    return [shape and (None if shape[0] is None else shape[0] // 2, *shape[1:])]


RULES: dict[str, Callable[[ShapeContext], Any]] = {
    "input's shape": lambda node: [node.shape(0)],
    "quotient": _half,
}


@pytest.mark.parametrize("function", RULES.values(), ids=RULES)
def test_sizes_known_only_at_run_time_are_unknown(
    registry: Registry, function: Callable[[ShapeContext], Any]
) -> None:
    rule("acme_thin")(function)
    scope = Scope(_model("N").graph, {"": 11, "com.acme": 1}, registry, {})
    survey(scope, "graph", lambda node, inner: OperatorStatus(has_step=False, has_graphs=True))
    assert scope.symbolic_shape("t") == (None, 3)


def test_negative_and_surplus_results_are_dropped(registry: Registry) -> None:
    rule("acme_thin")(lambda node: [(-4, 3), None, (2,)])
    converted = convert_version(_model(), 13, registry=registry)
    assert converted.graph.node[1].attribute[0].i == -1
