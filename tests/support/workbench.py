"""Workbench for proposals, from the scaffold to acceptance, and texts for their files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper
from typer.testing import CliRunner

from opshift.adapters.core.adapter_table import temporary_adapters
from opshift.cli.main import app
from opshift.converter.convert import convert_version
from opshift.proposals.content.staged_registry import registry_of_tree
from opshift.proposals.evidence.run import load_module
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry
from opshift.registry.yaml_files import load_yaml
from support.proposals import operator_fields, set_answers, set_newest_version, write_content

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


def reference_text(expression: str, parameters: str = "X") -> str:
    return f"import numpy as np\n\n\ndef reference({parameters}):\n    return np.asarray({expression})\n"


def texts(**more: dict[str, str]) -> dict[str, Any]:
    operator = {"operator": "It computes something for every element."}
    return {**operator, **ONE_INPUT, "types": {"T": "The type of the numbers."}, **more}


def body(opset: int, *nodes: str) -> dict[str, Any]:
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
            self._run("sign", path, "-n", reviewer)
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


def node(op_type: str, *inputs: str, domain: str = "", **attributes: object) -> onnx.NodeProto:
    return helper.make_node(op_type, inputs, ["out"], domain=domain, **attributes)


X = np.array([[-1, 0.5, 2], [0, 3, -4]], np.float32)


def accept_cube(bench: Workbench) -> OperatorVersion:
    definition = {"shape": "same_as_first", **FLOAT, "body": body(18, "Mul X X square", "Mul square X Y")}
    files = {"reference.py": reference_text("X * X * X"), "examples.yaml": EXAMPLES}
    return bench.fill(bench.start("new-function", "Cube"), {**definition, "descriptions": texts()}, files)
