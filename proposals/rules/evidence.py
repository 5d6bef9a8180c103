"""Rules for the evidence from running a proposal."""

from __future__ import annotations

from collections.abc import Iterator

from opshift.analysis.verification.numpy_types import array_element_type
from opshift.checker.findings import Level
from opshift.proposals.content.draft import InvalidFile
from opshift.proposals.content.folder import EXAMPLES, OPERATOR, REFERENCE
from opshift.proposals.evidence.cases import Case, bound_type, parameter_at
from opshift.proposals.evidence.coverage import CoverageKind, coverage_of
from opshift.proposals.evidence.evidence import Evaluated, implemented_version
from opshift.proposals.evidence.outcomes import inferred_shapes
from opshift.proposals.evidence.run import Outputs
from opshift.proposals.rules.rule_table import ProposalProblem, format_problems, rule
from opshift.registry.shapes.rule_table import SHAPE_RULES

REFERENCES = "ONNX, Adding New Operator: reference implementation"

TESTS = "ONNX, Adding New Operator: tests"


@rule(
    "examples.format",
    Level.ERROR,
    source="docs/proposals.md",
    remedy="follow the template of `opshift proposal new`",
)
def check_examples_format(file: InvalidFile) -> Iterator[ProposalProblem]:
    """`examples.yaml` is valid YAML with the keys of examples."""
    yield from format_problems(file, EXAMPLES)


@rule("examples.present", Level.ERROR, source=TESTS, remedy="add examples to examples.yaml")
def check_examples_present(draft: Evaluated) -> Iterator[ProposalProblem]:
    """There is at least one example, and the names of examples are unique.

    The reference, the body and the adapters are run on the examples.
    """
    names = [each.name for each in draft.folder.examples]
    if not names:
        yield ProposalProblem("examples.yaml has no examples", EXAMPLES)
    for position, name in enumerate(names):
        if name in names[:position]:
            yield ProposalProblem(f"two examples have the name {name!r}", EXAMPLES, ("examples", position))


@rule(
    "examples.legal",
    Level.ERROR,
    source=TESTS,
    remedy="match the inputs and attributes of the operator",
)
def check_examples_legal(draft: Evaluated) -> Iterator[ProposalProblem]:
    """Every example is a valid node of the operator with values of the declared types."""
    for position, reason in draft.evidence.bad_examples:
        yield ProposalProblem(
            f"{draft.folder.examples[position].name}: {reason}", EXAMPLES, ("examples", position)
        )


@rule("reference.loads", Level.ERROR, source=REFERENCES, remedy="define `reference` in reference.py")
def check_reference_loads(draft: Evaluated) -> Iterator[ProposalProblem]:
    """`reference.py` defines the function `reference`.

    The function is an executable specification of the operator.
    """
    error = draft.evidence.reference_error
    if error is not None:
        yield ProposalProblem(error.reason, REFERENCE, remedy=error.remedy)


@rule("reference.runs", Level.ERROR, source=REFERENCES, remedy="support this example in every element type")
def check_reference_runs(draft: Evaluated) -> Iterator[ProposalProblem]:
    """The reference runs on every example, in every element type."""
    for each in draft.evidence.outcomes:
        if each.outputs is None:
            yield ProposalProblem(f"{each.case.name}: {each.failure}", EXAMPLES, each.case.keys)


@rule("reference.expected", Level.ERROR, source=REFERENCES, remedy="correct the reference or the example")
def check_reference_expected(draft: Evaluated) -> Iterator[ProposalProblem]:
    """The reference computes the outputs that the examples declare.

    These come from an independent source, such as a calculation by hand or a framework.
    """
    for each in draft.evidence.expected:
        if each.verdict == "differs":
            yield ProposalProblem(f"{each.case.name}: {each.reason}", EXAMPLES, each.case.keys)


@rule("reference.types", Level.ERROR, source=REFERENCES, remedy="return arrays of the types in the signature")
def check_reference_types(draft: Evaluated) -> Iterator[ProposalProblem]:
    """The outputs of the reference have the element types of the signature."""
    for case, outputs in _reference_runs(draft):
        for position, array in enumerate(outputs):
            formal = parameter_at(case.version.outputs, position)
            if array is None or formal is None or formal.type_attribute:
                continue
            bound = bound_type(case, formal.type)
            allowed = (f"tensor({bound})",) if bound else case.version.types_of(formal)
            if f"tensor({array_element_type(array)})" not in allowed:
                reason = (
                    f"{case.name}: expected {' or '.join(allowed)} for {formal.name}, "
                    f"got {array_element_type(array)}"
                )
                yield ProposalProblem(reason, EXAMPLES, case.keys)


@rule(
    "shape.agrees",
    Level.ERROR,
    source="ONNX, Adding New Operator: shape inference",
    remedy="name another rule, or correct the reference",
)
def check_shape_agrees(draft: Evaluated) -> Iterator[ProposalProblem]:
    """The shape rule infers the shapes of the outputs that the reference computes.

    An unknown dimension agrees with every value.
    """
    for case, outputs in _runs_with_shape_rule(draft):
        for array, shape in zip(outputs, inferred_shapes(case, len(outputs)), strict=True):
            if array is None or shape is None:
                continue
            is_compatible = len(shape) == array.ndim and all(
                one in (None, other) for one, other in zip(shape, array.shape, strict=True)
            )
            if not is_compatible:
                yield ProposalProblem(
                    f"{case.name}: the rule infers {_shape_text(shape)}, "
                    f"the reference returns {_shape_text(array.shape)}",
                    OPERATOR,
                    ("shape",),
                )


@rule(
    "shape.rank",
    Level.ERROR,
    source="ONNX, Adding New Operator: shape inference",
    remedy="name a rule that infers at least the rank",
)
def check_shape_rank(draft: Evaluated) -> Iterator[ProposalProblem]:
    """The shape rule infers at least the rank of the first output of one example."""
    ranks = [
        inferred_shapes(case, len(outputs))[0] for case, outputs in _runs_with_shape_rule(draft) if outputs
    ]
    if ranks and all(each is None for each in ranks):
        yield ProposalProblem(
            f"the rule {draft.version.shape!r} infers no rank for any example", OPERATOR, ("shape",)
        )


@rule(
    "reference.numpy",
    Level.ERROR,
    source="ONNX, Adding New Operator: numpy naming",
    remedy="follow numpy, or remove the name of the function",
)
def check_reference_numpy(draft: Evaluated) -> Iterator[ProposalProblem]:
    """The reference computes the same outputs as the numpy function that the proposal names.

    They are compared for the examples without omitted inputs and without attributes; at least one is needed.
    """
    found = draft.evidence.numpy
    if draft.proposal.numpy and draft.evidence.outcomes and all(each.verdict == "not run" for each in found):
        cause = f": {found[0].reason}" if found else ""
        yield ProposalProblem(
            f"no example can be compared with {draft.proposal.numpy}{cause}", EXAMPLES, ("examples",)
        )
    for each in draft.evidence.numpy:
        if each.verdict == "differs":
            yield ProposalProblem(f"{each.case.name}: {each.reason}", EXAMPLES, each.case.keys)


@rule("coverage.outputs", Level.ERROR, source=TESTS, remedy="add an example with this output")
def check_coverage_outputs(draft: Evaluated) -> Iterator[ProposalProblem]:
    """Every output is produced in an example."""
    yield from _uncovered_items(draft, "output")


@rule("coverage.attributes", Level.ERROR, source=TESTS, remedy="add such an example")
def check_coverage_attributes(draft: Evaluated) -> Iterator[ProposalProblem]:
    """Every attribute is present in an example and, if it is optional, omitted in another."""
    yield from _uncovered_items(draft, "attribute")


@rule("coverage.inputs", Level.ERROR, source=TESTS, remedy="add such an example")
def check_coverage_inputs(draft: Evaluated) -> Iterator[ProposalProblem]:
    """Every optional input is present in an example, and omitted in another."""
    yield from _uncovered_items(draft, "input")


@rule("coverage.types", Level.WARNING, source=TESTS, remedy="add an example in this type")
def check_coverage_types(draft: Evaluated) -> Iterator[ProposalProblem]:
    """Every element type is exercised by an example, or by an example converted to that type."""
    yield from _uncovered_items(draft, "type")


@rule("coverage.corners", Level.WARNING, source=TESTS, remedy="add an example of this case")
def check_coverage_corners(draft: Evaluated) -> Iterator[ProposalProblem]:
    """The examples cover the corner cases: empty tensor, scalar, negative axis, nan, inf."""
    yield from _uncovered_items(draft, "corner")


def _uncovered_items(draft: Evaluated, what: CoverageKind) -> Iterator[ProposalProblem]:
    if not any(each.outputs for each in draft.evidence.outcomes):
        return  # nothing could be run, which other rules report
    for each in coverage_of(implemented_version(draft), draft.evidence):
        if each.kind == what and not each.examples:
            yield ProposalProblem(f"no example covers {each.item}", EXAMPLES, ("examples",))


def _runs_with_shape_rule(draft: Evaluated) -> Iterator[tuple[Case, Outputs]]:
    return (each for each in _reference_runs(draft) if each[0].version.shape in SHAPE_RULES)


def _reference_runs(draft: Evaluated) -> Iterator[tuple[Case, Outputs]]:
    version = implemented_version(draft)
    for each in draft.evidence.outcomes:
        if each.outputs is not None and each.case.version is version:
            yield each.case, each.outputs


def _shape_text(shape: tuple[int | None, ...]) -> str:
    return "(" + ", ".join("?" if each is None else str(each) for each in shape) + ")"
