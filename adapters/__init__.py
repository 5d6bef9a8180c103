"""Adapters: functions that rewrite nodes of one operator version for another version or with other operators.

External adapters import all names from this package.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opshift.adapters.core.adapter_table import adapter as adapter
    from opshift.adapters.core.adapter_table import expression as expression
    from opshift.adapters.core.adapter_table import function_body as function_body
    from opshift.adapters.core.adapter_table import load_adapters as load_adapters
    from opshift.adapters.core.rewriter import Rewriter as Rewriter
    from opshift.adapters.core.type_guard import require_supported_types as require_supported_types
    from opshift.model.errors import CannotConvert as CannotConvert
    from opshift.model.errors import UnknownElementType as UnknownElementType
    from opshift.model.errors import UnknownShape as UnknownShape
    from opshift.model.node import Emitted as Emitted
    from opshift.model.node import Graph as Graph
    from opshift.model.node import Node as Node
    from opshift.model.node import Tensor as Tensor
    from opshift.model.node import Value as Value

_NAMES = {
    "adapters.core.adapter_table": ("adapter", "expression", "function_body", "load_adapters"),
    "adapters.core.rewriter": ("Rewriter",),
    "adapters.core.type_guard": ("require_supported_types",),
    "model.errors": ("CannotConvert", "UnknownElementType", "UnknownShape"),
    "model.node": ("Emitted", "Graph", "Node", "Tensor", "Value"),
}
"""Exported names, by the module that defines them."""

_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_HOMES)


# Modules are imported on first use: a package that imports its own modules can deadlock with a thread that
# imports one of these modules, and Python then continues with an incomplete module.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'opshift.adapters' has no attribute {name!r}")
        value = getattr(import_module(f"opshift.{home}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return __all__
