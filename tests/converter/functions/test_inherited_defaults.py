"""Functions inherit the attribute defaults of the functions that are inlined into them."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest
from support.calls import FEEDS
from support.execution import assert_equal, run

from opshift import convert_version, plan_version

MAIN = """
    <ir_version: 10, opset_import: ["": 13, "lib": 1, "kept": 1]>
    main (float[1, 3, 4] x) => (float[1, 3, 4] y) {{
        a = kept.Outer (x)
        y = kept.Outer <{attribute} = 0.125> (a)
    }}
"""

LEAK = """
    <domain: "lib", opset_import: ["": 13]>
    Leak <slope: float = 0.5> (v) => (w) { w = LeakyRelu <alpha: float = @slope> (v) }
"""

OUTER = """
    <domain: "kept", opset_import: ["": 13, "lib": 1, "kept": 1]>
    Outer {parameters} (v) => (w) {{ {nodes} }}
"""


def calling_outer(parameters: str, nodes: str, *functions: str, attribute: str = "by") -> onnx.ModelProto:
    """Return a model that calls `kept.Outer` twice: without the attribute, and with another value."""
    outer = OUTER.format(parameters=parameters, nodes=nodes)
    return onnx.parser.parse_model("".join((MAIN.format(attribute=attribute), LEAK, *functions, outer)))


MIDDLE = """
    <domain: "{domain}", opset_import: ["": 13, "lib": 1]>
    Middle <by> (v) => (w) {{ w = lib.Leak <slope: float = @by> (v) }}
"""

PASSING = {
    "one call": ("<by>", "w = lib.Leak <slope: float = @by> (v)"),
    "several calls": (
        "<by>",
        "h = lib.Leak <slope: float = @by> (v) g = Neg (h) w = lib.Leak <slope: float = @by> (g)",
    ),
    "inlined function between": (
        "<by>",
        "w = lib.Middle <by: float = @by> (v)",
        MIDDLE.format(domain="lib"),
    ),
    "kept function between": (
        "<by>",
        "w = kept.Middle <by: float = @by> (v)",
        MIDDLE.format(domain="kept"),
    ),
    "own default": ("<by: float = 0.25>", "w = lib.Leak <slope: float = @by> (v)"),
    "attribute with the same name": ("<slope>", "w = lib.Leak <slope: float = @slope> (v)"),
}


@pytest.mark.parametrize("target", [None, 16])
@pytest.mark.parametrize("case", PASSING)
def test_calls_without_the_attribute_keep_the_default(case: str, target: int | None) -> None:
    parameters, nodes, *functions = PASSING[case]
    model = calling_outer(parameters, nodes, *functions, attribute=parameters.strip("<>").partition(":")[0])
    result = convert_version(model, target, without="lib")
    onnx.checker.check_model(result)
    assert {each.domain for each in result.functions} == {"kept"}
    assert_equal(run(result, FEEDS), run(model, FEEDS))


def test_inherits_a_required_attribute() -> None:
    cast = """
        <domain: "lib", opset_import: ["": 13]>
        To <type: int = 1> (v) => (w) { w = Cast <to: int = @type> (v) }
    """
    model = calling_outer("<by, type>", "h = Abs (v) w = lib.To <type: int = @type> (h)", cast)
    assert_equal(run(convert_version(model, without="lib"), FEEDS), run(model, FEEDS))


DIFFERENT = {
    "operator": "h = LeakyRelu <alpha: float = @by> (v) w = lib.Leak <slope: float = @by> (h)",
    "other default": "h = lib.Other <slope: float = @by> (v) w = lib.Leak <slope: float = @by> (h)",
    "through a function": "w = lib.Both <by: float = @by> (v)",
}

OTHERS = (
    LEAK.replace("Leak <", "Other <").replace("0.5", "0.25"),
    """
    <domain: "lib", opset_import: ["": 13, "lib": 1]>
    Both <by> (v) => (w) {
        h = lib.Other <slope: float = @by> (v)
        w = lib.Leak <slope: float = @by> (h)
    }
    """,
)


@pytest.mark.parametrize("case", DIFFERENT)
def test_refuses_different_defaults(case: str) -> None:
    model = calling_outer("<by>", DIFFERENT[case], *OTHERS)
    (refusal,) = plan_version(model, without="lib").refusals
    assert (refusal.place, refusal.code) == ("function kept.Outer", "function.calls-differ")
    assert refusal.reason == "a call omits attribute 'by', for which nodes to inline have different defaults"
    assert refusal.remedy == "set attribute 'by' in all calls of the function"


@pytest.mark.parametrize("case", DIFFERENT)
def test_inlines_different_defaults_that_no_call_uses(case: str) -> None:
    model = calling_outer("<by>", DIFFERENT[case], *OTHERS)
    model.graph.node[0].attribute.add().CopyFrom(onnx.helper.make_attribute("by", 0.75))
    result = convert_version(model, without="lib")
    assert not any(each.attribute_proto for each in result.functions)
    assert_equal(run(result, FEEDS), run(model, FEEDS))


def test_adds_no_default_that_all_functions_keep() -> None:
    """If the called function is not inlined, its default still applies."""
    model = calling_outer("<by>", "w = lib.Leak <slope: float = @by> (v)", LEAK.replace("Leak <", "Unused <"))
    result = convert_version(model, without="lib.Unused")
    assert [each.name for each in result.functions] == ["Leak", "Outer"]
    assert not result.functions[1].attribute_proto
