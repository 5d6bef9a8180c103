"""Summary of a model: opsets, node counts, inputs, outputs, functions and operators."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from opshift.cli.counting import Census, Use
from opshift.converter.errors import InvalidModel
from opshift.converter.opsets import opset_imports
from opshift.converter.types import type_text
from opshift.registry.catalogue import Registry
from opshift.registry.names import canonical_domain


@dataclass(frozen=True)
class Value:
    """Graph input or output; `type` and `shape` are empty if the model does not declare them."""

    name: str
    type: str
    shape: str


@dataclass(frozen=True)
class Contents:
    """Summary of a model."""

    ir_version: int
    producer: str
    opsets: dict[str, int]
    nodes: dict[str, int]
    """Number of nodes in the main graph, in subgraphs, in functions and in training graphs."""
    initializers: int
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    functions: tuple[str, ...]
    operators: tuple[Use, ...]

    @property
    def unresolved(self) -> int:
        """Number of nodes whose operator cannot be resolved."""
        return sum(use.count for use in self.operators if use.kind == "unresolved")

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self)


def contents_of(model: Any, registry: Registry) -> Contents:
    """Count the nodes of a model and resolve their operators.

    Raises:
        InvalidModel: the model has no graph, or its opset imports are contradictory.
    """
    if not model.HasField("graph"):
        raise InvalidModel("not an ONNX model: it has no graph", remedy="check that it is the right file")
    opsets = opset_imports(model.opset_import, model.ir_version)
    functions = frozenset((each.domain, each.name, each.overload) for each in model.functions)
    census = Census(registry, functions)
    graph, *subgraphs = census.count(model.graph, opsets)
    training = [
        sum(census.count(part, opsets))
        for info in model.training_info
        for part in (info.initialization, info.algorithm)
    ]
    bodies = [
        sum(census.count(each, opset_imports(each.opset_import or model.opset_import, model.ir_version)))
        for each in model.functions
    ]
    # an initializer may be a graph input as well, and must be one up to IR version 3
    initialized = {each.name for each in model.graph.initializer}
    return Contents(
        model.ir_version,
        f"{model.producer_name} {model.producer_version}".strip(),
        opsets,
        {"graph": graph, "subgraphs": sum(subgraphs), "functions": sum(bodies), "training": sum(training)},
        len(model.graph.initializer) + len(model.graph.sparse_initializer),
        tuple(_value(each) for each in model.graph.input if each.name not in initialized),
        tuple(map(_value, model.graph.output)),
        tuple(f"{canonical_domain(each.domain)}.{each.name}" for each in model.functions),
        census.uses(),
    )


def _value(value: Any) -> Value:
    return Value(value.name, type_text(value.type) or "", _shape(value.type))


def _shape(kind: Any) -> str:
    """Format the shape of a tensor type as `[N, 3, ?]`; empty for other types and unknown shapes."""
    which = kind.WhichOneof("value")
    if which not in ("tensor_type", "sparse_tensor_type") or not getattr(kind, which).HasField("shape"):
        return ""
    dims = getattr(kind, which).shape.dim
    dimensions = (each.dim_value if each.HasField("dim_value") else each.dim_param or "?" for each in dims)
    return f"[{', '.join(map(str, dimensions))}]"
