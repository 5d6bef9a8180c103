"""Rules for nodes against the definitions of their operators: resolution, arity and required attributes."""

from collections.abc import Sequence

from opshift.checker.checked_model import CheckedModel
from opshift.checker.checked_nodes import CheckedCall
from opshift.checker.containers import CheckedFunction
from opshift.checker.findings import ERROR, INFO, WARNING, Problem, list_names, repeated
from opshift.checker.released_schemas import accepting_releases, needs_release
from opshift.checker.rule_table import NAMES, SIGNATURE, Problems, rule
from opshift.inference.infer_types import parameter_at
from opshift.inference.node_problems import choice_problem
from opshift.model.message_text import count_text
from opshift.model.operator_ids import IDENTIFIER, canonical_domain
from opshift.registry.models import UNBOUNDED

TRAINING = "training_mode"
"""Attribute of BatchNormalization that determines which outputs are computed."""


@rule("node.op-type", ERROR, "IR: Nodes", "set op_type, or remove the node")
def op_type(node: CheckedCall) -> Problems:
    """A node must name its operator."""
    if not node.proto.op_type:
        yield "has no op_type"


@rule("name.op-type", WARNING, NAMES, "rename the operator in the model and in its implementation")
def op_type_name(target: CheckedCall | CheckedFunction) -> Problems:
    """Names of functions, and of operators without a definition, must be C identifiers."""
    if isinstance(target, CheckedFunction):
        name = target.proto.name
    else:  # Other rules report operators that do not exist.
        is_undefined = target.operator is None and target.function is None and target.error is None
        name = target.proto.op_type if is_undefined else ""
    if name and not IDENTIFIER.fullmatch(str(name)):
        yield f"{name!r} is not a C identifier"


@rule("node.undefined", INFO, "IR: Operators", "provide definitions with --opsets or registry=")
def undefined(model: CheckedModel) -> Problems:
    """Nodes of operators without a definition cannot be checked."""
    for domain, names in sorted(model.undefined_operators.items()):
        count = names.total()
        were = "was" if count == 1 else "were"
        yield f"{count_text(count, 'node')} of {domain} {were} not checked: {list_names(sorted(names))}"


@rule("node.values", ERROR, "IR: Graphs", "remove the node")
def values(node: CheckedCall) -> Problems:
    """A node must have outputs, except for a call of a function without outputs."""
    if node.outputs or (node.function is not None and not node.function.output):
        return
    if not node.inputs:
        yield "has no inputs and no outputs"
    elif node.operator is None:  # The rule node.output-count reports nodes of known operators.
        yield "has no outputs"


@rule("node.domain", ERROR, "IR: Operators", "import the domain; a function has its own imports")
def domain(node: CheckedCall) -> Problems:
    """The domain of a node's operator or function must be imported."""
    node_domain = canonical_domain(node.proto.domain)
    if node_domain not in node.container.opsets:
        yield f"domain {node_domain} has no opset import"


@rule("node.operator", ERROR, "IR: Operators", "check the name, the domain and the opset")
def operator(node: CheckedCall) -> Problems:
    """The operator must exist in the imported opset."""
    if node.error is not None and node.proto.op_type:
        nonstandard = node.container.model.registry.releases.nonstandard
        home = None if node.proto.domain else nonstandard.get(node.proto.op_type)
        remedy = f"replace it with opshift convert --without {home}" if home else node.error.remedy
        yield Problem(f"{node.error.reason}{f', only {home} defines it' if home else ''}", remedy)


@rule(
    "node.deprecated",
    ERROR,
    "IR: Operators; Versioning: Operator versioning",
    "replace it with opshift convert",
)
def deprecated(node: CheckedCall) -> Problems:
    """The operator must not be deprecated in the imported opset."""
    if node.operator is not None and node.operator.deprecation is not None:
        names = [each for each in node.operator.deprecation.replacements if each != node.operator.name]
        remedy = f"use {' and '.join(names)}, or convert the model with opshift convert" if names else ""
        yield Problem(f"{node.operator.id} is deprecated", remedy)


@rule("node.experimental", WARNING, "IR: Operators", "raise the opset to one with a stable version")
def experimental(node: CheckedCall) -> Problems:
    """The operator should not be experimental."""
    if node.operator is not None and node.operator.status == "EXPERIMENTAL":
        yield f"{node.operator.id} is experimental; runtimes may not support it"


@rule("node.overload", WARNING, "IR: Functions", "add the function, or clear the overload")
def overload(node: CheckedCall) -> Problems:
    """A node with an overload should call a function of the model."""
    if node.proto.overload and node.function is None:
        yield f"overload {node.proto.overload!r} does not match a function of the model"


@rule("node.input-count", ERROR, SIGNATURE, "provide the inputs that the operator defines")
def input_count(node: CheckedCall) -> Problems:
    """A node must have a number of inputs that its operator accepts."""
    return _wrong_count(node, "input", len(node.inputs))


@rule("node.output-count", ERROR, SIGNATURE, "list the outputs that the operator defines")
def output_count(node: CheckedCall) -> Problems:
    """A node must have a number of outputs that its operator defines."""
    yield from _wrong_count(node, "output", len(node.outputs))
    # BatchNormalization allows 1 output or all, which min_output and max_output cannot express.
    if node.operator is not None and node.operator.name == "BatchNormalization":
        maximum = node.operator.max_output
        if 1 < len(node.outputs) < maximum:
            yield f"has {len(node.outputs)} outputs; {node.operator.id} has 1, or {maximum} in training"


@rule("node.output-mode", ERROR, SIGNATURE, "correct training_mode, or list the outputs of its mode")
def training_outputs(node: CheckedCall) -> Problems:
    """A BatchNormalization must have its statistics as outputs in training, and only then."""
    operator = node.operator
    if operator is None or operator.name != "BatchNormalization" or TRAINING not in operator.attributes:
        return
    modes = [attribute for attribute in node.proto.attribute if attribute.name == TRAINING]
    if any(mode.ref_attr_name for mode in modes):
        return
    if not any(mode.i for mode in modes):
        if len(node.outputs) == operator.max_output:
            yield f"has {operator.max_output} outputs, but is not in training mode; expected 1"
    elif len(node.outputs) == 1 or "" in node.outputs:
        yield f"does not have names for all {operator.max_output} outputs, but is in training mode"


@rule("node.input-missing", ERROR, "IR: Static Optional; IR: Variadic Inputs and Outputs", "name the input")
def input_missing(node: CheckedCall) -> Problems:
    """A required input, and each value of a variadic input, must have a name."""
    return _omitted_problems(node, "input", node.inputs, ("single", "variadic"))


@rule("node.output-missing", ERROR, "IR: Static Optional", "name the output")
def output_missing(node: CheckedCall) -> Problems:
    """A required output must not be omitted."""
    return _omitted_problems(node, "output", node.outputs, ("single",))


@rule("node.attribute-unique", ERROR, "IR: Attributes", "keep one of the attributes")
def attribute_unique(node: CheckedCall) -> Problems:
    """The attributes of a node must have unique names."""
    for name, count in repeated(attribute.name for attribute in node.proto.attribute):
        yield f"has {count} attributes with the name {name!r}"


@rule("node.attribute-missing", ERROR, SIGNATURE, "add the attribute")
def attribute_missing(node: CheckedCall) -> Problems:
    """A node must have the attributes that its operator requires."""
    if node.operator is not None and node.operator.required_attributes:
        present = {attribute.name for attribute in node.proto.attribute}
        for name in node.operator.required_attributes:
            if name not in present and not accepting_releases(node):
                yield f"does not have the attribute {name!r}, which {node.operator.id} requires"


@rule("node.attribute-choice", ERROR, SIGNATURE, "set exactly one of the attributes")
def attribute_choice(node: CheckedCall) -> Problems:
    """A node must have exactly one of the attributes that are alternatives of each other."""
    if node.operator is not None and node.operator.one_of:
        problem = choice_problem(node.operator, {attribute.name for attribute in node.proto.attribute})
        if problem:
            yield problem


@rule("node.release", INFO, SIGNATURE, "run it with one of these releases, or see opshift runs")
def released(node: CheckedCall) -> Problems:
    """A node of com.microsoft may differ from its definition if the schema of a release allows it."""
    releases = accepting_releases(node) if node.operator and needs_release(node) else []
    if node.operator and releases:
        yield f"only some releases accept this form of {node.operator.id}: {list_names(releases)}"


def _wrong_count(node: CheckedCall, kind: str, count: int) -> Problems:
    operator = node.operator
    if operator is not None:
        low, high = getattr(operator, f"min_{kind}"), getattr(operator, f"max_{kind}")
        if not low <= count <= high and not accepting_releases(node):
            several = f"{low} or more" if high == UNBOUNDED else f"{low} to {high}"
            yield f"has {count_text(count, kind)}; {operator.id} has {low if low == high else several}"


def _omitted_problems(
    node: CheckedCall, kind: str, names: Sequence[str], required: Sequence[str]
) -> Problems:
    operator = node.operator
    if operator is not None:
        for position, name in enumerate(names):
            parameter = None if name else parameter_at(getattr(operator, f"{kind}s"), position)
            if parameter is not None and parameter.option in required:
                yield f"omits {kind} {position}, {parameter.name!r}, which {operator.id} requires"
