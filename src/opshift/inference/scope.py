"""Scope of one graph or function: element types, shapes and constants of the values in it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Self

from opshift.inference.element_bounds import Bounds, ElementBounds, element_bounds, nonzero_elements
from opshift.inference.evaluator.element_facts import ElementFacts, defining_scope, listed_sizes
from opshift.inference.evaluator.elements import Elements
from opshift.inference.fact_kinds import FactKind, InferenceCache, Inferred, inference_cache_for
from opshift.inference.facts import UNAFFECTED, FactT, InferenceScope, ListedSize
from opshift.inference.infer_shapes import (
    infer_ranks,
    infer_shapes,
    rank_inputs,
    rank_link,
    rank_shortcut,
    shape_link,
    shape_shortcut,
)
from opshift.inference.infer_types import infer_types, type_inputs, type_link, type_shortcut
from opshift.inference.partial_elements import is_nonnegative, uniform_element
from opshift.inference.propagation import Propagation
from opshift.inference.subgraph_inputs import subgraph_input_shape, subgraph_input_type
from opshift.inference.symbols import (
    merge_claim,
    numbered_symbols,
    symbol_of,
    symbolic_dims,
    without_symbols,
)
from opshift.model.graphs import NodeRecord, captured_names, graphs_of, is_graph, mentioned_names
from opshift.model.messages import GraphProto, TensorShapeProto
from opshift.model.node import Tensor, Value
from opshift.model.node_key import MAX_KEY_ELEMENTS
from opshift.model.types import MAX_RANK, Shape, Symbol, has_shape
from opshift.registry.shapes.sizes import is_named


def _named_sizes(shape: Shape | None, value: str, scope: InferenceScope) -> Shape | None:
    """Return a shape with a symbol for each unknown size.

    Sizes in subgraphs and functions stay unknown: these may run several times with different sizes, but a
    symbol denotes one size.
    """
    if shape is None or None not in shape or scope.parent is not None or not is_graph(scope.container):
        return shape
    return tuple(symbol_of(value, axis) if size is None else size for axis, size in enumerate(shape))


TYPES: FactKind[str] = FactKind(
    query=lambda scope, name: scope.element_type(name),
    declared=lambda scope, name: scope.declared_type(name),
    claimed=lambda scope, name: scope.declared_type(name),
    needs_claim=lambda inferred: True,
    merge=lambda inferred, claimed: inferred if claimed is None else claimed,
    trusts_claims=True,
    asked_inputs=type_inputs,
    link=type_link,
    infer=lambda node, operator, scope: Inferred(infer_types(node, operator, scope), True),
    shortcut=type_shortcut,
)

SHAPES: FactKind[Shape] = FactKind(
    query=lambda scope, name: scope.symbolic_shape(name),
    declared=lambda scope, name: scope.declared_shape(name),
    claimed=lambda scope, name: scope.claimed_shape(name),
    needs_claim=lambda inferred: inferred is None or None in inferred,
    merge=merge_claim,
    trusts_claims=False,
    asked_inputs=lambda operator: None,
    link=shape_link,
    infer=infer_shapes,
    shortcut=shape_shortcut,
    completed=_named_sizes,
)

RANKS: FactKind[int] = FactKind(
    query=lambda scope, name: scope.rank(name),
    declared=lambda scope, name: scope.declared_rank(name),
    claimed=lambda scope, name: scope.claimed_rank(name),
    needs_claim=lambda inferred: inferred is None,
    merge=lambda inferred, claimed: claimed if inferred is None else inferred,
    trusts_claims=False,
    asked_inputs=rank_inputs,
    link=rank_link,
    infer=infer_ranks,
    shortcut=rank_shortcut,
)


SOURCE_FACTS = frozenset(
    {
        "_captured", "_producers", "_ranks", "_shapes", "_types",
        "bounds_facts", "element_facts", "node_keys", "value_prefix", "variable_prefix",
    }
)  # fmt: skip
"""Attributes of a scope that depend only on the model, except for values that conversion steps added."""


class Scope(InferenceScope):
    """Scope with the facts about its values, each computed on the first query and cached."""

    @cached_property
    def _types(self) -> Propagation[str]:
        return Propagation(TYPES, self.inference_cache(TYPES))

    @cached_property
    def _shapes(self) -> Propagation[Shape]:
        return Propagation(SHAPES, self.inference_cache(SHAPES))

    @cached_property
    def _ranks(self) -> Propagation[int]:
        return Propagation(RANKS, self.inference_cache(RANKS))

    @cached_property
    def element_facts(self) -> ElementFacts:  # pyright: ignore[reportIncompatibleMethodOverride]  # cached
        """Implement `InferenceScope.element_facts`."""
        return ElementFacts()

    @cached_property
    def bounds_facts(self) -> ElementBounds:  # pyright: ignore[reportIncompatibleMethodOverride]  # cached
        """Implement `InferenceScope.bounds_facts`."""
        return ElementBounds()

    def inference_cache(self, kind: FactKind[FactT]) -> InferenceCache:
        """Return the inference cache for a kind of fact."""
        return inference_cache_for(
            kind,
            self.registry,
            self.opset_of(""),
            assumes_positive_sizes=self.evaluation.assumes_positive_sizes,
        )

    @property
    def has_node_records(self) -> bool:
        """Whether `node_records` was filled, by the survey or on demand."""
        return "node_records" in vars(self)

    def used_names(self) -> Iterator[Iterable[str]]:
        """Yield groups of used names: defined in this graph or its subgraphs, or in `mentioned_names`."""
        # Yielded in groups, because a set adds a whole set much faster than single names.
        yield self.defined_names
        yield mentioned_names(self.container)
        for each in self._children.values():
            yield from each.used_names()

    def take_facts(self, earlier: Self, added: set[str]) -> None:
        """Take the facts from an earlier scope of the same graph, which must not be used any more.

        `added` names the values that conversion steps added; the facts about them are removed.
        """
        inferred = (earlier._types, earlier._shapes, earlier._ranks)
        for each in (*inferred, earlier.element_facts, earlier.bounds_facts):
            each.forget(added)
        for name in earlier._producers.keys() & added:
            del earlier._producers[name]
        vars(self).update((name, each) for name, each in vars(earlier).items() if name in SOURCE_FACTS)
        for key, child in self._children.items():
            old = earlier._children.get(key)
            if old is not None and old.container is child.container:
                child.take_facts(old, added)

    def declare(self, value: Value) -> None:
        """Set the facts about a value of an emitted graph from its type and shape."""
        self._types.set_fact(value.name, value.type)
        self._shapes.set_fact(value.name, value.dims)
        self._ranks.set_fact(value.name, None if value.dims is None else len(value.dims))

    def is_used(self, name: str) -> bool:
        """Return whether a node in this graph or its subgraphs reads the value, or the value is an output.

        Values for which `is_read_indirectly` is true count as used, and so do all values that a conversion
        step adds: the step adds them for nodes that it emits.
        """
        return name in self._used or name in self.emitted_producers

    def is_read_indirectly(self, name: str) -> bool:
        """Return whether training reads or updates the value, or an attribute of a node names it."""
        return name in self.read_in_training or name in self.evaluation.named_values.names

    def readers(self, name: str) -> Sequence[NodeRecord]:
        """Return the records of the nodes of this graph that read the value, one for each reading input."""
        return self._readers.get(name, ())

    def is_captured(self, name: str) -> bool:
        """Return whether a subgraph of a node reads the value."""
        return name in self._captured

    def element_type(self, name: str) -> str | None:
        """Implement `Facts.element_type`."""
        return self._types.fact_of(name, self)

    def shape(self, name: str) -> Shape | None:
        """Implement `Facts.shape`."""
        return without_symbols(self.symbolic_shape(name))

    def comparable_shapes(self, names: Sequence[str]) -> tuple[Shape | None, ...]:
        """Implement `Facts.comparable_shapes`."""
        return numbered_symbols([self.symbolic_shape(name) if name else None for name in names])

    def listed_sizes(self, names: Sequence[str]) -> tuple[ListedSize, ...] | None:
        """Implement `Facts.listed_sizes`."""
        data, sizes = names
        return listed_sizes(self, data, sizes)

    def is_nonnegative(self, name: str) -> bool:
        """Implement `Facts.is_nonnegative`."""
        return is_nonnegative(self, name)

    def nonzero_elements(self, name: str) -> tuple[bool, ...] | None:
        """Implement `Facts.nonzero_elements`."""
        return nonzero_elements(self, name)

    def element_bounds(self, name: str) -> Bounds | None:
        """Return the bounds of the elements of an int32 or int64 tensor; `None` if they are unknown."""
        return element_bounds(self, name)

    def uniform_element(self, name: str) -> Tensor | None:
        """Implement `Facts.uniform_element`."""
        return uniform_element(self, name)

    def symbolic_shape(self, name: str) -> Shape | None:
        """Return the shape of a value like `shape`, but with symbols for sizes known only at run time."""
        return self._shapes.fact_of(name, self)

    def rank(self, name: str) -> int | None:
        """Implement `Facts.rank`."""
        return self._ranks.fact_of(name, self)

    def rank_so_far(self, name: str) -> int | None:
        """Implement `Facts.rank_so_far`."""
        if self._ranks.is_known(name) or self._shapes.is_known(name):
            return self.rank(name)
        if self.parent is not None and not self.is_local(name):
            return self.parent.rank_so_far(name)
        return self.declared_rank(name)

    def nested_shape(self, graph: GraphProto, name: str) -> Shape | None:
        """Implement `Facts.nested_shape`."""
        return self.child(graph).shape(name)

    def constant(self, name: str) -> Tensor | None:
        """Implement `Facts.constant`."""
        scope = defining_scope(self, name)
        return None if scope is None else scope.element_facts.constant(name, scope)

    def elements(self, name: str) -> Elements | None:
        """Return the elements of a value, with symbols for sizes known only at run time.

        Unknown elements are `None`; the result is `None` if all are unknown.
        """
        scope = defining_scope(self, name)
        return None if scope is None else scope.element_facts.elements(name, scope)

    def elements_or_id(self, name: str) -> Elements | int | None:
        """Return the result of `elements`, or the `id` of the tensor if it has many elements."""
        scope = defining_scope(self, name)
        return None if scope is None else scope.element_facts.elements_or_id(name, scope)

    def small_elements(self, names: Sequence[str]) -> tuple[Elements | None, ...] | None:
        """Implement `InferenceScope.small_elements`."""
        found: list[Elements | None] = []
        for name in names:
            elements = self.elements_or_id(name) if name else None
            if isinstance(elements, int) or (elements and len(elements.values) > MAX_KEY_ELEMENTS):
                return None
            found.append(elements)
        return tuple(found)

    def premises(self, names: Sequence[str]) -> tuple[object, ...]:
        """Return the shapes and elements of values as a cache key, with labels such as `N0` for symbols.

        Inference from values with equal keys gives equal results, up to the names of the symbols. Symbols
        that are computed from other symbols must be compared, too: see `has_computed_sizes`.
        """
        numbers: dict[int, str] = {}

        def numbered(element: object) -> object:
            """Return a symbol as a label, numbered by first occurrence, and a float as text."""
            if type(element) is Symbol:
                return numbers.setdefault(element, f"N{len(numbers)}")
            return repr(element) if type(element) is float else element

        found: list[object] = []
        for name in names:
            shape, elements = self.symbolic_shape(name), self.elements_or_id(name)
            if isinstance(elements, Tensor):
                values = tuple(map(numbered, elements.values))
                found.append((elements.element_type, elements.dims, values))
            else:
                found.append(elements)
            found.append(shape and tuple(map(numbered, shape)))
        return tuple(found)

    def has_computed_sizes(self, name: str) -> bool:
        """Return whether a dimension or element of a value is a symbol computed from other symbols."""
        elements = self.elements_or_id(name)
        values = elements.values if isinstance(elements, Tensor) else ()
        sizes = (*(self.symbolic_shape(name) or ()), *values)
        return any(type(each) is Symbol and not is_named(each) for each in sizes)

    def declared_type(self, name: str) -> str | None:
        """Return the element type of a value without inference over nodes.

        The sources are the model's declarations, added constants, and the values passed to a subgraph.
        """
        if name in self.added_constants:
            return self.added_constants[name].element_type
        result = self.own_declared_type(name)
        return subgraph_input_type(self, name) if result is None and self._is_subgraph_input(name) else result

    def declared_shape(self, name: str) -> Shape | None:
        """Return the shape of an input or initializer, from the same sources as `declared_type`."""
        if name in self.added_constants:
            return self.added_constants[name].dims
        stored = self.initializer(name) or self.sparse_initializer(name)
        if stored is not None and not self._is_default(name):
            return tuple(stored.dims[:]) if len(stored.dims) <= MAX_RANK else None
        if self._is_subgraph_input(name):
            return merge_claim(subgraph_input_shape(self, name), self.claimed_shape(name))
        return self._declared_shape(name, name)

    def declared_rank(self, name: str) -> int | None:
        """Return the rank of an input or initializer, from the same sources as `declared_type`."""
        is_default = self._is_default(name)
        tensor = None if is_default else self.initializer(name)
        if tensor is not None:
            return len(tensor.dims)
        if name in self.added_constants or self._is_subgraph_input(name):
            result = self.declared_shape(name)
            return None if result is None else len(result)
        sparse = None if is_default else self.sparse_initializer(name)
        return self.claimed_rank(name) if sparse is None else len(sparse.dims)

    def claimed_rank(self, name: str) -> int | None:
        """Return the declared rank of a value, without reading sizes; `None` if unknown or not trusted."""
        if not self._trusts_claim(name):
            return None
        declared = self._shape_proto(name)
        return None if declared is None else len(declared.dim)

    def claimed_shape(self, name: str) -> Shape | None:
        """Return the declared shape of a value, which may be wrong; `None` if unknown or not trusted."""
        return self._declared_shape(name, None) if self._trusts_claim(name) else None

    def _trusts_claim(self, name: str) -> bool:
        trusted = self.evaluation.trusted_claims
        return trusted is None or name in trusted

    def _declared_shape(self, name: str, owner: str | None) -> Shape | None:
        declared = self._shape_proto(name)
        prefixed = None if owner is None else self.value_prefix + owner
        return None if declared is None else symbolic_dims(declared, prefixed, self.variable_prefix)

    def _shape_proto(self, name: str) -> TensorShapeProto | None:
        """Return the declared shape of a value; `None` if it is missing, or its rank exceeds `MAX_RANK`."""
        declared = self.declared_type_proto(name)
        if declared is None or not has_shape(declared):
            return None
        found = declared.tensor_type.shape
        return found if len(found.dim) <= MAX_RANK else None

    def _is_default(self, name: str) -> bool:
        """Return whether an initializer is only a default, which callers may override with other sizes."""
        return name in self._inputs and self.is_overridable(name)

    def _is_subgraph_input(self, name: str) -> bool:
        return self.owner is not None and name in self._inputs

    @cached_property
    def _readers(self) -> Mapping[str, Sequence[NodeRecord]]:
        found: defaultdict[str, list[NodeRecord]] = defaultdict(list)
        for record in self.node_records:
            for name in record[3]:
                found[name].append(record)
        return found

    @cached_property
    def _captured(self) -> frozenset[str]:
        graphs = chain.from_iterable(map(graphs_of, self.container.node))
        return frozenset(chain.from_iterable(map(captured_names, graphs)))

    @cached_property
    def _used(self) -> set[str]:
        result = {*self.read_in_training, *self.evaluation.named_values.names}
        pending: list[Scope] = [self]
        while pending:
            scope = pending.pop()
            for record in scope.node_records:
                _, domain, op_type, inputs, _ = record
                result.update(inputs)
                # Most nodes have no subgraphs: skip their attributes.
                if domain or self.operator_statuses.get(op_type) is not UNAFFECTED:
                    pending += map(scope.child, graphs_of(scope.proto_of(record)))
            result.update(scope.outputs)
        return result
