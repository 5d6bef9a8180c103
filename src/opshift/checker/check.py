"""Check a model against the rules of the specification."""

import os
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from opshift.checker.checked_model import CheckedModel, ModelSource, PassedFacts
from opshift.checker.checked_nodes import (
    CheckedAttribute,
    CheckedCall,
    CheckedNode,
    CheckedSparseTensor,
    CheckedTensor,
    CheckedTraining,
    CheckedValue,
    DevicePlacement,
    ExternalTensor,
    InternalTensor,
)
from opshift.checker.checked_values import NewerFeatures, ShapedNode, TypedNode, shape_key
from opshift.checker.containers import CheckedContainer, CheckedFunction, CheckedGraph
from opshift.checker.findings import Finding, IllegalModel, Level
from opshift.checker.rule_table import CheckTarget, rules_for
from opshift.checker.shape_requirements import REQUIREMENTS
from opshift.inference.call_facts import CallSite
from opshift.model.attributes import dense_tensors_in, graphs_in, sparse_tensors_in
from opshift.model.binary_files import is_readable
from opshift.model.errors import InvalidModel, path_argument
from opshift.model.files import BYTES_TYPES, gc_paused, is_text, model_of, read_bytes, reading_onnx_ir
from opshift.model.graphs import MAX_SUBGRAPH_DEPTH, require_limited_lists
from opshift.model.locations import folder_of
from opshift.model.messages import AttributeProto, TrainingInfoProto, ValueInfoProto
from opshift.model.node import Node
from opshift.model.offloaded_tensors import EXTERNAL, raw_size, with_payload
from opshift.model.operator_ids import called_function, canonical_domain
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry, registry_or_default

NEWEST_FIELD = "configuration"
"""Newest field of ModelProto; a message class of an older `onnx` keeps this field as an unknown field."""


CachedTarget = TypeVar("CachedTarget", CheckedValue, CheckedTensor)

MAX_ERRORS = 20_000
"""The check stops after this number of errors: a longer list would take too long to compute and to read."""

UNREADABLE_RULES = frozenset(("graph.depth", "model.text"))
"""Rules whose violations prevent the search for IR features, which must read the whole model."""


@reading_onnx_ir
@gc_paused
def check(
    model: Any, *, registry: Registry | None = None, folder: str | os.PathLike[str] | None = None
) -> tuple[Finding, ...]:
    """Check a model against the rules of ONNX's IR specification and the definitions of its operators.

    The time is proportional to the number of nodes. Elements of weights are not read, except sparse tensors,
    strings, the unused bits of 6-bit types, and external data with a checksum.

    Args:
        model: a ModelProto of opshift or `onnx`, a serialized model, a path, or a file object. The model is
            not modified.
        registry: the operator definitions; by default, `default_registry()`.
        folder: the folder of the model's external data; for a path, by default the folder of the file.
            Without a folder, external data files are not checked.

    Returns:
        The findings, in the order of the model; a legal model has no findings of level `error`.

    Raises:
        InvalidModel: `model` is not a model, bytes, a path or a file object.
    """
    walk = Walk()
    try:
        proto, _ = model_of(model)
    except InvalidModel as error:
        if not (isinstance(model, (str, os.PathLike, *BYTES_TYPES)) or is_readable(model)):
            raise
        walk.check(ModelSource(str(error.place) or "model", error.reason, error.remedy))
        return tuple(walk.findings)
    if not hasattr(proto, NEWEST_FIELD):
        # Rules read fields that message classes of an older `onnx` lack: parse with opshift's classes.
        proto = read_bytes(proto.SerializeToString())
    data_folder = path_argument("folder", folder) if folder is not None else folder_of(model)
    try:
        require_limited_lists(proto, "model")
        walk.run(CheckedModel(proto, registry_or_default(registry), data_folder))
    except TooManyErrors:
        walk.check(ModelSource("model", error_count=MAX_ERRORS))
    except (UnicodeDecodeError, TypeError, AttributeError, InvalidModel) as error:
        # For a string field that is not UTF-8, some protobuf releases raise an error, others return bytes.
        if isinstance(error, UnicodeDecodeError) or not is_text(proto):
            walk.check(ModelSource("model", is_text=False))
        elif isinstance(error, InvalidModel):
            walk.check(ModelSource(str(error.place) or "model", error.reason, error.remedy))
        else:
            raise
    return tuple(walk.findings)


def require_legal(model: Any, registry: Registry | None = None, when: str = "") -> None:
    """Raise IllegalModel if `check` finds errors; `when` is the stage, for the message."""
    errors = [finding for finding in check(model, registry=registry) if finding.level is Level.ERROR]
    if errors:
        raise IllegalModel(errors, when)


class TooManyErrors(Exception):
    """The model has `MAX_ERRORS` errors."""


class Walk:
    """Check of one model. Findings of nodes precede those of their graph; findings of the model are last."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self._error_count = 0

    def run(self, model: CheckedModel) -> None:
        """Check the graphs, training information and functions of a model, then the model itself."""
        main = CheckedGraph(model.proto.graph, "graph", model, model.opsets, is_top=True)
        if model.proto.HasField("graph"):
            self._check_graph(main)
        for index, info in enumerate(model.proto.training_info):
            self._check_training(info, index, main)
        self._check_functions(model)
        self.check(model)
        if not any(finding.rule in UNREADABLE_RULES for finding in self.findings):
            self.check(NewerFeatures(model))

    def _check_functions(self, model: CheckedModel) -> None:
        """Check functions in `function_order`, and sort the findings in model order."""
        start, parts = len(self.findings), dict[int, list[Finding]]()
        for position in model.function_order:
            first = len(self.findings)
            proto = model.proto.functions[position]
            function = CheckedFunction(proto, position, model)
            self._check_values(proto.value_info, function, "value")
            for attribute in proto.attribute_proto:
                self._check_tensors_in(attribute, function, f"default of attribute {attribute.name!r}, ")
            self._check_nodes(function)
            self.check(function)
            parts[position] = self.findings[first:]
        self.findings[start:] = [found for position in sorted(parts) for found in parts[position]]

    def check(self, target: CheckTarget, kind: type | None = None) -> bool:
        """Apply the rules for `kind`, by default the class of `target`; return whether no error is found."""
        is_valid = True
        for rule in rules_for(kind or target.__class__):
            for problem in rule.check(target):
                self.findings.append(rule.to_finding(target, problem))
                if rule.level is Level.ERROR:
                    is_valid = False
                    self._error_count += 1
                    if self._error_count == MAX_ERRORS:
                        raise TooManyErrors
        return is_valid

    def _check_graph(self, graph: CheckedGraph) -> None:
        proto = graph.proto
        graph.model.graph_names.append(proto.name)
        for role, values in (("input", proto.input), ("value", proto.value_info), ("output", proto.output)):
            self._check_values(values, graph, role)
        for tensor in proto.initializer:
            self._check_tensor(CheckedTensor(tensor, graph, "initializer", graph.model))
        for sparse in proto.sparse_initializer:
            self._check_sparse_tensor(CheckedSparseTensor(sparse, graph, "sparse initializer", graph.model))
        if graph.depth <= MAX_SUBGRAPH_DEPTH:
            self._check_nodes(graph)
        self.check(graph)

    def _check_training(self, info: TrainingInfoProto, index: int, main: CheckedGraph) -> None:
        graphs: dict[str, CheckedGraph] = {}
        training = CheckedTraining(info, index, main, graphs)
        for part in ("initialization", "algorithm"):
            if info.HasField(part):
                graph, place = getattr(info, part), f"{training.location}.{part}"
                # The main graph is the parent: training graphs can read its values.
                graphs[part] = CheckedGraph(graph, place, main.model, main.opsets, main, is_top=True)
                self._check_graph(graphs[part])
        self.check(training)

    def _check_values(self, values: Iterable[ValueInfoProto], container: CheckedContainer, role: str) -> None:
        for value in values:
            self._check_cached(CheckedValue(value, container, role), container.model, self.check)

    def _check_nodes(self, container: CheckedContainer) -> None:
        for record, proto in zip(container.scope.node_records, container.proto.node, strict=True):
            node = CheckedCall(record, proto, container)
            is_valid = node.is_regular or self.check(node, CheckedNode)
            if not is_valid:
                container.mark_invalid()
            # Names of an invalid node may not be text, which a node key requires.
            key = node.key if is_valid else None
            passed = container.passed_nodes.get(key) if key is not None else None
            if passed is None and self._check_call(node) and key is not None:
                passed = container.passed_nodes[key] = PassedFacts()
            # After the checks of the node and its subgraphs, because these cannot read the node's outputs.
            _pass_node(container, node)
            if proto.device_configurations:
                self.check(DevicePlacement(record, proto, container))
            if node.operator is None:
                _count_undefined(node)
            elif not container.is_invalid:
                self._check_facts(node, node.operator, passed)

    def _check_call(self, node: CheckedCall) -> bool:
        """Check a node and its attributes; return whether nodes with the same key have no findings either."""
        container, count = node.container, len(self.findings)
        if not self.check(node):
            container.mark_invalid()
        attributes = [CheckedAttribute(each, node) for each in node.proto.attribute]
        for attribute in attributes:
            self._check_attribute(attribute)
        # Do not cache nodes with subgraphs or references: their findings depend on the place of the node.
        is_cacheable = not any(each.proto.ref_attr_name or each.holds_graphs for each in attributes)
        return is_cacheable and len(self.findings) == count

    def _check_facts(self, node: CheckedNode, operator: OperatorVersion, passed: PassedFacts | None) -> None:
        """Check the types and shapes of a node's values, unless `passed` contains them."""
        element_type = node.container.scope.element_type
        types = tuple([element_type(name) if name else None for name in node.inputs + node.outputs])
        if passed is None or types not in passed.types:
            is_valid = self._passes(TypedNode(node, operator, types))
            if passed is not None and is_valid:
                passed.types.add(types)
        if operator.axes or operator.requires or operator.shape in REQUIREMENTS:
            key = shape_key(node, passed.constants) if passed is not None else None
            if passed is None or key not in passed.shapes:
                shaped = ShapedNode(node, operator)
                is_valid = self._passes(shaped)
                if passed is not None and is_valid and shaped.has_complete_key:
                    passed.add_shapes(key, shaped.constants)

    def _passes(self, target: CheckTarget) -> bool:
        """Apply the rules for an object; return whether they add no findings."""
        count = len(self.findings)
        self.check(target)
        return len(self.findings) == count

    def _check_attribute(self, attribute: CheckedAttribute) -> None:
        node, outer = attribute.node.proto, attribute.node.container
        if not self.check(attribute):
            outer.mark_invalid()
        if attribute.is_plain:
            return
        self._check_tensors_in(attribute.proto, attribute)
        for proto in graphs_in(attribute.proto):
            place = f"{outer.location} / {node.name or node.op_type}.{attribute.proto.name}"
            graph = CheckedGraph(proto, place, outer.model, outer.opsets, outer, owner=node)
            self._check_graph(graph)
            outer.read_names |= graph.read_names

    def _check_tensors_in(
        self, attribute: AttributeProto, owner: CheckedAttribute | CheckedContainer, prefix: str = ""
    ) -> None:
        model = owner.model if isinstance(owner, CheckedContainer) else owner.node.container.model
        for tensor in dense_tensors_in(attribute):
            self._check_tensor(CheckedTensor(tensor, owner, f"{prefix}tensor", model))
        for sparse in sparse_tensors_in(attribute):
            self._check_sparse_tensor(CheckedSparseTensor(sparse, owner, f"{prefix}sparse tensor", model))

    def _check_tensor(self, tensor: CheckedTensor) -> None:
        self._check_cached(tensor, tensor.model, self._check_elements)

    def _check_cached(
        self, target: CachedTarget, model: CheckedModel, check: Callable[[CachedTarget], object]
    ) -> None:
        """Check a value or a tensor, unless one with the same cache key has no findings."""
        key = target.cache_key
        if key in model.passed_keys:
            return
        count = len(self.findings)
        check(target)
        if key is not None and len(self.findings) == count:
            model.passed_keys.add(key)

    def _check_elements(self, tensor: CheckedTensor) -> None:
        self.check(tensor)
        located = ExternalTensor if tensor.proto.data_location == EXTERNAL else InternalTensor
        # Rules read only the size of `raw_data`, which is known without its payload.
        proto = tensor.proto if raw_size(tensor.proto) is not None else with_payload(tensor.proto)
        self.check(located(proto, tensor.owner, tensor.role, tensor.model))

    def _check_sparse_tensor(self, sparse: CheckedSparseTensor) -> None:
        self.check(sparse)
        for part in ("values", "indices"):
            if sparse.proto.HasField(part):
                self._check_tensor(CheckedTensor(getattr(sparse.proto, part), sparse, part, sparse.model))


def _count_undefined(node: CheckedNode) -> None:
    """Count a node without a definition of its operator, in an imported domain that may lack definitions."""
    domain = canonical_domain(node.proto.domain)
    if node.function is None and node.error is None and domain in node.container.opsets:
        registry, opset = node.container.model.registry, node.container.opsets[domain]
        if registry.is_undefined(node.proto.op_type, opset, domain):
            node.container.model.undefined_operators[domain][node.proto.op_type] += 1


def _pass_node(container: CheckedContainer, node: CheckedNode) -> None:
    """Make the outputs of a node visible to the following nodes, and record its inputs and its call."""
    container.read_names.update(node.inputs)
    container.scope.defined_names.update(node.outputs)
    if node.function is not None:
        key, model = called_function(node.proto), container.model
        model.call_sites[key].append(CallSite(Node.from_proto(node.proto), node.proto, container.scope))
        if not container.may_not_run:
            model.certain_calls.add(key)
