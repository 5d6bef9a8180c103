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
    from opshift.adapters.extensions import load_adapters as load_adapters
    from opshift.adapters.refusal import CannotConvert as CannotConvert
    from opshift.adapters.table import adapter as adapter
    from opshift.converter.common_opset import CommonOpset as CommonOpset
    from opshift.converter.common_opset import NoCommonOpset as NoCommonOpset
    from opshift.converter.common_opset import common_opset as common_opset
    from opshift.converter.comparison.compare import compare as compare
    from opshift.converter.comparison.result import Comparison as Comparison
    from opshift.converter.convert import Conversion as Conversion
    from opshift.converter.convert import convert as convert
    from opshift.converter.convert import convert_version as convert_version
    from opshift.converter.convert import plan_version as plan_version
    from opshift.converter.convert_node import ConvertedNode as ConvertedNode
    from opshift.converter.convert_node import convert_node as convert_node
    from opshift.converter.doctor.diagnose import diagnose as diagnose
    from opshift.converter.doctor.diagnosis import Diagnosis as Diagnosis
    from opshift.converter.doctor.restamp import restamp as restamp
    from opshift.converter.errors import ConversionRefused as ConversionRefused
    from opshift.converter.errors import InvalidModel as InvalidModel
    from opshift.converter.errors import UsageError as UsageError
    from opshift.converter.files import read_model as read_model
    from opshift.converter.files import write_model as write_model
    from opshift.converter.legality.check import check as check
    from opshift.converter.legality.findings import Finding as Finding
    from opshift.converter.legality.findings import IllegalModel as IllegalModel
    from opshift.converter.model_version import pack_version as pack_version
    from opshift.converter.model_version import unpack_version as unpack_version
    from opshift.converter.report import Report as Report
    from opshift.converter.streaming.convert_file import convert_file as convert_file
    from opshift.converter.verification.result import CannotVerify as CannotVerify
    from opshift.converter.verification.result import Verification as Verification
    from opshift.converter.verification.result import VerificationFailed as VerificationFailed
    from opshift.converter.verification.verify import verify as verify
    from opshift.registry.catalogue import Registry as Registry
    from opshift.registry.catalogue import default_registry as default_registry
    from opshift.registry.changes.classify import classify as classify
    from opshift.registry.errors import OpshiftError as OpshiftError
    from opshift.registry.errors import ResolveError as ResolveError
    from opshift.registry.fingerprints import fingerprint as fingerprint
    from opshift.registry.messages import ModelProto as ModelProto
    from opshift.registry.models import OperatorVersion as OperatorVersion
    from opshift.registry.names import OperatorId as OperatorId

_HOMES = {
    "CannotConvert": "adapters.refusal",
    "CannotVerify": "converter.verification.result",
    "CommonOpset": "converter.common_opset",
    "Comparison": "converter.comparison.result",
    "Conversion": "converter.convert",
    "ConversionRefused": "converter.errors",
    "ConvertedNode": "converter.convert_node",
    "Diagnosis": "converter.doctor.diagnosis",
    "Finding": "converter.legality.findings",
    "IllegalModel": "converter.legality.findings",
    "InvalidModel": "converter.errors",
    "ModelProto": "registry.messages",
    "NoCommonOpset": "converter.common_opset",
    "OperatorId": "registry.names",
    "OperatorVersion": "registry.models",
    "OpshiftError": "registry.errors",
    "Registry": "registry.catalogue",
    "Report": "converter.report",
    "ResolveError": "registry.errors",
    "UsageError": "converter.errors",
    "Verification": "converter.verification.result",
    "VerificationFailed": "converter.verification.result",
    "adapter": "adapters.table",
    "check": "converter.legality.check",
    "classify": "registry.changes.classify",
    "common_opset": "converter.common_opset",
    "compare": "converter.comparison.compare",
    "convert": "converter.convert",
    "convert_file": "converter.streaming.convert_file",
    "convert_node": "converter.convert_node",
    "convert_version": "converter.convert",
    "default_registry": "registry.catalogue",
    "diagnose": "converter.doctor.diagnose",
    "fingerprint": "registry.fingerprints",
    "load_adapters": "adapters.extensions",
    "pack_version": "converter.model_version",
    "plan_version": "converter.convert",
    "read_model": "converter.files",
    "restamp": "converter.doctor.restamp",
    "unpack_version": "converter.model_version",
    "verify": "converter.verification.verify",
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
