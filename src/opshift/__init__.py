"""An operator-set registry and version converter for ONNX.

    import opshift
    newer = opshift.convert_version(model, target=17)
    opshift.default_registry().get_schema("Softmax", 12)

Names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opshift.adapters.refusal import CannotConvert as CannotConvert
    from opshift.adapters.table import adapter as adapter
    from opshift.converter.convert import Conversion as Conversion
    from opshift.converter.convert import convert as convert
    from opshift.converter.convert import convert_version as convert_version
    from opshift.converter.convert import plan_version as plan_version
    from opshift.converter.errors import ConversionRefused as ConversionRefused
    from opshift.converter.errors import InvalidModel as InvalidModel
    from opshift.converter.errors import UsageError as UsageError
    from opshift.converter.files import read_model as read_model
    from opshift.converter.files import write_model as write_model
    from opshift.converter.report import Report as Report
    from opshift.registry.catalogue import Registry as Registry
    from opshift.registry.catalogue import default_registry as default_registry
    from opshift.registry.errors import OpshiftError as OpshiftError
    from opshift.registry.errors import ResolveError as ResolveError
    from opshift.registry.messages import ModelProto as ModelProto
    from opshift.registry.models import OperatorVersion as OperatorVersion
    from opshift.registry.names import OperatorId as OperatorId

_HOMES = {
    "CannotConvert": "adapters.refusal",
    "Conversion": "converter.convert",
    "ConversionRefused": "converter.errors",
    "InvalidModel": "converter.errors",
    "ModelProto": "registry.messages",
    "OperatorId": "registry.names",
    "OperatorVersion": "registry.models",
    "OpshiftError": "registry.errors",
    "Registry": "registry.catalogue",
    "Report": "converter.report",
    "ResolveError": "registry.errors",
    "UsageError": "converter.errors",
    "adapter": "adapters.table",
    "convert": "converter.convert",
    "convert_version": "converter.convert",
    "default_registry": "registry.catalogue",
    "plan_version": "converter.convert",
    "read_model": "converter.files",
    "write_model": "converter.files",
}

__all__ = sorted(_HOMES)
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'opshift' has no attribute {name!r}")
    value = getattr(import_module(f"opshift.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
