"""Read the nodes of a model in an order in which each value is produced before it is read."""

from __future__ import annotations

from opshift.analysis.runtime_support.model_nodes import ModelNodes
from opshift.model.errors import InvalidModel
from opshift.model.messages import ModelProto
from opshift.registry.registry import Registry


def ordered(model: ModelProto, registry: Registry) -> tuple[ModelProto, ModelNodes]:
    """Return a model, or a copy with nodes in order, and its nodes.

    Raises:
        InvalidModel: sorting does not help.
    """
    try:
        return model, ModelNodes(model, registry)
    except InvalidModel as error:
        from opshift.converter.survey.repair import repaired_copy  # few models need it

        model, _ = repaired_copy(model, error, registry)
        return model, ModelNodes(model, registry)
