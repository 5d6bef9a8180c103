"""Folding of Ifs whose condition is the same in every run."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from support.execution import op_types, run, run_reference

from opshift import simplify

HEADER = """<ir_version: 8, opset_import: ["" : 17, "f" : 1]>
main (float[3, 4] x, bool flag) => (float[M, N] y) <bool[1] yes = {1}, bool no = {0}> {
"""
IF = """If ({condition}) <
    then_branch = t () => (float[M, N] r) {{ a = Neg (x) r = Relu (a) }},
    else_branch = e () => (float[M, N] r) {{ a = Exp (x) r = Abs (a) }}>
"""
NESTED = """If (flag) <
    then_branch = t () => (float[M, N] r) {{
        r = If ({condition}) <
            then_branch = t () => (float[M, N] r) {{ a = Neg (x) r = Relu (a) }},
            else_branch = e () => (float[M, N] r) {{ r = Exp (x) }}>
    }},
    else_branch = e () => (float[M, N] r) {{ r = Abs (x) }}>
"""
CASES = {
    "then": (f"y = {IF.format(condition='yes')}", ["Neg", "Relu"]),
    "else": (f"y = {IF.format(condition='no')}", ["Exp", "Abs"]),
    "computed from a shape": (
        "s = Shape (x) n = Size (s) two = Constant <value_int = 2> () same = Equal (n, two)"
        f" y = {IF.format(condition='same')}",
        ["Neg", "Relu"],
    ),
    "input": (f"y = {IF.format(condition='flag')}", ["If"]),
    "inside of another": (f"y = {NESTED.format(condition='no')}", ["If"]),
    "around another": (f"y = {NESTED.format(condition='yes').replace('flag', 'no')}", ["Abs"]),
    "twice": (
        f"b = {IF.format(condition='yes')} c = {IF.format(condition='yes')} y = Sub (b, c)",
        ["Neg", "Relu", "Sub"],
    ),
    "initializer": (
        """y = If (yes) <
            then_branch = t () => (float[M, N] r) <float[1] k = {2}> { r = Mul (x, k) },
            else_branch = e () => (float[M, N] r) { r = Neg (x) }>""",
        ["Mul"],
    ),
    "returned twice": (
        """b, c = If (yes) <
            then_branch = t () => (float[M, N] r, float[M, N] r) { r = Neg (x) },
            else_branch = e () => (float[M, N] r, float[M, N] s) { r = Neg (x) s = Abs (x) }>
        y = Add (b, c)""",
        ["Neg", "Add"],
    ),
    "function": (
        "y = f.g (x)",
        ["g"],
    ),
}
FUNCTION = f"""
<domain: "f", opset_import: ["" : 17]> g (x) => (y) {{
    yes = Constant <value = bool {{1}}> ()
    y = {IF.format(condition="yes")}
}}
"""


@pytest.mark.parametrize("name", CASES)
def test_replaces_an_if_by_its_branch(name: str) -> None:
    nodes, expected = CASES[name]
    model = onnx.parser.parse_model(f"{HEADER}{nodes}}}{FUNCTION}")
    result = simplify(model)
    onnx.checker.check_model(result)
    assert op_types(result) == expected
    assert "If" not in [node.op_type for function in result.functions for node in function.node]
    for flag in (False, True):
        feeds = {"x": np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4), "flag": np.array(flag)}
        assert np.allclose(run(result, feeds)[0], run_reference(model, feeds)[0])
    assert simplify(result) == result


def test_producer_of_the_result_has_the_metadata_and_devices_of_the_if() -> None:
    model = onnx.parser.parse_model(f"{HEADER}y = {IF.format(condition='yes')}}}{FUNCTION}")
    model.ir_version = 11
    model.configuration.add(name="pair", num_devices=2)
    node = model.graph.node[0]
    node.name = "choice"
    node.metadata_props.add(key="k", value="v")
    devices = node.device_configurations.add(configuration_id="pair")
    for tensor in ("yes", "y"):
        devices.sharding_spec.add(tensor_name=tensor, device=[0])
    inner = node.attribute[0].g.node[0].device_configurations.add(configuration_id="pair")
    inner.sharding_spec.add(tensor_name="a", device=[1])
    first, last = simplify(model).graph.node
    assert [(each.name, shardings(each)) for each in (first, last)] == [
        ("", [("pair", list(first.output))]),
        ("choice", [("pair", ["y"])]),
    ]
    assert list(last.metadata_props) == list(node.metadata_props)


def shardings(node: onnx.NodeProto) -> list[tuple[str, list[str]]]:
    """Return each device configuration of a node with the names of its sharded tensors."""
    return [
        (each.configuration_id, [spec.tensor_name for spec in each.sharding_spec])
        for each in node.device_configurations
    ]


def test_keeps_an_if_whose_branch_returns_an_outer_value() -> None:
    nodes = (
        IF.format(condition="yes")
        .replace("r = Relu (a) }", "}")
        .replace("t () => (float[M, N] r)", "t () => (float[M, N] x)")
    )
    model = onnx.parser.parse_model(f"{HEADER}y = {nodes}}}{FUNCTION}")
    assert op_types(simplify(model)) == ["If"]


@pytest.mark.parametrize("place", ["graph", "function", "function before IR version 10"])
def test_keeps_declarations_of_the_branch(place: str) -> None:
    body = f"y = {IF.format(condition='yes')}"
    call = "y = f.g (x)"
    model = onnx.parser.parse_model(f"{HEADER}{body if place == 'graph' else call}}}{FUNCTION}")
    model.ir_version = 8 if place == "function before IR version 10" else 10
    container = model.graph if place == "graph" else model.functions[0]
    declared = container.node[-1].attribute[0].g.value_info.add(name="a", doc_string="negated")
    declared.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    result = simplify(model)
    changed = result.graph if place == "graph" else result.functions[0]
    expected = [(changed.node[-2].output[0], "negated")] if model.ir_version == 10 else []
    assert [(each.name, each.doc_string) for each in changed.value_info] == expected
    x = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
    assert np.allclose(run(result, {"x": x, "flag": np.array(True)})[0], np.maximum(-x, 0))
