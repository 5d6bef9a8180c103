"""Inference of the shapes and ranks of one node's outputs, from the shape rules of operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opshift.inference.fact_kinds import MAXIMUM, Inferred, Shortcut
from opshift.inference.facts import InferenceScope
from opshift.inference.infer_types import body_output
from opshift.inference.symbols import is_symbol, with_symbols
from opshift.model.extensions import is_external
from opshift.model.graphs import NodeRecord
from opshift.model.node import Node
from opshift.model.types import MAX_RANK, Shape
from opshift.registry.models import OperatorVersion
from opshift.registry.shapes.shape_context import ShapeContext, list_length

MAX_LISTED_SIZES = 4 * MAX_RANK
"""Maximum length of a constant that shape rules read, except for nodes with more outputs (such as Split).

Shapes, axes and pads are shorter. Many nodes may share a longer list, and each of them would read it.
"""


def infer_shapes(node: Node, operator: OperatorVersion, scope: InferenceScope) -> Inferred[Shape]:
    """Infer the output shapes of a node by its shape rule, with symbols for sizes known only at run time."""
    context = _Context(operator, node, scope, _known_shape)
    known = _apply_rule(context)
    if not any(shape is not None and None in shape for shape in known):
        return Inferred(known, context.is_cacheable, context.constants)
    symbolic = _Context(operator, node, scope, _symbolic_shape)
    if symbolic.inputs == context.inputs and not context.has_symbols and not operator.holds_graphs:
        return Inferred(known, context.is_cacheable, context.constants)
    if _has_private_rule(operator):
        # Private rules get no symbols: they may round or compare sizes, which is wrong for symbols.
        return Inferred(known, context.is_cacheable, context.constants)
    computed = _apply_rule(symbolic)
    # Only small numbers from Reshape are sizes: symbols cancel out in the exact quotient for -1. Small
    # numbers from other rules may depend on symbols, such as the minimum of a symbol and 5.
    is_exact = operator.shape == "reshape"
    names = (scope.value_prefix + each for each in node.outputs)
    rows = zip(known, (*computed, *[None] * len(known)), names, strict=False)
    shapes = [with_symbols(*each, is_exact=is_exact) for each in rows]
    is_shared = all(each.is_shared for each in shapes)
    read = context.constants | symbolic.constants
    is_cacheable = context.is_cacheable and symbolic.is_cacheable
    return Inferred([each.shape for each in shapes], is_cacheable, read, is_shared)


def known_shapes(node: Node, operator: OperatorVersion, scope: InferenceScope) -> KnownShapes:
    """Return the context of a node for its shape rule, with `None` for sizes known only at run time."""
    return _Context(operator, node, scope, _known_shape)


def infer_ranks(node: Node, operator: OperatorVersion, scope: InferenceScope) -> Inferred[int]:
    """Infer the ranks of the outputs: from input ranks and, if needed, also from constants or shapes."""
    asked_inputs = rank_inputs(operator)
    context = _RankContext(operator, node, scope, asked_inputs, reads_constants=False)
    ranks = _ranks_of_outputs(context)
    if asked_inputs is not None or not any(map(_is_missing, node.outputs, ranks)):
        return Inferred(ranks, context.is_cacheable)
    ranks = _ranks_of_outputs(_RankContext(operator, node, scope, asked_inputs, reads_constants=True))
    for position, name in enumerate(node.outputs):
        if _is_missing(name, ranks[position]):
            shape = scope.symbolic_shape(name)
            ranks[position] = None if shape is None else len(shape)
    return Inferred(ranks, is_cacheable=False)


def _ranks_of_outputs(context: _Context) -> list[int | None]:
    ranks = [None if shape is None else len(shape) for shape in _apply_rule(context)]
    return ranks + [None] * (context.output_count - len(ranks))


def _is_missing(name: str, rank: int | None) -> bool:
    return bool(name) and rank is None


def _known_shape(scope: InferenceScope, name: str) -> Shape | None:
    return scope.shape(name)


def _symbolic_shape(scope: InferenceScope, name: str) -> Shape | None:
    return scope.symbolic_shape(name)


def _apply_rule(context: _Context) -> Sequence[Shape | None]:
    # imported here: some checks infer no shapes
    from opshift.registry.shapes.all_rules import SHAPE_RULES

    rule = SHAPE_RULES.get(context.version.shape)
    return () if rule is None or context.node.has_attribute_references else rule(context)


def _has_private_rule(operator: OperatorVersion) -> bool:
    # imported here: some checks infer no shapes
    from opshift.registry.shapes.all_rules import SHAPE_RULES

    return is_external(SHAPE_RULES[operator.shape])


def shape_link(operator: OperatorVersion) -> int | None:
    """Return the position of an input that always has the shape of the first output, or `None`."""
    return _SHAPE_LINKS.get(operator.shape)


def rank_link(operator: OperatorVersion) -> int | None:
    """Return the position of an input that always has the rank of the first output, or `None`.

    `MAXIMUM` means that the rank of the output is the largest rank of the inputs.
    """
    if operator.shape == "broadcast":
        return MAXIMUM  # broadcasting yields the rank of the input with the most dimensions
    # imported here: some checks infer no shapes
    from opshift.registry.shapes.all_rules import KEEPS_RANK

    return 0 if operator.shape in KEEPS_RANK else shape_link(operator)


_SHAPE_LINKS = {
    "same_as_first": 0,
    "all_same_as_first": 0,
    "pairwise": 0,
    "batch_normalization": 0,
    "layer_normalization": 0,
    "same_as_second": 1,
}
"""Position of the input with the shape of the first output, by the name of the shape rule."""


SYMBOLIC_RULES = ("reshape", "resize", "expand", "constant_of_shape", "split", "tile", "range", "slice")
"""Shape rules that accept symbols in lists of sizes; other rules, which may compare sizes, get `None`."""


class _Context(ShapeContext):
    """Context of a node for its shape rule.

    `is_cacheable` is True until the rule reads more than attributes, shapes, and the elements of the inputs
    at the positions `constants`.
    `has_symbols` is whether a list that the rule has read contains symbols.
    """

    def __init__(
        self,
        operator: OperatorVersion,
        node: Node,
        scope: InferenceScope,
        shape_of: Callable[[InferenceScope, str], Shape | None],
        asked_inputs: tuple[int, ...] | None = None,
    ) -> None:
        self.is_cacheable = True
        self.constants: set[int] = set()
        self.has_symbols = False
        self.version = operator
        self.node = node
        self.inputs = [
            shape_of(scope, name) if name and (asked_inputs is None or position in asked_inputs) else None
            for position, name in enumerate(node.inputs)
        ]
        self.output_count = len(node.outputs)
        self.assumes_positive_sizes = scope.evaluation.assumes_positive_sizes
        self._scope = scope
        self._shape_of = shape_of

    def attribute(self, name: str) -> object:
        found = self.node.attribute(name)
        if found is not None:
            return found
        declared = self.version.attributes.get(name)
        default = declared.default if declared else None
        return default.encode() if isinstance(default, str) else default

    def has_input(self, position: int) -> bool:
        return bool(self.node.input(position))

    def has_output(self, position: int) -> bool:
        return bool(self.node.output(position))

    def element_type(self, position: int) -> str | None:
        self.is_cacheable = False
        name = self.node.input(position)
        return self._scope.element_type(name) if name else None

    def constant(self, position: int) -> tuple[object, ...] | None:
        self.constants.add(position)
        name = self.node.input(position)
        found = self._scope.elements(name) if name else None
        if found is None or len(found.values) > max(MAX_LISTED_SIZES, self.output_count):
            return None
        if any(map(is_symbol, found.values)):
            self.has_symbols = True
            if self._shape_of is not _symbolic_shape or self.version.shape not in SYMBOLIC_RULES:
                return tuple(None if is_symbol(each) else each for each in found.values)
        return found.values

    def body_output_shape(self, attribute: str, position: int) -> Shape | None:
        self.is_cacheable = False
        emitted, name, body = body_output(self.node, attribute, position, self._scope)
        return self._shape_of(body, name) if body else emitted and emitted.dims


KnownShapes = _Context
"""Type of the result of `known_shapes`."""


class _RankContext(_Context):
    """Context for inferring ranks: input shapes have the known rank, and unknown dimensions."""

    def __init__(
        self,
        operator: OperatorVersion,
        node: Node,
        scope: InferenceScope,
        asked_inputs: tuple[int, ...] | None,
        *,
        reads_constants: bool,
    ) -> None:
        super().__init__(operator, node, scope, _shape_of_known_rank, asked_inputs)
        self._reads_constants = reads_constants

    def constant(self, position: int) -> tuple[object, ...] | None:
        return super().constant(position) if self._reads_constants else None

    def input_length(self, position: int) -> int | None:
        self.is_cacheable = False
        return list_length(self._scope.shape(self.node.input(position)))


def _shape_of_known_rank(scope: InferenceScope, name: str) -> Shape | None:
    rank = scope.rank(name)
    return None if rank is None else (None,) * rank


def shape_shortcut(operator: OperatorVersion) -> Shortcut[Shape] | None:
    """Return a `Shortcut` for Constant, scalar outputs of Gather and 1-D outputs of Unsqueeze, or `None`."""
    if operator.shape == "gather":
        return lambda scope, name: () if scope.rank(name) == 0 else None
    if operator.shape == "unsqueeze":
        return _dims_of_unsqueezed_scalar
    return _dims_of_constant if operator.shape == "constant" else None


def rank_shortcut(operator: OperatorVersion) -> Shortcut[int] | None:
    """Return a `Shortcut` for fixed ranks, ranks set by a list, Unsqueeze and Constant; else `None`."""
    # imported here: some checks infer no shapes
    from opshift.registry.shapes.all_rules import FIXED_RANKS, RANKING_LISTS

    rank = FIXED_RANKS.get(operator.shape)
    if rank is not None:
        return lambda scope, name: rank
    listed = operator.input_named(RANKING_LISTS.get(operator.shape, ""))
    if listed is not None:
        return lambda scope, name: _rank_from_list(scope, name, listed[0])
    if operator.shape == "unsqueeze":
        return _rank_of_unsqueezed
    return _rank_of_constant if operator.shape == "constant" else None


def _dims_of_unsqueezed_scalar(scope: InferenceScope, name: str) -> Shape | None:
    """Return `(1,)` for the output of an Unsqueeze that makes a 1-D value from a scalar; otherwise `None`."""
    _, _, _, inputs, _ = scope.producing_records[name]
    if not inputs or scope.rank(inputs[0]) != 0:
        return None
    return (1,) if _axis_count(scope, inputs) == 1 or scope.rank(name) == 1 else None


def _rank_of_unsqueezed(scope: InferenceScope, name: str) -> int | None:
    """Return the rank of the output of an Unsqueeze with axes as input; `None` if unknown or too large."""
    _, _, _, inputs, _ = scope.producing_records[name]
    count = _axis_count(scope, inputs)
    rank = None if count is None else scope.rank(inputs[0])
    return None if count is None or rank is None or rank + count > MAX_RANK else rank + count


def _axis_count(scope: InferenceScope, inputs: Sequence[str]) -> int | None:
    """Return the `_constant_length` of input 1 of an Unsqueeze, its axes; `None` without this input."""
    return _constant_length(scope, inputs[1]) if len(inputs) > 1 else None


def _dims_of_constant(scope: InferenceScope, name: str) -> Shape | None:
    """Return the dimensions of the tensor in a Constant; `None` if `value` is not its only attribute."""
    attributes = scope.proto_of(scope.producing_records[name]).attribute[:]
    is_tensor = len(attributes) == 1 and attributes[0].name == "value" and attributes[0].HasField("t")
    return tuple(attributes[0].t.dims[:]) if is_tensor else None


def _rank_from_list(scope: InferenceScope, name: str, position: int) -> int | None:
    """Return the rank of a value: the length of the 1-D input at `position` of its producer, or `None`."""
    _, _, _, inputs, _ = scope.producing_records[name]
    if position >= len(inputs):
        return None
    length = _concat_length(scope, inputs[position])
    if length is None:
        length = list_length(scope.shape(inputs[position]))
    return None if length is None or length > MAX_RANK else length


# A shortcut: most exported Reshapes read a Concat, and inferring its inputs takes a quarter of a conversion.
def _concat_length(scope: InferenceScope, name: str) -> int | None:
    """Return the length of a Concat of 1-D constants and Unsqueezes with one axis; `None` for others."""
    record = scope.producing_records.get(name)
    if record is None or _shape_rule(scope, record) != "concat":
        return None
    lengths = [_length_of_part(scope, each) for each in record[3]]
    return None if None in lengths else sum(filter(None, lengths))


def _length_of_part(scope: InferenceScope, name: str) -> int | None:
    """Return the length of a Concat input: a 1-D constant, or an Unsqueeze with one axis; else `None`."""
    record = scope.producing_records.get(name)
    if record is None or _shape_rule(scope, record) != "unsqueeze":
        return _constant_length(scope, name)
    if len(record[3]) > 1:
        axis_count = _axis_count(scope, record[3])
    else:
        axis_count = sum(len(each.ints) for each in scope.proto_of(record).attribute)
    return 1 if axis_count == 1 else None


def _constant_length(scope: InferenceScope, name: str) -> int | None:
    """Return the length of a 1-D Constant `value` or fixed initializer; `None` for other values."""
    record = scope.producing_records.get(name)
    if record is not None:
        is_constant = _shape_rule(scope, record) == "constant"
        return list_length(_dims_of_constant(scope, name)) if is_constant else None
    stored = scope.initializer(name)
    return None if stored is None or scope.is_overridable(name) else list_length(tuple(stored.dims))


def _shape_rule(scope: InferenceScope, record: NodeRecord) -> str:
    operator = None if scope.is_call(record) else scope.operator(record[2], record[1])
    return operator.shape if operator else ""


def _rank_of_constant(scope: InferenceScope, name: str) -> int | None:
    dims = _dims_of_constant(scope, name)
    return None if dims is None else len(dims)


def rank_inputs(operator: OperatorVersion) -> tuple[int, ...] | None:
    """Return the positions of the inputs that determine the ranks of the outputs; `None` for all inputs."""
    # imported here: some checks infer no shapes
    from opshift.registry.shapes.all_rules import RANK_INPUTS

    return RANK_INPUTS.get(operator.shape)
