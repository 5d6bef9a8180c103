"""An operator-set registry and version converter for ONNX.

    import opshift
    newer = opshift.convert_version(model, target=17)
    opshift.default_registry().get_schema("Softmax", 12)

Names are loaded when they are first used.
"""

from opshift.registry.function_builder import set_function_builder

# `TYPE_CHECKING` without `typing`: type checkers treat the name as true, and the import would take longer
# than the rest of this module. Time matters, because Ctrl+C is handled only after this import.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from opshift.adapters.core.adapter_table import adapter as adapter
    from opshift.adapters.core.adapter_table import load_adapters as load_adapters
    from opshift.analysis.comparison.compare import Comparison as Comparison
    from opshift.analysis.comparison.compare import compare as compare
    from opshift.analysis.doctor.diagnose import diagnose as diagnose
    from opshift.analysis.doctor.diagnosis import Diagnosis as Diagnosis
    from opshift.analysis.doctor.restamp import restamp as restamp
    from opshift.analysis.fit.fit import fit as fit
    from opshift.analysis.fit.result import DoesNotFit as DoesNotFit
    from opshift.analysis.fit.result import Fitted as Fitted
    from opshift.analysis.infer import InferredModel as InferredModel
    from opshift.analysis.infer import InferredValue as InferredValue
    from opshift.analysis.infer import infer as infer
    from opshift.analysis.model_diff.diff import diff_model as diff_model
    from opshift.analysis.model_diff.result import ModelDiff as ModelDiff
    from opshift.analysis.pages.write_report import write_report as write_report
    from opshift.analysis.reach import CommonOpset as CommonOpset
    from opshift.analysis.reach import NoCommonOpset as NoCommonOpset
    from opshift.analysis.reach import common_opset as common_opset
    from opshift.analysis.runs import Runs as Runs
    from opshift.analysis.runs import runs as runs
    from opshift.analysis.verification.references import load_references as load_references
    from opshift.analysis.verification.references import reference as reference
    from opshift.analysis.verification.result import CannotVerify as CannotVerify
    from opshift.analysis.verification.result import Verification as Verification
    from opshift.analysis.verification.result import VerificationFailed as VerificationFailed
    from opshift.analysis.verification.verify import verify as verify
    from opshift.batch.convert_many import convert_many as convert_many
    from opshift.batch.outcome import ModelError as ModelError
    from opshift.batch.outcome import ModelOutcome as ModelOutcome
    from opshift.checker.check import check as check
    from opshift.checker.findings import Finding as Finding
    from opshift.checker.findings import IllegalModel as IllegalModel
    from opshift.converter.convert import Conversion as Conversion
    from opshift.converter.convert import convert as convert
    from opshift.converter.convert import convert_types as convert_types
    from opshift.converter.convert import convert_version as convert_version
    from opshift.converter.convert import plan_version as plan_version
    from opshift.converter.convert import simplify as simplify
    from opshift.converter.convert_node import ConvertedNode as ConvertedNode
    from opshift.converter.convert_node import convert_node as convert_node
    from opshift.converter.convert_node import validate_node as validate_node
    from opshift.converter.refusals import ConversionRefused as ConversionRefused
    from opshift.converter.report import Report as Report
    from opshift.converter.streaming.convert_file import convert_file as convert_file
    from opshift.model.errors import CannotConvert as CannotConvert
    from opshift.model.errors import CannotWrite as CannotWrite
    from opshift.model.errors import InvalidModel as InvalidModel
    from opshift.model.errors import OpshiftError as OpshiftError
    from opshift.model.errors import UsageError as UsageError
    from opshift.model.extensions import ExtensionFailed as ExtensionFailed
    from opshift.model.files import read_model as read_model
    from opshift.model.files import write_model as write_model
    from opshift.model.messages import ModelProto as ModelProto
    from opshift.model.model_version import pack_version as pack_version
    from opshift.model.model_version import unpack_version as unpack_version
    from opshift.model.operator_ids import OperatorId as OperatorId
    from opshift.registry.changes.classify import classify as classify
    from opshift.registry.errors import ResolveError as ResolveError
    from opshift.registry.fingerprints import fingerprint as fingerprint
    from opshift.registry.models import OperatorVersion as OperatorVersion
    from opshift.registry.registry import Registry as Registry
    from opshift.registry.registry import default_registry as default_registry
    from opshift.registry.registry import load_registry as load_registry
    from opshift.version import __version__ as __version__

_NAMES = {
    "adapters.core.adapter_table": ("adapter", "load_adapters"),
    "analysis.reach": ("CommonOpset", "NoCommonOpset", "common_opset"),
    "analysis.comparison.compare": ("Comparison", "compare"),
    "model.model_version": ("pack_version", "unpack_version"),
    "analysis.doctor.diagnose": ("diagnose",),
    "analysis.doctor.diagnosis": ("Diagnosis",),
    "analysis.doctor.restamp": ("restamp",),
    "analysis.fit.fit": ("fit",),
    "analysis.fit.result": ("DoesNotFit", "Fitted"),
    "analysis.infer": ("InferredModel", "InferredValue", "infer"),
    "analysis.model_diff.diff": ("diff_model",),
    "analysis.model_diff.result": ("ModelDiff",),
    "analysis.pages.write_report": ("write_report",),
    "batch.convert_many": ("convert_many",),
    "batch.outcome": ("ModelError", "ModelOutcome"),
    "analysis.runs": ("Runs", "runs"),
    "analysis.verification.references": ("load_references", "reference"),
    "analysis.verification.result": ("CannotVerify", "Verification", "VerificationFailed"),
    "analysis.verification.verify": ("verify",),
    "checker.check": ("check",),
    "checker.findings": ("Finding", "IllegalModel"),
    "converter.convert": (
        "Conversion",
        "convert",
        "convert_types",
        "convert_version",
        "plan_version",
        "simplify",
    ),
    "converter.convert_node": ("ConvertedNode", "convert_node", "validate_node"),
    "converter.refusals": ("ConversionRefused",),
    "converter.report": ("Report",),
    "converter.streaming.convert_file": ("convert_file",),
    "model.errors": ("CannotConvert", "CannotWrite", "InvalidModel", "OpshiftError", "UsageError"),
    "model.extensions": ("ExtensionFailed",),
    "model.files": ("read_model", "write_model"),
    "model.messages": ("ModelProto",),
    "model.operator_ids": ("OperatorId",),
    "registry.changes.classify": ("classify",),
    "registry.errors": ("ResolveError",),
    "registry.fingerprints": ("fingerprint",),
    "registry.models": ("OperatorVersion",),
    "registry.registry": ("Registry", "default_registry", "load_registry"),
}
"""Exported names of each module."""

_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_HOMES)

_HOMES["__version__"] = "version"


def _module(name: str) -> "Any":
    """Import a module of opshift by its name without `opshift.`."""
    from importlib import import_module  # imported here: slow to import, and rarely needed

    return import_module(f"opshift.{name}")


# Hidden from type checkers, which would accept every attribute because of `__getattr__`.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        home = _HOMES.get(name)
        if home is None:
            raise AttributeError(f"module 'opshift' has no attribute {name!r}")
        value = getattr(_module(home), name)
        globals()[name] = value
        return value


set_function_builder(lambda: _module("rewriting.function_body").function_body)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
