"""Verification of models with private operators, by Python references or libraries of custom operators."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import opshift
from opshift import CannotVerify, ExtensionFailed, UsageError, VerificationFailed, convert_version, verify
from opshift.adapters.core.adapter_table import load_adapters, temporary_adapters
from opshift.analysis.verification import references
from opshift.analysis.verification.references import (
    DuplicateReference,
    _load_references,
    load_references,
    reference,
)
from opshift.opsets import OPSETS
from opshift.registry.registry import Registry, default_registry, load_registry

ACME = Path(__file__).parents[3] / "examples" / "acme" / "acme_operators"
WARP = """\
domain: com.acme
name: Gelu
versions:
- since_version: 1
  inputs: [{name: X, type: T}, {name: shift, type: T, option: optional}]
  outputs: [{name: Y, type: T}, {name: count, type: tensor(int64), option: optional}]
  attributes:
    run: {type: INT, default: 3}
    mode: {type: STRING, default: add}
    offsets: {type: FLOATS}
    table: {type: TENSOR}
  type_constraints: {T: [tensor(float), tensor(double)]}
"""


@pytest.fixture(autouse=True)
def _temporary_registrations() -> Iterator[None]:
    before = dict(references._registered)
    _load_references.cache_clear()
    with temporary_adapters():
        load_adapters(ACME / "adapters")
        yield
    references._registered.clear()
    references._registered.update(before)
    _load_references.cache_clear()


@pytest.fixture
def scale() -> None:
    @reference("Scale", 1, domain="com.acme")
    def scale_1(x: Any, *, factor: float) -> Any:
        assert type(factor) is float
        return x * factor

    @reference("Scale", 2, domain="com.acme")
    def scale_2(x: Any, factor: Any) -> Any:
        return x * factor


@pytest.fixture
def registry() -> Registry:
    return default_registry().with_folder(ACME)


@pytest.fixture
def gelu_registry(tmp_path: Path) -> Registry:
    """Return a registry with a private operator that has the name of a standard one."""
    (tmp_path / "com.acme").mkdir()
    (tmp_path / "com.acme" / "Gelu.yaml").write_text(WARP)
    return default_registry().with_folder(tmp_path)


def _info(name: str, element: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element, [2, 3])


def _model(*nodes: onnx.NodeProto, acme: int = 1, **options: Any) -> onnx.ModelProto:
    graph = helper.make_graph([*nodes], "g", [_info("x")], [_info("y")])
    imports = [helper.make_opsetid("", 10), helper.make_opsetid("com.acme", acme)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8, **options)


def _scale(x: str = "x", y: str = "y", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node("Scale", [x], [y], domain="com.acme", **attributes)


@pytest.mark.usefixtures("scale")
@pytest.mark.parametrize("attributes", [{}, {"factor": 0.1}], ids=["default", "explicit"])
def test_compares_both_domains(registry: Registry, attributes: dict[str, Any]) -> None:
    clip = helper.make_node("Clip", ["a"], ["y"], min=-1.0, max=1.0)
    model = _model(_scale(y="a", **attributes), clip)
    converted = convert_version(model, {"": 17, "com.acme": 2}, registry=registry)
    verification = verify(model, converted, registry=registry)
    assert verification.equal
    assert verification.outputs[0].absolute == 0
    assert [each.split()[0] for each in verification.runtimes] == ["onnx.reference"] * 2


@pytest.mark.usefixtures("scale")
def test_finds_a_difference(registry: Registry) -> None:
    model = _model(_scale(factor=2.0))
    with pytest.raises(VerificationFailed, match="output 'y' differs"):
        verify(model, _model(_scale(factor=2.5)), registry=registry)


@pytest.mark.usefixtures("scale")
def test_runs_nodes_in_branches(registry: Registry) -> None:
    branches = [
        helper.make_graph([_scale(y=name, factor=factor)], name, [], [_info(name)])
        for name, factor in (("then", 3.0), ("else", 0.5))
    ]
    node = helper.make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1])
    model = _model(node)
    model.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    converted = convert_version(model, {"com.acme": 2}, registry=registry)
    assert verify(model, converted, registry=registry).equal


@pytest.mark.usefixtures("scale")
@pytest.mark.parametrize("call", [{}, {"k": 4.0}], ids=["default", "given"])
def test_runs_nodes_in_functions(registry: Registry, call: dict[str, float]) -> None:
    inner = _scale("a", "b")
    inner.attribute.append(onnx.AttributeProto(name="factor", ref_attr_name="k", type=1))
    function = helper.make_function(
        "local",
        "F",
        ["a"],
        ["b"],
        [inner],
        [helper.make_opsetid("com.acme", 1)],
        attribute_protos=[helper.make_attribute("k", 3.0)],
    )
    model = _model(helper.make_node("F", ["x"], ["y"], domain="local", **call), functions=[function])
    model.opset_import.append(helper.make_opsetid("local", 1))
    assert verify(model, _model(_scale(factor=call.get("k", 3.0))), registry=registry).equal
    with pytest.raises(VerificationFailed):
        verify(model, _model(_scale(factor=2.5)), registry=registry)


def test_passes_inputs_and_attributes(gelu_registry: Registry) -> None:
    seen: list[dict[str, Any]] = []

    @reference("Gelu", 1, domain="com.acme")
    def gelu(x: Any, shift: Any = None, **attributes: Any) -> Any:
        seen.append({"shift": shift, **attributes})
        x += 1  # must not reach other nodes
        return x, np.array(x.size)

    node = helper.make_node("Gelu", ["x"], ["a", "n"], domain="com.acme")
    table = onnx.numpy_helper.from_array(np.arange(3))
    full = helper.make_node(
        "Gelu", ["x", "x"], ["b"], domain="com.acme", run=5, mode="mul", offsets=[0.5, 1], table=table
    )
    model = _model(node, full, helper.make_node("Sub", ["a", "x"], ["y"]))
    model.graph.output.append(helper.make_tensor_value_info("n", TensorProto.INT64, []))
    verification = verify(model, model, registry=gelu_registry, samples=1)
    assert verification.equal
    assert seen[0] == {"shift": None, "run": 3, "mode": "add", "offsets": None, "table": None}
    assert seen[1]["shift"] is not None
    assert (seen[1]["run"], seen[1]["mode"], seen[1]["offsets"]) == (5, "mul", [0.5, 1.0])
    assert seen[1]["table"].tolist() == [0, 1, 2]


def test_private_operator_needs_a_reference(registry: Registry) -> None:
    model = _model(_scale())
    with pytest.raises(CannotVerify, match=r"com\.acme\.Scale:1 has no Python reference") as caught:
        verify(model, model, registry=registry)
    assert "--verify-with" in caught.value.remedy


def test_reference_of_another_version_is_not_used(registry: Registry) -> None:
    reference("Scale", 1, domain="com.acme")(lambda x, factor: x)
    model = _model(_scale())
    converted = convert_version(model, {"com.acme": 2}, registry=registry)
    with pytest.raises(CannotVerify, match=r"com\.acme\.Scale:2 has no Python reference"):
        verify(model, converted, registry=registry)


def _fail(x: Any, factor: float) -> Any:
    raise KeyError("missing")


def test_exception_is_reported_with_its_line(registry: Registry) -> None:
    reference("Scale", 1, domain="com.acme")(_fail)
    model = _model(_scale())
    line = _fail.__code__.co_firstlineno + 1
    reason = rf"the reference com\.acme\.Scale:1 raises KeyError: 'missing' \({__file__}:{line}\)"
    with pytest.raises(CannotVerify, match=reason):
        verify(model, model, registry=registry)


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        pytest.param(
            lambda x: x.astype(np.float64), r"tensor\(double\) for Y, not tensor\(float\)", id="type"
        ),
        pytest.param(lambda x: x.tolist(), "list for Y, not an array", id="list"),
        pytest.param(lambda x: None, "NoneType for Y, not an array", id="nothing"),
        pytest.param(lambda x: (), "NoneType for Y, not an array", id="no output"),
        pytest.param(lambda x: 3.5, "float for Y, not an array", id="number"),
    ],
)
def test_invalid_result_is_the_error_of_the_reference(registry: Registry, result: Any, reason: str) -> None:
    reference("Scale", 1, domain="com.acme")(lambda x, factor: result(x))
    model = _model(_scale())
    with pytest.raises(ExtensionFailed, match=f"the reference com.acme.Scale:1 returns {reason}") as caught:
        verify(model, model, registry=registry)
    assert caught.value.place.file == __file__
    assert pickle.loads(pickle.dumps(caught.value)).as_dict() == caught.value.as_dict()


def test_missing_output_is_reported(gelu_registry: Registry) -> None:
    reference("Gelu", 1, domain="com.acme")(lambda x, *others, **attributes: x)
    node = helper.make_node("Gelu", ["x"], ["y", "n"], domain="com.acme")
    with pytest.raises(ExtensionFailed, match="returns NoneType for count"):
        verify(_model(node), _model(node), registry=gelu_registry)


@pytest.mark.usefixtures("scale")
def test_rejects_two_references_for_a_version() -> None:
    with pytest.raises(DuplicateReference, match=r"com\.acme\.Scale:2 has two references"):
        reference("Scale", 2, 3, domain="com.acme")(lambda x: x)


CODE = """
from opshift import reference
@reference("Scale", 1, 2, domain="com.acme")
def scale(x, *factors, factor=1.0):
    return x * (factors[0] if factors else factor)
"""


def test_loads_files_and_modules(registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "acme_references_a.py").write_text(CODE)
    monkeypatch.syspath_prepend(str(tmp_path))
    for source in ("acme_references_a", tmp_path / "acme_references_a.py"):
        references._registered.clear()
        for _ in range(2):
            load_references(source)
        model = _model(_scale(factor=0.25))
        assert verify(
            model, convert_version(model, {"com.acme": 2}, registry=registry), registry=registry
        ).equal


ACCEPTED = 'def reference(x, *, factor):\n    return x * factor\n\n\nOPERATOR = "com.acme.Scale:1"\n'


@pytest.mark.parametrize("source", ["", "scale.py"], ids=["folder", "file"])
def test_loads_references_of_accepted_proposals(registry: Registry, tmp_path: Path, source: str) -> None:
    (tmp_path / "scale.py").write_text(ACCEPTED)
    (tmp_path / "scale_2.py").write_text("def reference(x, factor):\n    return x * factor\n")
    references._registered.clear()
    load_references(tmp_path / source)
    assert list(map(str, references.REFERENCES)) == ["com.acme.Scale:1"]


RELU_30 = """\
domain: ai.onnx
name: Relu
versions:
- {since_version: 1, inputs: [{name: X, type: tensor(float)}], outputs: [{name: Y, type: tensor(float)}]}
- since_version: 28
  step: {change: The slope of negative values is an attribute., up: compatible, down: adapter}
  inputs: [{name: X, type: tensor(float)}]
  outputs: [{name: Y, type: tensor(float)}]
  attributes: {slope: {type: FLOAT, default: 0.0}}
"""


def test_does_not_run_versions_that_onnx_lacks(tmp_path: Path) -> None:
    """onnx.reference would run the newest version that it has, which ignores the attribute."""
    tree = tmp_path / "opsets"
    (tree / "ai.onnx").mkdir(parents=True)
    (tree / "ai.onnx" / "Relu.yaml").write_text(RELU_30)
    for name in ("releases.yaml", "types.yaml"):
        shutil.copy(OPSETS / name, tree / name)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 28)], ir_version=10)
    with pytest.raises(CannotVerify, match=r"does not implement ai\.onnx\.Relu:28"):
        verify(model, model, runtime="reference", registry=load_registry(tree))


@pytest.mark.parametrize(
    ("name", "code", "reason"),
    [
        pytest.param("nobody_has_this", "", "ModuleNotFoundError", id="missing module"),
        pytest.param("none.py", None, "FileNotFoundError", id="missing file"),
        pytest.param("a.py", "1\n1 / 0", "a.py:2: ZeroDivisionError", id="exception"),
        pytest.param("b.py", "\ndef (", "b.py:2: SyntaxError", id="syntax"),
        pytest.param("c.txt", "", "expected a Python file", id="other file"),
        pytest.param("a..b", "", "ModuleNotFoundError|ImportError", id="invalid name"),
        pytest.param(".b", "", "TypeError", id="relative name"),
    ],
)
def test_reports_unusable_references(tmp_path: Path, name: str, code: str | None, reason: str) -> None:
    source: str | Path = name
    if "." in name[1:-1] and ".." not in name:
        source = tmp_path / name
        if code is not None:
            source.write_text(code)
    with pytest.raises(UsageError, match=reason):
        opshift.load_references(source)


@pytest.mark.parametrize("load", [opshift.load_references, load_adapters])
@pytest.mark.parametrize("source", ["", None, 3], ids=repr)
def test_runs_no_files_for_an_invalid_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, load: Any, source: Any
) -> None:
    (tmp_path / "broken.py").write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"expected a path, got|the path is empty") as error:
        load(source)
    assert error.value.remedy


def test_custom_library_must_exist(tmp_path: Path) -> None:
    model = _model(_scale())
    with pytest.raises(UsageError, match="does not exist"):
        verify(model, model, custom_ops=[tmp_path / "none.so"])


def test_library_without_custom_operators_is_reported(tmp_path: Path) -> None:
    (tmp_path / "ops.so").write_bytes(b"text")
    model = _model(_scale())
    with pytest.raises(UsageError, match="onnxruntime") as caught:
        verify(model, model, custom_ops=[tmp_path / "ops.so"])
    assert str(caught.value.place) == str(tmp_path / "ops.so")
    assert "RegisterCustomOps" in caught.value.remedy


LIBRARY = """
int registered = 0;
void *RegisterCustomOps(void *options, const void *api) { registered++; return 0; }
"""


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("gcc") is None, reason="needs a C compiler")
def test_registers_a_library_of_custom_operators(registry: Registry, tmp_path: Path) -> None:
    """The library has no operators, so a model of standard operators shows that it was accepted."""
    (tmp_path / "ops.c").write_text(LIBRARY)
    library = tmp_path / "ops.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, tmp_path / "ops.c"], check=True)
    model = _model(helper.make_node("Relu", ["x"], ["y"]))
    verification = verify(model, model, custom_ops=[library])
    assert verification.runtimes[0].startswith("onnxruntime ")
    with pytest.raises(CannotVerify, match="Scale"):
        verify(_model(_scale()), _model(_scale()), custom_ops=[library], registry=registry)
