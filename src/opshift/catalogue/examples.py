"""Examples of operators: models of one node, with outputs that onnx.reference or onnxruntime computes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from opshift.opsets import OPSETS
from opshift.registry.models import Operator, OperatorVersion

EXAMPLES: Final = OPSETS / "examples.yaml"

SCRIPT: Final = '''\
import numpy as np
import onnx.parser
{imported}

model = onnx.parser.parse_model({raw}"""
{model}""")
inputs = {{
{inputs}
}}
for output in {session}.run(None, inputs):
    print(output)
'''

REFERENCE: Final = "onnx.reference"
CONVERTED: Final = "opshift and onnx.reference"

SESSIONS: Final = {
    REFERENCE: ("from onnx.reference import ReferenceEvaluator", "ReferenceEvaluator(model)"),
    CONVERTED: (
        "import opshift\nfrom onnx.reference import ReferenceEvaluator",
        'ReferenceEvaluator(opshift.convert_version(model, 22, without="com.microsoft"))',
    ),
    "onnxruntime": (
        "from onnxruntime import InferenceSession",
        'InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])',
    ),
}
"""Imports, and an expression for a session that computes outputs, by the names of the packages."""

NUMPY: Final = {"float": "np.float32", "double": "np.float64", "string": "object", "bool": "bool"}
"""NumPy types of the element types that have a different name in NumPy."""

EVIDENT_TYPE: Final = re.compile(r': (?:ints?(?= = \[?-?\d)|strings?(?= = \[?")|float(?= = -?\d+[.e]))')
"""Type of an attribute in the text of a node, if a parser would infer the type from the value."""

INPUT: Final = r"(seq\()?(\w+)(?:\[[^]]*\])?\)? "
"""Type before the name of a graph input in the text of a model."""


class OperatorExample(NamedTuple):
    """Model of a single node in the text format of ONNX, with the values of its inputs and outputs."""

    model: str
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    computed_by: str = REFERENCE
    """Key in `SESSIONS`: the packages that compute the outputs."""

    @property
    def node(self) -> str:
        """The node as text, without attribute types that are evident from the values."""
        text = self.model.partition("{\n")[2].rpartition("}")[0].strip()
        return EVIDENT_TYPE.sub("", text)

    @property
    def script(self) -> str:
        """Python script that computes the outputs."""
        inputs = [f"    {name!r}: {self._array_code(name, value)}," for name, value in self.inputs.items()]
        raw = "r" if "\\" in self.model else ""
        imported, session = SESSIONS[self.computed_by]
        text = "\n".join(inputs)
        return SCRIPT.format(model=self.model, raw=raw, inputs=text, imported=imported, session=session)

    def _array_code(self, name: str, value: Any) -> str:
        found = re.search(rf"{INPUT}{re.escape(name)}\b", self.model)
        assert found, name
        kind = NUMPY.get(found[2], f"np.{found[2]}")
        if found[1]:
            return f"[{', '.join(f'np.array({_literal_text(each)}, {kind})' for each in value)}]"
        return f"np.array({_literal_text(value)}, {kind})"

    @property
    def rows(self) -> list[tuple[str, str, bool]]:
        """Name, value as text, and whether the value is an output, for each input and output."""
        return [
            (name, array_text(value), is_output)
            for is_output, values in ((False, self.inputs), (True, self.outputs))
            for name, value in values.items()
        ]


@cache
def _read_examples() -> Mapping[str, OperatorExample]:
    from opshift.registry.yaml_files import load_yaml  # imported here: the completion of names needs no YAML

    return {name: OperatorExample(**each) for name, each in load_yaml(EXAMPLES).items()}


def example_of(operator: Operator | OperatorVersion) -> OperatorExample | None:
    """Return the example of an operator, or `None`; the node may have a different operator version."""
    return _read_examples().get(f"{operator.domain}.{operator.name}")


def array_text(value: Any, indent: int = 0) -> str:
    """Format nested lists as text, with a line for each row."""
    if not isinstance(value, list) or not any(isinstance(each, list) for each in value):
        return _numbers_text(value)
    rows = [array_text(each, indent + 1) for each in value]
    return f"[{(',' + chr(10) + ' ' * (indent + 1)).join(rows)}]"


def _literal_text(value: Any) -> str:
    return re.sub(r"\b(nan|inf)\b", r"np.\1", repr(value))


def _numbers_text(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_numbers_text, value))}]"
    if isinstance(value, str):
        return f'"{value}"'
    return f"{value:g}" if isinstance(value, float) else str(value).lower()


def plain(value: Any) -> Any:
    """Return arrays as nested lists, with floats rounded to 5 decimals and 4 significant digits."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return float(f"{round(value, 5) + 0:.4g}") if isinstance(value, float) else value
