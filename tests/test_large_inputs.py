"""Models and texts of at most 100 KB take at most 2 seconds of CPU and 500 MiB, whatever they declare."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import pytest

from fuzzing.calls import MODEL_CALLS, Case, large_case_at
from fuzzing.large import MAX_BYTES, operator_model, operator_versions
from fuzzing.worker import LARGE, Worker, is_finding
from opshift.model.messages import GraphProto, ModelProto


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    found = Worker(LARGE)
    yield found
    found.close()


def require_limits(worker: Worker, *cases: Case) -> None:
    for case in cases:
        assert len(case.content) <= 2 * MAX_BYTES
        outcome = worker.run(case)
        assert not is_finding(outcome), f"{case.call} {case.seed}: {outcome.outcome} {outcome.details}"


QUICK = ("convert", "plan", "check", "compare", "simplify")
"""Calls that need no other modules."""


def test_generated_sample(worker: Worker) -> None:
    cases = (large_case_at(0, index) for index in range(24))
    require_limits(worker, *(each for each in cases if each.call in QUICK))


@pytest.mark.full
def test_generated_cases(worker: Worker) -> None:
    require_limits(worker, *(large_case_at(1, index) for index in range(100)))


def _huge_sizes(start: int, step: int) -> Iterator[Case]:
    for version in operator_versions()[start::step]:
        model = operator_model(version, Random(f"{version.id}:{start}"))
        yield Case("convert", ".onnx", model.SerializeToString(), f"{version.id}:{start}")


def test_sample_of_operators_with_huge_sizes(worker: Worker) -> None:
    require_limits(worker, *_huge_sizes(7, 150))


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
def test_operators_with_huge_sizes(seed: int, worker: Worker) -> None:
    cases = (each for start in range(3) for each in _huge_sizes(start, 3))
    require_limits(worker, *(each._replace(seed=f"{each.seed}:{seed}") for each in cases))


def _model(opset: int = 13) -> ModelProto:
    model = ModelProto(ir_version=8)
    model.opset_import.add(version=opset)
    model.graph.name = "g"
    model.graph.input.add(name="x").type.tensor_type.elem_type = 1
    model.graph.output.add(name="y")
    return model


def _inputs() -> ModelProto:
    model = _model()
    for index in range(6_000):
        model.graph.input.add(name=f"i{index}")
    return model


def _outputs() -> ModelProto:
    model = _model()
    model.graph.node.add(
        op_type="Split", input=["x"], output=["y", *(f"o{index}" for index in range(15_000))]
    )
    return model


def _operands() -> ModelProto:
    model, count = _model(12), 5_000
    node = model.graph.node.add(op_type="Einsum", input=["x"] * count, output=["y"])
    node.attribute.add(name="equation", type=3, s=b",".join([b"ab"] * count) + b"->ab")
    return model


def _training() -> ModelProto:
    model = _model()
    for _ in range(40_000):
        model.training_info.add()
    return model


def _rank() -> ModelProto:
    model = _model()
    for _ in range(30_000):
        model.graph.input[0].type.tensor_type.shape.dim.add()
    model.graph.node.add(op_type="Resize", input=["x", "", "s"], output=["y"])
    return model


def _new_dimensions() -> ModelProto:
    model = _model(11)
    model.graph.input[0].type.tensor_type.shape.dim.add(dim_value=2)
    for index in range(10):
        node = model.graph.node.add(op_type="Unsqueeze", input=["x"], output=[f"y{index or ''}"])
        node.attribute.add(name="axes", type=7, ints=range(4_000))
    return model


def _states() -> ModelProto:
    model, count = _model(8), 500
    names = [f"s{index}" for index in range(count)]
    node = model.graph.node.add(op_type="Scan", input=["", *names], output=[f"o{name}" for name in names])
    node.attribute.add(name="num_scan_inputs", type=2, i=1)
    body = node.attribute.add(name="body", type=5).g
    for name in names:
        body.input.add(name=f"b{name}")
        body.output.add(name=f"b{name}")
    return model


def _bfloat16() -> ModelProto:
    model, last = _model(), "x"
    model.graph.input[0].type.tensor_type.elem_type = 16
    for index in range(4_000):
        model.graph.node.add(op_type="Relu", input=[last], output=[f"v{index}"])
        last = f"v{index}"
    return model


def _calls() -> ModelProto:
    model = _model(12)
    model.opset_import.add(domain="local", version=1)
    model.graph.node.add(op_type="f0", domain="local", input=["x"], output=["y"])
    for index in range(400):
        function = model.functions.add(name=f"f{index}", domain="local", input=["a"], output=["b"])
        function.opset_import.add(version=12)
        function.opset_import.add(domain="local", version=1)
        called, domain = (f"f{index + 1}", "local") if index < 399 else ("Softmax", "")
        function.node.add(op_type=called, domain=domain, input=["a"], output=["v"])
        function.node.add(op_type=called, domain=domain, input=["v"], output=["b"])
    return model


def _deep_calls() -> ModelProto:
    """Return a model with 500 calls that become one node each, through 400 functions."""
    model = _model(9)
    model.opset_import.add(domain="local", version=1)
    for index in range(500):
        model.graph.node.add(op_type="f0", domain="local", input=["x"], output=[f"y{index or ''}"])
    for index in range(400):
        function = model.functions.add(name=f"f{index}", domain="local", input=["a"], output=["b"])
        function.opset_import.add(version=9)
        function.opset_import.add(domain="local", version=1)
        called, domain = (f"f{index + 1}", "local") if index < 399 else ("Softmax", "")
        function.node.add(op_type=called, domain=domain, input=["a"], output=["b"])
    return model


def _many_axes() -> ModelProto:
    """Return a model with 60 equal nodes, each of which would become thousands."""
    model = _model(18)
    for name in "image", "block":
        value = model.graph.input.add(name=name).type.tensor_type
        value.elem_type = 7
        value.shape.dim.add(dim_value=60)
    for index in range(60):
        model.graph.node.add(op_type="Col2Im", input=["x", "image", "block"], output=[f"y{index or ''}"])
    return model


def _declared_rank() -> ModelProto:
    """Return a model with 2,000 nodes that read an input of a rank that no tensor has."""
    model = _model(6)
    for _ in range(10_000):
        model.graph.input[0].type.tensor_type.shape.dim.add()
    for index in range(2_000):
        model.graph.node.add(op_type="PRelu", input=["x", "x"], output=[f"y{index or ''}"])
    return model


def _branches() -> ModelProto:
    """Return a model with 1,500 branches, of which runtimes refuse one."""
    model = _model(9)
    model.graph.input.add(name="c").type.tensor_type.elem_type = 9
    for index in range(15):
        node = model.graph.node.add(op_type="If", input=["c"], output=[f"y{index or ''}"])
        for name in "then_branch", "else_branch", *(f"branch{number}" for number in range(index % 2 * 200)):
            branch = node.attribute.add(name=name, type=5).g
            branch.node.add(op_type="Identity", input=["x"], output=["t"])
            branch.output.add(name="t")
    return model


def _branch_outputs() -> ModelProto:
    """Return a model with an If that has 800 outputs."""
    model, names = _model(), [f"y{index or ''}" for index in range(800)]
    model.graph.input.add(name="c").type.tensor_type.elem_type = 9
    node = model.graph.node.add(op_type="If", input=["c"], output=names)
    for name in "then_branch", "else_branch":
        branch = node.attribute.add(name=name, type=5).g
        for each in names:
            branch.node.add(op_type="Relu", input=["x"], output=[f"b{each}"])
            branch.output.add(name=f"b{each}")
    return model


def _call_outputs() -> ModelProto:
    """Return a model with calls of a function with 2,000 outputs, which name one of them or half of them."""
    model = _model()
    model.opset_import.add(domain="local", version=1)
    names = [f"b{index}" for index in range(2_000)]
    function = model.functions.add(name="f", domain="local", input=["a"], output=names)
    function.opset_import.add(version=13)
    for name in names:
        function.node.add(op_type="Relu", input=["a"], output=[name])
    for index in range(300):
        model.graph.node.add(op_type="f", domain="local", input=["x"], output=[f"y{index or ''}"])
    many = [f"o{index}" for index in range(1_000)]
    model.graph.node.add(op_type="f", domain="local", input=["x"], output=many)
    return model


def _omitted_inputs() -> ModelProto:
    """Return a model with 500 calls of a function with 10,000 inputs, which omit all but one."""
    model, names = _model(), [f"i{index}" for index in range(10_000)]
    model.opset_import.add(domain="local", version=1)
    for index in range(500):
        model.graph.node.add(op_type="f", domain="local", input=["x"], output=[f"y{index or ''}"])
    function = model.functions.add(name="f", domain="local", input=names, output=["b"])
    function.opset_import.add(version=13)
    function.node.add(op_type="Sum", input=names, output=["b"])
    return model


def _call_inputs() -> ModelProto:
    """Return a model with a call of a function with 1,500 inputs that nodes compute."""
    model, names = _model(), [f"i{index}" for index in range(1_500)]
    model.opset_import.add(domain="local", version=1)
    for name in names:
        model.graph.node.add(op_type="Relu", input=["x"], output=[name])
    model.graph.node.add(op_type="f", domain="local", input=names, output=["y"])
    function = model.functions.add(name="f", domain="local", input=names, output=["b"])
    function.opset_import.add(version=13)
    function.node.add(op_type="Sum", input=names, output=["b"])
    return model


def _variables() -> ModelProto:
    """Return a model with 1,500 inputs of variable sizes and 1,000 branches."""
    model = _model()
    for index in range(1_500):
        value = model.graph.input.add(name=f"i{index}").type.tensor_type
        value.elem_type = 1
        value.shape.dim.add(dim_param=f"N{index}")
    node = model.graph.node.add(op_type="If", input=["c"], output=["y"])
    for index in range(1_000):
        node.attribute.add(name=f"branch{index}", type=5).g.name = "b"
    return model


def _functions() -> ModelProto:
    """Return a model with 4,000 functions without nodes."""
    model = _model()
    for index in range(4_000):
        model.functions.add(name=f"f{index}", domain="local")
    return model


def _computed_pads() -> ModelProto:
    """Return a model with 300 nodes that other operators express, in part in subgraphs."""
    model = _model(19)
    model.graph.input.add(name="pads").type.tensor_type.elem_type = 7
    for name, rank in ("x", 4), ("pads", 1):
        value = next(each for each in model.graph.input if each.name == name)
        for axis in range(rank):
            value.type.tensor_type.shape.dim.add(dim_param=f"{name}{axis}")
    for index in range(300):
        model.graph.node.add(op_type="Pad", input=["x", "pads"], output=[f"y{index or ''}"])
    return model


def _default_attributes() -> ModelProto:
    """Return a model with 1,000 calls of a function with 100 attributes that have defaults."""
    model = _model()
    model.ir_version = 9
    model.opset_import.add(domain="local", version=1)
    function = model.functions.add(name="f", domain="local", input=["a"], output=["b"])
    function.opset_import.add(version=13)
    function.node.add(op_type="Softmax", input=["a"], output=["b"])
    for index in range(100):
        function.attribute_proto.add(name=f"alpha{index}", type=1, f=1.0)
    for index in range(1_000):
        model.graph.node.add(op_type="f", domain="local", input=["x"], output=[f"y{index or ''}"])
    return model


def _chained_functions() -> ModelProto:
    """Return a model with 1,000 functions, each of which calls the next one."""
    model = _model()
    model.opset_import.add(domain="local", version=1)
    model.graph.node.add(op_type="f0", domain="local", input=["x"], output=["y"])
    for index in range(1_000):
        function = model.functions.add(name=f"f{index}", domain="local", input=["a"], output=["b"])
        function.opset_import.add(domain="local", version=1)
        function.opset_import.add(version=13)
        called, domain = (f"f{index + 1}", "local") if index < 999 else ("Relu", "")
        function.node.add(op_type=called, domain=domain, input=["a"], output=["b"])
    return model


def _imports() -> ModelProto:
    """Return a model with a function that imports 4,000 domains."""
    model = _model()
    model.opset_import.add(domain="local", version=1)
    model.graph.node.add(op_type="f", domain="local", input=["x"], output=["y"])
    function = model.functions.add(name="f", domain="local", input=["a"], output=["b"])
    function.opset_import.add(version=13)
    function.node.add(op_type="Relu", input=["a"], output=["b"])
    for index in range(4_000):
        function.opset_import.add(domain=f"local.{index}", version=1)
    return model


def _repeated_imports() -> ModelProto:
    """Return a model with a function that imports the default domain 48,000 times."""
    model = _imports()
    del model.functions[0].opset_import[1:]
    for _ in range(48_000):
        model.functions[0].opset_import.add()
    return model


def _empty_nodes() -> ModelProto:
    """Return a model with 48,000 nodes without operators."""
    model = _model()
    for _ in range(48_000):
        model.graph.node.add()
    return model


def _inherited_imports() -> ModelProto:
    """Return a model that imports 900 domains, for 3,000 functions without imports."""
    model = _model()
    for index in range(900):
        model.opset_import.add(domain=f"l{index}", version=1)
    for index in range(3_000):
        model.functions.add(name=f"f{index}", domain="l0").node.add(op_type="Relu")
    model.graph.node.add(op_type="Relu", input=["x"], output=["y"])
    return model


def _body_inputs() -> ModelProto:
    """Return a model with a Loop whose body has 10,000 inputs without types."""
    model = _model()
    body = GraphProto(name="body")
    for index in range(10_000):
        body.input.add(name=f"i{index}")
    model.graph.node.add(op_type="Loop", output=["y"]).attribute.add(name="body", type=5).g.CopyFrom(body)
    return model


def _surplus_inputs() -> ModelProto:
    """Return a BatchNormalization with 800 more inputs than it may have, in float16."""
    model = _model(15)
    model.graph.input.add(name="h").type.tensor_type.elem_type = 10
    inputs = [*(["x"] * 5), *(["h"] * 800)]
    model.graph.node.add(op_type="BatchNormalization", input=inputs, output=["y"])
    return model


def _uncounted_inputs() -> ModelProto:
    """Return a Clip with 32,000 inputs: it may have three."""
    model = _model(13)
    model.graph.node.add(op_type="Clip", input=["x"] * 32_000, output=["y"])
    return model


def _constant_inputs() -> ModelProto:
    """Return a Conv with 25,000 inputs, which are one initializer with 8,000 dimensions."""
    model = _model(13)
    model.graph.initializer.add(name="w", data_type=1, dims=[1] * 8_000, float_data=[0.5])
    model.graph.node.add(op_type="Conv", input=["x", *(["w"] * 25_000)], output=["y"])
    return model


def _large_nodes() -> ModelProto:
    """Return a model with 500 calls that become 3 nodes each, with 3,000 device configurations."""
    model = _model(12)
    function = model.functions.add(name="f", domain="local", input=["a"], output=["b"])
    function.opset_import.extend(model.opset_import)
    for value in ("u", "v", "b"):
        node = function.node.add(op_type="Softmax", input=["a"], output=[value])
        for _ in range(3_000):
            node.device_configurations.add()
    model.opset_import.add(domain="local", version=1)
    for index in range(500):
        model.graph.node.add(op_type="f", domain="local", input=["x"], output=[f"y{index or ''}"])
    return model


def _crops() -> ModelProto:
    """Return nodes with two types where their schema has one; below opset 11, each becomes 3,500 nodes."""
    model = ModelProto(ir_version=10)
    model.opset_import.add(domain="com.microsoft", version=1)
    model.opset_import.add(version=11)
    inputs = {"x": (10, 30), "rois": (11, 30), "batches": (6, 30), "size": (6, 1)}
    for name, (elem_type, rank) in inputs.items():
        tensor = model.graph.input.add(name=name).type.tensor_type
        tensor.elem_type = elem_type
        for _ in range(rank):
            tensor.shape.dim.add(dim_value=64 if rank > 1 else 2**63 - 1)
    for index in range(3):
        node = model.graph.node.add(op_type="CropAndResize", domain="com.microsoft", input=inputs)
        node.output.append(f"y{index}")
        node.attribute.add(name="extrapolation_value", f=float(index), type=1)
        model.graph.output.add(name=f"y{index}")
    return model


def _growing_functions() -> ModelProto:
    """Return functions that call the next one twice; the last one has nodes that become several."""
    model = _model()
    for index in range(15):
        function = model.functions.add(domain="local", name=f"f{index}", input=["a"], output=["b"])
        function.opset_import.extend(model.opset_import)
        op_type, domain = (f"f{index + 1}", "local") if index < 14 else ("Round", "")
        function.node.add(op_type=op_type, domain=domain, input=["a"], output=["m"])
        function.node.add(op_type=op_type, domain=domain, input=["m"], output=["b"])
    model.graph.node.add(op_type="f0", domain="local", input=["x"], output=["y"])
    return model


def _nested_branches() -> ModelProto:
    """Return a chain of 30 nested If; the branch of the last one has 4,000 nodes that read an outer value."""
    model = _model()
    graph = model.graph
    for index in range(30):
        node = graph.node.add(op_type="If", input=["x"], output=["y" if index == 0 else f"b{index}"])
        graph = node.attribute.add(name="then_branch", type=5).g
        graph.name = f"g{index}"
        graph.output.add(name=f"b{index + 1}")
    for index in range(4_000):
        graph.node.add(op_type="Relu", input=["x"], output=[f"r{index}"])
    graph.node.add(op_type="Relu", input=["x"], output=["b30"])
    return model


MODELS: dict[str, Callable[[], ModelProto]] = {
    "inputs": _inputs,
    "outputs": _outputs,
    "operands of Einsum": _operands,
    "training graphs": _training,
    "rank of Resize": _rank,
    "states of Scan": _states,
    "a chain of bfloat16": _bfloat16,
    "calls of functions": _calls,
    "calls through many functions": _deep_calls,
    "branches": _branches,
    "declared rank": _declared_rank,
    "outputs of branches": _branch_outputs,
    "outputs of calls": _call_outputs,
    "inputs of a call": _call_inputs,
    "omitted inputs": _omitted_inputs,
    "variables": _variables,
    "functions": _functions,
    "computed pads": _computed_pads,
    "default attributes": _default_attributes,
    "chained functions": _chained_functions,
    "imports": _imports,
    "repeated imports": _repeated_imports,
    "nodes without operators": _empty_nodes,
    "inherited imports": _inherited_imports,
    "inputs of a body": _body_inputs,
    "surplus inputs": _surplus_inputs,
    "uncounted inputs": _uncounted_inputs,
    "constant inputs": _constant_inputs,
    "large nodes": _large_nodes,
    "new dimensions": _new_dimensions,
    "growing functions": _growing_functions,
    "nested branches": _nested_branches,
}


@pytest.mark.parametrize(
    "build",
    [
        _inputs,
        _training,
        _operands,
        _states,
        _deep_calls,
        _branch_outputs,
        _call_outputs,
        _surplus_inputs,
        _growing_functions,
        _nested_branches,
        _new_dimensions,
    ],
)
def test_long_lists(build: Callable[[], ModelProto], worker: Worker) -> None:
    content = build().SerializeToString()
    require_limits(worker, *(Case(call, ".onnx", content, "0") for call in ("convert", "compare")))


@pytest.mark.full
@pytest.mark.parametrize("build", MODELS.values(), ids=MODELS)
def test_long_lists_in_all_calls(build: Callable[[], ModelProto], worker: Worker) -> None:
    content = build().SerializeToString()
    require_limits(
        worker, *(Case(call, ".onnx", content, str(seed)) for call in MODEL_CALLS for seed in (0, 1))
    )


def test_omitted_inputs(worker: Worker) -> None:
    require_limits(worker, Case("check", ".onnx", _omitted_inputs().SerializeToString(), "0"))


@pytest.mark.full
def test_nodes_that_become_too_large(worker: Worker) -> None:
    content = _many_axes().SerializeToString()
    require_limits(worker, *(Case(call, ".onnx", content, "0") for call in ("runs", "command runs")))


@pytest.mark.full
def test_opsets_that_all_fail(worker: Worker) -> None:
    # The case allows nodes that become thousands.
    require_limits(worker, Case("fit provider", ".onnx", _crops().SerializeToString(), "12"))


TEXTS = {
    "escaped quotes": '"' + '\\"' * 50_000,
    "digits": "1" * 100_000 + "a",
    "numbers": "1e" * 50_000,
    "dots": "." * 100_000,
    "calls without outputs": "A(x)\n" * 20_000,
    "brackets": "Relu" + "(" * 100_000,
    "dimensions": f"y = Constant <value = float[{'9000000000000000000,' * 4_000}9] {{1.0}}> ()",
    "JSON": '{"node":' + "[" * 100_000,
}


@pytest.mark.parametrize("name", ["escaped quotes", "digits"])
def test_texts(name: str, worker: Worker) -> None:
    require_limits(worker, Case("text", ".txt", TEXTS[name].encode(), "0"))


@pytest.mark.full
def test_all_texts(worker: Worker) -> None:
    require_limits(worker, *(Case("text", ".txt", text.encode(), "0") for text in TEXTS.values()))
