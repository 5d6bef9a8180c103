"""Version of a runtime: the operator versions that it implements, and the types of each kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from functools import cache
from typing import Annotated, Literal, NamedTuple

from opshift.model.operator_ids import OperatorId
from opshift.model.types import short_type
from opshift.registry.record import Checked, Record
from opshift.registry.runtimes.restrictions import (
    ElementName,
    IntegerStoredName,
    Opsets,
    Restriction,
    Types,
    Version,
)

Count = Annotated[int, Checked(strict=True, ge=0)]


class Kernel(Record):
    """Implementation of some versions of an operator for some types."""

    versions: tuple[Version, Version]
    """The first and the last `since_version` that the kernel implements."""
    types: dict[str, Types] = field(default_factory=dict)
    """Types by type variable or parameter; the kernel accepts all combinations of these types."""
    nonstandard: bool = False
    """Whether the runtime added these versions, which the operator's domain does not define."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.versions[0] > self.versions[1]:
            raise ValueError(f"{versions_text(self.versions)} is not a range of versions")

    def implements(self, version: int) -> bool:
        """Return whether the kernel implements the operator version with this `since_version`."""
        return self.versions[0] <= version <= self.versions[1]

    def accepts(self, types: Mapping[str, str]) -> bool:
        """Return whether the kernel accepts types, by type variable or parameter; missing types pass."""
        return all(types.get(name, accepted[0]) in accepted for name, accepted in self.types.items())


class RuntimeEvidence(Record):
    """Origin of the facts about a runtime."""

    kind: Literal["kernel_registry", "documentation", "measurement"]
    source: str
    date: Annotated[str, Checked(min_length=10)]
    """Date of the reading or measurement, as 2026-11-22."""


class Support(NamedTuple):
    """The kernel of a runtime for an operator version and types, or the reason why it is missing.

    If `kernel` is `None`, `reason` gives the cause, and `remedy` an action. `caveats` describe nodes that the
    kernel refuses, and wrong results.
    """

    kernel: Kernel | None
    reason: str = ""
    remedy: str = ""
    caveats: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.kernel is not None


class Runtime(Record):
    """Version of a runtime that runs models on one kind of device."""

    runtime: Annotated[str, Checked(min_length=1)]
    """Name of the program, and of its folder in `opsets/runtimes/`."""
    version: Annotated[str, Checked(min_length=1)]
    """Exact version, and the name of the file without `.yaml`."""
    provider: str = "cpu"
    """Device or library for which the kernels are written."""
    extends: str = ""
    """Name of another runtime, from which this file inherits the keys and operators that it does not list."""
    opsets: Opsets
    """Newest supported opset of each domain."""
    imports: dict[str, Version | str] = field(default_factory=dict)
    """Newest opset of other domains that a model may import; a domain name means its opset in `opsets`.

    Runtimes refuse to load a model with a newer import, even if no node needs it.
    """
    ir_version: Version | None = None
    """Newest supported IR version; `None` if it is not documented or not checked."""
    expands_functions: bool
    """Whether the runtime replaces nodes without a kernel by the function body of the operator."""
    expands_outdated_bodies: bool = False
    """Whether a function body is used even if the model's opset has other versions of the operators in it."""
    falls_back: str = ""
    """Name of the runtime that runs nodes without a kernel, such as the CPU runtime `onnxruntime-1.20.1`."""
    computes_in: dict[ElementName, ElementName] = field(default_factory=dict)
    """Element types without a kernel, and the element types in which the runtime computes them instead."""
    evidence: RuntimeEvidence
    """Origin of the facts in this file; not inherited."""
    operators: dict[str, tuple[Kernel, ...]]
    """Kernels by operator, as `ai.onnx.Add`; an empty list removes an inherited operator."""
    internal_operators: dict[str, tuple[Kernel, ...]] = field(default_factory=dict)
    """Kernels that the runtime's kernel table lacks.

    They are kernels of operators that the optimizer of the runtime inserts, and of nonstandard operators in
    types for which the runtime runs a function body.
    """
    restrictions: dict[str, str | tuple[Restriction, ...]] = field(default_factory=dict)
    """Nodes that the kernels of an operator refuse in spite of their version and types, by operator.

    A text is a restriction without conditions; an empty text or list removes inherited restrictions.
    """
    wrong: dict[str, str | tuple[Restriction, ...]] = field(default_factory=dict)
    """Wrong results by operator version, as `ai.onnx.Add:14`, in the form of restrictions."""
    misorders_functions_in: dict[str, str] = field(default_factory=dict)
    """Attributes with subgraphs in which nodes must not be replaced by function bodies, by operator.

    The runtime expands the operator, such as SequenceMap, then writes the nodes of function bodies in the
    subgraph in the wrong order, and refuses the model. A body with one node has no order.
    """
    slow_kernels: dict[str, str] = field(default_factory=dict)
    """Operators with kernels that take longer than the equivalent simpler nodes, with the measurement.

    `fit` introduces these operators only if the caller names them. An empty text removes an inherited entry.
    """
    folds: tuple[str, ...] = ()
    """Domains, such as `ai.onnx`, and operators with nodes that the optimizer computes before the first run.

    A node is computed if the inputs are constants, there is a kernel for the types without casts, and the
    outputs are tensors. DequantizeLinear is kept unless QuantizeLinear follows after one more node. If the
    list is empty, the constant results of all deterministic nodes are computed.
    """
    unfolded: tuple[str, ...] = ()
    """Operators in `folds` that the optimizer does not compute before the first run."""
    unsized: tuple[str, ...] = ()
    """Operators and operator versions in `folds` with output sizes that the optimizer does not infer.

    Nodes of these operators are computed before the first run only if the model declares the sizes."""
    folds_functions: bool = False
    """Whether the optimizer also computes calls of local functions before the first run and, if a model has
    local functions, function bodies of operators."""
    validates_nodes: bool = False
    """Whether the runtime refuses nodes that its schemas do not allow, for example unknown attributes."""
    needs_input_ranks: bool = False
    """Whether the runtime refuses models with inputs of unknown rank."""
    may_need_input_sizes: bool = False
    """Whether the runtime refuses some models with inputs of unknown sizes, for unknown reasons."""
    inexact_types: dict[ElementName, str] = field(default_factory=dict)
    """Element types in which results of any kernel may differ from the definition, and the difference."""
    unread_types: tuple[ElementName, ...] = ()
    """Element types of initializers that the runtime cannot read, even if no node reads the initializer."""
    raw_types: tuple[IntegerStoredName, ...] = ()
    """Element types of constants that the runtime reads only from raw bytes, not from `int32_data` and other
    fields: it refuses them, or reads other values."""
    reads_empty_constants: bool = True
    """Whether constants without elements keep their shapes; otherwise they become scalars."""
    needs_names: tuple[str, ...] = ()
    """Operators with nodes that need names: an optimizer derives names of new nodes from these names, and the
    runtime refuses the model if two new names are equal."""
    may_count_omitted_inputs: bool = False
    """Whether the runtime refuses some nodes with trailing omitted inputs, which it counts as present."""
    refuses_sizes_after: tuple[str, ...] = ()
    """Operators with results whose sizes may depend on values and are known only after the node has run.

    The runtime infers shapes, and refuses other declarations of results: `value_info` must declare neither
    sizes of the results of these operators and of later nodes, nor names of sizes that no input has."""
    constant_types: tuple[ElementName, ...] = ()
    """Element types in which the runtime refuses initializers that callers can override."""
    schemas: dict[str, SchemaDifference] = field(default_factory=dict)
    """Differences of schemas from the definitions, by operator; an empty entry removes an inherited one."""

    @property
    def name(self) -> str:
        """Product and version, such as `onnxruntime-1.31.1`."""
        return f"{self.runtime}-{self.version}"

    def newest_import(self, domain: str) -> int | None:
        """Return the newest opset of a domain that a model may import; `None` if any opset is accepted."""
        newest = self.opsets.get(domain, self.imports.get(domain))
        return self.opsets[newest] if isinstance(newest, str) else newest

    def find_kernel(
        self, operator: OperatorId, types: Mapping[str, str], *, inserts_casts: bool = True
    ) -> Kernel | None:
        """Return the kernel for an operator version and types, see `kernel`; `None` if it is missing."""
        version = operator.since_version
        if version > self.opsets.get(operator.domain, version):
            return None
        found = [each for each in self._kernels_of(operator) if each.implements(version)]
        kernel = next((each for each in found if each.accepts(types)), None)
        if kernel is None and found and inserts_casts and self.computes_in:
            computed = {name: self._computed_type(each) for name, each in types.items()}
            kernel = next((each for each in found if each.accepts(computed)), None)
        return kernel

    def kernel(
        self, operator: OperatorId, types: Mapping[str, str], *, inserts_casts: bool = True
    ) -> Support:
        """Return the kernel for an operator version and types, or the reason why it is missing.

        Args:
            operator: the operator version that is in effect at the opset of the model.
            types: types such as `tensor(float)` by type variable or name of a parameter. Missing types
                are accepted.
            inserts_casts: whether types without a kernel may be cast to the types in `computes_in`.
        """
        if kernel := self.find_kernel(operator, types, inserts_casts=inserts_casts):
            notes = (*self.restrictions_of(operator), *self.errors_of(operator))
            return Support(kernel, caveats=tuple(note.reason for note in notes))
        kernels = self._kernels_of(operator)
        newest = self.opsets.get(operator.domain, operator.since_version if kernels else None)
        if newest is None:
            reason = f"{self.name} does not support the domain {operator.domain}"
            return Support(None, reason, f"it supports the domains {', '.join(self.opsets)}")
        if operator.since_version > newest:
            reason = f"{self.name} supports {operator.domain} up to opset {newest}, not {operator}"
            return Support(None, reason, f"convert the model to opset {newest} or older")
        found = [each for each in kernels if each.implements(operator.since_version)]
        if found:
            used = {name for each in found for name in each.types}
            given_text = ", ".join(
                f"{name}: {short_type(each)}" for name, each in types.items() if name in used
            )
            reason = f"{self.name} has no kernel of {operator} for {given_text}"
            return Support(None, reason, f"it has {'; or '.join(map(types_text, found))}")
        if kernels:
            spans = ", ".join(dict.fromkeys(versions_text(each.versions) for each in kernels))
            remedy = f"convert to an opset with a version that has kernels: {spans}"
            return Support(None, f"{self.name} has no kernel of {operator}", remedy)
        return Support(None, f"{self.name} has no kernel of {operator.domain}.{operator.op_type}")

    def _kernels_of(self, operator: OperatorId) -> tuple[Kernel, ...]:
        name = f"{operator.domain}.{operator.op_type}"
        return *self.operators.get(name, ()), *self.internal_operators.get(name, ())

    @property
    def notes(self) -> dict[str, str]:
        """Restrictions by operator, and wrong results by operator version, as text."""
        entries = {**self.restrictions, **self.wrong}.items()
        return {name: "; ".join(each.reason for each in _listed(entry)) for name, entry in entries}

    def restrictions_of(self, operator: OperatorId) -> tuple[Restriction, ...]:
        """Return the restrictions of an operator version."""
        entry = self.restrictions.get(f"{operator.domain}.{operator.op_type}")
        if entry is None:  # shortcut, because most operators have no restrictions
            return ()
        return tuple(each for each in _listed(entry) if each.concerns(operator.since_version))

    def errors_of(self, operator: OperatorId) -> tuple[Restriction, ...]:
        """Return the known wrong results of an operator version, as restrictions with conditions on nodes."""
        return _listed(self.wrong.get(str(operator), ()))

    def _computed_type(self, given: str) -> str:
        wider = self.computes_in.get(short_type(given))
        return f"tensor({wider})" if wider else given


def versions_text(versions: tuple[int, int]) -> str:
    """Return a range of versions as text: `13`, or `6 to 12`."""
    first, last = versions
    return str(first) if first == last else f"{first} to {last}"


def types_text(kernel: Kernel) -> str:
    """Return the types of a kernel as text: `T1: float double, T2: int64`."""
    return ", ".join(f"{name}: {' '.join(map(short_type, each))}" for name, each in kernel.types.items())


def _listed(entry: str | tuple[Restriction, ...]) -> tuple[Restriction, ...]:
    return _described(entry) if isinstance(entry, str) else entry


@cache
def _described(reason: str) -> tuple[Restriction, ...]:
    """Return one restriction without conditions; cached, because equal reasons are read often."""
    return (Restriction(reason=reason),)


class SchemaDifference(Record):
    """Difference between a runtime's schema of an operator and the definition of the operator.

    Some releases of a runtime change operators without a new version, so nodes of one version may be valid in
    some releases only.
    """

    inputs: tuple[Count, Count] | None = None
    """The smallest and the largest number of inputs."""
    outputs: tuple[Count, Count] | None = None
    """The smallest and the largest number of outputs."""
    lacks: tuple[str, ...] = ()
    """Attributes of the definition that the schema does not have."""
    adds: tuple[str, ...] = ()
    """Attributes of the schema that the definition does not have."""
    requires: tuple[str, ...] = ()
    """Attributes and inputs that are required in the schema and optional in the definition."""
    types: dict[str, Types] = field(default_factory=dict)
    """All types in the schema, for type variables or parameters with other types in the definition."""
