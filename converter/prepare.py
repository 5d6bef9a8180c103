"""Changes that the caller requests before a conversion: declared shapes, and folding."""

from opshift.converter.options import Options
from opshift.model.messages import ModelProto


def prepare(model: ModelProto, options: Options, *, owned: bool) -> tuple[ModelProto, tuple[str, ...]]:
    """Return a model with declared shapes and folded values, and the changes; a copy unless it is owned."""
    changes: tuple[str, ...] = ()
    if options.shapes:
        from opshift.converter.declared_shapes import with_declared_shapes

        shapes = dict(options.shapes)
        model, changes = with_declared_shapes(model, shapes, options.registry, owned=owned)
    if options.fold:
        from opshift.converter.folding.fold import fold

        model, folded = fold(model, options, owned=owned or bool(changes))
        changes += folded
    return model, changes
