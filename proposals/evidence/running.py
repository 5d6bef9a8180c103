"""Run a reference, a model in a runtime, and a model that holds the proposed operator."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from opshift.adapters.node import Node, Tensor
from opshift.adapters.tensors import read_tensor
from opshift.converter.verification.arrays import Array, dtype_of
from opshift.converter.verification.runtimes import CannotRun, Source, openers
from opshift.proposals.evidence.code import Reference
from opshift.registry.catalogue import Registry
from opshift.registry.errors import OpshiftError
from opshift.registry.messages import ModelProto
from opshift.registry.models import OperatorVersion
from opshift.registry.names import canonical_domain

Outputs = tuple[Array | None, ...]


class ReferenceFails(OpshiftError):
    """The reference raises something, or gives what no operator can give."""


@dataclass(frozen=True)
class Proposed:
    """An operator that no runtime has, and the reference that computes it."""

    version: OperatorVersion
    reference: Reference


def run_reference(proposed: Proposed, inputs: tuple[Array | None, ...], stated: Mapping[str, Any]) -> Outputs:
    """What the reference gives: inputs by position, attributes by name, `None` for one that is left open.

    Raises:
        ReferenceFails: it raises something, or gives no arrays.
    """
    declared = proposed.version.attributes
    attributes = {name: stated.get(name, each.default) for name, each in declared.items()}
    copies = [None if each is None else each.copy() for each in inputs]
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            found = proposed.reference(*copies, **attributes)
    except (Exception, SystemExit) as error:  # whatever it raises
        raise ReferenceFails(f"the reference raises {type(error).__name__}: {error}") from error
    outputs = found if isinstance(found, tuple) else (found,)
    low, high = proposed.version.min_output, proposed.version.max_output
    if not low <= len(outputs) <= high:
        raise ReferenceFails(f"the reference gives {len(outputs)} outputs, not {low} to {high}")
    for each in outputs:
        if each is not None and not isinstance(each, np.ndarray | np.generic):
            raise ReferenceFails(f"the reference gives a {type(each).__name__}, not an array")
    return tuple(None if each is None else np.asarray(each) for each in outputs)


def run_model(
    model: Any, feeds: Mapping[str, Array], registry: Registry, proposed: Proposed | None
) -> list[Any]:
    """All outputs of a model, in onnxruntime or onnx.reference.

    Where it holds nodes of `proposed`, these run in the reference, and the rest node by node.

    Raises:
        CannotRun: no runtime takes it.
    """
    if proposed is not None and any(_is_proposed(node, model, proposed) for node in model.graph.node):
        return _node_by_node(model, feeds, registry, proposed)
    refused = CannotRun("there is no runtime", unsupported=True)
    for opened in openers("auto"):
        try:
            return opened(Source(model, None), registry).run(dict(feeds))
        except CannotRun as error:
            refused = error if refused.unsupported else refused
    raise refused


def _is_proposed(node: Any, model: Any, proposed: Proposed) -> bool:
    """Whether a node is of the proposed version, and not of one before it."""
    version = proposed.version
    if (canonical_domain(node.domain), node.op_type) != (version.domain, version.name):
        return False
    opsets = {canonical_domain(each.domain): each.version for each in model.opset_import}
    return bool(opsets[version.domain] >= version.since_version)


def _node_by_node(
    model: Any, feeds: Mapping[str, Array], registry: Registry, proposed: Proposed
) -> list[Any]:
    values: dict[str, Any] = {**feeds, **_initializers(model)}
    for node in model.graph.node:
        if _is_proposed(node, model, proposed):
            inputs = tuple(values[name] if name else None for name in node.input)
            try:
                found: Any = run_reference(proposed, inputs, _stated(node))
            except ReferenceFails as error:
                raise CannotRun(error.reason) from error
        else:
            found = _alone(model, node, values, registry)
        values.update((name, value) for name, value in zip(node.output, found, strict=False) if name)
    return [values[each.name] for each in model.graph.output]


def _alone(model: Any, node: Any, values: Mapping[str, Any], registry: Registry) -> list[Any]:
    alone = ModelProto(ir_version=model.ir_version)
    alone.opset_import.extend(model.opset_import)
    alone.graph.node.add().CopyFrom(node)
    alone.graph.name = "node"
    for name in dict.fromkeys(filter(None, node.input)):
        alone.graph.input.add(name=name)
    for name in filter(None, node.output):
        alone.graph.output.add(name=name)
    (opened,) = openers("reference")
    feeds = {each.name: values[each.name] for each in alone.graph.input}
    found = iter(opened(Source(alone, None), registry).run(feeds))
    return [next(found) if name else None for name in node.output]


def _initializers(model: Any) -> dict[str, Array]:
    held = ((each.name, read_tensor(each)) for each in model.graph.initializer)
    return {name: _array(tensor) for name, tensor in held if tensor is not None}


def _array(tensor: Tensor) -> Array:
    return np.asarray([_text(each) for each in tensor.values], dtype_of(tensor.element_type)).reshape(
        tensor.dims
    )


def _stated(node: Any) -> dict[str, Any]:
    view = Node.of(node)
    return {name: _text(view.attribute(name)) for name in view.attributes}


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value
