"""Properties of a model for which a runtime may refuse it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from opshift.registry.runtimes.runtime import Runtime
from opshift.runtimes.model_nodes import ModelNodes
from opshift.runtimes.omitted_inputs import nodes_with_omitted_inputs
from opshift.runtimes.refused_sizes import refused_sizes
from opshift.runtimes.unnamed_nodes import count_shared_inputs


def model_notes(model: ModelNodes, runtime: Runtime) -> Iterator[str]:
    """Yield the reasons why a runtime may refuse a model, besides those about its nodes."""
    if runtime.may_need_input_sizes:
        for name in model.unsized_inputs:
            reason = f"{runtime.name} refuses some models with inputs whose sizes are not all declared"
            yield f"graph, input {name!r}: {reason}"
    if runtime.refuses_sizes_after:
        # one note for the whole model, because a large model may declare thousands of such values
        for place, _ in islice(refused_sizes(model, runtime.refuses_sizes_after), 1):
            reason = f"{runtime.name} refuses sizes in `value_info` that it does not infer"
            yield f"{place}: {reason}; `opshift fit` removes them"
    if runtime.may_count_omitted_inputs:
        # one note for the whole model, because many nodes may end in omitted inputs
        for each in islice(nodes_with_omitted_inputs(model), 1):
            reason = f"{runtime.name} refuses some nodes that end in omitted inputs"
            yield f"{each.place}: {reason}; `opshift fit` removes these inputs"
    if runtime.needs_names and count_shared_inputs(model.graphs, runtime.needs_names) > 1:
        names = ", ".join(runtime.needs_names)
        yield f"graph: {runtime.name} gives two nodes the same name if it optimizes unnamed nodes of {names}"
