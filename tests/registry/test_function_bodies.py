"""Every function of ONNX has a body, fixed or built from a node, that computes what the operator does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, islice

import numpy as np
import onnx
import onnx.defs
import pytest
from onnx import TensorProto, helper, inliner, shape_inference
from support.any_runtime import flatten, run_in_any_runtime, run_in_ort, run_in_reference
from support.cases import published_cases
from support.domains import onnx_operators, wire
from support.execution import MAX_ORT_OPSET, Array, assert_equal, build, opset_of, run
from support.function_calls import expanded
from support.nodes import nodes
from support.published import Case
from support.released import is_released

from opshift import CannotConvert, UsageError, default_registry
from opshift.model.element_types import BY_NAME
from opshift.registry.errors import UnknownOpset
from opshift.registry.models import OperatorVersion, Parameter

REGISTRY = default_registry()
FUNCTIONS = [each for operator in onnx_operators() for each in operator.versions if each.has_function]
FIXED = [each for each in FUNCTIONS if each.body]
RANDOM = "Bernoulli"
MIN_OPSET = 7
"""First opset that onnxruntime supports completely."""

MAX_CASES = 12
"""Maximum number of cases for each opset: all run at the first opset of the version."""

HALF_TOLERANCE = 1e-2
"""Relative tolerance of 16-bit floats: body and kernel round at different places."""

NEEDS_SHAPES = {
    "Attention", "CausalConvWithState", "CenterCropPad", "LayerNormalization", "RMSNormalization",
    "RotaryEmbedding", "SoftmaxCrossEntropyLoss",
}  # fmt: skip
"""Functions with a body that may depend on shapes, not on element types alone."""

VALUES = np.array([-np.inf, -40.0, -3.0, -1.0, -0.25, 0.0, 0.5, 1.0, 3.0, 100.0, np.inf, np.nan])
ELEMENTWISE = {
    "Celu", "Elu", "GreaterOrEqual", "HardSigmoid", "HardSwish", "LeakyRelu", "LessOrEqual", "Mish", "PRelu",
    "Relu", "Selu", "Shrink", "Softplus", "Softsign", "Swish", "ThresholdedRelu",
}  # fmt: skip


def _schema_ids(contextual: bool) -> set[tuple[str, str, int]]:
    schemas = onnx.defs.get_all_schemas_with_history()
    return {
        (each.domain or "ai.onnx", each.name, each.since_version)
        for each in schemas
        if (each.has_context_dependent_function if contextual else each.has_function)
    }


def test_functions_are_those_of_onnx() -> None:
    released = [each for each in FUNCTIONS if is_released(each)]
    assert {tuple(each.id) for each in released if each.body} == _schema_ids(False)
    built = {tuple(each.id) for each in released if each.has_context_dependent_function}
    assert built == _schema_ids(True)
    assert len(released) == 76


def _cases(version: OperatorVersion) -> Iterator[Case]:
    yield from published_cases(version, version.since_version)
    for row in nodes().get((version.domain, version.name, version.since_version), ()):
        model = onnx.ModelProto()
        model.CopyFrom(row.case.model)
        for each in model.opset_import:
            if each.domain == wire(version.domain):
                each.version = version.since_version
        yield row.case._replace(model=model)


def _expected(case: Case) -> Iterator[list[Array]]:
    """Yield the outputs of each runtime that implements the operator."""
    for run_in in (run_in_ort, run_in_reference):
        outputs = None
        with suppress(Exception), np.errstate(all="ignore"):
            outputs = list(flatten(run_in(case.model, case.feeds)))
        if outputs is not None:
            yield outputs


def _assert_equals_one(found: list[Array], expected: Iterator[list[Array]]) -> None:
    """Assert that outputs equal those of a runtime: masked scores of Attention differ between runtimes."""
    errors = []
    for each in expected:
        is_half = any(array.dtype.itemsize <= 2 and array.dtype.kind not in "iub" for array in each)
        try:
            assert_equal(found, each, *([HALF_TOLERANCE] if is_half else []))
        except AssertionError as error:
            errors.append(error)
        else:
            return
    raise errors[0]


def _has_symbolic_sizes(case: Case) -> bool:
    inputs = case.model.graph.input
    return any(size.dim_param for value in inputs for size in value.type.tensor_type.shape.dim)


@pytest.mark.some_cases(24)
@pytest.mark.parametrize("shapes", [True, False], ids=["shapes", "types"])
@pytest.mark.parametrize("version", FUNCTIONS, ids=lambda version: str(version.id))
def test_body_computes_the_outputs_of_the_operator(version: OperatorVersion, shapes: bool) -> None:
    compared = 0
    for case in _cases(version):
        expected = _expected(case)
        first = next(expected, None)
        if first is None:
            continue
        try:
            replaced = expanded(case, version, shapes=shapes)
        except CannotConvert:
            assert not shapes or _has_symbolic_sizes(case)
            assert version.name in NEEDS_SHAPES
            continue
        with np.errstate(all="ignore"):
            after = run_in_any_runtime(replaced.model, replaced.feeds)
        if after is not None and version.name != RANDOM:
            _assert_equals_one(after.outputs, chain([first], expected))
            compared += 1
    assert compared or version.name == RANDOM or not shapes


def _last_opset(version: OperatorVersion) -> int:
    """Return the last opset of a version, or the newest one that onnxruntime supports."""
    operator = REGISTRY.operator(version.name, version.domain)
    assert operator is not None
    later = [each.since_version for each in operator.versions if each.since_version > version.since_version]
    return min([later[0] - 1 if later else MAX_ORT_OPSET, MAX_ORT_OPSET])


@pytest.mark.some_cases(16)
@pytest.mark.parametrize("last", [False, True], ids=["first opset", "last opset"])
@pytest.mark.parametrize(
    "version",
    [
        each
        for each in FUNCTIONS
        if each.since_version <= MAX_ORT_OPSET and each.name != RANDOM and each.domain == "ai.onnx"
    ],
    ids=lambda version: str(version.id),
)
def test_body_at_a_given_opset_computes_the_outputs(version: OperatorVersion, last: bool) -> None:
    opset = _last_opset(version) if last else max(version.since_version, MIN_OPSET)
    compared = 0
    for case in islice(_cases(version), MAX_CASES):
        expected = _expected(case)
        first = next(expected, None)
        if first is None:
            continue
        replaced = expanded(case, version, opset=opset)
        assert opset_of(replaced.model) == opset
        after = run_in_any_runtime(replaced.model, replaced.feeds)
        if after is not None:
            _assert_equals_one(after.outputs, chain([first], expected))
            compared += 1
    assert compared


@pytest.mark.parametrize(
    "version", [each for each in FUNCTIONS if each.name == RANDOM], ids=lambda version: str(version.id)
)
def test_bernoulli_draws_by_probability(version: OperatorVersion) -> None:
    feeds = {"x": np.linspace(0, 1, 10_001, dtype=np.float32)}
    node = helper.make_node(RANDOM, ["x"], ["y"], dtype=TensorProto.INT32, seed=1.0)
    case = Case(build([node], feeds, {"y": TensorProto.INT32}, version.since_version), feeds)
    after = run_in_any_runtime(*expanded(case, version))
    assert after is not None
    (drawn,) = after.outputs
    assert drawn.dtype == np.int32
    assert set(drawn) == {0, 1}
    assert drawn[0] == 0
    assert drawn[:1000].mean() == pytest.approx(0.05, abs=0.03)
    assert drawn[-1000:].mean() == pytest.approx(0.95, abs=0.03)


# Fixed bodies


@pytest.mark.parametrize("element_type", ["float", "double", "float16"])
@pytest.mark.parametrize(
    "version", [each for each in FIXED if each.name in ELEMENTWISE], ids=lambda version: str(version.id)
)
def test_elementwise_bodies_agree_for_large_infinite_and_nan_values(
    version: OperatorVersion, element_type: str
) -> None:
    dtype = helper.tensor_dtype_to_np_dtype(BY_NAME[element_type].number)
    feeds = {each.name: np.roll(VALUES, shift).astype(dtype) for shift, each in enumerate(version.inputs)}
    is_comparison = version.name.endswith("OrEqual")
    output = {version.outputs[0].name: TensorProto.BOOL if is_comparison else BY_NAME[element_type].number}
    node = helper.make_node(version.name, list(feeds), list(output))
    case = Case(build([node], feeds, output, version.since_version), feeds)
    with np.errstate(all="ignore"):
        after = run_in_any_runtime(*expanded(case, version))
    assert after is not None
    _assert_equals_one(after.outputs, _expected(case))


def _variables(version: OperatorVersion) -> Iterator[dict[str, str]]:
    """Yield a type for each type variable, so that every allowed type occurs."""
    constraints = version.type_constraints
    for index in range(max(map(len, constraints.values()))):
        yield {variable: types[index % len(types)] for variable, types in constraints.items()}


def _typed_value(parameter: Parameter, types: dict[str, str]) -> onnx.ValueInfoProto:
    name = types.get(parameter.type, parameter.type).removeprefix("tensor(").removesuffix(")")
    return helper.make_tensor_value_info(parameter.name, BY_NAME[name].number, None)


@pytest.mark.parametrize("version", FIXED, ids=lambda version: str(version.id))
def test_fixed_bodies_are_legal_in_every_type(version: OperatorVersion) -> None:
    assert version.body is not None
    function = onnx.FunctionProto.FromString(version.function_body().SerializeToString())
    function.domain = "test.functions"
    for types in _variables(version):
        node = helper.make_node(
            version.name,
            [each.name for each in version.inputs],
            list(function.output),
            domain=function.domain,
        )
        node.attribute.extend(function.attribute_proto)
        inputs = [_typed_value(each, types) for each in version.inputs]
        outputs = [onnx.ValueInfoProto(name=name) for name in function.output]
        imports = [*function.opset_import, helper.make_opsetid(function.domain, 1)]
        graph = helper.make_graph([node], "test", inputs, outputs)
        model = helper.make_model(graph, functions=[function], opset_imports=imports)
        inlined = inliner.inline_local_functions(model)
        inferred = shape_inference.infer_shapes(inlined, check_type=True, strict_mode=True)
        for value, parameter in zip(inferred.graph.output, version.outputs, strict=True):
            expected = _typed_value(parameter, types).type.tensor_type.elem_type
            if parameter.type_attribute is None:
                assert value.type.tensor_type.elem_type == expected, (types, parameter.name)


# Bodies that depend on a node


def _with_types(case: Case, version: OperatorVersion, types: dict[str, str]) -> Case:
    """Return a case with the types of type variables, where they are tensors."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    node, graph = model.graph.node[0], model.graph
    values = {each.name: each for each in (*graph.input, *graph.output)}
    for formals, names in ((version.inputs, node.input), (version.outputs, node.output)):
        for formal, name in zip(formals, names, strict=False):
            is_variable = types.get(formal.type, "").startswith("tensor(")
            if name and is_variable and formal.type_attribute is None:
                typed = _typed_value(formal, types).type.tensor_type
                values[name].type.tensor_type.elem_type = typed.elem_type
    return case._replace(model=model)


def _is_legal(model: onnx.ModelProto) -> bool:
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, shape_inference.InferenceError):
        return False
    return True


@pytest.mark.parametrize(
    "version",
    [each for each in FUNCTIONS if each.has_context_dependent_function and any(_cases(each))],
    ids=lambda version: str(version.id),
)
def test_built_bodies_are_legal_in_every_type(version: OperatorVersion) -> None:
    first = next(_cases(version))
    built = 0
    for types in _variables(version):
        case = _with_types(first, version, types)
        if not _is_legal(case.model):
            continue
        try:
            model = expanded(case, version).model
        except CannotConvert:
            # MatMul requires queries and values of one type.
            assert version.name == "Attention"
            assert types["T1"] != types["T2"]
            continue
        shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        built += 1
    assert built or not _is_legal(first.model)


def _softmax(axis: int = 1) -> onnx.NodeProto:
    return helper.make_node("Softmax", ["scores"], ["weights"], axis=axis)


def test_built_body_has_the_names_of_the_definition() -> None:
    function = REGISTRY.get_schema("Softmax", 13).function_body(_softmax())
    assert (function.name, function.domain) == ("Softmax", "ai.onnx")
    assert (list(function.input), list(function.output)) == (["input"], ["output"])
    assert [(each.domain, each.version) for each in function.opset_import] == [("", 13)]
    assert [each.op_type for each in function.node] == [
        "Constant",
        "ReduceMax",
        "Sub",
        "Exp",
        "ReduceSum",
        "Div",
    ]


def test_built_body_is_written_for_the_given_opset() -> None:
    function = REGISTRY.get_schema("Softmax", 13).function_body(_softmax(), ["float"], opset=18)
    assert [each.version for each in function.opset_import] == [18]
    assert [each.op_type for each in function.node][:2] == ["Constant", "ReduceMax"]
    (maximum,) = (each for each in function.node if each.op_type == "ReduceMax")
    assert len(maximum.input) == 2  # the axes are an input since opset 18


def test_refuses_an_opset_without_the_version() -> None:
    with pytest.raises(UsageError, match=r"ai.onnx.Softmax:13 is not in effect at opset 12"):
        REGISTRY.get_schema("Softmax", 13).function_body(_softmax(), opset=12)
    with pytest.raises(UnknownOpset, match="there is no opset 99"):
        REGISTRY.get_schema("Softmax").function_body(_softmax(), opset=99)


def test_an_omitted_input_keeps_its_name_in_the_body() -> None:
    """The output of Max may not have the name `min` of the formal input."""
    node = helper.make_node("Clip", ["x", "", "most"], ["y"])
    function = REGISTRY.get_schema("Clip", 13).function_body(node, ["float"])
    assert list(function.input) == ["input", "min", "max"]
    assert not {"input", "min", "max"} & {name for each in function.node for name in each.output}


@pytest.mark.parametrize(
    "facts", ["float", "tensor(float)", ("float", ["N", 4]), helper.make_tensor_type_proto(1, [2, 4])]
)
def test_accepts_facts_about_inputs_in_each_form(facts: object) -> None:
    node = helper.make_node("Celu", ["x"], ["y"], alpha=2.0)
    function = REGISTRY.get_schema("Celu", 12).function_body(node, [facts])  # type: ignore[list-item]
    assert [each.op_type for each in function.node] == ["Constant", "Div", "Elu", "Mul"]


def test_refuses_unknown_types_that_the_body_depends_on() -> None:
    node = helper.make_node("CastLike", ["x", "like"], ["y"])
    with pytest.raises(CannotConvert, match="element type of 'target_type' is unknown"):
        REGISTRY.get_schema("CastLike", 25).function_body(node)


def test_refuses_operators_that_are_no_functions() -> None:
    with pytest.raises(UsageError, match=r"ai.onnx.Add:14 is not a function .*has_function"):
        REGISTRY.get_schema("Add").function_body()


def test_requires_a_node_if_the_body_depends_on_it() -> None:
    with pytest.raises(UsageError, match=r"body of ai.onnx.Softmax:13 depends on the node"):
        REGISTRY.get_schema("Softmax", 13).function_body()


def test_requires_a_node_for_a_fixed_body_at_an_opset() -> None:
    with pytest.raises(UsageError, match=r"body of ai.onnx.Elu:6 at opset 13 depends on the node"):
        REGISTRY.get_schema("Elu", 6).function_body(opset=13)


def test_fixed_body_keeps_its_opset_and_refers_to_attributes() -> None:
    function = REGISTRY.get_schema("Elu", 6).function_body()
    assert [each.version for each in function.opset_import] == [18]
    assert [each.name for each in function.attribute_proto] == ["alpha"]
    assert function.node[0].attribute[0].ref_attr_name == "alpha"


def test_refuses_a_node_of_another_operator() -> None:
    with pytest.raises(UsageError, match=r"is Relu"):
        REGISTRY.get_schema("Softmax").function_body(helper.make_node("Relu", ["x"], ["y"]))


def test_refuses_more_types_than_inputs() -> None:
    with pytest.raises(UsageError, match="got 2 input types, but the node has 1 input"):
        REGISTRY.get_schema("Softmax").function_body(_softmax(), ["float", "float"])


@pytest.mark.parametrize("wrong", [{"x": "float"}, None, 1])
def test_refuses_types_that_are_not_a_list(wrong: object) -> None:
    with pytest.raises(UsageError, match="argument input_types: expected a list of facts"):
        REGISTRY.get_schema("Softmax").function_body(_softmax(), wrong)  # type: ignore[arg-type]


def test_accepts_sequence_types_as_text() -> None:
    element = helper.make_tensor_value_info("element", TensorProto.FLOAT, None)
    result = helper.make_tensor_value_info("result", TensorProto.FLOAT, None)
    double = helper.make_node("Add", ["element", "element"], ["result"])
    graph = helper.make_graph([double], "double", [element], [result])
    node = helper.make_node("SequenceMap", ["values"], ["doubled"], body=graph)
    function = REGISTRY.get_schema("SequenceMap").function_body(node, ["seq(tensor(float))"])
    assert [each.op_type for each in function.node][-1] == "Loop"


@pytest.mark.parametrize("unknown", ["flot", "tensor(flot)", "seq()", "map(float, tensor(float))"])
def test_refuses_unknown_types_as_text(unknown: str) -> None:
    with pytest.raises(UsageError, match="unknown element type"):
        REGISTRY.get_schema("Softmax").function_body(_softmax(), [unknown])


def test_refuses_an_invalid_node() -> None:
    node = helper.make_node("Softmax", ["x", "mask"], ["y"], axes=[1])
    with pytest.raises(CannotConvert, match="2 inputs"):
        REGISTRY.get_schema("Softmax").function_body(node)


def _flex_attention(name: str, captured: str = "") -> onnx.NodeProto:
    """Return a node with a subgraph that doubles the scores, in values with a given name."""
    value = helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
    result = helper.make_tensor_value_info(f"{name}_2", TensorProto.FLOAT, None)
    double = helper.make_node("Add", [name, captured or name], [f"{name}_2"])
    graph = helper.make_graph([double], "double", [value], [result])
    return helper.make_node(
        "FlexAttention", ["q", "k", "v"], ["y"], domain="ai.onnx.preview", score_mod=graph
    )


@pytest.mark.parametrize("name", ["Q", "Y", "matmul", "const"])
def test_values_of_subgraphs_keep_their_names(name: str) -> None:
    version = REGISTRY.get_schema("FlexAttention", 1, "ai.onnx.preview")
    shape = (1, 2, 3, 4)
    feeds = {each: np.random.default_rng(1).random(shape, dtype=np.float32) for each in "qkv"}
    opsets = {"": 26, "ai.onnx.preview": 1}
    case = Case(build([_flex_attention(name)], feeds, ["y"], opsets), feeds)
    replaced = expanded(case, version, opset=26)
    for _ in shape:
        replaced.model.graph.output[0].type.tensor_type.shape.dim.add()
    onnx.checker.check_model(replaced.model, full_check=True)
    assert_equal(run(replaced.model, feeds), run_in_reference(case.model, feeds))


def test_refuses_a_subgraph_that_reads_the_enclosing_graph() -> None:
    version = REGISTRY.get_schema("FlexAttention", 1, "ai.onnx.preview")
    with pytest.raises(CannotConvert, match="its subgraph reads 'bias' of the enclosing graph"):
        version.function_body(_flex_attention("x", "bias"), ["float"] * 3)
