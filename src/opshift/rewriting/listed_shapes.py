"""Shapes of values of one graph that are known without shape inference.

Inferring all shapes takes several times as long as a conversion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from opshift.inference.constants import SIZE_TYPES
from opshift.inference.evaluator.element_facts import defining_scope
from opshift.inference.fact_kinds import MAXIMUM
from opshift.inference.infer_shapes import rank_link, shape_link, shape_shortcut
from opshift.inference.scope import Scope
from opshift.inference.symbols import without_symbols
from opshift.model.graphs import NodeRecord
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.model.types import MAX_RANK, Shape
from opshift.registry.shapes.all_rules import FIXED_RANKS
from opshift.registry.shapes.dims import broadcast
from opshift.registry.shapes.math import matmul_shape


class _Rule(NamedTuple):
    """Function that computes the shape of the first output of a node from the shapes of some inputs."""

    inputs: Sequence[str]
    combine: Callable[[Sequence[Shape | None]], Shape | None]


class ListedShapes:
    """Shapes known from lists of sizes, declarations of inputs, and simple shape rules of operators.

    A shape has `None` for each unknown size; the shape is `None` if the rank is unknown. Query the outputs of
    Reshapes in the order of the nodes: the result of one Reshape determines the ranks of later values.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._shapes: dict[str, Shape | None] = {}
        # Cache, because many Reshapes may read one list.
        self._lists: dict[str, Shape | None] = {}

    def computed_shape(self, name: str, rank: int | None) -> Shape | None:
        """Return the shape of an output of a node, or `None`; `rank` is its rank if it is known."""
        if reshape := self._standard_producer(name, "Reshape", 2):
            sizes = self._listed_sizes(reshape[3][1])
            if sizes is not None:
                self._shapes[name] = sizes
                return sizes
        elif rank is None:
            rank = self._scope.rank(name)
        return None if rank is None else (None,) * rank

    def _listed_sizes(self, name: str) -> Shape | None:
        """Return the sizes in a computed list; `None` if it is stored, too long, or of unknown length."""
        if name not in self._lists:
            concat = self._standard_producer(name, "Concat", 1)
            is_stored = concat is None and self._stored_integers(name) is not None
            self._lists[name] = None if is_stored else self._joined_sizes(concat[3] if concat else (name,))
        return self._lists[name]

    def _joined_sizes(self, names: Sequence[str]) -> Shape | None:
        sizes: list[int | None] = []
        for name in names:
            found = self._sizes_in(name)
            if found is None or len(sizes) + len(found) > MAX_RANK:
                return None
            sizes += found
        # Unknown for 0, which copies a size of the data, and for -1, which depends on the other sizes.
        return tuple(size if size and size > 0 else None for size in sizes)

    def _sizes_in(self, name: str) -> Shape | None:
        """Return the sizes in an input of a Concat; `None` if their number is unknown."""
        stored = self._stored_integers(name)
        if stored is not None:
            return stored
        if unsqueeze := self._standard_producer(name, "Unsqueeze", 2):
            # With one axis, the input is a scalar; without axes, it may be a list of any length.
            axes = self._stored_integers(unsqueeze[3][1])
            return (None,) if axes is not None and len(axes) == 1 else None
        if gather := self._standard_producer(name, "Gather", 2):
            indices = self._stored_integers(gather[3][1])
            return None if indices is None else self._gathered_sizes(gather[3][0], indices)
        if cut := self._standard_producer(name, "Slice", 3):
            return self._sliced_sizes(cut)
        return self._sizes_of_shape(name)

    def _gathered_sizes(self, name: str, indices: Sequence[int]) -> Shape:
        shape = self._sizes_of_shape(name) or ()
        rank = len(shape)
        return tuple(shape[each] if -rank <= each < rank else None for each in indices)

    def _sliced_sizes(self, record: NodeRecord) -> Shape | None:
        """Return the sizes in a Slice of a Shape with one start, one end and step 1, or `None`."""
        _, _, _, inputs, _ = record
        data, *bounds = inputs[:3]
        start, end = map(self._stored_integer, bounds)
        has_step = len(inputs) > 4 and inputs[4] != "" and self._stored_integer(inputs[4]) != 1
        if start is None or end is None or has_step:
            return None
        sizes = self._sizes_of_shape(data)
        # Axes are not read, because a list has only axis 0.
        return None if sizes is None else sizes[start:end]

    def _sizes_of_shape(self, name: str) -> Shape | None:
        """Return the sizes in the output of a Shape; `None` if unknown, and for other values."""
        record = self._standard_producer(name, "Shape", 1)
        if record is None:
            return None
        attributes = self._scope.proto_of(record).attribute[:]
        if any(each.ref_attr_name for each in attributes):
            return None
        bounds = {each.name: each.i for each in attributes}
        shape = self._known_shape(record[3][0])
        return None if shape is None else shape[bounds.get("start") : bounds.get("end")]

    def _known_shape(self, name: str) -> Shape | None:
        """Return the shape of a value from declarations and the shape rules of some operators.

        The search is a loop, because chains of nodes may be longer than the recursion limit.
        """
        shapes = self._shapes
        pending, started = [name], set[str]()
        while pending:
            current = pending[-1]
            if current in shapes:
                pending.pop()
                continue
            record = self._scope.producing_records.get(current)
            rule = None if record is None else self._rule_of(record, current)
            if rule is None:
                shapes[current] = self._shape_without_inputs(current)
                continue
            # In a cycle of nodes, compute a value from the known inputs, so that the search ends.
            missing = () if current in started else [each for each in rule.inputs if each not in shapes]
            started.add(current)
            pending += missing
            if not missing:
                shapes[current] = rule.combine([shapes.get(each) for each in rule.inputs])
        return shapes[name]

    def _rule_of(self, record: NodeRecord, name: str) -> _Rule | None:
        """Return the rule for the first output of a node; `None` if the inputs do not determine its rank."""
        _, domain, op_type, inputs, outputs = record
        scope = self._scope
        operator = None if scope.is_call(record) else scope.operator(op_type, domain)
        if operator is None or not inputs or name != outputs[0]:
            return None
        if operator.shape == "convolution" and len(inputs) > 1:
            return _Rule(inputs[:2], _convolution)
        if operator.shape == "matmul" and len(inputs) > 1:
            return _Rule(inputs[:2], lambda shapes: matmul_shape(*shapes))
        if operator.shape in FIXED_RANKS:
            rank = FIXED_RANKS[operator.shape]
            return _Rule((), lambda shapes: (None,) * rank)
        link = rank_link(operator)
        if link == MAXIMUM:
            return _Rule(inputs, broadcast)
        if link is None or link >= len(inputs):
            return None
        return _Rule((inputs[link],), _same_shape if shape_link(operator) == link else _same_rank)

    def _shape_without_inputs(self, name: str) -> Shape | None:
        """Return the shape of a graph input, initializer, Constant, or Reshape to stored sizes, or `None`."""
        owner = defining_scope(self._scope, name)
        record = owner.producing_records.get(name) if owner else None
        if owner is None:
            return None
        if record is None:
            return without_symbols(owner.declared_shape(name))
        operator = None if owner.is_call(record) else owner.operator(record[2], record[1])
        if operator is not None and operator.shape == "constant":
            shortcut = shape_shortcut(operator)
            return shortcut(owner, name) if shortcut else None
        _, _, _, inputs, _ = record
        is_reshape = operator is not None and operator.shape == "reshape" and owner is self._scope
        sizes = self._stored_integers(inputs[1]) if is_reshape and len(inputs) > 1 else None
        return None if sizes is None else tuple(size if size > 0 else None for size in sizes)

    def _stored_integer(self, name: str) -> int | None:
        """Return the integer in a stored list of one integer, see `_stored_integers`, or `None`."""
        found = self._stored_integers(name)
        return found[0] if found is not None and len(found) == 1 else None

    def _stored_integers(self, name: str) -> tuple[int, ...] | None:
        """Return the integers in a 1-D initializer or Constant of this or an enclosing graph, or `None`.

        Return `None` also for more than `MAX_RANK` integers, and if callers can override the initializer.
        """
        owner = defining_scope(self._scope, name)
        record = owner.producing_records.get(name) if owner else None
        is_stored = owner is not None and (record is None or record[2] == "Constant")
        shape = self._shape_without_inputs(name) if is_stored else None
        # Skip long lists, which take long to read.
        is_long = any((size or 0) > MAX_RANK for size in shape or ())
        found = self._scope.constant(name) if is_stored and not is_long else None
        is_list = found is not None and len(found.dims) == 1 and found.element_type in SIZE_TYPES
        return found.values if found is not None and is_list else None

    def _standard_producer(self, name: str, op_type: str, inputs: int) -> NodeRecord | None:
        """Return the record of the node that produces a value.

        Return `None` unless its operator is `op_type` of the default domain, with at least `inputs` inputs.
        """
        record = self._scope.producing_records.get(name)
        if record is None or record[2] != op_type or canonical_domain(record[1]) != DEFAULT_DOMAIN:
            return None
        return None if len(record[3]) < inputs or self._scope.is_call(record) else record


def _same_shape(shapes: Sequence[Shape | None]) -> Shape | None:
    return shapes[0]


def _same_rank(shapes: Sequence[Shape | None]) -> Shape | None:
    return None if shapes[0] is None else (None,) * len(shapes[0])


def _convolution(shapes: Sequence[Shape | None]) -> Shape | None:
    """Return the shape of a convolution: the rank and, if the shape of the weights is known, the channels."""
    data, weights = shapes
    if not weights:
        return _same_rank((data,))
    return (None, weights[0], *(None,) * (len(weights) - 2))
