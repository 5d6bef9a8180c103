"""Names for shape rules of private domains: functions that infer the output shapes of a node.

    from opshift.shapes import Shapes, ShapeContext, rule

    @rule("acme_thin")
    def thin(node: ShapeContext) -> Shapes:
        shape, stride = node.shape(0), node.integer("stride")
        ...
        return [(rows, *shape[1:])]

A definition names its rule: `shape: acme_thin`. A rule must not guess: it returns `None` for an output of
unknown rank, and for each unknown dimension. Input shapes may be unknown, and nodes may be invalid.
"""

from opshift.model.types import Shape as Shape
from opshift.registry.shapes.dims import broadcast as broadcast
from opshift.registry.shapes.rule_table import ShapeRule as ShapeRule
from opshift.registry.shapes.rule_table import Shapes as Shapes
from opshift.registry.shapes.rule_table import data_rule as data_rule
from opshift.registry.shapes.rule_table import rule as rule
from opshift.registry.shapes.shape_context import ShapeContext as ShapeContext
