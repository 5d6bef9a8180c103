"""Result of fitting a model to a runtime, and the error if that is impossible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Generic, NamedTuple

from opshift.analysis.fit.interface_types import InterfaceChange
from opshift.converter.convert import Converted
from opshift.converter.recognition.result import Recognition
from opshift.converter.report import Report
from opshift.model.errors import OpshiftError
from opshift.model.plain_data import Json
from opshift.model.shared_data import DeprecatedAlias, FrozenRecord
from opshift.runtimes.check_support import UnsupportedGroup


class FitReport(FrozenRecord):
    """Conversions that fit a model to a runtime.

    Attributes:
        runtime: name of the runtime, such as `onnxruntime-1.20.1`.
        opsets: opset imports of the result by domain.
        ir_version: IR version of the result.
        cost: added nodes, and 1,000 for each inexact conversion.
        replaced: operators and functions that other operators replace, such as `ai.onnx.Gelu`, and one-to-one
            replacements, such as `com.microsoft.Gelu:1 for ai.onnx.Gelu:20`.
        bridges: operator versions that compute in another element type, and element types replaced in all
            operators, a sentence each.
        conversions: reports of the conversions, in order: to the opsets, then of nodes that lacked a kernel.
        tried: number of combinations of opsets that were converted to find the cheapest one.
        warnings: known wrong results of kernels that the result uses.
        uncertain: reasons why the runtime may refuse nodes that count as implemented.
        assumptions: inputs of nodes that became constants, because declared shapes determine them.
        interface: inputs and outputs with wider types, which `allow="interface-types"` permits.
        widening_nodes: number of nodes that wider types added before the conversions.
        shared_casts: number of added casts that were removed, because an earlier node casts the same value.
        recognition: report of an earlier conversion that recognized operators, if there was one.
        slow_operators: operators that were found, but not recognized, because their kernels are slow, a
            sentence each.
        folding: report of the replacement of constant values before all conversions, if it was requested.
        declared_shapes: shapes that the caller declared, a sentence each.
    """

    runtime: str
    opsets: Mapping[str, int]
    ir_version: int
    cost: int
    replaced: tuple[str, ...]
    bridges: tuple[str, ...]
    conversions: tuple[Report, ...]
    tried: int
    warnings: tuple[str, ...]
    uncertain: tuple[str, ...]
    assumptions: tuple[str, ...] = ()
    interface: tuple[InterfaceChange, ...] = ()
    widening_nodes: int = 0
    shared_casts: int = 0
    recognition: Report | None = None
    slow_operators: tuple[str, ...] = ()
    folding: Report | None = None
    declared_shapes: tuple[str, ...] = ()

    def __str__(self) -> str:
        before, after = self.nodes
        versions = [f"{domain} {opset}" for domain, opset in self.opsets.items()]
        versions.append(f"IR version {self.ir_version}")
        lines = [f"{self.runtime}: {', '.join(versions)}", f"nodes: {before:,} -> {after:,}"]
        for title, sentences in self.notes.items():
            lines += [f"{title}: {each}" for each in sentences]
        return "\n".join(lines)

    @property
    def all_conversions(self) -> tuple[Report, ...]:
        """Reports of all conversions, in order."""
        return (*filter(None, (self.folding, self.recognition)), *self.conversions)

    @property
    def allowances(self) -> tuple[tuple[str, str], ...]:
        """Kind and reason of each allowed inexact conversion."""
        return tuple(dict.fromkeys(each for report in self.all_conversions for each in report.allowances))

    concessions = DeprecatedAlias[tuple[tuple[str, str], ...]]("allowances")

    @property
    def nodes(self) -> tuple[int, int]:
        """Number of nodes before and after fitting."""
        fitted = self.conversions[0].nodes[0] - self.widening_nodes
        first = self.folding or self.recognition
        before = first.nodes[0] if first else fitted
        return before, self.conversions[-1].nodes[1] - self.shared_casts

    @property
    def notes(self) -> dict[str, Sequence[str]]:
        """Sentences about the conversion and the result, by title."""
        recognized = self.recognition.recognized if self.recognition else ()
        notes: dict[str, Sequence[str]] = {
            "Declared shapes": self.declared_shapes,
            "Folding": self.folding.repairs if self.folding else (),
            "Recognized operators": [*Recognition(recognized).sentences()],
            "Operators with slow kernels": self.slow_operators,
            "Replaced operators": self.replaced,
            "Element types": self.bridges,
            "Assumptions": self.assumptions,
            "Types of inputs and outputs": [*map(str, self.interface)],
            "Inexact conversions": [f"{kind}: {reason}" for kind, reason in self.allowances],
            "Wrong results of the runtime": self.warnings,
            "Uncertain": self.uncertain,
        }
        return {title: sentences for title, sentences in notes.items() if sentences}

    def as_dict(self) -> dict[str, Json]:
        """Return plain data for JSON."""
        data: dict[str, Json] = asdict(self)
        return {
            **data,
            "nodes": self.nodes,
            "allowances": self.allowances,
            "concessions": self.allowances,  # deprecated alias
            "conversions": [each.as_dict() for each in self.conversions],
            "recognition": self.recognition.as_dict() if self.recognition else None,
            "folding": self.folding.as_dict() if self.folding else None,
        }


class Fitted(NamedTuple, Generic[Converted]):
    """Model that a runtime implements, with the report of the conversions."""

    model: Converted
    report: FitReport


class DoesNotFit(OpshiftError):
    """No conversion was found after which the runtime implements all nodes; the model is unchanged.

    Attributes:
        runtime: name of the runtime.
        opset: opset of the default domain with the fewest missing nodes; added nodes count as one.
        missing: the missing nodes at this opset by cause, with reasons and remedies.
    """

    def __init__(self, runtime: str, opset: int, missing: Sequence[UnsupportedGroup]) -> None:
        self.runtime = runtime
        self.opset = opset
        self.missing = tuple(missing)
        first = self.missing[0]
        more = f", and {self.nodes - 1:,} more" if self.nodes > 1 else ""
        operator = f"{first.operator}: " if first.operator else ""
        super().__init__(f"{operator}{first.reason}{more}", place=first.places[0], remedy=first.remedy)

    @property
    def nodes(self) -> int:
        """Number of missing nodes."""
        return sum(len(each.places) for each in self.missing)
