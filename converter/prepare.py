"""Changes that the caller requests before a conversion: declared shapes, element types, and folding."""

from typing import NamedTuple

from opshift.converter.options import Options
from opshift.converter.refusals import Refusal
from opshift.model.messages import ModelProto
from opshift.registry.steps import Allow


class Prepared(NamedTuple):
    """Model with the requested changes.

    Attributes:
        model: the model.
        changes: descriptions of the changes, a sentence each.
        refusals: reasons why some of the changes are impossible.
        allowances: the kind and reason of each inexact change.
    """

    model: ModelProto
    changes: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    allowances: tuple[tuple[Allow, str], ...] = ()


def prepare(model: ModelProto, options: Options, *, owned: bool) -> Prepared:
    """Return a model with the requested changes; `model` itself may be changed only if it is `owned`."""
    changes: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    allowances: tuple[tuple[Allow, str], ...] = ()
    if options.shapes:
        from opshift.converter.declared_shapes import with_declared_shapes

        shapes = dict(options.shapes)
        model, changes = with_declared_shapes(model, shapes, options.registry, owned=owned)
    if options.types:
        from opshift.converter.element_types.convert_model import convert_element_types

        model, converted, refusals, allowances = convert_element_types(model, options)
        owned |= not refusals
        changes += converted
    if options.fold:
        from opshift.converter.folding.fold import fold

        model, folded = fold(model, options, owned=owned or bool(changes))
        changes += folded
    return Prepared(model, changes, refusals, allowances)
