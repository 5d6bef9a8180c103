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
    """Input of both models, as the original declares it; `shape` is `None` if it is not a tensor."""

    name: str
    type: str
    shape: tuple[int, ...] | None
    given: bool
    """Whether the caller provided the value; otherwise it was generated."""


@dataclass(frozen=True)
class OutputCompared:
    """Comparison of one output for all samples.

    Attributes:
        name, type: the name and element type of the output.
        shape: the shape in the first sample; `None` if the value is not a tensor.
        count: the number of compared elements.
        finite: the number of elements that are neither infinite nor NaN in the original.
        absolute, relative: the largest differences; infinite if one of two elements is not finite.
        tolerance: the limits of the difference.
        differing: the number of elements beyond the tolerance.
        reason: the first or largest difference in words; empty if all elements are within the tolerance.
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

    @property
    def equal(self) -> bool:
        """Whether all elements are within the tolerance."""
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
    """

    runtimes: tuple[str, str]
    samples: int
    seed: int
    inputs: tuple[InputUsed, ...]
    outputs: tuple[OutputCompared, ...]

    @property
    def equal(self) -> bool:
        """Whether the models agree."""
        return bool(self.outputs) and all(each.equal for each in self.outputs)

    def as_dict(self) -> dict[str, Json]:
        """Return plain data for JSON."""
        outputs = [{**asdict(each), "equal": each.equal} for each in self.outputs]
        return {**asdict(self), "outputs": outputs, "equal": self.equal}


class VerificationFailed(OpshiftError):
    """The converted model has other outputs, or does not run where the original runs.

    Attributes:
        verification: the result of the comparison.
    """

    def __init__(self, verification: Verification, reason: str = "") -> None:
        self.verification = verification
        differing = [each for each in verification.outputs if not each.equal]
        text = reason or f"output {differing[0].name!r} differs: {differing[0].reason}"
        more = f", and {len(differing) - 1} more outputs" if len(differing) > 1 else ""
        remedy = "keep the original, or set a tolerance if the conversion was allowed to be approximate"
        super().__init__(text + more, remedy=remedy)
