"""Each kind of proposal, from the scaffold to the accepted operator in a copy of the definitions."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.proposals import operator_fields, replace_text, set_answers, set_newest_version, write_content
from support.running import Array, op_types, run
from typer.testing import CliRunner

from opshift.adapters.core.adapter_table import temporary_adapters
from opshift.cli.main import app
from opshift.converter.convert import convert_version
from opshift.proposals.content.staged_registry import registry_of_tree
from opshift.proposals.evidence.run import Reference, load_module, run_reference
from opshift.proposals.status import status_of
from opshift.registry.models import Attribute, OperatorVersion, Parameter
from opshift.registry.registry import Registry
from opshift.registry.shapes.rule_table import SHAPE_RULES, temporary_rules
from opshift.registry.yaml_files import load_yaml

OPSETS = Path(__file__).resolve().parents[2] / "opsets"
ANSWERS = {
    "title": "A proposal of a test",
    "certificate": "Ada <ada@example.com>",
    "motivation": "Models of a test need it, and use several nodes today.",
    "model": "https://example.com/model",
    "frameworks": [{"name": "JAX", "link": "https://docs.jax.dev", "differs": "nothing"}],
    "formula": "see the reference",
    "source": "https://example.com/paper",
    "alternatives": "Leaving the nodes in the model, which runtimes do not recognise.",
    "state": "in-review",
}
PRIMITIVE = "It inspects the bits of the numbers, which no operator does."
MAPPING = "The inputs, outputs and attributes are the same."
ADAPTERS = "from opshift.adapters import Node, Rewriter, adapter\n\n\n"
ONE_INPUT = {"inputs": {"X": "The numbers to compute with."}, "outputs": {"Y": "The numbers of the result."}}
FLOAT = {"type_constraints": {"T": ["tensor(float)"]}}
EXAMPLES = """\
examples:
- {name: main, inputs: [{values: [[-3.5, 0.5], [1, 2]]}]}
- {name: scalar, inputs: [{values: 1.5}]}
- {name: empty, inputs: [{values: [], shape: [0, 3]}]}
- {name: not finite, inputs: [{values: [nan, inf, -inf]}]}
"""


def _reference(expression: str, parameters: str = "X") -> str:
    return f"import numpy as np\n\n\ndef reference({parameters}):\n    return np.asarray({expression})\n"


def _texts(**more: dict[str, str]) -> dict[str, Any]:
    operator = {"operator": "It computes something for every element."}
    return {**operator, **ONE_INPUT, "types": {"T": "The type of the numbers."}, **more}


def _body(opset: int, *nodes: str) -> dict[str, Any]:
    """Return a body from nodes such as `Mul X X square`: the operator, its inputs and its output."""
    parts = [node.split() for node in nodes]
    return {
        "opset_imports": {"ai.onnx": opset},
        "nodes": [{"op_type": op, "inputs": inputs, "outputs": [out]} for op, *inputs, out in parts],
    }


@dataclass(frozen=True)
class Workbench:
    """Folder with a copy of the definitions, in which proposals are written and accepted."""

    folder: Path

    @property
    def tree(self) -> Path:
        return self.folder / "opsets"

    @property
    def registry(self) -> Registry:
        return registry_of_tree(self.tree)

    def start(self, kind: str, name: str, domain: str = "ai.onnx") -> Path:
        path = self.folder / f"{kind}-{name}-{len(list(self.folder.iterdir()))}"
        self._run("new", path, "-k", kind, "-n", name, "-d", domain, "--author", ANSWERS["certificate"])
        assert self._exit_code("check", path) == 1  # the questions are open
        return path

    def fill(
        self, path: Path, definition: dict[str, Any], files: dict[str, str], **answers: Any
    ) -> OperatorVersion:
        """Answer the questions, accept the proposal, and return the accepted version."""
        set_answers(**ANSWERS, **answers)(path)
        if "shape" in definition:
            operator_fields(shape=definition.pop("shape"))(path)
        if definition:
            set_newest_version(**definition)(path)
        for name, content in files.items():
            write_content(name, content)(path)
        self._run("check", path)
        for reviewer in ("Grace", "Alan"):
            assert CliRunner().invoke(app, ["proposal", "sign", str(path), "-n", reviewer]).exit_code == 0
        self._run("accept", path)
        operator = load_yaml(path / "operator.yaml")
        found = self.registry.operator(operator["name"], operator["domain"])
        assert found is not None
        return found.versions[-1]

    def _exit_code(self, command: str, path: Path) -> int:
        arguments = ["proposal", command, str(path), "--opsets", str(self.tree)]
        return CliRunner().invoke(app, arguments).exit_code

    def _run(self, command: str, path: Path, *arguments: object) -> None:
        every = ["proposal", command, str(path), *map(str, arguments), "--opsets", str(self.tree)]
        result = CliRunner().invoke(app, every)
        assert result.exit_code == 0, result.output

    def convert(self, node: onnx.NodeProto, source: int, target: int, domain: str = "") -> onnx.ModelProto:
        """Convert a model of a node with the inputs x and y between opsets of the domain."""
        x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy")
        inputs = [each for each in (x, y) if each.name in node.input]
        out = helper.make_tensor_value_info("out", TensorProto.FLOAT, None)
        if node.op_type in ("Xor",):
            for each in (*inputs, out):
                each.type.tensor_type.elem_type = TensorProto.BOOL
        imports = {domain: source} | ({"": 18} if domain else {})
        model = helper.make_model(
            helper.make_graph([node], "test", inputs, [out]),
            opset_imports=[helper.make_opsetid(*each) for each in imports.items()],
            ir_version=10,
        )
        with temporary_adapters():
            for each in sorted((self.tree / "adapters").glob("*.py")):
                load_module(each)
            targets = {domain or "ai.onnx": target} | ({"ai.onnx": 18} if domain else {})
            return convert_version(model, targets, registry=self.registry)


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    shutil.copytree(
        OPSETS, tmp_path / "opsets", ignore=shutil.ignore_patterns("*.py", "*.binpb", "__pycache__")
    )
    return Workbench(tmp_path)


def _node(op_type: str, *inputs: str, domain: str = "", **attributes: object) -> onnx.NodeProto:
    return helper.make_node(op_type, inputs, ["out"], domain=domain, **attributes)


X = np.array([[-1, 0.5, 2], [0, 3, -4]], np.float32)


def _accept_cube(bench: Workbench) -> OperatorVersion:
    definition = {"shape": "same_as_first", **FLOAT, "body": _body(18, "Mul X X square", "Mul square X Y")}
    files = {"reference.py": _reference("X * X * X"), "examples.yaml": EXAMPLES}
    return bench.fill(bench.start("new-function", "Cube"), {**definition, "descriptions": _texts()}, files)


def test_new_operator(bench: Workbench) -> None:
    path = bench.start("new-operator", "NextAfter")
    parameter = {"type": "T", "differentiation": "non_differentiable"}
    definition = {
        "shape": "broadcast",
        "before": {"refuse": "no operator reads the bits of a number"},
        "inputs": [{"name": "X", **parameter}, {"name": "Y", **parameter}],
        "outputs": [{"name": "Z", **parameter}],
        "type_constraints": {"T": ["tensor(float)", "tensor(double)"]},
        "descriptions": _texts(
            inputs={"X": "The numbers to start from.", "Y": "The numbers to go towards."},
            outputs={"Z": "The neighbours of the numbers."},
        ),
    }
    examples = EXAMPLES.replace("inputs: [", "inputs: [{values: 2}, ")
    files = {"reference.py": _reference("np.nextafter(X, Y)", "X, Y"), "examples.yaml": examples}
    accepted = bench.fill(path, definition, files, numpy="numpy.nextafter", primitive_reason=PRIMITIVE)
    assert str(accepted.id) == "ai.onnx.NextAfter:29"
    assert bench.registry.get_schema("NextAfter", 29).doc.startswith("It computes something")


def test_new_function(bench: Workbench) -> None:
    accepted = _accept_cube(bench)
    older = bench.convert(_node("Cube", "x"), 29, 17)
    assert accepted.body is not None
    np.testing.assert_allclose(run(older, {"x": X})[0], X**3, rtol=1e-6)


def test_definition_has_no_comments_of_the_scaffold(bench: Workbench) -> None:
    path = bench.start("new-function", "Copy")
    text = "A sentence about it for users."
    replace_text("operator.yaml", "shape: ''", "shape: same_as_first  # like Identity")(path)
    replace_text("operator.yaml", "''", f"'{text}'")(path)
    bench.fill(path, {}, {"reference.py": _reference("X.copy()"), "examples.yaml": EXAMPLES})
    comments = [
        line for line in (bench.tree / "ai.onnx" / "Copy.yaml").read_text().splitlines() if "#" in line
    ]
    assert comments == [
        "# yaml-language-server: $schema=../schema.json",
        "shape: same_as_first  # like Identity",
    ]


def test_update(bench: Workbench) -> None:
    path = bench.start("update", "Cosh")
    definition = {
        "attributes": {"factor": {"type": "FLOAT", "default": 1.0}},
        "step": {
            "change": "The attribute factor multiplies the input; its default keeps the meaning.",
            "up": "compatible",
            "down": [{"drop_attribute": "factor"}],
        },
        "descriptions": {"attributes": {"factor": "The factor of the input before cosh."}},
    }
    examples = EXAMPLES + (
        "- {name: factor, inputs: [{values: [1, 2]}], attributes: {factor: 0.1}}\n"
        "- {name: older, version: 22, inputs: [{values: [1, 2]}]}\n"
    )
    files = {"reference.py": _reference("np.cosh(X * X.dtype.type(factor))", "input, *, factor")}
    files["reference.py"] = files["reference.py"].replace("(input,", "(X,")
    accepted = bench.fill(path, definition, {**files, "examples.yaml": examples})
    assert str(accepted.id) == "ai.onnx.Cosh:29"
    assert op_types(bench.convert(_node("Cosh", "x"), 22, 29)) == ["Cosh"]
    assert op_types(bench.convert(_node("Cosh", "x"), 29, 22)) == ["Cosh"]


def test_update_of_unreleased_operator_edits_it(bench: Workbench) -> None:
    _accept_cube(bench)
    path = bench.start("update", "Cube")
    assert "X * X * X" in (path / "reference.py").read_text()
    definition = {"body": _body(18, "Mul X X square", "Mul X square Y")}
    edited = bench.fill(path, definition, {"examples.yaml": EXAMPLES})
    operator = bench.registry.operator("Cube")
    assert operator is not None
    assert operator.versions == (edited,)
    assert edited.body is not None
    assert edited.body.nodes[1].inputs == ("X", "square")


def test_body_with_operator_of_same_opset(bench: Workbench) -> None:
    _accept_cube(bench)
    definition = {
        "shape": "same_as_first",
        **FLOAT,
        "body": _body(29, "Cube X cube", "Cube cube Y"),
        "descriptions": _texts(),
    }
    files = {"reference.py": _reference("(X * X * X) * (X * X * X) * (X * X * X)"), "examples.yaml": EXAMPLES}
    bench.fill(bench.start("new-function", "NinthPower"), definition, files)
    older = bench.convert(_node("NinthPower", "x"), 29, 17)
    assert op_types(older) == ["Mul"] * 4
    np.testing.assert_allclose(run(older, {"x": X})[0], X**9, rtol=1e-5)


def test_deprecation_in_favour_of_new_operator(bench: Workbench) -> None:
    definition: dict[str, Any] = {
        "shape": "same_as_first",
        "body": _body(18, "Abs X size", "CastLike one X unit", "Add size unit sum", "Div X sum Y"),
        "descriptions": _texts(),
    }
    definition["body"]["nodes"].insert(
        0, {"op_type": "Constant", "outputs": ["one"], "attributes": {"value_float": 1.0}}
    )
    reference = _reference("X / (X.dtype.type(1) + np.abs(X))")
    files = {"reference.py": reference, "examples.yaml": EXAMPLES}
    bench.fill(bench.start("new-function", "RationalSign"), definition, files)
    step = {
        "change": "RationalSign replaces the operator.",
        "up": [{"rename_op": "RationalSign"}],
        "down": "compatible",
    }
    retirement = {"replaced_by": "RationalSign", "mapping": MAPPING}
    path = bench.start("deprecation", "Softsign")
    accepted = bench.fill(path, {"step": step, "deprecation": retirement}, files, mapping=MAPPING)
    assert accepted.deprecated
    assert op_types(bench.convert(_node("Softsign", "x"), 22, 29)) == ["RationalSign"]


REMOVE_XOR = f'''{ADAPTERS}@adapter("Xor", 7, 29)
def replace_with_two_nodes(node: Node, out: Rewriter) -> None:
    """Replace the node with Equal and Not."""
    out.emit("Not", [out.emit("Equal", node.inputs)], node.outputs)
'''


def test_removal_in_favour_of_several_operators(bench: Workbench) -> None:
    path = bench.start("removal", "Xor")
    removal = {
        "removed_in": 29,
        "replaced_by": ["Equal", "Not"],
        "mapping": "Not of Equal of the same inputs.",
        "up": "adapter",
    }
    inputs = "{type: bool, values: [true, false]}, {type: bool, values: [true, true]}"
    files = {
        "reference.py": "import numpy as np\n\n\ndef reference(A, B):\n    return np.logical_xor(A, B)\n",
        "examples.yaml": f"examples:\n- {{name: main, inputs: [{inputs}]}}\n",
        "adapters.py": REMOVE_XOR,
    }
    bench.fill(path, {"removal": removal}, files, mapping="Xor(A, B) is Not(Equal(A, B)).")
    newer = bench.convert(_node("Xor", "x", "y"), 28, 29)
    assert op_types(newer) == ["Equal", "Not"]


def _accept_blend(bench: Workbench, name: str = "Blend") -> OperatorVersion:
    """Accept an operator of a private domain that no runtime supports."""
    definition = {"shape": "same_as_first", **FLOAT, "descriptions": _texts()}
    if bench.registry.operator("Blend", "com.acme"):
        definition["before"] = {"refuse": "no other operator computes it"}
    files = {"reference.py": _reference("np.spacing(X)"), "examples.yaml": EXAMPLES}
    path = bench.start("new-operator", name, "com.acme")
    return bench.fill(path, definition, files, primitive_reason=PRIMITIVE)


OLDER = "- {name: older, version: 1, inputs: [{values: [1, 2]}]}\n"


def _update_blend(bench: Workbench, examples: str = EXAMPLES + OLDER) -> OperatorVersion:
    definition = {
        "attributes": {"scale": {"type": "FLOAT", "default": 1.0}},
        "step": {
            "change": "The attribute scale multiplies the result; its default keeps the meaning.",
            "up": "compatible",
            "down": [{"drop_attribute": "scale"}],
        },
        "descriptions": {"attributes": {"scale": "The factor of the result, any number."}},
    }
    examples += "- {name: scale, inputs: [{values: [1, 2]}], attributes: {scale: 0.1}}\n"
    files = {
        "reference.py": _reference("np.spacing(X) * X.dtype.type(scale)", "X, *, scale"),
        "examples.yaml": examples,
    }
    return bench.fill(bench.start("update", "Blend", "com.acme"), definition, files)


def test_update_of_vendor_operator(bench: Workbench) -> None:
    assert str(_accept_blend(bench).id) == "com.acme.Blend:1"
    assert str(_update_blend(bench).id) == "com.acme.Blend:2"
    newer = bench.convert(_node("Blend", "x", domain="com.acme"), 1, 2, "com.acme")
    assert op_types(newer) == ["Blend"]


def test_update_needs_reference_of_older_vendor_version(bench: Workbench) -> None:
    _accept_blend(bench)
    (bench.tree / "references" / "com_acme_blend_1.py").unlink()
    with pytest.raises(AssertionError, match=r"a reference is missing: .*com_acme_blend_1\.py"):
        _update_blend(bench)


def test_deprecation_and_removal_of_vendor_operator(bench: Workbench) -> None:
    _accept_blend(bench)
    assert str(_accept_blend(bench, "Mixer").id) == "com.acme.Mixer:2"
    replacement = {"replaced_by": "Mixer", "mapping": MAPPING}
    step = {"change": "Mixer replaces Blend.", "up": [{"rename_op": "Mixer"}], "down": "compatible"}
    files = {"reference.py": _reference("np.spacing(X)"), "examples.yaml": EXAMPLES}
    path = bench.start("deprecation", "Blend", "com.acme")
    accepted = bench.fill(path, {"step": step, "deprecation": replacement}, files, mapping=MAPPING)
    assert (str(accepted.id), accepted.deprecated) == ("com.acme.Blend:3", True)
    path = bench.start("removal", "Blend", "com.acme")
    removal = {"removed_in": 4, "up": [{"rename_op": "Mixer"}], **replacement}
    bench.fill(path, {"removal": removal}, files, mapping=MAPPING)
    assert bench.registry.at("Blend", 4, "com.acme") is None
    newer = bench.convert(_node("Blend", "x", domain="com.acme"), 1, 4, "com.acme")
    assert op_types(newer) == ["Mixer"]


def test_promotion_of_vendor_operator(bench: Workbench) -> None:
    _accept_blend(bench)
    path = bench.start("promotion", "Blend")
    assert load_yaml(path / "proposal.yaml")["promotes"] == "com.acme.Blend:1"
    definition = {
        "shape": "same_as_first",
        **FLOAT,
        "before": {"refuse": "no other operator computes it"},
        "descriptions": _texts(),
    }
    files = {"reference.py": _reference("np.spacing(X)"), "examples.yaml": EXAMPLES}
    answers = {"primitive_reason": PRIMITIVE, "mapping": "The domain changes, and nothing else."}
    assert str(bench.fill(path, definition, files, **answers).id) == "ai.onnx.Blend:29"
    vendor = bench.registry.get_schema("Blend", 1, "com.acme")
    assert not vendor.deprecated  # released operators do not change


SHAPES = '''"""Shape rule of Rows."""

from opshift.shapes import ShapeContext, Shapes, rule


@rule("acme_rows")
def rows(node: ShapeContext) -> Shapes:
    """Keep the first dimension."""
    shape = node.shape(0)
    return [None if shape is None else shape[:1]]
'''
ROWS = """\
examples:
- {name: main, inputs: [{values: [[-3.5, 0.5], [1, 2]]}]}
- {name: empty, inputs: [{values: [], shape: [0, 3]}]}
- {name: not finite, inputs: [{values: [[nan, inf, -inf]]}]}
"""


def _start_rows(
    bench: Workbench, domain: str, shapes: str = SHAPES
) -> tuple[Path, dict[str, Any], dict[str, str]]:
    definition = {"shape": "acme_rows", **FLOAT, "descriptions": _texts()}
    files = {"reference.py": _reference("X.sum(axis=1)"), "examples.yaml": ROWS, "shapes.py": shapes}
    return bench.start("new-operator", "Rows", domain), definition, files


def test_proposal_brings_shape_rule(bench: Workbench) -> None:
    path, definition, files = _start_rows(bench, "com.acme")
    accepted = bench.fill(path, definition, files, primitive_reason=PRIMITIVE)
    assert accepted.shape == "acme_rows"
    assert "acme_rows" not in SHAPE_RULES
    assert (bench.tree / "adapters" / "com_acme_rows_1_shapes.py").read_text() == SHAPES
    with temporary_rules():
        load_module(bench.tree / "adapters" / "com_acme_rows_1_shapes.py")
        assert "acme_rows" in SHAPE_RULES


def test_status_runs_no_shape_rule(bench: Workbench) -> None:
    path, definition, files = _start_rows(bench, "ai.onnx", "raise SystemExit\n" + SHAPES)
    operator_fields(shape=definition["shape"])(path)
    (path / "shapes.py").write_text(files["shapes.py"])
    assert "operator.shape" not in {each.rule for each in status_of(path, bench.registry).open}


@pytest.mark.parametrize(
    ("shapes", "rule", "text"),
    [
        pytest.param(SHAPES.replace("import", "imports"), "shape.format", "SyntaxError", id="invalid Python"),
        pytest.param(
            SHAPES.replace("acme_rows", "same_as_first"),
            "shape.format",
            "'same_as_first' is defined by",
            id="name",
        ),
        pytest.param(SHAPES.replace("shape[:1]]", "shape[9]]"), "shape.agrees", "IndexError", id="exception"),
        pytest.param(
            SHAPES.replace("shape[:1]]", "shape]"), "shape.agrees", "the rule infers (2, 2)", id="shape"
        ),
    ],
)
def test_reports_wrong_shape_rule(bench: Workbench, shapes: str, rule: str, text: str) -> None:
    path, definition, files = _start_rows(bench, "com.acme", shapes)
    with pytest.raises(AssertionError, match=rf"error {rule}: .*{re.escape(text)}"):
        bench.fill(path, definition, files, primitive_reason=PRIMITIVE)


UP, DOWN = "def up(node: Node, out: Rewriter) -> None:", "def down(node: Node, out: Rewriter) -> None:"


def _cosh_adapters(default: float) -> str:
    return f'''{ADAPTERS}@adapter("Cosh", 22, 29)
{UP}
    """Set the factor."""
    out.replace(node, attributes={{"factor": 1.0}})


@adapter("Cosh", 29, 22)
{DOWN}
    """Multiply by the factor."""
    factor = out.constant(node.attribute("factor", {default}), out.element_type(node.inputs[0]))
    out.emit("Cosh", [out.emit("Mul", [node.inputs[0], factor])], node.outputs)
'''


def test_unreleased_update_is_edited_with_its_adapters(bench: Workbench) -> None:
    examples = EXAMPLES + "- {name: factor, inputs: [{values: [1, 2]}], attributes: {factor: 0.5}}\n"
    reference = _reference("np.cosh(X * X.dtype.type(factor))", "X, *, factor")
    for default in (1.0, 2.0):
        path = bench.start("update", "Cosh")
        definition = {
            "attributes": {"factor": {"type": "FLOAT", "default": default}},
            "step": {"change": "The factor multiplies the input.", "up": "adapter", "down": "adapter"},
            "descriptions": {"attributes": {"factor": "The factor of the input before cosh."}},
            **FLOAT,
        }
        if default == 2.0:
            assert "np.cosh" in (path / "reference.py").read_text()
            assert (path / "adapters.py").read_text() == _cosh_adapters(1.0)
        files = {"reference.py": reference, "examples.yaml": examples, "adapters.py": _cosh_adapters(default)}
        bench.fill(path, definition, files)
    operator = bench.registry.operator("Cosh")
    assert operator is not None
    assert [each.since_version for each in operator.versions] == [9, 22, 29]
    older = bench.convert(_node("Cosh", "x"), 29, 22)
    np.testing.assert_allclose(run(older, {"x": X})[0], np.cosh(2 * X), rtol=1e-5)


def test_update_of_unreleased_version_finds_adapters_in_clone(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference = _reference("np.cosh(X * X.dtype.type(factor))", "X, *, factor")
    definition = {
        "attributes": {"factor": {"type": "FLOAT", "default": 1.0}},
        "step": {"change": "The factor multiplies the input.", "up": "adapter", "down": "adapter"},
        "descriptions": {"attributes": {"factor": "The factor of the input before cosh."}},
        **FLOAT,
    }
    examples = EXAMPLES + "- {name: factor, inputs: [{values: [1, 2]}], attributes: {factor: 0.5}}\n"
    files = {"reference.py": reference, "examples.yaml": examples, "adapters.py": _cosh_adapters(1.0)}
    bench.fill(bench.start("update", "Cosh"), definition, files)
    (bench.folder / "adapters" / "ops").mkdir(parents=True)
    (bench.tree / "adapters").rename(bench.folder / "adapters" / "ops" / "math")
    monkeypatch.setattr("opshift.proposals.scaffold.OPSETS", bench.tree)
    path = bench.start("update", "Cosh")
    assert (path / "adapters.py").read_text() == _cosh_adapters(1.0)


@pytest.mark.parametrize("kind", ["deprecation", "removal"])
def test_unreleased_operator_is_neither_deprecated_nor_removed(bench: Workbench, kind: str) -> None:
    _accept_cube(bench)
    with pytest.raises(AssertionError, match="is not released") as refused:
        bench.start(kind, "Cube")
    assert "propose an update" in str(refused.value)


def test_downgrade_needs_reference_of_older_vendor_version(bench: Workbench) -> None:
    """The tree is written by hand, and the examples are of the new version only."""
    _accept_blend(bench)
    shutil.rmtree(bench.tree / "references")
    with pytest.raises(AssertionError, match=r"error steps\.\w+: .*missing: .*com_acme_blend_1\.py"):
        _update_blend(bench, EXAMPLES)


def test_reference_gets_lists_as_tuples_of_stored_numbers() -> None:
    version = OperatorVersion(
        domain="com.acme",
        name="Weights",
        since_version=1,
        outputs=(Parameter(name="Y", type="tensor(double)"),),
        attributes={"weights": Attribute(type="FLOATS"), "names": Attribute(type="STRINGS")},
    )
    given: list[object] = []

    def reference(weights: tuple[float, ...], names: tuple[str, ...] | None) -> Array:
        given.extend((weights, names))
        return np.zeros(1)

    run_reference(Reference(version, reference), (), {"weights": [0.1, 2]})
    run_reference(Reference(version, reference), (), {"names": (b"one", b"two")})
    assert given == [(float(np.float32(0.1)), 2.0), None, None, ("one", "two")]
