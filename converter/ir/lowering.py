"""What stands between a model and an older IR version, and how it is rewritten for it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from opshift.converter.concessions import Concessions
from opshift.converter.errors import Refusal
from opshift.converter.ir.change import IrChange, since
from opshift.converter.ir.contents import contents_of
from opshift.converter.ir.features import LOWERINGS, OF_FUNCTIONS, Lowering, uses_in
from opshift.converter.ir.use import Use
from opshift.registry.catalogue import Registry
from opshift.registry.ir_versions import ir_versions

CORRECT = "correct it first: opshift doctor --fix"


def lower(
    model: Any,
    least: int,
    targets: Mapping[str, int],
    registry: Registry,
    concessions: Concessions,
    operators: Collection[tuple[str, str]],
    *,
    is_strict: bool,
) -> IrChange:
    """Plan to bring a model down to the IR version `least`, or if that is not strict to the nearest above.

    Nothing is lost but what the caller allows to drop. Before, domains are converted to the opsets `targets`.
    `operators` are the domain and op_type of every node.
    """
    known = ir_versions()
    before = model.ir_version
    if before > known.newest:
        reason = f"what IR version {before} adds is not known: the newest known is {known.newest}"
        refusal = Refusal("model", f"IR version {before}", reason, CORRECT)
        return IrChange(before, least, refusals=(refusal,)) if is_strict else IrChange(before, before)
    contents = contents_of(model, registry, before, targets=targets, oldest=least, operators=operators)
    uses = list(uses_in(contents))
    blocked = [use for use in uses if use.obstacle and not _is_allowed(use, concessions)]
    after = least if is_strict else _nearest(least, blocked)
    blocked = _without_functions(blocked, after)
    used = {use.feature for use in _without_functions(uses, after) if since(use.feature) > after}
    lowerings = tuple(each for each in LOWERINGS if each.feature in used)
    dropped = _dropped(lowerings, concessions)
    refusals = tuple(_refusal(use, after) for use in blocked) if is_strict else ()
    return IrChange(before, after, lowerings, dropped, refusals)


def _nearest(least: int, blocked: Sequence[Use]) -> int:
    """The oldest IR version, from `least` on, that needs nothing of what cannot be rewritten."""
    after = max((since(use.feature) for use in _without_functions(blocked, least)), default=least)
    return max((since(use.feature) for use in _without_functions(blocked, after)), default=least)


def _without_functions(uses: Sequence[Use], version: int) -> list[Use]:
    """The uses that are left at an IR version: without functions there is nothing that belongs to them."""
    has_functions = version >= since("functions")
    return [use for use in uses if has_functions or use.feature not in OF_FUNCTIONS]


def least_version(model: Any, registry: Registry) -> int:
    """The oldest IR version that has everything a model uses."""
    known = ir_versions()
    uses = uses_in(contents_of(model, registry, known.newest))
    return max((since(use.feature) for use in uses), default=known.oldest)


def _is_allowed(use: Use, concessions: Concessions) -> bool:
    return use.concession is not None and concessions.allows(use.concession)


def _dropped(lowerings: Iterable[Lowering], concessions: Concessions) -> frozenset[str]:
    """The features that the caller allows to drop; that use is made of it is noted."""
    known = ir_versions()
    return frozenset(
        each.feature
        for each in lowerings
        if each.concession
        and concessions.concede(each.concession, f"{known.meaning(each.feature)} are dropped")
    )


def _refusal(use: Use, version: int) -> Refusal:
    known = ir_versions()
    is_type = use.feature in known.element_types
    meaning = f"element type {use.feature}" if is_type else known.meaning(use.feature)
    reason = f"IR version {version} has no {meaning}: {use.obstacle}"
    return Refusal(use.place, f"IR version {since(use.feature)}", reason, use.remedy)
