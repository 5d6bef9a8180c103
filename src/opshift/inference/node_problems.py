"""Checks of attribute groups and axes of nodes against operator definitions."""

from collections.abc import Callable, Collection, Iterator

from opshift.inference.facts import Facts
from opshift.model.node import Node
from opshift.registry.models import OperatorVersion

AXIS_NAMES = ("axis", "axes")
"""Names of the attributes, and of the inputs, that contain the axes of a node."""


def choice_problem(operator: OperatorVersion, names: Collection[str]) -> str | None:
    """Return a message if `names` has none or several attributes of a `one_of` group, else `None`."""
    for group in operator.one_of:
        declared = [name for name in group if name in operator.attributes]
        present = [name for name in declared if name in names]
        if declared and len(present) != 1:
            found = " and ".join(present) or "none"
            return f"has {found} of the attributes {', '.join(declared)}; expected exactly one"
    return None


def axis_problem(
    node: Node, operator: OperatorVersion, facts: Facts, rank_of: Callable[[str], int | None]
) -> str | None:
    """Return a message if a known axis exceeds a known rank, else `None`; default axes are not checked."""
    axes = list(_declared_axes(node, operator, facts)) if operator.axes else ()
    rank = rank_of(node.inputs[0]) if axes and node.input(0) else None
    if rank is None:
        return None
    limit = rank + len(axes) if operator.axes == "new" else rank
    highest = limit if operator.axes == "boundary" else limit - 1
    for axis in axes:
        if not -limit <= axis <= highest:
            return f"axis {axis} is out of range for {node.inputs[0]!r}, which has {rank} dimensions"
    return None


def _declared_axes(node: Node, operator: OperatorVersion, facts: Facts) -> Iterator[int]:
    for name in AXIS_NAMES:
        declared = node.attributes.get(name)
        parameter = operator.input_named(name)
        if declared is not None and not getattr(declared, "ref_attr_name", ""):
            value = node.attribute(name)
        elif parameter is not None and node.input(parameter[0]):
            constant = facts.constant(node.input(parameter[0]))
            value = constant.values if constant else ()
        else:
            continue
        yield from (
            each for each in (value if isinstance(value, tuple | list) else (value,)) if isinstance(each, int)
        )
