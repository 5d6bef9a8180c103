"""What was compared, how far apart it was, and what to say if that is too far."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from opshift.registry.errors import OpshiftError

Runtime = Literal["auto", "onnxruntime", "reference"]


REMEDY = "keep the original; if the conversion was allowed to be approximate, give a tolerance"


class CannotVerify(OpshiftError):
    """The two models could not be compared: nothing is known of whether they agree."""


@dataclass(frozen=True)
class Tolerance:
    """How far apart two elements may be: `absolute * max(1, mean) + relative * |original|`.

    `mean` is the mean magnitude of the original's output; where both are 0 elements have to be equal.
    """

    relative: float
    absolute: float


@dataclass(frozen=True)
class InputUsed:
    """An input that both models were given.

    Attributes:
        name, type: as the original declares them.
        shape: its dimensions; `None` for what is no tensor.
        given: whether the caller gave it; otherwise it was generated.
    """

    name: str
    type: str
    shape: tuple[int, ...] | None
    given: bool


@dataclass(frozen=True)
class OutputCompared:
    """One output, over all samples.

    Attributes:
        name, type: the output, and the element type that it had.
        shape: in the first sample; `None` for what is no tensor.
        count: how many elements were compared.
        finite: how many of them are neither infinite nor NaN in the original.
        absolute, relative: the largest differences; infinite where one of two elements is not finite.
        tolerance: how far apart they may be.
        differing: how many elements are further apart.
        reason: the first or worst difference in words; empty if there is none beyond the tolerance.
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
        """Whether nothing is further apart than it may be."""
        return not self.reason


@dataclass(frozen=True)
class Verification:
    """What was compared.

    Attributes:
        runtimes: what ran the original and the converted model, with versions.
        samples: how many sets of inputs both were given.
        seed: what the generated ones come from.
        inputs, outputs: those of the models; there are no outputs if the converted model does not run.
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

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        outputs = [{**asdict(each), "equal": each.equal} for each in self.outputs]
        return {**asdict(self), "outputs": outputs, "equal": self.equal}


class VerificationFailed(OpshiftError):
    """The converted model gives something else, or does not run where the original does.

    Attributes:
        verification: what was compared.
    """

    def __init__(self, verification: Verification, reason: str = "") -> None:
        self.verification = verification
        wrong = [each for each in verification.outputs if not each.equal]
        told = reason or f"output {wrong[0].name!r} differs: {wrong[0].reason}"
        more = f", and {len(wrong) - 1} more outputs" if len(wrong) > 1 else ""
        super().__init__(told + more, remedy=REMEDY)
