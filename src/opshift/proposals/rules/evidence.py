"""Rules for examples, reference, shape rule and coverage: the evidence from running a proposal."""

from collections.abc import Iterator

from opshift.analysis.verification.numpy_types import array_element_type
from opshift.checker.findings import ERROR, WARNING
from opshift.model.extensions import ExtensionFailed
from opshift.proposals.content.draft import InvalidFile
from opshift.proposals.content.folder import EXAMPLES, REFERENCE
from opshift.proposals.content.folder import SHAPES as SHAPES_FILE
from opshift.proposals.evidence.cases import Arrays, Case, bound_type, parameter_at
from opshift.proposals.evidence.coverage import CoverageKind, coverage_of
from opshift.proposals.evidence.evidence import Evaluated, implemented_version
from opshift.proposals.evidence.outcomes import OutputComparison, inferred_shapes
from opshift.proposals.rules.rule_table import ADDING, GUIDE, Problems, first_of, rule
from opshift.registry.shapes.all_rules import SHAPE_RULES

REFERENCES = f"{ADDING}: reference implementation"
SHAPES = f"{ADDING}: shape inference"
TESTS = f"{ADDING}: tests"

FAILED_EXAMPLES = ("examples.legal", "reference.runs")
"""Rules that report examples that cannot be run: such examples cover nothing."""


@rule("shape.format", ERROR, SHAPES, "register the rule with `@rule(name)` of opshift.shapes")
def check_shape_format(file: InvalidFile) -> Problems:
    """`shapes.py` can be executed, and each of its shape rules has a new name."""
    return file.problems_in(SHAPES_FILE)


@rule("examples.format", ERROR, GUIDE, "follow the template of `opshift proposal new`")
def check_examples_format(file: InvalidFile) -> Problems:
    """`examples.yaml` is valid YAML with the keys of examples."""
    return file.problems_in(EXAMPLES)


@rule("examples.present", ERROR, TESTS, "add examples to examples.yaml")
def check_examples_present(draft: Evaluated) -> Problems:
    """There is at least one example, and the names of examples are unique.

    The reference, the body and the adapters are run on the examples.
    """
    names = [each.name for each in draft.folder.examples]
    if not names:
        yield draft.at_file("examples.yaml has no examples", EXAMPLES)
    for position, name in enumerate(names):
        if name in names[:position]:
            problem = draft.at_examples(f"two examples have the name {name!r}", position)
            yield problem._replace(remedy="rename one of the examples")


@rule(
    "examples.legal",
    ERROR,
    TESTS,
    "match the inputs and attributes of the operator",
    unless=("opset.version",),
)
def check_examples_legal(draft: Evaluated) -> Problems:
    """Every example is a valid node of the operator with values of the declared types."""
    for position, reason in draft.evidence.bad_examples:
        yield draft.at_examples(f"{draft.folder.examples[position].name}: {reason}", position)


@rule("reference.loads", ERROR, REFERENCES, "define `reference` in reference.py")
def check_reference_loads(draft: Evaluated) -> Problems:
    """`reference.py` defines the function `reference`.

    The function is an executable specification of the operator.
    """
    error = draft.evidence.reference_error
    if error is not None:
        yield draft.at_file(error.reason, REFERENCE, error.remedy)


@rule("reference.runs", ERROR, REFERENCES, "correct the reference, for every element type")
def check_reference_runs(draft: Evaluated) -> Problems:
    """The reference runs on every example, in every element type."""
    failed = [each for each in draft.evidence.outcomes if each.outputs is None]
    return first_of((each.case.name, draft.at_case(each.case, each.failure)) for each in failed)


@rule(
    "reference.expected",
    ERROR,
    REFERENCES,
    "correct the reference or the example",
    unless=("reference.types",),
)
def check_reference_expected(draft: Evaluated) -> Problems:
    """The reference computes the outputs that the examples declare.

    These come from an independent source, such as a calculation by hand or a framework.
    """
    return _difference_problems(draft, draft.evidence.expected)


@rule("reference.types", ERROR, REFERENCES, "return arrays of the types in the signature")
def check_reference_types(draft: Evaluated) -> Problems:
    """The outputs of the reference have the element types of the signature."""
    runs = _reference_runs(draft)
    wrong = ((case, reason) for case, outputs in runs for reason in _wrong_types(case, outputs))
    return first_of((case.name, draft.at_case(case, reason)) for case, reason in wrong)


@rule(
    "shape.agrees",
    ERROR,
    SHAPES,
    "name another rule, or correct the reference",
    unless=("reference.expected", "opset.published"),
)
def check_shape_agrees(draft: Evaluated) -> Problems:
    """The shape rule infers the shapes of the outputs that the reference computes.

    An unknown dimension agrees with every value.
    """
    runs = _runs_with_shape_rule(draft)
    wrong = ((case, reason) for case, outputs in runs for reason in _wrong_shapes(case, outputs))
    return first_of(
        (case.name, draft.at_definition(f"{case.name}: {reason}", "shape")) for case, reason in wrong
    )


@rule("shape.rank", ERROR, SHAPES, "name a rule that infers at least the rank")
def check_shape_rank(draft: Evaluated) -> Problems:
    """The shape rule infers at least the rank of the first output of one example."""
    runs = [inferred_shapes(case, len(outputs)) for case, outputs in _runs_with_shape_rule(draft) if outputs]
    if runs and all(isinstance(shapes, list) and shapes[0] is None for shapes in runs):
        reason = f"the rule {draft.version.shape!r} infers no rank for any example"
        yield draft.at_definition(reason, "shape")


@rule(
    "reference.numpy",
    ERROR,
    f"{ADDING}: numpy naming",
    "follow numpy, or remove the name of the function",
    unless=("proposal.numpy", "reference."),
)
def check_reference_numpy(draft: Evaluated) -> Problems:
    """The reference computes the same outputs as the numpy function that the proposal names.

    They are compared for the examples without omitted inputs and without attributes; at least one is needed.
    """
    found = draft.evidence.numpy
    if draft.proposal.numpy and draft.evidence.outcomes and all(each.verdict == "not run" for each in found):
        cause = f": {found[0].reason}" if found else ""
        yield draft.at_examples(f"no example can be compared with {draft.proposal.numpy}{cause}")
    yield from _difference_problems(draft, found)


@rule("coverage.outputs", ERROR, TESTS, "add an example with this output", unless=FAILED_EXAMPLES)
def check_coverage_outputs(draft: Evaluated) -> Problems:
    """Every output is produced in an example."""
    return _uncovered_items(draft, "output")


@rule("coverage.attributes", ERROR, TESTS, "add such an example", unless=FAILED_EXAMPLES)
def check_coverage_attributes(draft: Evaluated) -> Problems:
    """Every attribute is present in an example and, if it is optional, omitted in another."""
    return _uncovered_items(draft, "attribute")


@rule("coverage.inputs", ERROR, TESTS, "add such an example", unless=FAILED_EXAMPLES)
def check_coverage_inputs(draft: Evaluated) -> Problems:
    """Every optional input is present in an example, and omitted in another."""
    return _uncovered_items(draft, "input")


@rule(
    "coverage.types",
    WARNING,
    TESTS,
    "add an example in this type",
    unless=("types.", *FAILED_EXAMPLES),
)
def check_coverage_types(draft: Evaluated) -> Problems:
    """Every element type is exercised by an example, or by an example converted to that type."""
    return _uncovered_items(draft, "type")


@rule(
    "coverage.corners",
    WARNING,
    TESTS,
    "add an example of this case, unless the operator does not accept it",
    unless=FAILED_EXAMPLES,
)
def check_coverage_corners(draft: Evaluated) -> Problems:
    """The examples cover the corner cases: empty tensor, scalar, negative axis, nan, inf."""
    return _uncovered_items(draft, "corner")


def _uncovered_items(draft: Evaluated, kind: CoverageKind) -> Problems:
    if not any(each.outputs for each in draft.evidence.outcomes):
        return  # No example could be run, which other rules report.
    covered = coverage_of(implemented_version(draft), draft.evidence)
    missing = [each.item for each in covered if each.kind == kind and not each.examples]
    if missing:
        yield draft.at_examples(f"no example covers: {', '.join(missing)}")


def _difference_problems(draft: Evaluated, comparisons: list[OutputComparison]) -> Problems:
    different = [each for each in comparisons if each.verdict == "differs"]
    return first_of((each.case.name, draft.at_case(each.case, each.reason)) for each in different)


def _wrong_types(case: Case, outputs: Arrays) -> Iterator[str]:
    for position, array in enumerate(outputs):
        formal = parameter_at(case.version.outputs, position)
        if array is None or formal is None or formal.type_attributes:
            continue
        bound, found = bound_type(case, formal.type), array_element_type(array)
        allowed = (f"tensor({bound})",) if bound else case.version.types_of(formal)
        if f"tensor({found})" not in allowed:
            yield f"expected {' or '.join(allowed)} for {formal.name}, got {found}"


def _wrong_shapes(case: Case, outputs: Arrays) -> Iterator[str]:
    shapes = inferred_shapes(case, len(outputs))
    if isinstance(shapes, ExtensionFailed):
        yield f"{shapes.reason} ({shapes.place})"
        return
    for array, shape in zip(outputs, shapes, strict=True):
        if array is None or shape is None:
            continue
        is_same_rank = len(shape) == array.ndim
        if not is_same_rank or any(a not in (None, b) for a, b in zip(shape, array.shape, strict=True)):
            inferred, returned = _shape_text(shape), _shape_text(array.shape)
            yield f"the rule infers {inferred}, the reference returns {returned}"


def _runs_with_shape_rule(draft: Evaluated) -> Iterator[tuple[Case, Arrays]]:
    return (each for each in _reference_runs(draft) if each[0].version.shape in SHAPE_RULES)


def _reference_runs(draft: Evaluated) -> Iterator[tuple[Case, Arrays]]:
    version = implemented_version(draft)
    for each in draft.evidence.outcomes:
        if each.outputs is not None and each.case.version is version:
            yield each.case, each.outputs


def _shape_text(shape: tuple[int | None, ...]) -> str:
    return "(" + ", ".join("?" if each is None else str(each) for each in shape) + ")"
