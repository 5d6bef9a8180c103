"""Add the schemas of releases of onnxruntime that differ from the definitions to their files.

    python tools/import_schema_differences.py 1.31.1 1.32.0
    python tools/import_schema_differences.py --folder ~/releases 1.20.1

onnxruntime changes operators of its domain without a new version. Each wheel is installed from PyPI into a
temporary folder, or is in `--folder` in a folder named after the release, and a separate process lists its
schemas. The key `schemas` of a file has the differences from the definitions in `opsets/`, except those
that it inherits. Releases before 1.16 cannot list schemas.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from import_kernels import NUMPY
from import_onnx import cover_with_sets, flow
from opshift.model.types import short_type
from opshift.registry.models import OperatorVersion
from opshift.registry.record import from_plain_data
from opshift.registry.registry import default_registry
from opshift.registry.releases import version_numbers
from opshift.registry.runtimes.files import RUNTIMES, get_runtime
from opshift.registry.runtimes.runtime import SchemaDifference
from opshift.runtimes.schema_problems import parameter_count

DOMAIN: Final = "com.microsoft"

LIST_SCHEMAS: Final = """
import json
from onnxruntime.capi import onnxruntime_pybind11_state as state
def parameters(listed):
    return [(each.name, each.typeStr, each.option.name) for each in listed]
def schema(each):
    return {
        "domain": each.domain, "name": each.name, "version": each.since_version,
        "inputs": parameters(each.inputs), "outputs": parameters(each.outputs),
        "input_count": (each.min_input, each.max_input), "output_count": (each.min_output, each.max_output),
        "attributes": {name: attribute.required for name, attribute in each.attributes.items()},
        "types": {types.type_param_str: list(types.allowed_type_strs) for types in each.type_constraints},
    }
print(json.dumps([schema(each) for each in state.get_all_operator_schema()]))
"""

Plain = dict[str, Any]


class Schema(NamedTuple):
    """Schema of an operator in a release."""

    domain: str
    name: str
    version: int
    inputs: Sequence[tuple[str, str, str]]
    outputs: Sequence[tuple[str, str, str]]
    input_count: tuple[int, int]
    output_count: tuple[int, int]
    attributes: Mapping[str, bool]
    """Whether each attribute is required, by name."""
    types: Mapping[str, Sequence[str]]

    def types_of(self, variable: str) -> frozenset[str]:
        """Return the types of a type variable, or the type itself."""
        return frozenset(self.types.get(variable, (variable,)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("versions", nargs="+", help="releases of onnxruntime")
    parser.add_argument("--folder", type=Path, help="folder with installed releases")
    options = parser.parse_args(arguments)
    for version in sorted(options.versions, key=version_numbers):
        listed = (
            list_schemas([options.folder / version, options.folder / "numpy1"])
            if options.folder
            else installed_schemas(version)
        )
        add_differences(version, schema_differences(listed))


def installed_schemas(version: str) -> list[Schema]:
    """Install a release into a temporary folder, and return its schemas."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder]
        subprocess.run([*pip, f"onnxruntime=={version}", NUMPY], check=True)
        return list_schemas([Path(folder)])


def list_schemas(folders: Iterable[Path]) -> list[Schema]:
    """Return the schemas of the domain in the release in some folders."""
    environment = {"PYTHONPATH": ":".join(map(str, folders))}
    command = [sys.executable, "-c", LIST_SCHEMAS]
    result = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE)
    nonstandard = default_registry().releases.nonstandard
    schemas = (Schema(**each) for each in json.loads(result.stdout))
    return [
        each
        for each in schemas
        if each.domain == DOMAIN or (each.domain == "" and each.version == 1 and each.name in nonstandard)
    ]


def schema_differences(listed: Iterable[Schema]) -> dict[str, Plain]:
    """Return the differences of schemas from the definitions, by operator."""
    found: dict[str, Plain] = {}
    for schema in listed:
        definition = default_registry().at(schema.name, schema.version, DOMAIN)
        own = difference(definition, schema) if definition else {}
        if own:
            found[f"{schema.domain or 'ai.onnx'}.{schema.name}"] = own
    return dict(sorted(found.items()))


def difference(definition: OperatorVersion, schema: Schema) -> Plain:
    """Return the differences of a schema from a definition, in the format of runtime files."""
    found: Plain = {}
    for key, own, count in (
        ("inputs", definition.inputs, schema.input_count),
        ("outputs", definition.outputs, schema.output_count),
    ):
        if tuple(count) != parameter_count(own):
            found[key] = list(count)
    known = definition.attributes
    found["lacks"] = sorted(known.keys() - schema.attributes)
    found["adds"] = sorted(schema.attributes - known.keys())
    found["requires"] = sorted(
        name
        for name, required in schema.attributes.items()
        if required and name in known and not known[name].required
    ) + [
        own.name
        for own, (_, _, option) in zip(definition.inputs, schema.inputs, strict=False)
        if own.option == "optional" and option == "Single"
    ]
    found["types"] = _type_differences(definition, schema)
    return {key: value for key, value in found.items() if value}


def _type_differences(definition: OperatorVersion, schema: Schema) -> Plain:
    """Return the types that differ from the definition, of type variables or else of parameters."""
    pairs = [
        (own, schema.types_of(variable))
        for parameters, listed in ((definition.inputs, schema.inputs), (definition.outputs, schema.outputs))
        for own, (_, variable, _) in zip(parameters, listed, strict=False)
    ]
    found: Plain = {}
    for variable in dict.fromkeys(own.type for own, _ in pairs):
        accepted = [(own, types) for own, types in pairs if own.type == variable]
        is_alike = len({types for _, types in accepted}) == 1
        for own, types in accepted[:1] if is_alike else accepted:
            if types != frozenset(definition.types_of(own)):
                key = variable if is_alike and variable in definition.type_constraints else own.name
                found[key] = [*map(short_type, cover_with_sets(types, default_registry().types))]
    return found


def add_differences(version: str, found: Mapping[str, Plain]) -> None:
    """Add the differences of a release, except inherited ones, to its file."""
    path = RUNTIMES / "onnxruntime" / f"{version}.yaml"
    text = path.read_text("utf-8")
    if "\nschemas:" in text:
        sys.exit(f"{path} has schemas already")
    inherited = _inherited_differences(version)
    records = {name: from_plain_data(SchemaDifference, each) for name, each in found.items()}
    own = {name: found[name] for name, each in records.items() if inherited.get(name) != each}
    own |= {name: {} for name in inherited if name not in found}
    lines = [f"  {name}: {flow(each)}" for name, each in sorted(own.items())]
    if lines:
        path.write_text("\n".join([text.rstrip(), "schemas:", *lines, ""]), "utf-8")
    print(f"{path}: {len(own)} of {len(found)} differences are new")


def _inherited_differences(version: str) -> Mapping[str, SchemaDifference]:
    return get_runtime(f"onnxruntime-{version}").schemas


if __name__ == "__main__":
    main()
