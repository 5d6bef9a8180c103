"""Rewrite cache: nodes that differ only in value names share one rewrite.

A step is a pure function of its node and of the facts that the step queries. Except for value names, the
result therefore holds for every node with the same node key and the same answers to the queries: in the same
model, and in later models that are converted to the same opsets.
"""

from collections.abc import Iterable
from functools import lru_cache
from itertools import compress, starmap

from opshift.model.errors import CannotConvert, UnknownShape
from opshift.model.graphs import NodeRecord
from opshift.model.messages import NodeProto
from opshift.model.node import AttributeTrace, Node, Tensor, TracedNode
from opshift.model.node_key import (
    NodeKey,
    arity_of,
    has_small_tensors,
    is_known,
    is_small_key,
    key_of_serialized,
    serialize_without_names,
)
from opshift.registry.steps import Allow
from opshift.rewriting.attribute_moves import (
    MovedValues,
    MovedValuesTable,
    signature,
    with_moved_values,
)
from opshift.rewriting.cached_rewrite import (
    CachedRefusal,
    CachedRewrite,
    CacheHit,
    Candidates,
    NodeRewrite,
    ValueNames,
    questions_and_answers,
)
from opshift.rewriting.fact_recorder import SHAPE_PROPAGATION_OPSET, FactRecorder
from opshift.rewriting.result import ComputedRewrite, names_in, values_read
from opshift.rewriting.rewrite_node import rewrite_node
from opshift.rewriting.routes import Router
from opshift.rewriting.workspace import ConstantKey, Workspace

MAX_REWRITES_PER_KEY = 512
"""Maximum number of cached rewrites per node key; bounds memory."""

MIN_STORED = 64
"""Number of rewrites per operator that are stored even if nodes rarely reuse stored rewrites."""

MAX_SHARED_KEYS, MAX_SHARED_REWRITES = 512, 16
"""Limits of the cache that models share: number of node keys, and number of rewrites per key."""


class _SharedRewrites:
    """Rewrites shared between models, and whether attributes of an operator are cheap to compare."""

    def __init__(self) -> None:
        self.rewrites: dict[tuple[int, NodeKey], tuple[CachedRewrite, ...]] = {}
        self.has_plain_attributes: dict[tuple[str, str, int], bool] = {}
        self.moved_values: dict[tuple[object, ...], MovedValuesTable] = {}
        """Rewrites for nodes that differ in some attribute values, by `signature`."""
        self.moves_values: set[tuple[str, str, int]] = set()
        """Operators with rewrites in `moved_values`, as domain, op_type and opset."""

    def add(self, key: NodeKey, source: int, cached: CachedRewrite) -> None:
        # Limits the memory, because this cache outlives the model; removed rewrites are computed again.
        if len(self.rewrites) >= MAX_SHARED_KEYS:
            self.rewrites.clear()
        known = self.rewrites.get((source, key), ())
        if len(known) < MAX_SHARED_REWRITES and is_small_key(key) and cached.is_small:
            self.rewrites[source, key] = (*known, cached)

    def add_moved_values(
        self,
        record: NodeRecord,
        proto: NodeProto,
        source: int,
        found: MovedValues,
        open_names: frozenset[str],
    ) -> None:
        if not found.rewrite.is_small:
            return
        if len(self.moved_values) >= MAX_SHARED_KEYS:
            self.moved_values.clear()
        attributes = proto.attribute[:]
        key = signature(record, source, attributes)
        self.moved_values.setdefault(key, MovedValuesTable()).add(attributes, open_names, found)
        self.moves_values.add((record[1], record[2], source))


@lru_cache(maxsize=64)
def _shared_rewrites(router: Router, allowed: frozenset[Allow]) -> _SharedRewrites:
    """Return the cache that all conversions with this router and these allowances share."""
    return _SharedRewrites()


class RewriteCache:
    """Cache of the rewrites of the nodes of one graph or function, and of the rewrites that models share."""

    def __init__(self, workspace: Workspace, router: Router) -> None:
        self._workspace = workspace
        self._scope = workspace.scope
        self._router = router
        self._shared = _shared_rewrites(router, workspace.allowances.allowed)
        self._rewrites: dict[NodeKey, Candidates[CachedRewrite]] = {}
        self._constant_names: dict[CachedRewrite, ValueNames] = {}
        self._counts: dict[tuple[str, str], list[int]] = {}
        """Number of cache hits, and number of rewrites computed to be stored, by domain and op_type."""
        self._moved: dict[object, tuple[CachedRewrite, ValueNames]] = {}
        """Results of `_find_shared_rewrite`, by serialized node without names, and arity."""
        self._refusals: dict[NodeKey, Candidates[CachedRefusal]] = {}
        """Refusals of nodes, by node key and by the answers that the refusals depend on."""
        self._has_plain_nodes = workspace.scope.has_plain_nodes
        self._node_keys = workspace.scope.node_keys
        self.unread_inputs: set[str] = set()
        """Inputs of rewritten nodes that the replacing nodes do not read."""

    def rewrite(self, record: NodeRecord, proto: NodeProto, source: int) -> NodeRewrite:
        """Return the cached rewrite of a node, or rewrite the node and cache the result.

        `source` is the opset of the node's domain. Raises the same errors as `rewrite_node`.
        """
        # Outside of functions, a cached rewrite needs no Node, only the NodeProto.
        node = None if self._has_plain_nodes else self._scope.node_of(record)
        position, domain, op_type, inputs, outputs = record
        is_cacheable = self._shared.has_plain_attributes.get((domain, op_type, source))
        if is_cacheable is None:
            is_cacheable = self._is_cacheable(domain, op_type, source)
        # No cache for a Node with attributes or inputs from calls: the key describes only the NodeProto.
        if not (is_cacheable or has_small_tensors(proto)) or (node is not None and not node.is_original):
            node = node or self._scope.node_of(record)
            result = rewrite_node(node, source, self._scope, self._workspace, self._router)
            return self._with_values_kept(result)
        names = inputs + outputs
        key = self._node_keys.get(position)
        if key is None:
            remainder = serialize_without_names(proto, names)
            if (
                (domain, op_type, source) in self._shared.moves_values
                and self._has_plain_nodes
                and not is_known(remainder)
                and (moved := self._find_with_moved_values(record, proto, source, remainder)) is not None
            ):
                return moved
            key = key_of_serialized(record, proto, remainder)
            if self._node_keys:  # inference caches keys of this graph, and probably needs this key, too
                self._node_keys[position] = key
        rewrites = self._rewrites.get(key)
        if rewrites is None:
            rewrites = self._rewrites[key] = Candidates()
            for shared in self._shared.rewrites.get((source, key), ()):
                rewrites.add(shared.questions, shared.answers, shared)
        counts = self._counts.setdefault((domain, op_type), [0, 0])
        if cached := rewrites.find(names, self._scope):
            counts[0] += 1
            return self._hit(record, cached, names, self._constants_of(cached))
        self._raise_known_refusal(key, names)
        hits, stored = counts
        if stored > MIN_STORED and hits < stored:
            # Do not store: nodes of this operator rarely repeat, and storing takes as long as rewriting.
            node = node or self._scope.node_of(record)
            result = rewrite_node(node, source, self._scope, self._workspace, self._router)
            return self._with_values_kept(result)
        counts[1] += 1
        return self._rewrite_and_store(record, node or self._scope.node_of(record), key, source)

    def _find_with_moved_values(
        self, record: NodeRecord, proto: NodeProto, source: int, remainder: bytes | None
    ) -> NodeRewrite | None:
        """Return a rewrite cached for nodes that differ in attribute values moved to constants, or `None`."""
        _, _, _, inputs, outputs = record
        names = inputs + outputs
        key = remainder, arity_of(inputs, outputs)
        found = self._moved.get(key)
        if found is None or not found[0].matches(names, self._scope):
            found = self._find_shared_rewrite(record, proto, source, names)
            if found is None:
                return None
            # `None` (for long or non-ASCII names) does not identify the node.
            if remainder:
                self._moved[key] = found
        cached, constants = found
        return self._hit(record, cached, names, constants)

    def _find_shared_rewrite(
        self, record: NodeRecord, proto: NodeProto, source: int, names: ValueNames
    ) -> tuple[CachedRewrite, ValueNames] | None:
        """Return a shared rewrite for a node, and the names of its constants followed by the empty name.

        Return `None` if no rewrite applies.
        """
        attributes = proto.attribute[:]
        table = self._shared.moved_values.get(signature(record, source, attributes))
        for found in table.find(attributes) if table else ():
            try:
                constants = found.constants(attributes)
            except CannotConvert:
                return None  # the caller runs the steps, which raise this error
            if constants is not None and found.rewrite.matches(names, self._scope):
                return found.rewrite, self._add_constants(found.rewrite, constants)
        return None

    def _hit(
        self, record: NodeRecord, cached: CachedRewrite, names: ValueNames, constants: ValueNames
    ) -> NodeRewrite:
        """Apply a cached rewrite to a node with the value `names`; `constants` names the added constants."""
        fresh = tuple(map(self._workspace.fresh, cached.name_hints)) if cached.name_hints else ()
        for kind, reason in cached.allowed:
            self._workspace.allow(kind, reason)
        if cached.shaped:
            for name, rank in zip(cached.shaped(names), cached.shaped_ranks, strict=True):
                self._workspace.declare_shape(name, rank)
        if cached.unread_inputs:
            self.unread_inputs.update(cached.unread_inputs(names))
        names += fresh + constants
        return (
            cached.rename(self._scope.node_of(record), names)
            if cached.with_graphs
            else CacheHit(cached, names)
        )

    def _raise_known_refusal(self, key: NodeKey, names: ValueNames) -> None:
        refusals = self._refusals.get(key)
        refusal = refusals.find(names, self._scope) if refusals else None
        if refusal:
            raise refusal.for_names(names)

    def _rewrite_and_store(self, record: NodeRecord, node: Node, key: NodeKey, source: int) -> NodeRewrite:
        names = node.inputs + node.outputs
        recorder = FactRecorder(self._workspace, names, len(node.inputs))
        trace = AttributeTrace()
        is_traced = self._has_plain_nodes and bool(node.attributes)
        view = TracedNode(node, node.attributes, trace) if is_traced else node
        try:
            result = rewrite_node(node, source, recorder, recorder, self._router, view)
        except CannotConvert as error:
            self._store_refusal(error, recorder, node, key)
            raise
        result = self._with_values_kept(result._replace(original=node))
        if self._router.default_opset < SHAPE_PROPAGATION_OPSET:
            recorder.declare_uninferred_shapes(result)
        rewrites = self._rewrites[key]
        if not (recorder.is_complete and recorder.is_reusable) or len(rewrites) >= MAX_REWRITES_PER_KEY:
            return result
        if result.has_graphs and not recorder.names.issuperset(names_in(result.nodes)):
            return result
        cached = CachedRewrite(
            result,
            recorder.answers,
            recorder.fresh_names,
            recorder.constants,
            shaped=recorder.shaped,
            allowed=recorder.allowed,
        )
        rewrites.add(cached.questions, cached.answers, cached)
        self._constant_names[cached] = (*recorder.constants, "")
        if recorder.is_shared:
            self._shared.add(key, source, cached)
        if trace.moves and recorder.is_shared:
            found, open_names = with_moved_values(cached, node, trace, recorder)
            if open_names:
                self._shared.add_moved_values(record, self._scope.nodes[record[0]], source, found, open_names)
        if cached.with_graphs:
            return result
        return CacheHit(cached, (*names, *recorder.fresh_names, *recorder.constants, ""))

    def _store_refusal(self, error: CannotConvert, recorder: FactRecorder, node: Node, key: NodeKey) -> None:
        """Cache the refusal of a node, and add the causes of an unknown shape of an emitted value."""
        if isinstance(error, UnknownShape) and not recorder.fresh_names.keys().isdisjoint(error.values):
            # imported here: few nodes are refused
            from opshift.inference.unknown_facts import causes_among

            error.causes = causes_among(error, self._scope, node.inputs)
        refusal = CachedRefusal(error, node.inputs + node.outputs)
        if recorder.is_complete and refusal.is_reusable:
            refusals = self._refusals.setdefault(key, Candidates())
            refusals.add(*questions_and_answers(recorder.answers), refusal)

    def _with_values_kept(self, result: ComputedRewrite) -> ComputedRewrite:
        self._workspace.keep_constants(values_read(result.nodes))
        self.unread_inputs.update(result.unread_inputs)
        return result

    def _is_cacheable(self, domain: str, op_type: str, source: int) -> bool:
        """Return whether all attributes are numbers, strings or lists of them, which are cheap to compare."""
        found = self._router.route(domain, op_type, source).operator.has_plain_attributes
        self._shared.has_plain_attributes[domain, op_type, source] = found
        return found

    def _constants_of(self, cached: CachedRewrite) -> ValueNames:
        """Return the names of a cached rewrite's constants in this scope, followed by the empty name."""
        found = self._constant_names.get(cached)
        if found is None:
            found = self._constant_names[cached] = self._add_constants(cached, cached.constants)
        return found

    def _add_constants(
        self, cached: CachedRewrite, constants: Iterable[tuple[ConstantKey, Tensor]]
    ) -> ValueNames:
        """Add a cached rewrite's constants to this scope; return their names, followed by the empty name."""
        # Unread constants get names, too, so that names do not depend on whether the rewrite was cached.
        names = tuple(starmap(self._workspace.add_keyed_constant, constants))
        self._workspace.keep_constants(compress(names, cached.read_constants))
        return (*names, "")
