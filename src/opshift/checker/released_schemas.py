"""Schemas in onnxruntime releases, which change operators of com.microsoft without a new version."""

from functools import cache

from opshift.checker.checked_nodes import CheckedNode
from opshift.registry.models import Parameter
from opshift.registry.runtimes.files import get_runtime, runtime_files
from opshift.registry.runtimes.runtime import SchemaDifference

RUNTIME = "onnxruntime"

PRIVATE = "__"
"""Prefix of private attributes, which any node may have without a definition."""


@cache
def released_schemas(operator: str) -> tuple[tuple[str, SchemaDifference], ...]:
    """Return the releases of onnxruntime that change an operator, such as `com.microsoft.Gelu`, and how."""
    names = (name for name in runtime_files() if name.rpartition("-")[0] == RUNTIME)
    found = ((name, get_runtime(name).schemas.get(operator)) for name in names)
    return tuple((name, each) for name, each in found if each is not None and each != SchemaDifference())


def adds_attribute(node: CheckedNode, name: str) -> bool:
    """Return whether the schema in any onnxruntime release adds an attribute to the definition."""
    return any(name in each.adds for _, each in _changed_schemas(node))


def adds_type(node: CheckedNode, parameter: Parameter, kind: str) -> bool:
    """Return whether the schema in any onnxruntime release adds a type to those of a parameter."""
    return any(
        kind in (*each.types.get(parameter.name, ()), *each.types.get(parameter.type, ()))
        for _, each in _changed_schemas(node)
    )


def accepting_releases(node: CheckedNode) -> list[str]:
    """Return releases whose changed schema allows the attributes and input and output counts of a node."""
    return [name for name, each in _changed_schemas(node) if _allows_node(each, node)]


def needs_release(node: CheckedNode) -> bool:
    """Return whether the definition does not allow a node, but releases have changed schemas."""
    return bool(_changed_schemas(node)) and not _allows_node(SchemaDifference(), node)


def _changed_schemas(node: CheckedNode) -> tuple[tuple[str, SchemaDifference], ...]:
    operator = node.operator
    if operator is None or operator.domain not in node.container.model.registry.releases.open_domains:
        return ()
    return released_schemas(f"{operator.domain}.{operator.name}")


def _allows_node(schema: SchemaDifference, node: CheckedNode) -> bool:
    operator = node.operator
    assert operator is not None
    attributes = {each.name for each in node.proto.attribute if not each.name.startswith(PRIVATE)}
    known = (operator.attributes.keys() - set(schema.lacks)) | set(schema.adds)
    required = {*operator.required_attributes, *schema.requires} & known
    least, most = schema.inputs or (operator.min_input, operator.max_input)
    fewest, greatest = schema.outputs or (operator.min_output, operator.max_output)
    return (
        required <= attributes <= known
        and least <= len(node.inputs) <= most
        and fewest <= len(node.outputs) <= greatest
    )
