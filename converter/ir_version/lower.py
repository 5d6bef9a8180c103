"""Rewrites that an older IR version requires: their table, plan and application."""

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence

from opshift.checker.ir_features.contents import Contents, Use, since
from opshift.checker.ir_features.finders import find_uses
from opshift.converter.ir_version import functions, metadata, tensors
from opshift.converter.options import Options
from opshift.converter.plan.changes import IrChange, Lowering, loss_of
from opshift.converter.refusals import Refusal
from opshift.model.messages import ModelProto
from opshift.registry.ir_versions import ir_versions
from opshift.registry.registry import Registry
from opshift.rewriting.workspace import Allowances

LOWERINGS: tuple[Lowering, ...] = (
    Lowering("device_configurations", "", None, "drop-devices", metadata.drop_device_configurations),
    Lowering("metadata", "metadata of the model", metadata.move_to_model, "drop-metadata", metadata.drop),
    Lowering("functions", "inlined nodes", functions.inline_all_functions, moves_nodes=True),
    Lowering("overloads", "functions with unique names", functions.rename_overloads),
    Lowering("function_values", "value_info of the main graph", functions.move_function_value_info),
    Lowering("attribute_defaults", "attributes of the calls", functions.write_default_attributes),
    Lowering("training", "", None, "drop-training", metadata.drop_training_info),
    Lowering("sparse_initializers", "dense initializers", tensors.densify_initializers),
    Lowering("sparse_attributes", "dense tensors", tensors.densify_attributes),
    Lowering(
        "quantization_annotations",
        "metadata of the model",
        metadata.move_annotations,
        "drop-metadata",
        metadata.drop_annotations,
    ),
    Lowering("standalone_initializers", "graph inputs", tensors.add_initializers_as_inputs),
)
"""Rewrites in the order of their application: newest first, except that inlining precedes the rewrites of
function features, which it makes unnecessary."""

FUNCTION_FEATURES = frozenset({"overloads", "function_values", "attribute_defaults"})
"""Features that a model without functions cannot have."""

UNKNOWN_VERSION_REMEDY = "correct the IR version first, for example with opshift doctor --fix"


def plan_lowering(
    model: ModelProto,
    least: int,
    options: Options,
    allowances: Allowances,
    operators: Collection[tuple[str, str]],
    find_removed: Callable[[], Collection[str]] | None = None,
    *,
    is_strict: bool,
) -> IrChange:
    """Plan to lower the IR version of a model to `least`, after its domains are converted to the target.

    `find_removed` returns the initializers that the conversion removes. Features are dropped only if the
    caller allows it. With `is_strict`, uses of features that cannot be rewritten are refused; otherwise, the
    plan keeps the IR version as high as these uses require.
    """
    versions = ir_versions()
    before = model.ir_version
    if before > versions.newest:
        reason = (
            f"the features of IR version {before} are unknown; the newest known version is {versions.newest}"
        )
        code = "ir.unknown-version"
        refusal = Refusal("model", f"IR version {before}", reason, UNKNOWN_VERSION_REMEDY, code)
        return IrChange(before, least, refusals=(refusal,)) if is_strict else IrChange(before, before)
    contents = Contents(
        model, options.registry, before, targets=options.target.opsets, oldest=least, operators=operators
    )
    # Search only if needed: finding removed initializers takes longer than the rest of the plan.
    if find_removed and contents.has_newer_values:
        contents.leave_out(find_removed())
    uses = list(functions.with_obstacles(find_uses(contents), contents))
    blocked = [use for use in uses if use.obstacle and not allowances.is_allowed(use.allowance)]
    after = least if is_strict else _lowest_possible(least, blocked)
    blocked = _remaining_uses(blocked, after)
    used = {use.feature for use in _remaining_uses(uses, after) if since(use.feature) > after}
    lowerings = tuple(lowering for lowering in LOWERINGS if lowering.feature in used)
    dropped = _dropped_features(lowerings, allowances)
    refusals = tuple(_refusal_of_use(use, after) for use in blocked) if is_strict else ()
    return IrChange(before, after, lowerings, dropped, refusals)


def rewrite_features(
    change: IrChange, model: ModelProto, registry: Registry, targets: Mapping[str, int]
) -> None:
    """Rewrite the features that the IR version lacks, in place, after the conversion to `targets`."""
    contents = Contents(model, registry, change.before, targets=targets)
    features = change.rewritten_features
    for lowering in (each for each in LOWERINGS if each.feature in features):
        rewrite = lowering.drop if lowering.feature in change.dropped else lowering.apply
        assert rewrite is not None
        rewrite(contents)
        if lowering.moves_nodes:
            # The collected contents refer to nodes that the rewrite removed: collect them again.
            contents = Contents(model, registry, change.before, targets=targets)


def _lowest_possible(least: int, blocked: Sequence[Use]) -> int:
    """Return the oldest IR version, `least` or newer, that supports all uses that cannot be rewritten."""
    # If these uses require a version with functions, functions are not inlined, so their features count, too.
    after = max((since(use.feature) for use in _remaining_uses(blocked, least)), default=least)
    return max((since(use.feature) for use in _remaining_uses(blocked, after)), default=least)


def _remaining_uses(uses: Sequence[Use], version: int) -> list[Use]:
    """Return the uses that count at an IR version: features of functions do not if functions are inlined."""
    has_functions = version >= since("functions")
    return [use for use in uses if has_functions or use.feature not in FUNCTION_FEATURES]


def required_ir_version(model: ModelProto, registry: Registry, without: Container[str] = ()) -> int:
    """Return the oldest IR version with all features and element types that a model uses.

    Features in `without` do not count.
    """
    versions = ir_versions()
    uses = find_uses(Contents(model, registry, versions.newest))
    needed = (since(use.feature) for use in uses if use.feature not in without)
    return max(needed, default=versions.oldest)


def _dropped_features(lowerings: Iterable[Lowering], allowances: Allowances) -> frozenset[str]:
    """Return the features that the caller allows to drop, and record each use of an allowance."""
    return frozenset(
        lowering.feature
        for lowering in lowerings
        if lowering.allowance and allowances.allow(lowering.allowance, loss_of(lowering.feature))
    )


def _refusal_of_use(use: Use, version: int) -> Refusal:
    versions = ir_versions()
    is_type = use.feature in versions.element_types
    meaning = f"element type {use.feature}" if is_type else versions.meaning(use.feature)
    reason = f"IR version {version} does not support {meaning}: {use.obstacle}"
    first, code = since(use.feature), "ir.element-type" if is_type else "ir.feature"
    subject = use.feature if is_type else meaning
    return Refusal(use.place, f"IR version {first}", reason, use.remedy, code, subject, version, first)
