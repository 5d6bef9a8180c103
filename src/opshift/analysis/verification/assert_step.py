"""Assertion that a conversion of an operator preserves the outputs of its nodes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from opshift.analysis.verification.generated_nodes import (
    Preset,
    candidate_models,
    generate_nodes,
)
from opshift.analysis.verification.numpy_types import Array
from opshift.analysis.verification.result import CannotVerify, Verification, VerificationFailed
from opshift.analysis.verification.verify import verify
from opshift.converter.convert import convert_version
from opshift.converter.errors import ConversionRefused
from opshift.converter.options import AllowLike
from opshift.inference.scope import Scope
from opshift.model.errors import UsageError
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import DEFAULT_DOMAIN, canonical_domain, opset_imports
from opshift.model.types import Dim
from opshift.registry.models import OperatorVersion
from opshift.registry.registry import Registry, default_registry

MAX_ATTEMPTS = 4
"""Number of shapes to try for a node after others were accepted: its attributes may be the reason."""


@dataclass(frozen=True)
class StepCoverage:
    """Generated nodes of a step.

    Attributes:
        compared: the nodes with the same outputs before and after the conversion.
        refused: the reasons why nodes were refused, by node.
        rejected: the reasons why nodes were not compared, by node: no runtime accepts them.
    """

    compared: tuple[str, ...]
    refused: Mapping[str, str]
    rejected: Mapping[str, str]


def assert_step_preserves_outputs(
    op_type: str,
    source: int,
    target: int,
    *,
    domain: str = "",
    attributes: Mapping[str, object] | None = None,
    inputs: Mapping[str, Array] | None = None,
    shapes: Mapping[str, Sequence[Dim]] | None = None,
    allow: AllowLike = (),
    registry: Registry | None = None,
    onnx_opset: int = 17,
    count: int = 20,
    samples: int = 3,
    seed: int = 0,
    tolerance: float | None = None,
    custom_ops: Iterable[str | os.PathLike[str]] = (),
) -> StepCoverage:
    """Assert that nodes of an operator have the same outputs before and after a conversion.

    The outputs also need the shapes that the shape rules infer.

    The nodes are generated from the definition: with each element type and attribute value, with and without
    optional inputs, with inputs fed and constant, and with random combinations. onnxruntime or onnx.reference
    runs them; `opshift.reference` registers functions for operators of private domains.

    Args:
        op_type: the operator.
        source: the opset of the domain that the nodes are written for.
        target: the opset of the domain to convert to.
        domain: the domain, by default ONNX's.
        attributes: fixed values of attributes, by name.
        inputs: fixed values of inputs, by name in the definition.
        shapes: dimensions of inputs by name: sizes, or names, which are equal sizes. Without them, several
            shapes are tried until the operator accepts one.
        allow: inexact conversions to allow, see `convert_version`.
        registry: operator definitions; by default the project's own and those of installed packages.
        onnx_opset: the opset of ONNX's domain, which models of a private domain import as well.
        count: the number of random combinations.
        samples: the number of input sets of each node.
        seed: seed of the generated nodes and inputs.
        tolerance: relative and absolute tolerance, see `verify`.
        custom_ops: libraries of custom operators for onnxruntime.

    Returns:
        The nodes that were compared, and those that were refused or rejected.

    Raises:
        AssertionError: outputs differ, a converted node does not run, an inferred shape is wrong, or no node
            could be compared.
        ExtensionFailed: an adapter, shape rule or reference fails.
        UsageError: an argument is invalid, or the definition is not sufficient to generate nodes.
        ResolveError: the operator does not exist at one of the opsets.
    """
    registry = registry or default_registry()
    domain = canonical_domain(domain)
    version = registry.get_schema(op_type, source, domain)
    preset = Preset(attributes or {}, inputs or {}, shapes or {})
    _require_known_names(version, preset)
    opsets = {DEFAULT_DOMAIN: onnx_opset, domain: source}
    step = f"{domain}.{op_type} {source} -> {target}"
    compared: list[str] = []
    accepted: dict[bool, int] = {}
    refused: dict[str, str] = {}
    rejected: dict[str, str] = {}
    for node in generate_nodes(version, preset, count, seed):
        text = f"{op_type}{node}"
        models = list(candidate_models(version, node, preset, opsets, seed))
        # shapes that were accepted with or without constants will probably be accepted again
        form = bool(node.constants)
        order = sorted(range(len(models)), key=lambda each: each != accepted.get(form))
        for index in order[: MAX_ATTEMPTS if form in accepted else len(order)]:
            model = models[index]
            given = {
                each.name: preset.inputs[each.name]
                for each in model.graph.input
                if each.name in preset.inputs
            }
            try:
                converted = convert_version(model, {domain: target}, allow=allow, registry=registry)
                verification = verify(
                    model,
                    converted,
                    given,
                    samples=samples,
                    seed=seed,
                    tolerance=tolerance,
                    registry=registry,
                    custom_ops=custom_ops,
                )
            except ConversionRefused as error:
                refused[text] = error.refusals[0].reason
            except CannotVerify as error:
                rejected[text] = error.reason
            except VerificationFailed as error:
                reason = f"{step} does not preserve the outputs of {text}, seed {seed}: {error.reason}"
                raise AssertionError(reason) from error
            else:
                for each in (model, converted):
                    _require_inferred_shapes(each, verification, registry, text)
                accepted[form] = index
                compared.append(text)
                refused.pop(text, None)
                rejected.pop(text, None)
                break
    if not compared:
        reasons = "; ".join(dict.fromkeys((*refused.values(), *rejected.values())))
        raise AssertionError(f"{step}: no generated node could be compared: {reasons}")
    return StepCoverage(tuple(compared), refused, rejected)


def _require_inferred_shapes(
    model: ModelProto, verification: Verification, registry: Registry, node: str
) -> None:
    """Raise AssertionError if a shape rule infers a shape that differs from that of an output."""
    scope = Scope(model.graph, opset_imports(model.opset_import), registry, {})
    for output in verification.outputs:
        inferred, actual = scope.shape(output.name), output.shape
        if inferred is None or actual is None:
            continue
        sizes = [size if known is not None else None for known, size in zip(inferred, actual, strict=False)]
        if list(inferred) != sizes or len(inferred) != len(actual):
            reason = f"the inferred shape of {output.name!r} is {list(inferred)}, not {list(actual)}"
            raise AssertionError(f"{node} at {_opset_text(model)}: {reason}")


def _opset_text(model: ModelProto) -> str:
    imports = opset_imports(model.opset_import).items()
    return ", ".join(f"{domain} {opset}" for domain, opset in imports)


def _require_known_names(version: OperatorVersion, preset: Preset) -> None:
    names = {"attributes": version.attributes, "inputs": [each.name for each in version.inputs]}
    names["shapes"] = names["inputs"]
    for group, given in preset._asdict().items():
        for name in given:
            if name not in names[group]:
                remedy = f"it has {', '.join(names[group]) or 'none'}"
                raise UsageError(f"{version.id} has no {name!r} for {group}", remedy=remedy)
