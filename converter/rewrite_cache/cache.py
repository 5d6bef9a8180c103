"""Rewrite cache: nodes that differ only in value names share one rewrite.

A step is a pure function of its node and of the facts that it queries. Its result therefore holds for every
node with the same node key and the same answers, with other value names: in the same model, and in later
models that are converted to the same opsets.
"""

from __future__ import annotations

from typing import Any

from opshift.converter.rewrite.rewrite_node import rewrite_node
from opshift.converter.rewrite.routes import Router
from opshift.converter.rewrite.workspace import Workspace
from opshift.converter.rewrite_cache.cached_rewrite import CachedRewrite, CacheHit, RewriteResult
from opshift.converter.rewrite_cache.node_template import ValueNames
from opshift.converter.rewrite_cache.recorded_facts import FactRecorder
from opshift.model.graphs import NodeRecord
from opshift.model.node import Node
from opshift.model.node_key import NodeKey, is_small_key, node_key_of

MAX_REWRITES_PER_KEY = 16
"""Maximum number of cached rewrites per node key: each lookup compares the facts of all of them."""

MAX_SHARED_KEYS = 512
"""Maximum number of node keys whose first rewrite is shared with later models."""


class RewriteCache:
    """Cache of the rewrites of one scope's nodes, backed by the rewrites that models share."""

    def __init__(self, workspace: Workspace, router: Router) -> None:
        self._workspace = workspace
        self._scope = workspace.scope
        self._router = router
        self._shared: dict[tuple[int, NodeKey], CachedRewrite] = router.shared_rewrites
        self._rewrites: dict[NodeKey, list[CachedRewrite]] = {}
        self._constant_names: dict[CachedRewrite, ValueNames] = {}
        self._has_plain_attributes: dict[str, bool] = {}

    def lookup(self, line: NodeRecord, proto: Any, source: int) -> CacheHit | None:
        """Return the cached rewrite of a node, or `None` if it has to be rewritten.

        Args:
            line: record of the node.
            proto: NodeProto of the node.
            source: opset that the node is written for.
        """
        _, domain, op_type, inputs, outputs = line
        is_cacheable = None if domain else self._has_plain_attributes.get(op_type)
        if is_cacheable is None:
            is_cacheable = self._is_cacheable(domain, op_type, source)
        if not is_cacheable:
            return None
        names = inputs + outputs
        key = node_key_of(line, proto, names)
        rewrites = self._rewrites.get(key)
        for cached in self._load_shared(key, source) if rewrites is None else rewrites:
            if not cached.questions or cached.matches(names, self._scope):
                return CacheHit(cached, names + self._new_names(cached))
        return None

    def rewrite(self, node: Node, line: NodeRecord, proto: Any, source: int) -> RewriteResult:
        """Return the cached rewrite of a node, or rewrite it and cache the result.

        Raises:
            CannotConvert: the node is invalid, or a step refuses it.
            ResolveError: a step emitted a node with an unknown operator.
        """
        # A node that the calls of its function changed no longer matches the key of its NodeProto.
        hit = self.lookup(line, proto, source) if node.is_original else None
        return hit or self.rewrite_and_store(node, line, proto, source)

    def rewrite_and_store(self, node: Node, line: NodeRecord, proto: Any, source: int) -> RewriteResult:
        """Rewrite an uncached node and cache the result.

        Raises:
            CannotConvert: the node is invalid, or a step refuses it.
            ResolveError: a step emitted a node with an unknown operator.
        """
        if not node.is_original or not self._is_cacheable(node.domain, node.op_type, source):
            return rewrite_node(node, source, self._scope, self._workspace, self._router)
        names = node.inputs + node.outputs
        recorder = FactRecorder(self._workspace, names)
        result = rewrite_node(node, source, recorder, recorder, self._router)
        key = node_key_of(line, proto, names)
        rewrites = self._rewrites.setdefault(key, [])
        if not recorder.is_complete or len(rewrites) >= MAX_REWRITES_PER_KEY:
            return result
        cached = CachedRewrite(node, result, recorder.questions(), recorder.fresh_names, recorder.constants)
        rewrites.append(cached)
        self._constant_names[cached] = (*recorder.constants, "")
        self._share(key, source, cached)
        return CacheHit(cached, (*names, *recorder.fresh_names, *recorder.constants, ""))

    def _is_cacheable(self, domain: str, op_type: str, source: int) -> bool:
        """Whether the attributes of an operator are cheap to compare."""
        found = self._router.route(domain, op_type, source).operator.has_plain_attributes
        if not domain:
            self._has_plain_attributes[op_type] = found
        return found

    def _load_shared(self, key: NodeKey, source: int) -> list[CachedRewrite]:
        """Start the entry of a node key with the rewrite that another model left."""
        shared = self._shared.get((source, key))
        found = self._rewrites[key] = [shared] if shared else []
        return found

    def _new_names(self, cached: CachedRewrite) -> ValueNames:
        """Return the names that a cached rewrite leaves open: new values, then constants of this scope."""
        constants = self._constant_names.get(cached)
        fresh = tuple(map(self._workspace.fresh, cached.name_hints)) if cached.name_hints else ()
        if constants is None:
            constants = (*map(self._workspace.add_constant, cached.constants), "")
            self._constant_names[cached] = constants
        return fresh + constants

    def _share(self, key: NodeKey, source: int, cached: CachedRewrite) -> None:
        # Bounds the memory of the router, which outlives the model; cleared entries are rebuilt on demand.
        if len(self._shared) >= MAX_SHARED_KEYS:
            self._shared.clear()
        if is_small_key(key) and cached.is_small and (source, key) not in self._shared:
            self._shared[source, key] = cached
