"""Modules of `opshift stubs`: they pass type checkers, and build valid nodes of all operators."""

from __future__ import annotations

import importlib.util
import inspect
import operator
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import onnx.checker
import pytest
from onnx import TensorProto, defs, helper
from support.execution import assert_equal, run_reference
from support.published import Case, published
from support.released import is_released

import opshift
from opshift.model.element_types import BY_NAME
from opshift.registry.documents.node_builders import node_builders
from opshift.registry.errors import UnknownDomain, UnknownOpset
from opshift.registry.models import Attribute, Deprecation, Operator, OperatorVersion, Parameter
from opshift.registry.registry import default_registry

ROOT = Path(__file__).parents[3]
PARTS = (operator.itemgetter(slice(1)), operator.itemgetter(slice(1, None)))
"""The first name of a group of alternative attributes, and the others."""

REGISTRY = default_registry()
NUMBERS = {each.name: each.number for each in BY_NAME.values()}
NEWEST = {domain: REGISTRY.newest_opset(domain) for domain in REGISTRY.domains()}
MODULES = [*NEWEST.items(), ("ai.onnx", 1), ("ai.onnx", 9), ("ai.onnx", 17), ("ai.onnx.ml", 1)]


def load(code: str) -> ModuleType:
    module = ModuleType("builders")
    exec(compile(code, "builders.py", "exec"), module.__dict__)  # the code under test
    return module


@cache
def builders(domain: str, opset: int) -> ModuleType:
    return load(node_builders(REGISTRY, domain, opset))


def graph() -> onnx.GraphProto:
    x = helper.make_tensor_value_info("inner", TensorProto.BOOL, [])
    return helper.make_graph([helper.make_node("Constant", [], ["inner"], value=tensor(True))], "g", [], [x])


def tensor(value: Any) -> onnx.TensorProto:
    kind = TensorProto.BOOL if isinstance(value, bool) else TensorProto.FLOAT
    return helper.make_tensor("t", kind, [], [value])


def sparse() -> onnx.SparseTensorProto:
    values = helper.make_tensor("values", TensorProto.FLOAT, [1], [1.0])
    return helper.make_sparse_tensor(values, helper.make_tensor("i", TensorProto.INT64, [1], [0]), [2])


def value_of(attribute: Attribute) -> Any:
    """Return an allowed value of an attribute."""
    scalar = {
        "FLOAT": attribute.minimum or 0.5,
        "INT": attribute.minimum or 1,
        "STRING": "a",
        "TENSOR": tensor(1.0),
        "GRAPH": graph(),
        "SPARSE_TENSOR": sparse(),
        "TYPE_PROTO": helper.make_tensor_type_proto(TensorProto.FLOAT, []),
    }[attribute.type.removesuffix("S")]
    scalar = attribute.values[0] if attribute.values else scalar
    return [scalar, scalar] if attribute.type.endswith("S") else scalar


def arguments(version: OperatorVersion, *, is_full: bool) -> tuple[list[str], dict[str, Any]]:
    """Return inputs and attributes for a node: the required ones, or all."""
    inputs = [each.name for each in version.inputs if is_full or each.option != "optional"]
    if any(each.option == "optional" for each in version.inputs) and not is_full:
        last = max((i for i, each in enumerate(version.inputs) if each.option != "optional"), default=-1)
        inputs = [p.name if p.option != "optional" else "" for p in version.inputs[: last + 1]]
    groups = [[name for name in group if name in version.attributes] for group in version.one_of]
    chosen, left_out = ({name for group in groups for name in part(group)} for part in PARTS)
    attributes = {
        name: value_of(each)
        for name, each in version.attributes.items()
        if name not in left_out and (is_full or each.required or name in chosen)
    }
    return inputs, attributes


def nodes_of(domain: str, opset: int) -> Iterator[tuple[OperatorVersion, onnx.NodeProto]]:
    """Yield a node with all arguments and one with the required arguments for each operator of an opset."""
    module = builders(domain, opset)
    for version in REGISTRY.select(domain=domain, opset=opset):
        for is_full in (True, False):
            inputs, attributes = arguments(version, is_full=is_full)
            shared = {each.name for each in version.inputs} & set(attributes)
            named = {f"{key}_" if key in shared else key: value for key, value in attributes.items()}
            outputs = [
                f"output_{i}" for i in range(len(version.outputs) if is_full else version.min_output or 1)
            ]
            node = getattr(module, version.name)(*inputs, outputs=outputs, name="example", **named)
            assert {each.name for each in node.attribute} == {
                name for name, value in attributes.items() if value != version.attributes[name].default
            }
            yield version, node


def model_with(version: OperatorVersion, node: onnx.NodeProto, opset: int) -> onnx.ModelProto:
    """Return a model of one node, whose inputs have a type that the operator allows."""
    inputs = []
    for parameter in version.inputs:
        if parameter.name in node.input:
            types = version.types_of(parameter)
            text = next((each for each in ("tensor(float)", "tensor(int64)") if each in types), types[0])
            inputs.append(helper.make_value_info(parameter.name, type_of(text)))
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output]
    imports = {"": 17, node.domain: opset}
    return helper.make_model(
        helper.make_graph([node], "g", inputs, outputs),
        opset_imports=[helper.make_opsetid(*each) for each in imports.items()],
    )


def type_of(text: str) -> onnx.TypeProto:
    kind, _, inner = text.removesuffix(")").partition("(")
    if kind == "tensor":
        return helper.make_tensor_type_proto(NUMBERS[inner], None)
    if kind == "sparse_tensor":
        return helper.make_sparse_tensor_type_proto(NUMBERS[inner], None)
    if kind == "seq":
        return helper.make_sequence_type_proto(type_of(inner))
    if kind == "optional":
        return helper.make_optional_type_proto(type_of(inner))
    key, _, value = inner.partition(", ")
    return helper.make_map_type_proto(NUMBERS[key], type_of(f"tensor({value})"))


# One node without shapes, and with the same values for all parameters, breaks rules about a whole model.
UNRELATED = {
    "node.deprecated", "node.experimental", "node.output-mode", "node.requires", "node.attribute-type-code"
}  # fmt: skip


@pytest.mark.some_cases(3)
@pytest.mark.parametrize(("domain", "opset"), MODULES)
def test_nodes_of_all_operators_are_valid(domain: str, opset: int) -> None:
    context = onnx.checker.C.CheckerContext()
    context.opset_imports = {"": 17, "" if domain == "ai.onnx" else domain: opset}
    context.ir_version = onnx.IR_VERSION
    checked = set()
    for version, node in nodes_of(domain, opset):
        findings = opshift.check(model_with(version, node, opset))
        rules = {each.rule for each in findings if each.rule.startswith("node.")}
        assert rules <= UNRELATED, (version.id, node)
        if defs.has(version.name, version.since_version, version.domain) and not version.deprecated:
            onnx.checker.check_node(node, context)
        checked.add(version.id)
    assert checked == {each.id for each in REGISTRY.select(domain=domain, opset=opset)}


def test_all_current_operators_have_functions() -> None:
    names = [(each.name, domain) for domain in NEWEST for each in REGISTRY.select(domain=domain)]
    operators = [REGISTRY.operator(*each) for each in names]
    assert sum(each is not None and is_released(each.versions[0]) for each in operators) == 227
    for domain, opset in NEWEST.items():
        module = builders(domain, opset)
        functions = [name for name in vars(module) if inspect.isfunction(vars(module)[name])]
        assert [name for name in functions if not name.startswith("_")] == [
            each.name for each in REGISTRY.select(domain=domain)
        ]


def rebuild(node: onnx.NodeProto) -> onnx.NodeProto:
    """Build a node again by the function of its operator."""
    domain = node.domain or "ai.onnx"
    values = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    attributes = {
        name: value.decode()
        if isinstance(value, bytes)
        else [each.decode() if isinstance(each, bytes) else each for each in value]
        if isinstance(value, list)
        else value
        for name, value in values.items()
    }
    function = getattr(builders(domain, NEWEST[domain]), node.op_type)
    outputs = node.output[0] if len(node.output) == 1 else tuple(node.output)
    built: onnx.NodeProto = function(*node.input, outputs=outputs, name=node.name, **attributes)
    return built


def without_defaults(node: onnx.NodeProto, version: OperatorVersion) -> dict[str, Any]:
    attributes = {
        each.name: each.SerializeToString(deterministic=True)
        for each in node.attribute
        if encoded(helper.get_attribute_value(each)) != encoded(version.attributes[each.name].default)
    }
    inputs = [*node.input]
    while len(inputs) > version.min_input and not inputs[-1]:
        inputs.pop()
    return {"attributes": attributes, "inputs": inputs, "outputs": [*node.output], "name": node.name}


def encoded(value: Any) -> Any:
    return value.encode() if isinstance(value, str) else value


def current_cases() -> Iterator[tuple[OperatorVersion, Case]]:
    for (domain, name), cases in published().items():
        for case in cases:
            opset = next(each.version for each in case.model.opset_import if each.domain == domain)
            version = REGISTRY.at(name, opset, domain)
            if version and version is REGISTRY.at(name, NEWEST[domain or "ai.onnx"], domain):
                yield version, case


def test_rebuilds_the_nodes_of_published_cases() -> None:
    operators = set()
    for version, case in current_cases():
        (node,) = case.model.graph.node
        built = rebuild(node)
        assert without_defaults(built, version) == without_defaults(node, version), version.id
        operators.add(version.id)
    assert len(operators) > 150


EXECUTED = {"Clip", "Concat", "Conv", "Gemm", "LSTM", "LabelEncoder", "Pad", "SequenceMap", "Split", "TopK"}


def test_rebuilt_nodes_compute_the_same() -> None:
    executed = set()
    for version, case in current_cases():
        if version.name in EXECUTED and version.name not in executed:
            model = onnx.ModelProto.FromString(case.model.SerializeToString())
            model.graph.node[0].CopyFrom(rebuild(case.model.graph.node[0]))
            assert_equal(run_reference(model, case.feeds), run_reference(case.model, case.feeds))
            executed.add(version.name)
    assert executed == EXECUTED


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the generated modules, and correct and wrong uses of one."""
    folder = tmp_path_factory.mktemp("builders")
    for domain, opset in MODULES:
        code = node_builders(REGISTRY, domain, opset)
        (folder / f"ops_{domain.replace('.', '_')}_{opset}.py").write_text(code, "utf-8")
    (folder / "uses.py").write_text(USES, "utf-8")
    return folder


USES = """\
import ops_ai_onnx_17 as op
from onnx import GraphProto

op.Conv("x", "w", outputs="y", strides=(2, 2))
op.TopK("x", "k", outputs=("values", "indices"))
op.Loop("n", "", "a", "b", outputs=["y", "z"], body=GraphProto())
op.LSTM("x", "w", "r", outputs=("", "h"), hidden_size=3, direction="reverse")

op.Conv("x", outputs="y")
op.Conv("x", "w", outputs=("y", "z"))
op.Conv("x", "w", outputs="y", auto_pad="SAME")
op.TopK("x", "k", outputs="values")
op.Concat(outputs="y", axis=0)
op.Concat("x", outputs="y")
op.Relu("x", outputs="y", alpha=1.0)
"""

WRONG_LINES = [*range(9, 16)]


@pytest.mark.full
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_type_checkers_accept_modules_and_find_wrong_calls(checker: str, folder: Path) -> None:
    if importlib.util.find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed")
    options = {"mypy": ["--strict", "--cache-dir=cache"], "pyright": ["--pythonpath", sys.executable]}
    done = subprocess.run(
        [sys.executable, "-m", checker, *options[checker], *map(str, sorted(folder.glob("*.py")))],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name not in ("MYPYPATH", "PYTHONPATH")},
        capture_output=True,
        encoding="utf-8",  # of the checker, also after a test that changes the locale
        check=False,
    )
    errors = re.findall(r"(\w+\.py):(\d+)(?::\d+)?(?: -|:) error", done.stdout)
    found = sorted({(file, int(line)) for file, line in errors})
    assert found == [("uses.py", line) for line in WRONG_LINES], done.stdout + done.stderr


@pytest.mark.parametrize(
    "options", [["--isolated"], ["--config", str(ROOT / "pyproject.toml")]], ids=["default", "ours"]
)
def test_modules_pass_ruff(options: list[str], folder: Path) -> None:
    if importlib.util.find_spec("ruff") is None:
        pytest.skip("ruff is not installed")
    files = map(str, folder.glob("ops_*.py"))
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", *options, *files],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


HOSTILE = OperatorVersion(
    domain="com.acme",
    name="Fast-Conv",
    since_version=1,
    description='It ends. """\nimport os  # \\N{BULLET} \\',
    inputs=(
        Parameter(name="outputs", type="tensor(float)", option="optional"),
        Parameter(name="class", type="tensor(float)"),
        Parameter(name="rest", type="tensor(float)", option="variadic", min_arity=2),
    ),
    outputs=(Parameter(name="y", type="tensor(float)", option="variadic", min_arity=2),),
    attributes={
        "class": Attribute(type="FLOAT", default=float("-inf")),
        "2d": Attribute(type="STRINGS", values=("a\U0001f600", 'b"""'), default=('b"""',)),
        "_node": Attribute(type="FLOAT", default=0.1),
    },
    deprecation=Deprecation(replaced_by="Conv"),
)


def test_names_and_texts_of_private_operators_cannot_become_code() -> None:
    reserved = replace(HOSTILE, name="NodeProto")
    registry = REGISTRY
    for version in (HOSTILE, reserved):
        registry = registry.with_operator(Operator(domain="com.acme", name=version.name, versions=(version,)))
    module = load(node_builders(registry, "com.acme"))
    assert not hasattr(module, "os")
    assert '"""' in module.Fast_Conv.__doc__
    assert "Deprecated: use Conv." in module.Fast_Conv.__doc__
    node = module.Fast_Conv("", "x", "a", "b", outputs=["y", "z"], _2d=["a\U0001f600"], _node_=0.1)
    assert (node.op_type, node.domain, [*node.input]) == ("Fast-Conv", "com.acme", ["", "x", "a", "b"])
    assert [(each.name, [*each.strings]) for each in node.attribute] == [("2d", ["a\U0001f600".encode()])]
    assert module.NodeProto_("", "x", "a", "b", outputs=["y", "z"]).op_type == "NodeProto"


def test_builds_nodes_without_inputs_or_outputs() -> None:
    version = OperatorVersion(domain="com.acme", name="Wait", since_version=1)
    registry = REGISTRY.with_operator(Operator(domain="com.acme", name="Wait", versions=(version,)))
    node = load(node_builders(registry, "com.acme")).Wait(outputs=())
    assert (node.op_type, [*node.input], [*node.output]) == ("Wait", [], [])


def test_keeps_omitted_inputs_that_are_required() -> None:
    module = builders("ai.onnx", 17)
    assert [*module.Loop(outputs="y", body=graph()).input] == ["", ""]
    assert [*module.Conv("x", "w", "", outputs="y").input] == ["x", "w"]


@pytest.mark.parametrize(("default", "count"), [(0.0, 3), (-0.0, 2), (0, 3)])
def test_nodes_keep_the_sign_of_a_zero(default: float, count: int) -> None:
    """The default of LabelEncoder is -0.0, which 0.0 equals."""
    table: dict[str, Any] = {"keys_int64s": [1], "values_floats": [2.0]}
    built = builders("ai.onnx.ml", 4).LabelEncoder("x", outputs="y", **table, default_float=default)
    assert len(built.attribute) == count
    table["default_float"] = float(default)
    results = []
    for node in (built, helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", **table)):
        x = helper.make_tensor_value_info("x", TensorProto.INT64, [2])
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
        imports = [helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 4)]
        model = helper.make_model(helper.make_graph([node], "g", [x], [y]), opset_imports=imports)
        results.append(run_reference(model, {"x": np.array([1, 5])}))
    assert np.signbit(results[0]).tolist() == np.signbit(results[1]).tolist()


def test_refuses_unknown_opsets_and_domains() -> None:
    with pytest.raises(UnknownOpset, match="no opset 99"):
        node_builders(REGISTRY, "", 99)
    with pytest.raises(UnknownDomain, match="no definitions"):
        node_builders(REGISTRY, "ai.onnx.lm")
