"""Builder of function bodies.

The builder needs the registry, and adapters for bodies that depend on a node. To avoid a circular import, the
package `opshift` sets the builder. This module imports nothing, not even `__future__`, because it is part of
`import opshift`.
"""

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from opshift.model.messages import FunctionProto
    from opshift.model.types import InputFacts, SerializableMessage
    from opshift.registry.models import OperatorVersion
    from opshift.registry.registry import Registry

    FunctionBuilder: TypeAlias = Callable[
        [
            OperatorVersion,
            SerializableMessage | None,
            Sequence[InputFacts | None],
            int | None,
            Registry | None,
        ],
        FunctionProto,
    ]

_loaders: "list[Callable[[], FunctionBuilder]]" = []


def set_function_builder(load: "Callable[[], FunctionBuilder]") -> None:
    """Set the function that imports and returns the builder, in place of an earlier one."""
    _loaders[:] = [load]


def function_builder() -> "FunctionBuilder":
    """Import and return the builder."""
    return _loaders[0]()
