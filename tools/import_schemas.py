"""Append the operators of `com.microsoft` to `opsets/` that only the installed onnxruntime defines.

    python tools/import_schemas.py [--write] [--folder opsets]

Like tools/import_onnx.py, it imports only facts and never changes existing versions. If one differs from the
installed onnxruntime, it is printed and the exit code is 1.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast

from onnx import AttributeProto
from onnxruntime.capi import onnxruntime_pybind11_state as state

from import_onnx import import_all
from opshift.registry.registry import default_registry

if TYPE_CHECKING:
    from onnx import defs

DOMAIN: Final = "com.microsoft"


def main() -> int:
    """Run the command; return 1 if an existing version differs."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--write", action="store_true", help="write the files (otherwise only report)")
    arguments.add_argument("--folder", type=Path, default=Path("opsets"))
    given = arguments.parse_args()
    return import_all(given.folder, given.write, microsoft_schemas())


def microsoft_schemas() -> list[defs.OpSchema]:
    """Return the schemas of `com.microsoft` with the properties of `onnx.defs.OpSchema` that are imported."""
    listed = (each for each in state.get_all_operator_schema() if _is_microsoft(each))
    return [cast("defs.OpSchema", _schema_fields(each)) for each in listed]


def _is_microsoft(schema: Any) -> bool:
    """Return whether a schema belongs to com.microsoft, or is nonstandard in the default domain."""
    nonstandard = default_registry().releases.nonstandard
    return schema.domain == DOMAIN or (
        (schema.domain, schema.since_version) == ("", 1) and nonstandard.get(schema.name) == DOMAIN
    )


def _schema_fields(schema: Any) -> SimpleNamespace:
    return SimpleNamespace(
        name=schema.name,
        domain=DOMAIN,
        since_version=schema.since_version,
        deprecated=schema.deprecated,
        support_level=schema.support_level,
        # onnxruntime does not declare that dropout is random in training
        node_determinism=SimpleNamespace(
            name="NonDeterministic"
            if any(each.name == "training_mode" for each in schema.inputs)
            else "Deterministic"
        ),
        inputs=[_parameter_fields(each, schema.min_input - i) for i, each in enumerate(schema.inputs)],
        outputs=[_parameter_fields(each, schema.min_output - i) for i, each in enumerate(schema.outputs)],
        attributes={name: _attribute_fields(each) for name, each in schema.attributes.items()},
        type_constraints=schema.type_constraints,
    )


def _parameter_fields(parameter: Any, required: int) -> SimpleNamespace:
    """Return a parameter; if `required`, the parameters after it are required, too."""
    return SimpleNamespace(
        name=parameter.name,
        type_str=parameter.typeStr,
        option=parameter.option,
        is_homogeneous=parameter.isHomogeneous,
        min_arity=max(required, 0) if parameter.option.name == "Variadic" else 1,
        differentiation_category=SimpleNamespace(name="Unknown"),
    )


def _attribute_fields(attribute: Any) -> SimpleNamespace:
    default = AttributeProto.FromString(attribute._default_value)
    return SimpleNamespace(type=attribute.type, required=attribute.required, default_value=default)


if __name__ == "__main__":
    sys.exit(main())
