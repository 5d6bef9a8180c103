"""Features of restored nodes that the IR version or the model lacks."""

from collections.abc import Sequence, Set
from dataclasses import replace

from opshift.converter.ir_version.lower import LOWERINGS, plan_lowering
from opshift.converter.options import Options
from opshift.converter.plan.changes import IrChange
from opshift.model.graphs import graphs_of, nested_nodes, remove_messages
from opshift.model.messages import ModelProto, NodeProto
from opshift.model.offloaded_tensors import serialize
from opshift.registry.ir_versions import ir_versions
from opshift.registry.steps import Allow
from opshift.rewriting.allowances import Allowances

DROPPED: tuple[Allow, ...] = ("drop-metadata", "drop-devices")
"""Features of restored nodes that are dropped: an earlier conversion to an older IR version has moved them to
the metadata of the model, or dropped them."""


def lower_restored(originals: Sequence[NodeProto], change: IrChange, options: Options) -> IrChange:
    """Return the change of the IR version, with the rewrites that restored nodes need.

    `change` is planned for the model before the restoration. If a feature cannot be rewritten, the change has
    a refusal, or a newer IR version if the target allows it.
    """
    # The IR version is planned after the restoration, so it cannot determine which nodes are restored.
    model = ModelProto(ir_version=ir_versions().newest)
    for each in originals:
        model.graph.node.add().MergeFromString(serialize(each))
    target, operators = options.target, {(each.domain, each.op_type) for each in originals}
    is_strict = target.requested_ir_version is not None or target.ir_version is not None
    allowances = Allowances(DROPPED)
    found = plan_lowering(model, change.after, options, allowances, operators, is_strict=is_strict)
    # The rewrites are applied to the model after the restoration, so they include the restored nodes.
    features = found.rewritten_features - change.rewritten_features if found.lowerings else ()
    added = tuple(each for each in LOWERINGS if each.feature in features)
    return replace(
        change,
        after=found.after,
        lowerings=(*change.lowerings, *added),
        dropped=change.dropped | found.dropped.intersection(each.feature for each in added),
        refusals=(*change.refusals, *found.refusals),
    )


def drop_unknown_devices(original: NodeProto, known: Set[str]) -> None:
    """Remove the references to device configurations that the model does not have."""
    for node in (original, *nested_nodes(*graphs_of(original))):
        found = getattr(node, "device_configurations", None)
        if found:
            remove_messages(found, [each.configuration_id not in known for each in found])
