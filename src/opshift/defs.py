"""Operator schemas under the names of `onnx.defs`, for programs that were written for it.

    import opshift.defs as defs
    defs.get_schema("Softmax", 12).attributes["axis"].default_value.i

Schemas are views of `opshift.default_registry()`, which can answer more. They equal those of the newest
ONNX release, except for:

* texts and function bodies, which are the project's own;
* lists of types, which are sorted;
* `file` and `line`, which locate the definition in YAML.

`ai.onnx` is accepted as the default domain `""`, too. Schemas cannot be registered: for other domains, use
`Registry.with_folder`.
"""

from __future__ import annotations

from functools import lru_cache

from opshift.model.operator_ids import DEFAULT_DOMAIN, OperatorId, canonical_domain
from opshift.registry.errors import ResolveError, require_argument_types, resolve_error
from opshift.registry.onnx_defs import onnx_defs
from opshift.registry.op_schema import OpSchema
from opshift.registry.registry import default_registry

__all__ = [
    "AI_ONNX_PREVIEW_DOMAIN",
    "AI_ONNX_PREVIEW_TRAINING_DOMAIN",
    "ONNX_DOMAIN",
    "ONNX_ML_DOMAIN",
    "OpSchema",
    "SchemaError",
    "get_all_schemas",
    "get_all_schemas_with_history",
    "get_function_ops",
    "get_schema",
    "has",
    "onnx_ml_opset_version",
    "onnx_opset_version",
]

ONNX_DOMAIN = ""
ONNX_ML_DOMAIN = "ai.onnx.ml"
AI_ONNX_PREVIEW_DOMAIN = "ai.onnx.preview"
AI_ONNX_PREVIEW_TRAINING_DOMAIN = "ai.onnx.preview.training"

SchemaError = ResolveError
"""The error of `get_schema`: the base class of errors that name the reason and a remedy."""


def get_schema(
    op_type: str, max_inclusive_version: int | str | None = None, domain: str = ONNX_DOMAIN
) -> OpSchema:
    """Return the newest version of an operator, up to an opset if one is given.

    The second argument may also be the domain, as in `get_schema("Scaler", "ai.onnx.ml")`.

    Raises:
        SchemaError: no version is found.
        UsageError: an argument has a wrong type.
    """
    if isinstance(max_inclusive_version, str):
        return get_schema(op_type, None, domain or max_inclusive_version)
    require_argument_types(op_type, max_inclusive_version, domain)
    domain = canonical_domain(domain)
    listed = _versions(op_type, domain)
    for each in reversed(listed):
        if max_inclusive_version is None or each.since_version <= max_inclusive_version:
            return each
    opset = _newest_opset(domain) if max_inclusive_version is None or not listed else max_inclusive_version
    registry = default_registry()
    wanted = OperatorId(domain, op_type, opset)
    raise resolve_error(registry.operator(op_type, domain), wanted, registry.names(domain))


def has(op_type: str, max_inclusive_version: int | str | None = None, domain: str = ONNX_DOMAIN) -> bool:
    """Return whether `get_schema` finds a version; the arguments are the same."""
    try:
        get_schema(op_type, max_inclusive_version, domain)
    except SchemaError:
        return False
    return True


def get_all_schemas() -> list[OpSchema]:
    """Return the newest version of every operator."""
    return [versions[-1] for versions in _all_versions()]


def get_all_schemas_with_history() -> list[OpSchema]:
    """Return every version of every operator."""
    return [each for versions in _all_versions() for each in versions]


def get_function_ops() -> list[OpSchema]:
    """Return the newest versions that are functions."""
    return [each for each in get_all_schemas() if each.has_function or each.has_context_dependent_function]


def onnx_opset_version() -> int:
    """Return the newest opset of the default domain."""
    return _newest_opset(DEFAULT_DOMAIN)


def onnx_ml_opset_version() -> int:
    """Return the newest opset of `ai.onnx.ml`."""
    return _newest_opset(ONNX_ML_DOMAIN)


def _newest_opset(domain: str) -> int:
    """Return the newest published opset, because `onnx.defs` does not list unpublished versions."""
    registry = default_registry()
    published = registry.releases.released_opset(domain)
    return registry.newest_opset(domain) if published is None else published


def _all_versions() -> list[tuple[OpSchema, ...]]:
    registry = default_registry()
    # `onnx.defs` lists no operators of other projects
    domains = [each for each in registry.domains() if each not in registry.releases.open_domains]
    every = (_versions(each.name, domain) for domain in domains for each in registry.operators(domain))
    return [versions for versions in every if versions]


@lru_cache(maxsize=1024)  # for all operators, and a limited number of unknown names
def _versions(op_type: str, domain: str) -> tuple[OpSchema, ...]:
    """Return the published versions of an operator, oldest first; none for an unknown operator."""
    operator = default_registry().operator(op_type, domain)
    return tuple(
        OpSchema(each)
        for each in (operator.versions if operator else ())
        if each.since_version <= _newest_opset(domain) and str(each.id) not in onnx_defs().unlisted
    )
