"""Run reference functions, and models with or without nodes of the proposed operator."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from opshift.analysis.verification.numpy_types import Array, dtype_of
from opshift.analysis.verification.runtimes import CannotRun, RuntimeModel, openers
from opshift.model.attributes import read_attribute
from opshift.model.errors import OpshiftError, Place
from opshift.model.extensions import error_line
from opshift.model.messages import ModelProto, NodeProto
from opshift.model.node import Tensor
from opshift.model.operator_ids import OperatorId, canonical_domain
from opshift.model.process_state import WARNINGS_IGNORED, Terminated
from opshift.model.tensors import read_tensor
from opshift.proposals.content.findings import InvalidProposal
from opshift.proposals.content.staged_registry import reference_file
from opshift.proposals.evidence.cases import Arrays
from opshift.registry.attribute_values import stored_value
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry


class ReferenceFails(OpshiftError):
    """Error for a reference that raises an exception or returns invalid outputs."""


@dataclass(frozen=True)
class Reference:
    """Python function that computes the outputs of an operator version."""

    version: OperatorVersion
    function: Callable[..., Any]


class References:
    """Cache of references for operators that no runtime supports, from the proposal and the tree."""

    def __init__(self, registry: Registry, proposed: Reference) -> None:
        self.registry = registry
        """The registry, including the proposed operator."""
        self._found: dict[OperatorId, Reference | None] = {proposed.version.id: proposed}

    def of_version(self, version: OperatorVersion) -> Reference | None:
        """Return the reference of an operator version, or `None`; raise CannotRun if it cannot be loaded."""
        if version.id not in self._found:
            files = (reference_file(tree, version) for tree in self.registry.folders)
            path = next((each for each in files if each.is_file()), None)
            try:
                self._found[version.id] = Reference(version, load_reference(path)) if path else None
            except InvalidProposal as error:
                raise CannotRun(f"{error.place}: {error.reason}") from error
        return self._found[version.id]

    def of_node(self, node: NodeProto, model: ModelProto) -> Reference | None:
        """Return the reference of a node's operator version, or `None`."""
        version = self._version_of_node(node, model)
        return self.of_version(version) if version else None

    def missing_files(self, model: ModelProto) -> list[str]:
        """Return the paths of missing references of private operators, which no runtime supports."""
        versions = filter(None, (self._version_of_node(node, model) for node in model.graph.node))
        private = (each for each in versions if self.registry.releases.newest_opset(each.domain) is None)
        tree = self.registry.folders[-1]
        return sorted({str(reference_file(tree, each)) for each in private if not self.of_version(each)})

    def _version_of_node(self, node: NodeProto, model: ModelProto) -> OperatorVersion | None:
        domain = canonical_domain(node.domain)
        opset = next(each.version for each in model.opset_import if canonical_domain(each.domain) == domain)
        return self.registry.known_at(node.op_type, opset, domain)


def run_reference(reference: Reference, inputs: Arrays, given: Mapping[str, object]) -> Arrays:
    """Return the outputs of the reference; attributes not in `given` get their defaults, or `None`.

    The reference gets attributes as a model stores them, so numbers of type FLOAT are rounded to float32.

    Raises:
        ReferenceFails: the reference raises an exception, or returns a wrong number of outputs or values
            that are not arrays.
    """
    declared = reference.version.attributes
    attributes = {
        name: _stored_argument(given.get(name, each.default), each.type) for name, each in declared.items()
    }
    # The reference may modify its inputs, which later runs need unchanged.
    copies = [None if each is None else each.copy() for each in inputs]
    try:
        with np.errstate(all="ignore"), WARNINGS_IGNORED:
            results = reference.function(*copies, **attributes)
    except Terminated:
        raise
    except (Exception, SystemExit) as error:  # the code is arbitrary, and may even call `sys.exit`
        raise ReferenceFails(f"the reference raises {type(error).__name__}: {error}") from error
    outputs = results if isinstance(results, tuple) else (results,)
    low, high = reference.version.min_output, reference.version.max_output
    if not low <= len(outputs) <= high:
        raise ReferenceFails(f"expected {low} to {high} outputs from the reference, got {len(outputs)}")
    for each in outputs:
        if each is not None and not isinstance(each, np.ndarray | np.generic):
            raise ReferenceFails(f"expected an array from the reference, got {type(each).__name__}")
    for formal, each in zip(reference.version.outputs, outputs, strict=False):
        if each is None and formal.option == "single":
            raise ReferenceFails(f"the reference returns None for the output {formal.name!r}")
    return tuple(None if each is None else np.asarray(each) for each in outputs)


def _stored_argument(value: Any, kind: str) -> object:
    """Return an attribute value as a model stores it: floats in float32, bytes as text, lists as tuples."""
    if value is None:
        return None
    values = tuple(map(_decoded_value, value)) if isinstance(value, list | tuple) else _decoded_value(value)
    return stored_value(values, kind)


def run_model(model: ModelProto, feeds: Mapping[str, Array], references: References) -> list[Any]:
    """Return all outputs of a model, computed by onnxruntime or onnx.reference.

    If a node has a reference, nodes run one by one: each with its reference, or else with onnx.reference.

    Raises:
        CannotRun: no installed runtime can run the model.
    """
    missing = references.missing_files(model)
    if missing:
        raise CannotRun(f"no runtime supports it, and a reference is missing: {', '.join(missing)}")
    if any(references.of_node(node, model) for node in model.graph.node):
        return _run_node_by_node(model, feeds, references)
    failure = CannotRun("no runtime is installed", unsupported=True)
    for opened in openers("auto"):
        try:
            return opened(RuntimeModel(model, None), references.registry).run(dict(feeds))
        except CannotRun as error:
            # Report an error in one runtime rather than missing support in another runtime.
            failure = error if failure.unsupported else failure
    raise failure


def _run_node_by_node(model: ModelProto, feeds: Mapping[str, Array], references: References) -> list[object]:
    values: dict[str, Any] = {**feeds, **_initializer_arrays(model)}
    for node in model.graph.node:
        reference = references.of_node(node, model)
        if reference:
            inputs = tuple(values[name] if name else None for name in node.input)
            attributes = {each.name: read_attribute(each) for each in node.attribute}
            try:
                results: Sequence[object] = run_reference(reference, inputs, attributes)
            except ReferenceFails as error:
                raise CannotRun(error.reason) from error
        else:
            results = _run_single_node(model, node, values, references.registry)
        values.update((name, value) for name, value in zip(node.output, results, strict=False) if name)
    return [values[each.name] for each in model.graph.output]


def _run_single_node(
    model: ModelProto, node: NodeProto, values: Mapping[str, object], registry: Registry
) -> list[object]:
    model_of_node = ModelProto(ir_version=model.ir_version)
    model_of_node.opset_import.extend(model.opset_import)
    model_of_node.graph.node.add().CopyFrom(node)
    model_of_node.graph.name = "node"
    for name in dict.fromkeys(filter(None, node.input)):
        model_of_node.graph.input.add(name=name)
    for name in filter(None, node.output):
        model_of_node.graph.output.add(name=name)
    # Use onnx.reference, which accepts values without declared types.
    (opened,) = openers("reference")
    feeds = {each.name: values[each.name] for each in model_of_node.graph.input}
    results = iter(opened(RuntimeModel(model_of_node, None), registry).run(feeds))
    return [next(results) if name else None for name in node.output]


def _initializer_arrays(model: ModelProto) -> dict[str, Array]:
    tensors = ((each.name, read_tensor(each)) for each in model.graph.initializer)
    return {name: _array_of_tensor(tensor) for name, tensor in tensors if tensor is not None}


def _array_of_tensor(tensor: Tensor) -> Array:
    values = [_decoded_value(each) for each in tensor.values]
    return np.asarray(values, dtype_of(tensor.element_type)).reshape(tensor.dims)


def _decoded_value(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def load_reference(path: Path) -> Callable[..., Any]:
    """Return the function `reference` of a `reference.py`.

    Raises:
        InvalidProposal: the file cannot be executed, or does not define the function.
    """
    function: Callable[..., Any] | None = getattr(load_module(path), "reference", None)
    if not callable(function):
        raise InvalidProposal(
            "the file does not define a function named reference",
            place=Place(str(path), 1),
            remedy="define `def reference(X, ..., *, attribute)`: positional inputs, attributes by name",
        )
    return function


def load_module(path: Path) -> ModuleType:
    """Execute a Python file as a standalone module, without adding it to `sys.modules`.

    Raises:
        InvalidProposal: the file is not valid Python, or its execution fails.
    """
    module = ModuleType(f"proposal_{path.stem}")
    module.__file__ = str(path)
    try:
        # Unlike an import, `exec` writes no __pycache__ into the proposal.
        exec(compile(path.read_bytes(), str(path), "exec"), module.__dict__)
    except Terminated:
        raise
    except (Exception, SystemExit) as error:  # the code is arbitrary, and may even call `sys.exit`
        reason = f"the file cannot be executed: {type(error).__name__}: {error}"
        raise InvalidProposal(reason, place=Place(str(path), error_line(error, path))) from error
    return module
