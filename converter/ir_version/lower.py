"""Plan of the rewrites that an older IR version requires, and of the uses that prevent it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from opshift.checker.ir_features.contents import Contents
from opshift.checker.ir_features.finders import find_uses
from opshift.checker.ir_features.use import Use, since
from opshift.converter.errors import Refusal
from opshift.converter.ir_version.change import IrChange
from opshift.converter.ir_version.functions import with_inlining_obstacles
from opshift.converter.ir_version.lowerings import FUNCTION_FEATURES, LOWERINGS, Lowering
from opshift.converter.options import Allowances, Options
from opshift.model.messages import ModelProto
from opshift.registry.ir_versions import ir_versions
from opshift.registry.registry import Registry

UNKNOWN_VERSION_REMEDY = "correct the IR version first, for example with opshift doctor --fix"


def plan_lowering(
    model: ModelProto,
    least: int,
    options: Options,
    allowances: Allowances,
    operators: Collection[tuple[str, str]],
    *,
    is_strict: bool,
) -> IrChange:
    """Plan to lower the IR version of a model to `least`, after its domains are converted to the target.

    Features are dropped only if the caller allows it. With `is_strict`, uses that cannot be rewritten are
    refused; otherwise, the plan keeps the IR version as high as they require.
    """
    versions = ir_versions()
    before = model.ir_version
    if before > versions.newest:
        reason = (
            f"the features of IR version {before} are unknown; the newest known version is {versions.newest}"
        )
        refusal = Refusal("model", f"IR version {before}", reason, UNKNOWN_VERSION_REMEDY)
        return IrChange(before, least, refusals=(refusal,)) if is_strict else IrChange(before, before)
    contents = Contents(
        model,
        options.registry,
        before,
        targets=options.target.opsets,
        oldest=least,
        operators=operators,
    )
    uses = list(with_inlining_obstacles(find_uses(contents), contents))
    blocked = [use for use in uses if use.obstacle and not _is_allowed(use, allowances)]
    after = least if is_strict else _lowest_possible(least, blocked)
    blocked = _remaining(blocked, after)
    used = {use.feature for use in _remaining(uses, after) if since(use.feature) > after}
    lowerings = tuple(lowering for lowering in LOWERINGS if lowering.feature in used)
    dropped = _dropped(lowerings, allowances)
    refusals = tuple(_refusal(use, after) for use in blocked) if is_strict else ()
    return IrChange(before, after, lowerings, dropped, refusals)


def _lowest_possible(least: int, blocked: Sequence[Use]) -> int:
    """Return the oldest IR version, `least` or newer, that supports all uses that cannot be rewritten."""
    # If other uses require a version with functions, functions are not inlined, and their features count.
    after = max((since(use.feature) for use in _remaining(blocked, least)), default=least)
    return max((since(use.feature) for use in _remaining(blocked, after)), default=least)


def _remaining(uses: Sequence[Use], version: int) -> list[Use]:
    """Return the uses that remain at an IR version: inlining functions also removes their features."""
    has_functions = version >= since("functions")
    return [use for use in uses if has_functions or use.feature not in FUNCTION_FEATURES]


def required_ir_version(model: ModelProto, registry: Registry) -> int:
    """Return the oldest IR version with all features and element types that a model uses."""
    versions = ir_versions()
    uses = find_uses(Contents(model, registry, versions.newest))
    return max((since(use.feature) for use in uses), default=versions.oldest)


def _is_allowed(use: Use, allowances: Allowances) -> bool:
    return use.allowance is not None and allowances.is_allowed(use.allowance)


def _dropped(lowerings: Iterable[Lowering], allowances: Allowances) -> frozenset[str]:
    """Return the features that the caller allows to drop, and record that they are dropped."""
    versions = ir_versions()
    return frozenset(
        lowering.feature
        for lowering in lowerings
        if lowering.allowance
        and allowances.allow(lowering.allowance, f"{versions.meaning(lowering.feature)} are dropped")
    )


def _refusal(use: Use, version: int) -> Refusal:
    versions = ir_versions()
    is_type = use.feature in versions.element_types
    meaning = f"element type {use.feature}" if is_type else versions.meaning(use.feature)
    reason = f"IR version {version} does not support {meaning}: {use.obstacle}"
    return Refusal(use.place, f"IR version {since(use.feature)}", reason, use.remedy)
