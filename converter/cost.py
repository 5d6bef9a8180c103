"""Report of a plan, with file sizes before and after, and the number of unchanged nodes by operator."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from opshift.converter.convert import try_convert
from opshift.converter.options import Options
from opshift.converter.report import Report, conversion_report
from opshift.model.graphs import nested_nodes, root_graphs
from opshift.model.messages import ModelProto
from opshift.model.offloaded_tensors import serialized_size
from opshift.model.operator_ids import canonical_domain, without_version

if TYPE_CHECKING:
    from opshift.converter.streaming.external_weights import ExternalWeights


def plan_with_cost(
    model: ModelProto,
    options: Options,
    file_size: int,
    external: ExternalWeights | None = None,
    new_data: str = "",
) -> Report:
    """Return the report of a plan, with file sizes unless refused, and unchanged nodes by operator.

    The model is converted in place to measure the result, so callers must not use the model afterwards. With
    `external`, the elements of external data are converted, too; `new_data` is the name of their new file.
    """
    size = serialized_size(model)
    if external is not None:
        external.take(model)
    nodes = nested_nodes(*root_graphs(model), *model.functions)
    operators = Counter(f"{canonical_domain(node.domain)}.{node.op_type}" for node in nodes)
    result, plan = try_convert(model, options)
    report = conversion_report(plan, result, options)
    if external is not None and result is not None:
        external.externalize(result, new_data)
    # The file may be encoded differently: use the difference of two serializations by one library.
    sizes = (file_size, file_size - size + serialized_size(result)) if result is not None else None
    return replace(report, sizes=sizes, kept_operators=_kept_operators(operators, report))


def _kept_operators(operators: Counter[str], report: Report) -> dict[str, int]:
    replaced = (label for each in report.changed for label in each.operator.split(", "))
    labels = (*replaced, *(each.operator for each in report.refusals))
    operators.subtract(map(without_version, labels))
    return {operator: count for operator, count in operators.most_common() if count > 0}
