"""Append operator versions to `opsets/` that the installed `onnx` defines and the registry lacks.

    python tools/import_onnx.py [--write] [--folder opsets]

Only facts are imported (names, order, types, defaults, options). The remaining decisions about a new version
are printed, one per line. Existing versions are never changed; if one differs from the installed `onnx`, it
is printed and the exit code is 1.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import yaml
from onnx import defs

from opshift.model.operator_ids import canonical_domain
from opshift.registry.loader import load_operator
from opshift.registry.models import OperatorVersion, Parameter
from opshift.registry.record import from_plain_data
from opshift.registry.type_sets import TypeSets

HEADER = "# yaml-language-server: $schema=../schema.json\n"
DIFFERENTIATION = {"Differentiable": "differentiable", "NonDifferentiable": "non_differentiable"}


def main() -> int:
    """Run the command; return 1 if a published version differs."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--write", action="store_true", help="write the files (otherwise only report)")
    arguments.add_argument("--folder", type=Path, default=Path("opsets"))
    given = arguments.parse_args()
    return import_all(given.folder, given.write, defs.get_all_schemas_with_history())


def import_all(folder: Path, write: bool, listed: Iterable[defs.OpSchema]) -> int:
    """Append every missing version to the files in `folder`; return 1 if a published version differs."""
    types = TypeSets.load(folder / "types.yaml")
    # Versions of an earlier import may still lack steps, so they are drafts.
    operators = [load_operator(path, types, draft=True) for path in sorted(folder.glob("*/*.yaml"))]
    by_name = {(operator.domain, operator.name): operator for operator in operators}
    differences = 0
    for (domain, name), schemas in sorted(_by_operator(listed).items()):
        operator = by_name.get((domain, name))
        known = {version.since_version: version for version in operator.versions} if operator else {}
        for schema in schemas:
            if schema.since_version in known:
                differences += _report_difference(known[schema.since_version], schema)
        missing = [schema for schema in schemas if schema.since_version not in known]
        if missing:
            _append_versions(folder / domain / f"{name}.yaml", missing, types, bool(known), write)
    print(f"{differences} published versions differ")
    return 1 if differences else 0


def facts(schema: defs.OpSchema) -> dict[str, Any]:
    """Return an `onnx.defs.OpSchema` as the content of a YAML definition, with all types listed."""
    found: dict[str, Any] = {
        "since_version": schema.since_version,
        "status": "EXPERIMENTAL" if schema.support_level.name == "EXPERIMENTAL" else "STABLE",
        "determinism": {"Deterministic": "deterministic", "NonDeterministic": "non_deterministic"}.get(
            schema.node_determinism.name, "unknown"
        ),
        "inputs": [_parameter_fields(p) for p in schema.inputs],
        "outputs": [_parameter_fields(p) for p in schema.outputs],
        "attributes": {name: _attribute_fields(a) for name, a in sorted(schema.attributes.items())},
        "type_constraints": {c.type_param_str: sorted(c.allowed_type_strs) for c in schema.type_constraints},
    }
    if found["determinism"] == "deterministic":
        del found["determinism"]
    if schema.deprecated:
        found["deprecation"] = {}
    # an empty `deprecation` also marks the version as deprecated
    return {key: value for key, value in found.items() if value not in ([], {}) or key == "deprecation"}


def _by_operator(listed: Iterable[defs.OpSchema]) -> dict[tuple[str, str], list[defs.OpSchema]]:
    found: dict[tuple[str, str], list[defs.OpSchema]] = defaultdict(list)
    for schema in sorted(listed, key=lambda s: s.since_version):
        found[canonical_domain(schema.domain), schema.name].append(schema)
    return found


def _parameter_fields(parameter: defs.OpSchema.FormalParameter) -> dict[str, Any]:
    found: dict[str, Any] = {"name": parameter.name, "type": parameter.type_str}
    if parameter.option.name != "Single":
        found["option"] = parameter.option.name.lower()
    if not parameter.is_homogeneous:
        found["homogeneous"] = False
    if parameter.min_arity != 1:
        found["min_arity"] = parameter.min_arity
    category = DIFFERENTIATION.get(parameter.differentiation_category.name)
    return {**found, "differentiation": category} if category else found


def _attribute_fields(attribute: defs.OpSchema.Attribute) -> dict[str, Any]:
    found: dict[str, Any] = {"type": attribute.type.name}
    if attribute.required:
        found["required"] = True
    if attribute.default_value.name:
        found["default"] = _plain_value(onnx.helper.get_attribute_value(attribute.default_value))
    return found


def _plain_value(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, float):
        return _shortest_number(value)
    return (
        [_plain_value(item) for item in value]
        if isinstance(value, Iterable) and not isinstance(value, str)
        else value
    )


def _shortest_number(value: float) -> float:
    """Return the number with the fewest digits that has the same float32 value."""
    import numpy as np

    return float(str(np.float32(value)))


def _append_versions(
    path: Path, schemas: list[defs.OpSchema], types: TypeSets, known: bool, write: bool
) -> None:
    text = "" if known else f"{HEADER}domain: {path.parent.name}\nname: {path.stem}\nversions:\n"
    for position, schema in enumerate(schemas):
        text += _version_text(facts(schema), types)
        if known or position:
            print(
                f"decide {path.parent.name}.{path.stem}:{schema.since_version}: the step to it, and its texts"
            )
    if not write:
        print(f"would add {len(schemas)} to {path}")
        return
    if not known:
        print(f"write {path.parent.name}.{path.stem}: its texts, shape rule and `before`")
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def _version_text(version: dict[str, Any], types: TypeSets) -> str:
    lines = [f"- since_version: {version['since_version']}"]
    for key, value in version.items():
        if key in ("inputs", "outputs"):
            lines += [f"  {key}:", *(f"  - {flow(item)}" for item in value)]
        elif key == "attributes":
            lines += [f"  {key}:", *(f"    {name}: {flow(item)}" for name, item in value.items())]
        elif key == "type_constraints":
            named = {name: cover_with_sets(frozenset(item), types) for name, item in value.items()}
            lines += [f"  {key}:", *(f"    {name}: {flow(item)}" for name, item in named.items())]
        elif key != "since_version":
            lines.append(f"  {key}: {flow(value)}")
    return "\n".join(lines) + "\n"


def cover_with_sets(listed: frozenset[str], types: TypeSets) -> list[str]:
    """Return the largest named sets that cover the types, and the types that remain."""
    left, names = set(listed), []
    for name, members in _by_size(types):
        if members <= left:
            names.append(name)
            left -= members
    return [*names, *sorted(left)]


def _by_size(types: TypeSets) -> Iterator[tuple[str, frozenset[str]]]:
    sets = ((name, frozenset(types.expand(name))) for name in types.names())
    return iter(sorted(sets, key=lambda pair: -len(pair[1])))


def flow(value: Any) -> str:
    """Return a value as YAML on one line; the large width prevents line breaks."""
    return (
        str(yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=10**6))
        .strip()
        .removesuffix("\n...")
    )


def _report_difference(known: OperatorVersion, schema: defs.OpSchema) -> int:
    found = facts(schema)
    stated = from_plain_data(
        OperatorVersion, {**found, "domain": known.domain, "name": known.name, "deprecation": None}
    )
    bare = replace(
        known,
        inputs=_bare_parameters(known.inputs),
        outputs=_bare_parameters(known.outputs),
        attributes=_bare_attributes(known.attributes),
    )
    same = known.deprecated == schema.deprecated and all(
        getattr(stated, field) == getattr(bare, field)
        for field in ("status", "determinism", "inputs", "outputs", "attributes", "type_constraints")
    )
    if not same:
        print(f"differs: {known.id}")
    return 0 if same else 1


def _bare_parameters(parameters: tuple[Parameter, ...]) -> tuple[Parameter, ...]:
    """Return parameters without the properties that only the registry defines."""
    return tuple(
        replace(each, type_attribute=None, element_attributes=(), absent_type=None) for each in parameters
    )


def _bare_attributes(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return attributes without the properties that only the registry defines."""
    nothing: dict[str, Any] = {"values": None, "minimum": None, "maximum": None, "absent": ""}
    return {name: replace(attribute, **nothing) for name, attribute in attributes.items()}


if __name__ == "__main__":
    sys.exit(main())
