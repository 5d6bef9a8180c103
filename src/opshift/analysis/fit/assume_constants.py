"""Replace computed inputs of nodes by constants if declared shapes allow only one value."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import chain, combinations
from operator import mul
from typing import Final, NamedTuple

from opshift.checker.ir_features.contents import FIRST_IR_WITH_STANDALONE_INITIALIZERS
from opshift.inference.facts import InferenceScope
from opshift.inference.infer_shapes import shape_link
from opshift.inference.infer_types import parameter_at
from opshift.inference.root_scopes import graph_scopes
from opshift.model.graphs import node_place, root_graphs
from opshift.model.messages import ModelProto, NodeProto
from opshift.model.node import Node, Tensor
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain
from opshift.model.tensors import write_tensor
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry
from opshift.rewriting.workspace import FreshNames
from opshift.runtimes.constant_values import ConstantValues

Sizes = tuple[int, ...]


class KnownNode(NamedTuple):
    """Node with known shapes.

    Attributes:
        node: the node.
        operator: its operator version.
        data: shape of the first input; `None` if it is not fully known.
        outputs: shapes of the outputs.
        length: number of elements of the input to determine; `None` if it is unknown.
    """

    node: Node
    operator: OperatorVersion
    data: Sizes | None
    outputs: tuple[Sizes, ...]
    length: int | None

    def attribute(self, name: str) -> object:
        """Return the value of an attribute, or its default; strings as bytes."""
        declared = self.operator.attributes.get(name)
        found: object = self.node.attribute(name, declared.default if declared else None)
        return found.encode() if isinstance(found, str) else found

    def at_axis(self, shape: Sizes) -> Sizes | None:
        """Return the size along the attribute `axis`, as a tuple; `None` if the axis is invalid."""
        axis = self.attribute("axis")
        return (shape[axis],) if isinstance(axis, int) and -len(shape) <= axis < len(shape) else None

    def axes(self) -> Sizes | None:
        """Return the attribute `axes` as nonnegative axes, by default all axes; `None` if invalid."""
        every = range(len(self.outputs[0]))
        axes: Sequence[int] = self.node.attribute("axes", every)
        is_valid = all(-len(every) <= axis < len(every) for axis in axes)
        return tuple(every[axis] for axis in axes) if is_valid else None


MAX_REDUCED_RANK: Final = 8
"""Maximum rank of data for which all choices of reduced axes are compared."""

Rule = Callable[[KnownNode], Sizes | None]
"""Function that returns the only possible elements of an input; `None` if several results are possible."""


def _output_shape(known: KnownNode) -> Sizes:
    return known.outputs[0]


def _shape_of_expand(known: KnownNode) -> Sizes:
    # Expand aligns shapes of different rank at the last axis: a short shape gets the last sizes.
    output = known.outputs[0]
    return output if known.length is None else output[max(len(output) - known.length, 0) :]


def _shape_of_reshape(known: KnownNode) -> Sizes | None:
    # Without `allowzero`, a 0 in `shape` copies a size: several shapes may give an empty output.
    return known.outputs[0] if 0 not in known.outputs[0] or known.attribute("allowzero") == 1 else None


def _repeats_of_tile(known: KnownNode) -> Sizes | None:
    data, output = known.data, known.outputs[0]
    if data is None or len(data) != len(output):
        return None
    counts = tuple(after // max(before, 1) for before, after in zip(data, output, strict=True))
    return counts if tuple(map(mul, data, counts)) == output else None


def _lengths_of_split(known: KnownNode) -> Sizes | None:
    sizes = [known.at_axis(shape) for shape in known.outputs]
    is_complete = len(sizes) == len(known.node.outputs) and None not in sizes
    return tuple(chain.from_iterable(filter(None, sizes))) if is_complete else None


def _axes_of_unsqueeze(known: KnownNode) -> Sizes | None:
    return None if known.data is None else _single_axes(known.outputs[0], known.data)


def _axes_of_squeeze(known: KnownNode) -> Sizes | None:
    return None if known.data is None else _single_axes(known.data, known.outputs[0])


def _single_axes(longer: Sizes, shorter: Sizes) -> Sizes | None:
    """Return axes of size 1 whose removal turns `longer` into `shorter`; `None` if there are none.

    If several lists of axes fit, any of them is right: axes of size 1 do not affect the order of elements.
    """
    axes: list[int] = []
    for axis, size in enumerate(longer):
        position = axis - len(axes)
        if position >= len(shorter) or shorter[position] != size:
            axes.append(axis)
    is_found = len(longer) - len(axes) == len(shorter) and all(longer[axis] == 1 for axis in axes)
    return tuple(axes) if axes and is_found else None


def _axes_of_reduction(known: KnownNode) -> Sizes | None:
    data, output = known.data, known.outputs[0]
    if data is None or len(data) > MAX_REDUCED_RANK:
        return None
    every = tuple(range(len(data)))
    if_empty = () if known.attribute("noop_with_empty_axes") == 1 else every
    counts = (*every[1:], len(data), 0) if known.length is None else (known.length,)
    keeps = known.attribute("keepdims") == 1
    found: dict[Hashable, Sizes] = {}
    for axes in chain.from_iterable(combinations(every, count) for count in counts):
        reduced = axes or if_empty
        sizes = [1 if axis in reduced else size for axis, size in enumerate(data)]
        if output == tuple(size for axis, size in enumerate(sizes) if keeps or axis not in reduced):
            # Reducing axes of size 1 keeps the elements, except with operators such as ReduceL1.
            changed = bool(reduced) and known.operator.name not in _KEEP_SINGLE_ELEMENTS
            found.setdefault((changed, *(axis for axis in reduced if data[axis] != 1)), axes)
    return next(iter(found.values())) if len(found) == 1 else None


_KEEP_SINGLE_ELEMENTS = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum")
"""Operators that reduce a single element to itself."""


def _along_axes(known: KnownNode) -> Sizes | None:
    axes = known.axes()
    return axes and tuple(known.outputs[0][axis] for axis in axes)


def _sizes_of_resize(known: KnownNode) -> Sizes | None:
    is_stretched = known.attribute("keep_aspect_ratio_policy") in (None, b"stretch")
    return _along_axes(known) if is_stretched else None


_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")

RULES: Final[Mapping[str, Mapping[str, Rule]]] = {
    # The number of channels does not affect the sampling grid: any size, such as 1, is right.
    "AffineGrid": {"size": lambda known: (*known.outputs[0][:1], 1, *known.outputs[0][1:-1])},
    "CenterCropPad": {"shape": _along_axes},
    "ConstantOfShape": {"input": _output_shape},
    "Expand": {"shape": _shape_of_expand},
    "MaxUnpool": {"output_shape": _output_shape},
    "OneHot": {"depth": lambda known: known.at_axis(known.outputs[0])},
    "Reshape": {"shape": _shape_of_reshape},
    "Resize": {"sizes": _sizes_of_resize},
    "Split": {"split": _lengths_of_split},
    "Squeeze": {"axes": _axes_of_squeeze},
    "Tile": {"repeats": _repeats_of_tile},
    "TopK": {"K": lambda known: known.at_axis(known.outputs[0])},
    "Unsqueeze": {"axes": _axes_of_unsqueeze},
    **{f"Reduce{each}": {"axes": _axes_of_reduction} for each in _REDUCTIONS},
    **{f"{each}Window": {"size": _output_shape} for each in ("Blackman", "Hamming", "Hann")},
}
"""Rules by op_type in the default domain, and by name of the input."""


class KnownShape(NamedTuple):
    """Sizes of a value, and the name of the value whose declared shape determines them."""

    sizes: Sizes
    source: str


class Determined(NamedTuple):
    """Constant that an input of a node must have, and the output shape that determines it."""

    position: int
    parameter: str
    tensor: Tensor
    output: KnownShape


def assume_constants(model: ModelProto, registry: Registry) -> tuple[str, ...]:
    """Replace computed inputs of nodes by constants, and return one sentence for each replaced input.

    The declared shapes must allow only one result of the node that reads the input. Graph inputs remain.
    Models below IR version 4 and nodes in functions stay unchanged; in functions, shapes may differ between
    calls.
    """
    sentences: list[str] = []
    if model.ir_version >= FIRST_IR_WITH_STANDALONE_INITIALIZERS:
        names = FreshNames()
        names.avoid(*root_graphs(model))
        # A new constant may determine shapes, and thereby further inputs: repeat.
        while found := list(_replace_inputs(model, registry, names)):
            sentences += found
    return tuple(sentences)


def _replace_inputs(model: ModelProto, registry: Registry, names: FreshNames) -> Iterator[str]:
    """Replace inputs with one possible value by new initializers; yield a sentence for each.

    Only nodes in the main graph and in its subgraphs change.
    """
    functions = {(canonical_domain(each.domain), each.name) for each in model.functions}
    constants = ConstantValues()
    for scope, path in graph_scopes(model, registry):
        linked = _linked_shapes(scope)
        for node in scope.container.node:
            operator = scope.operator(node.op_type, node.domain)
            is_call = (canonical_domain(node.domain), node.op_type) in functions
            if operator is None or operator.domain != DEFAULT_DOMAIN or is_call:
                continue
            for each in _determined_inputs(node, operator, scope, linked, constants):
                node.input[each.position] = new = names.fresh(node.input[each.position])
                write_tensor(model.graph.initializer.add(), each.tensor, new)
                change = f"`{each.parameter}` becomes {list(each.tensor.values)}"
                reason = f"the declared shape {list(each.output.sizes)} of {each.output.source!r}"
                yield f"{node_place(path, node)}: {change}: {reason} admits no other result"


def _determined_inputs(
    node: NodeProto,
    operator: OperatorVersion,
    scope: InferenceScope,
    linked: Mapping[str, KnownShape],
    constants: ConstantValues,
) -> Iterator[Determined]:
    """Yield constants for the inputs that are not constant and have only one possible value."""
    rules = RULES.get(operator.name, {})
    for position, name in enumerate(node.input):
        formal = parameter_at(operator.inputs, position)
        if formal is None or formal.name not in rules or not name or constants.contain(scope, name):
            continue
        outputs = [_known_shape(scope, each) or linked.get(each) for each in node.output]
        shape, element_type = scope.shape(name), scope.element_type(name)
        if not outputs or outputs[0] is None or shape is None or len(shape) > 1 or element_type is None:
            continue
        data = _known_shape(scope, node.input[0])
        length = shape[0] if shape else 1
        sizes = tuple(each.sizes for each in outputs if each)
        values = rules[formal.name](KnownNode(scope.node(node), operator, data and data.sizes, sizes, length))
        if values is not None and length in (None, len(values)):
            tensor = Tensor(element_type, (len(values),) if shape else (), tuple(values))
            yield Determined(position, formal.name, tensor, outputs[0])


def _linked_shapes(scope: InferenceScope) -> dict[str, KnownShape]:
    """Return shapes of node inputs that follow from output shapes, for operators that keep the shape."""
    found: dict[str, KnownShape] = {}
    for node in reversed(scope.container.node):
        operator = scope.operator(node.op_type, node.domain)
        link = shape_link(operator) if operator else None
        if link is not None and link < len(node.input) and node.output:
            output = _known_shape(scope, node.output[0]) or found.get(node.output[0])
            if output is not None:
                found.setdefault(node.input[link], output)
    return found


def _known_shape(scope: InferenceScope, name: str) -> KnownShape | None:
    shape = scope.shape(name) if name else None
    sizes = tuple(each for each in shape or () if each is not None)
    return KnownShape(sizes, name) if sizes == shape else None
