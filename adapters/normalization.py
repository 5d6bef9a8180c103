"""BatchNormalization and GroupNormalization: how training is told, and what scale and bias belong to."""

from __future__ import annotations

from opshift.adapters.node import Node, Tensor
from opshift.adapters.refusal import CannotConvert
from opshift.adapters.rewriter import Rewriter
from opshift.adapters.table import adapter
from opshift.registry.element_types import BY_NAME, BY_NUMBER

STASH_TYPES = {"float": None, "float16": 10, "double": 11, "bfloat16": 16}
"""The element type that GroupNormalization computed in before 21, as `stash_type` names it."""


@adapter("BatchNormalization", 6, 7)
def outputs_tell_training(node: Node, out: Rewriter) -> None:
    """`is_test` told inference from training; from 7 on the number of outputs does."""
    is_test = node.attribute("is_test", 0)
    if bool(is_test) == _is_training(node):
        raise CannotConvert(
            f"is_test is {is_test} with {len(node.outputs)} outputs, which from 7 on means the opposite",
            remedy="set is_test to 1 if the model is for inference",
        )
    out.become(node, attributes=node.without("is_test"))


@adapter("BatchNormalization", 7, 9)
def statistics_of_each_element(node: Node, out: Rewriter) -> None:
    """`spatial` 0 kept statistics for every element of a sample; that is plain arithmetic from 9 on."""
    if node.attribute("spatial", 1):
        out.become(node, attributes=node.without("spatial"))
        return
    if _is_training(node):
        raise CannotConvert("it trains with spatial 0, which no later version does")
    data, scale, bias, mean, variance = node.inputs
    epsilon = out.constant(node.attribute("epsilon", 1e-5), out.element_type(variance))
    deviation = out.emit("Sqrt", [out.emit("Add", [variance, epsilon])])
    normal = out.emit("Div", [out.emit("Sub", [data, mean]), deviation])
    out.emit("Add", [out.emit("Mul", [normal, scale]), bias], node.outputs[:1])


@adapter("BatchNormalization", 9, 14)
def training_is_an_attribute(node: Node, out: Rewriter) -> None:
    """The number of outputs told training; `training_mode` does from 14 on, and batch statistics are gone."""
    if not _is_training(node):
        out.become(node, outputs=node.outputs[:1])
        return
    if any(out.is_used(node.output(position)) for position in (3, 4)):
        raise CannotConvert("the statistics of the batch (outputs 4 and 5) are used, which 14 does not give")
    outputs = [node.output(position) or out.fresh("statistics") for position in range(3)]
    out.become(node, outputs=outputs, attributes={**node.attributes, "training_mode": 1})


@adapter("GroupNormalization", 18, 21)
def scale_and_bias_of_each_channel(node: Node, out: Rewriter) -> None:
    """`scale` and `bias` had one value a group; from 21 on they have one a channel."""
    data, scale, bias = node.inputs
    stash_type = _stash_type(out.element_type(data))
    groups = node.attribute("num_groups")
    shape = out.shape(data)
    channels = shape[1] if shape and len(shape) > 1 else None
    attributes = {**node.attributes, **({"stash_type": stash_type} if stash_type else {})}
    spread = [_repeated(name, groups, channels, data, out) for name in (scale, bias)]
    out.become(node, inputs=[data, *spread], attributes=attributes)


def _stash_type(element_type: str) -> int | None:
    return STASH_TYPES[element_type]


def _repeated(name: str, groups: int, channels: int | None, data: str, out: Rewriter) -> str:
    """Each of a group's values, once for every channel of the group."""
    tensor = out.constant_value(name)
    if tensor is not None and channels is not None:
        values = tuple(value for value in tensor.values for _ in range(channels // groups))
        return out.tensor(Tensor(tensor.element_type, (len(values),), values))
    column = out.emit("Reshape", [name, out.constant([-1, 1], "int64")])
    wide = out.emit("Expand", [column, _columns(groups, channels, data, out)])
    return out.emit("Reshape", [wide, out.constant([-1], "int64")])


def _columns(groups: int, channels: int | None, data: str, out: Rewriter) -> str:
    """The shape (1, channels of a group)."""
    if channels is not None:
        return out.constant([1, channels // groups], "int64")
    count = out.emit("Gather", [out.emit("Shape", [data]), out.constant([1], "int64")], axis=0)
    size = out.emit("Div", [count, out.constant([groups], "int64")])
    return out.emit("Concat", [out.constant([1], "int64"), size], axis=0)


def _is_training(node: Node) -> bool:
    return any(node.outputs[1:])


@adapter("GroupNormalization", 21, 18)
def groups_are_normalised_as_instances(node: Node, out: Rewriter) -> None:
    """Version 18 has no scale for a channel: groups are normalised as images, and channels scaled after."""
    _, scale, bias = node.inputs
    stash = BY_NUMBER[node.attribute("stash_type", 1)].name
    _scaled_channels(node, _normal_groups(node, stash, out), scale, bias, out)


@adapter("GroupNormalization", 18, 17)
def values_of_a_group_are_repeated(node: Node, out: Rewriter) -> None:
    """Groups are normalised as images; each channel is then scaled by the values of its group."""
    data, scale, bias = node.inputs
    shape = out.shape(data)
    channels = shape[1] if shape and len(shape) > 1 else None
    groups = node.attribute("num_groups")
    scale, bias = (_repeated(name, groups, channels, data, out) for name in (scale, bias))
    _scaled_channels(node, _normal_groups(node, out.element_type(data), out), scale, bias, out)


def _normal_groups(node: Node, compute: str, out: Rewriter) -> str:
    """Each group brought to mean 0 and variance 1, as an image with one dimension."""
    data, groups = node.inputs[0], node.attribute("num_groups")
    element_type = out.element_type(data)
    if compute == "bfloat16":  # InstanceNormalization takes it from 22 on
        compute = "float"
    if compute != element_type:
        data = out.emit("Cast", [data], to=BY_NAME[compute].number)
    normal = _instances(node, data, groups, compute, out)
    return normal if compute == element_type else out.emit("Cast", [normal], to=BY_NAME[element_type].number)


def _instances(node: Node, data: str, groups: int, element_type: str, out: Rewriter) -> str:
    apart = out.emit("Reshape", [data, out.constant([0, groups, -1], "int64")])
    ones = out.constant([1.0] * groups, element_type)
    zeros = out.constant([0.0] * groups, element_type)
    epsilon = node.attribute("epsilon", 1e-5)
    return out.emit("InstanceNormalization", [apart, ones, zeros], epsilon=epsilon)


def _scaled_channels(node: Node, normal: str, scale: str, bias: str, out: Rewriter) -> None:
    """Channel by channel, whatever the number of dimensions that follow."""
    shape = out.emit("Shape", node.inputs[:1])
    whole = out.emit("Reshape", [normal, shape])
    channels = out.emit("Reshape", [whole, out.constant([0, 0, -1], "int64")])
    column = out.constant([-1, 1], "int64")
    scale, bias = (out.emit("Reshape", [name, column]) for name in (scale, bias))
    scaled = out.emit("Mul", [channels, scale])
    moved = out.emit("Add", [scaled, bias])
    out.emit("Reshape", [moved, shape], node.outputs)
