"""What running a proposal has to show."""

from __future__ import annotations

from collections.abc import Iterator

from opshift.converter.verification.arrays import element_type_of
from opshift.proposals.draft import Written
from opshift.proposals.evidence.cases import Case, bound_type, formal_of
from opshift.proposals.evidence.evidence import implemented
from opshift.proposals.evidence.matrix import What, matrix
from opshift.proposals.evidence.running import Outputs
from opshift.proposals.evidence.shapes import inferred_shapes
from opshift.proposals.findings import Level
from opshift.proposals.folder import EXAMPLES, OPERATOR, REFERENCE
from opshift.proposals.ran import Ran
from opshift.proposals.rules.table import Flaw, rule
from opshift.registry.shapes import RULES

REFERENCES = "ONNX, Adding New Operator: reference implementation"
TESTS = "ONNX, Adding New Operator: tests"


@rule(
    "examples.format",
    Level.ERROR,
    source="docs/proposals.md",
    remedy="write them as `opshift proposal new` does",
)
def examples_are_readable(draft: Written) -> Iterator[Flaw]:
    """`examples.yaml` is YAML with the keys of examples."""
    yield from ()


@rule("examples.present", Level.ERROR, source=TESTS, remedy="add examples to examples.yaml")
def there_are_examples(draft: Ran) -> Iterator[Flaw]:
    """There is an example, with another name than every other.

    Examples are what everything is run on.
    """
    names = [each.name for each in draft.folder.examples]
    if not names:
        yield Flaw("there is no example", EXAMPLES)
    for position, name in enumerate(names):
        if name in names[:position]:
            yield Flaw(f"two examples are called {name!r}", EXAMPLES, ("examples", position))


@rule(
    "examples.legal",
    Level.ERROR,
    source=TESTS,
    remedy="give it the inputs and attributes that the operator has",
)
def examples_are_nodes(draft: Ran) -> Iterator[Flaw]:
    """Every example is a legal node of the operator, and its values are of their types."""
    for position, reason in draft.evidence.bad_examples:
        yield Flaw(f"{draft.folder.examples[position].name}: {reason}", EXAMPLES, ("examples", position))


@rule("reference.loads", Level.ERROR, source=REFERENCES, remedy="define `reference` in reference.py")
def reference_can_be_loaded(draft: Ran) -> Iterator[Flaw]:
    """`reference.py` defines the function `reference`.

    It says what the operator computes, in a language that can be run.
    """
    error = draft.evidence.reference_error
    if error is not None:
        yield Flaw(error.reason, REFERENCE, remedy=error.remedy)


@rule("reference.runs", Level.ERROR, source=REFERENCES, remedy="let it take this example too, in every type")
def reference_runs(draft: Ran) -> Iterator[Flaw]:
    """The reference runs on every example, in every element type."""
    for each in draft.evidence.outcomes:
        if each.outputs is None:
            yield Flaw(f"{each.case.name}: {each.failure}", EXAMPLES, each.case.keys)


@rule("reference.expected", Level.ERROR, source=REFERENCES, remedy="correct the reference, or the example")
def reference_gives_what_is_expected(draft: Ran) -> Iterator[Flaw]:
    """The reference gives the outputs that an example states.

    These were worked out by other means, by hand or by a framework.
    """
    for each in draft.evidence.expected:
        if each.verdict == "differs":
            yield Flaw(f"{each.case.name}: {each.reason}", EXAMPLES, each.case.keys)


@rule("reference.types", Level.ERROR, source=REFERENCES, remedy="let it give the types of the signature")
def types_agree(draft: Ran) -> Iterator[Flaw]:
    """What the reference gives has the element types of the signature."""
    for case, outputs in _reference_runs(draft):
        for position, array in enumerate(outputs):
            formal = formal_of(case.version.outputs, position)
            if array is None or formal is None or formal.type_attribute:
                continue
            bound = bound_type(case, formal.type)
            allowed = (f"tensor({bound})",) if bound else case.version.types_of(formal)
            if f"tensor({element_type_of(array)})" not in allowed:
                reason = f"{case.name}: {formal.name} is {element_type_of(array)}, not {' or '.join(allowed)}"
                yield Flaw(reason, EXAMPLES, case.keys)


@rule(
    "shape.agrees",
    Level.ERROR,
    source="ONNX, Adding New Operator: shape inference",
    remedy="name another rule, or correct the reference",
)
def shapes_agree(draft: Ran) -> Iterator[Flaw]:
    """The shape rule gives the shapes that come out.

    A dimension that the rule leaves open agrees with any.
    """
    for case, outputs in _with_shape_rule(draft):
        for array, shape in zip(outputs, inferred_shapes(case, len(outputs)), strict=True):
            if array is None or shape is None:
                continue
            fits = len(shape) == array.ndim and all(
                one in (None, other) for one, other in zip(shape, array.shape, strict=True)
            )
            if not fits:
                yield Flaw(
                    f"{case.name}: {_dims(shape)} by the rule, {_dims(array.shape)} came out",
                    OPERATOR,
                    ("shape",),
                )


@rule(
    "shape.rank",
    Level.ERROR,
    source="ONNX, Adding New Operator: shape inference",
    remedy="name a rule that tells at least the rank",
)
def ranks_are_told(draft: Ran) -> Iterator[Flaw]:
    """The shape rule tells the rank of the first output of some example, at least."""
    told = [inferred_shapes(case, len(outputs))[0] for case, outputs in _with_shape_rule(draft) if outputs]
    if told and all(each is None for each in told):
        yield Flaw(f"the rule {draft.version.shape!r} tells nothing of any example", OPERATOR, ("shape",))


@rule(
    "reference.numpy",
    Level.ERROR,
    source="ONNX, Adding New Operator: numpy naming",
    remedy="follow numpy, or take its name out",
)
def it_is_as_in_numpy(draft: Ran) -> Iterator[Flaw]:
    """Where a numpy function is named, the reference gives what it gives.

    Compared on the examples that leave no input out and state no attribute; there has to be one.
    """
    found = draft.evidence.numpy
    if draft.proposal.numpy and draft.evidence.outcomes and all(each.verdict == "not run" for each in found):
        why = f": {found[0].reason}" if found else ""
        yield Flaw(f"no example could be compared with {draft.proposal.numpy}{why}", EXAMPLES, ("examples",))
    for each in draft.evidence.numpy:
        if each.verdict == "differs":
            yield Flaw(f"{each.case.name}: {each.reason}", EXAMPLES, each.case.keys)


@rule("coverage.outputs", Level.ERROR, source=TESTS, remedy="add an example that has it")
def outputs_are_covered(draft: Ran) -> Iterator[Flaw]:
    """Every output is given in an example."""
    yield from _uncovered(draft, "output")


@rule("coverage.attributes", Level.ERROR, source=TESTS, remedy="add an example with it")
def attributes_are_covered(draft: Ran) -> Iterator[Flaw]:
    """Every attribute is stated in an example and, if it may be, left out in another."""
    yield from _uncovered(draft, "attribute")


@rule("coverage.inputs", Level.ERROR, source=TESTS, remedy="add an example with it")
def inputs_are_covered(draft: Ran) -> Iterator[Flaw]:
    """Every optional input is there in an example, and left out in another."""
    yield from _uncovered(draft, "input")


@rule("coverage.types", Level.WARNING, source=TESTS, remedy="add an example in this type")
def types_are_covered(draft: Ran) -> Iterator[Flaw]:
    """Every element type runs in an example, at least in one that was brought to it."""
    yield from _uncovered(draft, "type")


@rule("coverage.corners", Level.WARNING, source=TESTS, remedy="add an example of it")
def corners_are_covered(draft: Ran) -> Iterator[Flaw]:
    """There are examples of corner cases: empty, scalar, negative axis, nan, inf."""
    yield from _uncovered(draft, "corner")


def _uncovered(draft: Ran, what: What) -> Iterator[Flaw]:
    if not any(each.outputs for each in draft.evidence.outcomes):
        return
    for each in matrix(implemented(draft), draft.evidence):
        if each.what == what and not each.examples:
            yield Flaw(f"no example covers {each.item}", EXAMPLES, ("examples",))


def _with_shape_rule(draft: Ran) -> Iterator[tuple[Case, Outputs]]:
    return (each for each in _reference_runs(draft) if each[0].version.shape in RULES)


def _reference_runs(draft: Ran) -> Iterator[tuple[Case, Outputs]]:
    version = implemented(draft)
    for each in draft.evidence.outcomes:
        if each.outputs is not None and each.case.version is version:
            yield each.case, each.outputs


def _dims(shape: tuple[int | None, ...]) -> str:
    return "(" + ", ".join("?" if each is None else str(each) for each in shape) + ")"
