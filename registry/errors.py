"""Errors of operator definitions and of operator names at an opset, and checks of arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from opshift.model.errors import NodeError, OpshiftError, Place, UsageError
from opshift.model.message_text import did_you_mean
from opshift.model.operator_ids import OperatorId

if TYPE_CHECKING:
    from opshift.registry.models import Operator


class DefinitionError(OpshiftError):
    """A definition is invalid or cannot be read; the place is the file and line, or the operator's name."""


UNREGISTERED_REMEDY = (
    "opshift runs code of a tree of definitions only on request: name the file or folder that registers it, "
    "such as --adapters TREE/adapters (opshift.load_adapters in Python)"
)
"""Remedy if a definition names an adapter or a shape rule that no imported Python file registers."""


class DefinitionFinding(NamedTuple):
    """Violation of the lint rule with the id `rule`, such as `type.unknown`, at a place in a definition."""

    rule: str
    place: Place
    reason: str
    remedy: str

    @classmethod
    def of_rule(cls, rule: str, place: Place, reason: str, remedy: str = "") -> DefinitionFinding:
        """Return a finding with `remedy`, or by default the remedy of the rule."""
        from opshift.registry.lint.rule_table import rule_table  # imported here: only findings need the rules

        return cls(rule, place, reason, remedy or rule_table()[rule].remedy)

    def as_dict(self) -> dict[str, str | int]:
        """Return the finding as plain data."""
        file, line, column = self.place.file, self.place.line, self.place.column
        place: dict[str, str | int] = {"file": file, "line": line, "column": column}
        return {"rule": self.rule, **place, "reason": self.reason, "remedy": self.remedy}


class InvalidDefinition(DefinitionError):
    """A definition that violates lint rules.

    Attributes:
        findings: the violations; those in an operator file are in the order of its lines.
    """

    def __init__(self, findings: Sequence[DefinitionFinding]) -> None:
        self.findings = tuple(findings)
        first = self.findings[0]
        more = f", and {len(self.findings) - 1} more" if len(self.findings) > 1 else ""
        super().__init__(f"{first.rule}: {first.reason}{more}", place=first.place, remedy=first.remedy)


class ResolveError(NodeError):
    """A node does not refer to any operator under its opset imports."""

    code = "operator.unknown"


class DomainNotImported(ResolveError):
    """The node's domain has no opset import."""

    code = "domain.not-imported"


class NotYetIntroduced(ResolveError):
    """The operator was introduced in a later opset."""

    code = "operator.not-introduced"


class OperatorRemoved(ResolveError):
    """The operator was removed in this opset or an earlier one."""

    code = "operator.removed"


class UnknownOperator(ResolveError):
    """The domain has no operator of this name."""


class UnknownDomain(ResolveError):
    """The registry has no definitions for the domain."""

    code = "domain.unknown"


class UnknownOpset(ResolveError):
    """The opset version is below 1, or newer than the registry supports."""

    code = "opset.unknown"


def resolve_error(operator: Operator | None, wanted: OperatorId, names: Iterable[str]) -> ResolveError:
    """Return the error for an operator that its domain lacks at a valid opset.

    `wanted` has the opset in place of the version. `operator` is `None` if no opset has the operator.
    `names` are all operators of the domain, to suggest a similar name.
    """
    domain, op_type, opset = wanted
    if operator is None:
        remedy = did_you_mean(op_type, names, "check the name and its domain")
        return UnknownOperator(f"{domain} has no operator {op_type!r}", remedy=remedy)
    removals = (version.removal for version in operator.versions if version.removal)
    removal = next((each for each in removals if each.removed_in <= opset), None)
    if removal:
        replacement = removal.mapping or (
            f"use {' and '.join(removal.replacements)}" if removal.replacements else ""
        )
        reason = f"{op_type} was removed from {domain} in opset {removal.removed_in}"
        return OperatorRemoved(reason, remedy=replacement)
    remedy = f"use opset {operator.introduced_after(opset)} or newer"
    return NotYetIntroduced(f"{op_type} is not in opset {opset} of {domain}", remedy=remedy)


def require_node(node: object) -> None:
    """Raise UsageError unless an object has the fields `op_type` and `domain`, like a NodeProto."""
    if not (hasattr(node, "op_type") and hasattr(node, "domain")):
        reason = f"expected a NodeProto, got {type(node).__name__}"
        raise UsageError(reason, remedy='build it, as in onnx.helper.make_node("Relu", ["x"], ["y"])')


def require_node_and_imports(node: object, opset_imports: object) -> None:
    """Raise UsageError unless `node` is like a NodeProto and `opset_imports` maps domains to integers."""
    require_node(node)
    opsets = opset_imports.values() if isinstance(opset_imports, Mapping) else ["no mapping"]
    if not all(isinstance(each, int) for each in opsets):
        raise UsageError(f"expected opsets by domain, got {opset_imports!r}", remedy='pass them as {"": 17}')


def require_argument_types(op_type: object, opset: object, domain: object) -> None:
    """Raise UsageError unless name and domain are strings or bytes, and the opset an integer or `None`."""
    is_opset = opset is None or (isinstance(opset, int) and not isinstance(opset, bool))
    # some releases of protobuf return a string that is not valid UTF-8 as bytes
    if not is_opset or not isinstance(op_type, str | bytes) or not isinstance(domain, str | bytes):
        reason = f"expected a name, an opset and a domain, got {op_type!r}, {opset!r} and {domain!r}"
        raise UsageError(reason, remedy='pass them as in get_schema("Relu", 13, "ai.onnx")')
