"""Result of a verification: inputs, outputs, and differences."""

from dataclasses import asdict, dataclass
from typing import Literal

from opshift.model.errors import OpshiftError
from opshift.model.plain_data import Json

Runtime = Literal["auto", "onnxruntime", "reference"]


class CannotVerify(OpshiftError):
    """The models cannot be compared, so it is unknown whether they agree."""


@dataclass(frozen=True)
class Tolerance:
    """Limit of the difference of two elements: `absolute * max(1, mean) + relative * |original|`.

    `mean` is the mean magnitude of the original's output. If both limits are 0, elements have to be equal.
    """

    relative: float
    absolute: float


@dataclass(frozen=True)
class InputUsed:
    """Input of both models, as the original declares it.

    `shape` is the shape in the first sample, or `None` if the input is not a tensor. Sizes in the last sample
    may be larger.
    """

    name: str
    type: str
    shape: tuple[int, ...] | None
    given: bool
    """Whether the caller provided the value; otherwise it was generated."""


@dataclass(frozen=True)
class ElementCompared:
    """Element of an output or of another value, before and after the conversion.

    Attributes:
        sample: the number of the sample, from 0.
        position: index of the element in the value, such as `[0, 2]`; empty for a scalar.
        original, converted: the numbers, truth values or strings; complex numbers are strings.
        difference: the absolute difference.
        allowed: the limit of the difference for this element.
    """

    sample: int
    position: str
    original: Json
    converted: Json
    difference: float
    allowed: float


@dataclass(frozen=True)
class OutputCompared:
    """Comparison of one output, or another value, for all samples.

    Attributes:
        name, type: the name and element type of the output.
        shape: the shape in the first sample with a value; `None` if the value is not a tensor.
        count: the number of compared elements.
        finite: the number of elements that are neither infinite nor NaN in the original.
        absolute: the largest difference; infinite if two different elements are not both finite.
        relative: the largest ratio of the difference to the original element. Elements near 0, for which the
            absolute limit exceeds the relative one, count only if they are beyond the tolerance.
        tolerance: the limits of the difference.
        differing: the number of elements beyond the tolerance.
        reason: the first or largest difference in words; empty if all elements are within the tolerance.
        worst: the element with the largest difference, among those beyond the tolerance if any are; `None`
            if all elements are equal, or if types, shapes or structures differ.
    """

    name: str
    type: str
    shape: tuple[int, ...] | None
    count: int
    finite: int
    absolute: float
    relative: float
    tolerance: Tolerance
    differing: int
    reason: str = ""
    worst: ElementCompared | None = None

    @property
    def equal(self) -> bool:
        """Whether types, shapes and structures are equal, and all elements are within the tolerance."""
        return not self.reason


@dataclass(frozen=True)
class Verification:
    """Result of a comparison.

    Attributes:
        runtimes: the runtimes of the original and of the converted model, with versions.
        samples: the number of input sets.
        seed: seed of the generated inputs.
        inputs, outputs: inputs and outputs of the models; outputs are empty if the converted model does not
            run.
        nonfinite: the number of input sets with infinities and NaN. For these sets, only elements on which
            onnxruntime and onnx.reference agree are compared. If they differ, `outputs` describes these sets.
        unreached: labels of changed branches that no input set executes, for If nodes of the main graph.
    """

    runtimes: tuple[str, str]
    samples: int
    seed: int
    inputs: tuple[InputUsed, ...]
    outputs: tuple[OutputCompared, ...]
    nonfinite: int = 0
    unreached: tuple[str, ...] = ()

    def __str__(self) -> str:
        differing = [f"{each.name}: {each.reason}" for each in self.outputs if each.reason]
        result = "outputs agree" if self.equal else "outputs differ" if differing else "does not run"
        used = " and ".join(dict.fromkeys(self.runtimes))
        return "\n".join([f"{result}: {self.samples + self.nonfinite} samples in {used}", *differing])

    @property
    def equal(self) -> bool:
        """Whether all outputs agree; false if the converted model does not run."""
        return bool(self.outputs) and all(each.equal for each in self.outputs)

    def as_dict(self) -> dict[str, Json]:
        """Return plain data for JSON."""
        outputs = [{**asdict(each), "equal": each.equal} for each in self.outputs]
        return {**asdict(self), "outputs": outputs, "equal": self.equal}


@dataclass(frozen=True)
class DifferenceLocation:
    """First node of the original, in topological order, that introduces a different value.

    Attributes:
        place: label of the node, with its graph or function.
        operator: operator version of the node, such as `ai.onnx.Clip:6`.
        becomes: operator versions of the nodes that replace the node; empty if the node is unchanged.
        steps: descriptions of the conversion steps that replace the node, a sentence each.
        value: comparison of the first different output of the node, for one sample. If `exceeded_at` is set,
            the node is run on equal inputs in both models.
        enclosing: labels of the calls and of the nodes with subgraphs that execute the node, outermost first.
        exceeded_at: label of the first node with a difference beyond the tolerance, if that is a later node.
    """

    place: str
    operator: str
    becomes: tuple[str, ...]
    steps: tuple[str, ...]
    value: OutputCompared
    enclosing: tuple[str, ...] = ()
    exceeded_at: str = ""

    def __str__(self) -> str:
        return f"{self.place} ({self.operator})"


class VerificationFailed(OpshiftError):
    """The converted model has different outputs, or does not run on inputs on which the original runs.

    Attributes:
        verification: the result of the comparison.
        location: the first node with a different value; `None` if no node was found.
    """

    def __init__(
        self, verification: Verification, reason: str = "", location: DifferenceLocation | None = None
    ) -> None:
        self.verification = verification
        self.location = location
        differing = [each for each in verification.outputs if not each.equal]
        text = reason or f"output {differing[0].name!r} differs: {differing[0].reason}"
        more = f" ({len(differing)} outputs differ)" if len(differing) > 1 else ""
        option = "--tolerance (tolerance= in Python)"
        remedy = "keep the original and report a bug"
        if not reason:
            remedy += f"; to allow larger differences, set {option}"
        if location and location.exceeded_at:
            remedy = f"provide typical inputs, or set {option}: a small difference grows in later nodes"
        first = f"; first at {location}" if location else ""
        super().__init__(text + more + first, remedy=remedy)
