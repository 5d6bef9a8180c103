"""Nodes with equal keys and equal facts share one rewrite, also across models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, helper, numpy_helper, parser
from support.execution import Array, assert_equal, build, run

from opshift import convert_version, plan_version
from opshift.adapters.core.adapter_table import load_adapters, temporary_adapters
from opshift.inference.scope import Scope
from opshift.model.errors import CannotConvert
from opshift.model.node import Node
from opshift.model.operator_ids import DEFAULT_DOMAIN, opset_imports
from opshift.registry.registry import default_registry
from opshift.registry.steps import Allow
from opshift.rewriting import rewrite_cache as module
from opshift.rewriting.cached_rewrite import Candidates, NodeRewrite, Question
from opshift.rewriting.rewrite_cache import RewriteCache
from opshift.rewriting.rewrite_node import rewrite_node
from opshift.rewriting.routes import LazyAdapterTable, Router
from opshift.rewriting.workspace import Allowances, FreshNames, Workspace

OPSET = 9


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that collects the first output of every node that steps rewrite."""
    found: list[str] = []

    def record(node: Node, *arguments: object) -> NodeRewrite:
        found.append(node.outputs[0])
        return rewrite_node(node, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "rewrite_node", record)
    return found


@pytest.fixture
def router() -> Router:
    """Return a router that no other test uses."""
    return Router(default_registry(), LazyAdapterTable(), {DEFAULT_DOMAIN: 17})


def attempts(
    router: Router, model: ModelProto, allowed: Sequence[Allow] = ()
) -> Iterator[Callable[[], NodeRewrite]]:
    """Yield functions that rewrite the nodes of a model."""
    imports = opset_imports(model.opset_import)
    scope = Scope(model.graph, imports, default_registry(), {})
    for node in model.graph.node:
        scope.defined_names.update(node.output)
    names = FreshNames()
    names.sources.append(scope.used_names)
    cache = RewriteCache(Workspace(scope, names, Allowances(allowed)), router)
    for record, proto in zip(scope.node_records, model.graph.node, strict=True):
        yield partial(cache.rewrite, record, proto, imports[DEFAULT_DOMAIN])


def rewrites(router: Router, *nodes: NodeProto, opset: int = OPSET) -> Iterator[NodeRewrite]:
    """Yield the rewrites of the nodes of a model with inputs of ranks 2 and 3, and one of doubles."""
    inputs: dict[str, np.ndarray] = {
        "x": np.ones((2, 3), np.float32),
        "z": np.ones((2, 3, 4), np.float32),
        "doubles": np.ones((2, 3), np.float64),
    }
    for rewrite in attempts(router, build(nodes, inputs, [], {"": opset})):
        yield rewrite()


def clip(source: str, result: str, highest: float = 6.0) -> NodeProto:
    return helper.make_node("Clip", [source], [result], min=0.0, max=highest)


def test_nodes_that_differ_in_names_share_a_rewrite(router: Router, computed: list[str]) -> None:
    first, second = rewrites(router, clip("x", "a"), clip("a", "b"))
    assert computed == ["a"]
    names = [(each.nodes[0].node.inputs, each.nodes[0].node.outputs) for each in (first, second)]
    bounds = names[0][0][1:]
    assert names == [(("x", *bounds), ("a",)), (("a", *bounds), ("b",))]


def test_other_attributes_have_their_own_rewrite(router: Router, computed: list[str]) -> None:
    nodes = [helper.make_node("Softmax", ["x"], [name], axis=axis) for name, axis in (("a", 0), ("b", 1))]
    assert len(list(rewrites(router, *nodes))) == 2
    assert computed == ["a", "b"]


def test_other_answers_have_their_own_rewrite(router: Router, computed: list[str]) -> None:
    """Softmax depends on the rank of its input."""
    pairs = (("x", "a"), ("z", "b"), ("x", "c"), ("z", "d"))
    nodes = [helper.make_node("Softmax", [source], [result], axis=1) for source, result in pairs]
    counts = [len(each.nodes) for each in rewrites(router, *nodes)]
    assert computed == ["a", "b"]
    assert counts[0] == counts[2] != counts[1] == counts[3]


def test_search_queries_only_what_the_steps_query() -> None:
    """Reshape queries the shape of its data only if nothing else shows that the data has elements."""
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]>
        g (float[n, c] x, float[m] z, int64[2] computed) => (float[i, j] d) <int64[2] fixed = {-1, 3}> {
            a = Reshape <allowzero = 1> (x, computed)
            b = Reshape <allowzero = 1> (x, fixed)
            c = Reshape <allowzero = 1> (z, computed)
            d = Reshape <allowzero = 1> (z, fixed)
        }"""
    )
    scope = Scope(model.graph, opset_imports(model.opset_import), default_registry(), {})
    queried: list[tuple[str, str]] = []

    class Recording:
        def __getattr__(self, question: str) -> Callable[[str], object]:
            def answer(name: str) -> object:
                queried.append((question, name))
                return getattr(scope, question)(name)

            return answer

    candidates = Candidates[str]()
    known = Question("constant", 1)
    candidates.add((known, Question("shape", 0)), (None, (None, None)), "computed")
    candidates.add((known,), (scope.constant("fixed"),), "fixed")
    names = {node.output[0]: (*node.input, *node.output) for node in model.graph.node}
    found = [candidates.find(each, Recording()) for each in names.values()]  # type: ignore[arg-type]
    assert found == ["computed", "fixed", None, "fixed"]
    constants = [("constant", each[1]) for each in names.values()]
    assert queried == [constants[0], ("shape", "x"), constants[1], constants[2], ("shape", "z"), constants[3]]


def test_nodes_that_read_one_value_twice_share_a_rewrite(computed: list[str]) -> None:
    """Below opset 7, the operator needs an attribute to broadcast, but not for one value."""
    router = Router(default_registry(), LazyAdapterTable(), {DEFAULT_DOMAIN: 6})
    pairs = (("x", "x"), ("x", "x"), ("x", "z"), ("z", "z"))
    nodes = [helper.make_node("Add", pair, [f"y{place}"]) for place, pair in enumerate(pairs)]
    found = [result.nodes for result in rewrites(router, *nodes)]
    assert computed == ["y0", "y2", "y3"]
    assert [each[-1].node.outputs for each in found] == [("y0",), ("y1",), ("y2",), ("y3",)]
    assert found[0][0].node.inputs == found[1][0].node.inputs == ("x", "x")


@pytest.mark.parametrize(
    ("allowances", "expected"),
    [
        pytest.param(((), ()), ["result"], id="refused twice"),
        pytest.param(((), ("assume-nonempty",)), ["result"] * 2, id="refused, then allowed"),
        pytest.param((("assume-nonempty",), ("assume-nonempty",)), ["result"] * 2, id="each use is recorded"),
    ],
)
def test_conversions_with_the_same_allowances_share_a_rewrite(
    allowances: Sequence[Sequence[Allow]], expected: list[str], computed: list[str]
) -> None:
    router = Router(default_registry(), LazyAdapterTable(), {DEFAULT_DOMAIN: 13})
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]>
        g (float[n, c] data, int64[2] sizes) => (float[i, j] result) {
            result = Reshape <allowzero = 1> (data, sizes)
        }"""
    )
    for allowed in allowances:
        for rewrite in attempts(router, model, allowed):
            rewrite()
    assert computed == expected


def test_nodes_that_share_a_rewrite_record_each_use_of_an_allowance(computed: list[str]) -> None:
    nodes = [helper.make_node("Asinh", ["x"], [name]) for name in ("first", "second")]
    model = build(nodes, {"x": np.ones((2, 3), np.float32)}, [], {"": 9})
    plan = plan_version(model, 8, allow="approximate")
    assert len(computed) <= 1  # 0 if another test converted these nodes
    assert [kind for kind, _ in plan.allowances] == ["approximate"] * 2
    assert len({reason for _, reason in plan.allowances}) == 1


def test_nodes_that_exceed_a_limit_share_the_refusal(router: Router, computed: list[str]) -> None:
    """The loop that expresses Col2Im has nodes for each axis, the number of which the sizes declare."""
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]>
        g (float[n, c, l] x, int64[60] image, int64[60] block, int64[2] small) => (float[n, c, h, w] d) {
            a = Col2Im(x, image, block)
            b = Col2Im(x, image, block)
            c = Col2Im(x, block, image)
            d = Col2Im(x, small, small)
        }"""
    )
    *large, small = attempts(router, model)
    for rewrite in large:
        with pytest.raises(CannotConvert, match="would add"):
            rewrite()
    small()
    assert computed == ["a", "d"]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param([7], [7], ["a"], id="equal"),
        pytest.param([7], [8], ["a", "b"], id="different"),
        pytest.param([0.0], [-0.0], ["a", "b"], id="sign of zero"),
        pytest.param(["text"], ["text"], ["a", "b"], id="strings, which may be long"),
        pytest.param([7] * 33, [7] * 33, ["a", "b"], id="many elements"),
    ],
)
def test_constants_of_few_elements_share_a_rewrite(
    first: list[object], second: list[object], expected: list[str], computed: list[str]
) -> None:
    """Constant can hold lists since opset 12."""
    router = Router(default_registry(), LazyAdapterTable(), {DEFAULT_DOMAIN: 9})
    nodes = [
        helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.array(values)))
        for name, values in (("a", first), ("b", second))
    ]
    found = [each.nodes[0].node for each in rewrites(router, *nodes, opset=18)]
    assert computed == expected
    assert [each.outputs for each in found] == [("a",), ("b",)]


def test_queries_about_emitted_values_are_answered_by_the_types_of_the_node(computed: list[str]) -> None:
    """Steps of the nodes that express Gelu query the element types of the values between them."""
    router = Router(default_registry(), LazyAdapterTable(), {DEFAULT_DOMAIN: 13})
    pairs = (("x", "y0"), ("doubles", "y1"), ("z", "y2"), ("doubles", "y3"))
    nodes = [helper.make_node("Gelu", [source], [result]) for source, result in pairs]
    found = [[each.node for each in result.nodes] for result in rewrites(router, *nodes, opset=20)]
    assert computed == ["y0", "y1"]
    operators = [[node.op_type for node in each] for each in found]
    assert operators[0] == operators[2]
    assert operators[1] == operators[3]
    assert [each[-1].outputs for each in found] == [(result,) for _, result in pairs]


def test_models_share_rewrites(router: Router, computed: list[str]) -> None:
    for _ in range(3):
        (found,) = rewrites(router, clip("x", "a"))
        assert found.nodes[0].node.inputs == ("x", "const", "const_1")
    assert computed == ["a"]


def test_cached_rewrites_write_the_same_nodes(router: Router) -> None:
    nodes = clip("x", "a"), clip("x", "a")
    written = []
    for node in nodes:
        (found,) = rewrites(router, node)
        found.write([node])
        written.append(node.SerializeToString())
    assert written[0] == written[1]


def test_unchanged_nodes_are_marked(router: Router) -> None:
    (found,) = rewrites(router, helper.make_node("Tanh", ["x"], ["a"]))
    assert found.is_unchanged


@pytest.mark.parametrize(
    ("target", "text", "expected"),
    [
        pytest.param(
            8,
            """<ir_version: 8, opset_import: ["": 19]>
            g (float[n, c, h, w] x, int64[8] pads) => (float[i, j, k, l] z) {
                y = Pad (x, pads)
                z = Pad (y, pads)
            }""",
            ["y"],
            id="emitted graphs",
        ),
        pytest.param(
            7,
            """<ir_version: 7, opset_import: ["": 12]>
            g (float[1, 3, h, w] x) => (float[i, j, k, l] z) <float[4] s = {1.0, 1.0, 2.0, 2.0}> {
                y = Resize <mode = "linear"> (x, , s)
                z = Resize <mode = "linear"> (y, , s)
            }""",
            ["y"],
            id="computed sizes",
        ),
        pytest.param(
            7,
            """<ir_version: 7, opset_import: ["": 12]>
            g (float[1, 3, h, w] x) => (float[i, j, k, l] b)
            <float[4] s = {1.0, 1.0, 2.0, 2.0}, float[4] t = {1.0, 1.0, 2.0, 3.0}> {
                a = Resize <mode = "linear"> (x, , s)
                b = Resize <mode = "linear"> (x, , t)
            }""",
            ["a", "b"],
            id="other constants",
        ),
    ],
)
def test_nodes_share_a_rewrite_that_queries_emitted_values(
    target: int, text: str, expected: list[str], computed: list[str]
) -> None:
    router = Router(default_registry(), LazyAdapterTable(), {DEFAULT_DOMAIN: target})
    for rewrite in attempts(router, parser.parse_model(text)):
        rewrite()
    assert computed == expected


@pytest.mark.parametrize("element_type", ["float", "uint64"], ids=["values of the model", "emitted values"])
def test_nodes_share_a_refusal_with_their_own_names(element_type: str, computed: list[str]) -> None:
    """The remedy names the values of the main graph that have unknown sizes, whatever the steps ask about."""
    model = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 16]>
        g ({element_type}[n, c] first, {element_type}[n, c] second, {element_type}[m, k] third) => (bool[i] z)
        {{
            x = Identity (first)
            y = Greater (x, third)
            z = Greater (second, third)
        }}"""
    )
    refused = {each.place: each for each in plan_version(model, 6).refusals}
    assert computed.count("y") + computed.count("z") == 1
    remedies = [refused[f"graph, node Greater -> {name}"].remedy for name in "yz"]
    assert ["'first'" in each for each in remedies] == [True, False]
    assert ["'second'" in each for each in remedies] == [False, True]


REDUCE = """
domain: com.acme
name: Reduce
shape: unknown
versions:
- since_version: 2
  before: adapter
  inputs:
  - {name: X, type: tensor(float)}
  - {name: S, type: tensor(int64)}
  outputs:
  - {name: Y, type: tensor(float)}
  descriptions:
    operator: Reshapes X to S - 1.
    inputs: {X: Data., S: Sizes plus 1.}
    outputs: {Y: Result.}
"""
REDUCE_ADAPTER = """
from opshift.adapters import adapter

@adapter("Reduce", 2, 1, domain="com.acme")
def reduce_sizes(node, out):
    sizes = out.emit("Sub", [node.inputs[1], out.int64([1])], domain="", opset=18)
    out.emit("Reshape", [node.inputs[0], sizes], node.outputs, domain="", opset=18, allowzero=1)
"""


@pytest.mark.parametrize("is_one_model", [True, False])
def test_nodes_with_other_bounds_of_elements_have_their_own_rewrite(
    is_one_model: bool, tmp_path: Path
) -> None:
    """Sizes that are at least 2 stay positive if 1 is subtracted, but sizes of 1 do not."""
    (tmp_path / "com.acme").mkdir()
    (tmp_path / "com.acme" / "Reduce.yaml").write_text(REDUCE)
    (tmp_path / "reduce.py").write_text(REDUCE_ADAPTER)
    registry = default_registry().with_folder(tmp_path)
    nodes = [f"s{k} = Gather (k{k}, i) y{k} = com.acme.Reduce (x{k}, s{k})" for k in (2, 1)]
    feeds: dict[str, Array] = {
        "x1": np.ones((3, 0), np.float32),
        "x2": np.ones((1, 1), np.float32),
        "i": np.zeros(2, np.int64),
    }
    with temporary_adapters():
        load_adapters(tmp_path / "reduce.py")
        for text in [" ".join(nodes)] if is_one_model else nodes:
            output = "y1" if "y1" in text else "y2"
            model = parser.parse_model(
                f"""<ir_version: 8, opset_import: ["": 18, "com.acme": 2]>
                g (float[N, M] x1, float[L, K] x2, int64[2] i) => (float[A, B] {output})
                <int64[2] k1 = {{1, 5}}, int64[2] k2 = {{2, 5}}> {{ {text} }}"""
            )
            result = convert_version(model, {"": 13, "com.acme": 1}, registry=registry)
    assert_equal(run(result, feeds), [np.ones((0, 0), np.float32)], 0)
