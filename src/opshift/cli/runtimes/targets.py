"""Warnings about converted models that the target runtime does not run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from opshift.cli.output import counted_labels
from opshift.model.errors import InvalidModel
from opshift.model.operator_ids import short_label
from opshift.model.types import short_type
from opshift.opsets import OPSETS
from opshift.registry.definition_files import RUNTIMES

if TYPE_CHECKING:
    from opshift.analysis.runtime_support.check_support import MissingKernel
    from opshift.model.messages import ModelProto
    from opshift.registry.registry import Registry

MAX_OPERATORS = 3
"""Maximum number of operators in a warning."""

FindUnsupported = Callable[["ModelProto"], tuple[str, ...]]
"""Function that returns a sentence for each runtime that does not run a model."""


def unsupported_by(targets: Iterable[str], registry: Registry) -> FindUnsupported:
    """Return a function that describes nodes of a model which the runtimes among some targets lack."""
    names = list(_runtimes(targets))

    def find(model: ModelProto) -> tuple[str, ...]:
        from opshift.analysis.runtime_support.check_support import RuntimeCheck
        from opshift.analysis.runtime_support.model_nodes import ModelNodes
        from opshift.registry.runtimes.files import get_runtime

        try:
            nodes = ModelNodes(model, registry)
        except InvalidModel:  # calls of functions that are too deep must not prevent the conversion
            return ()
        found = ((name, RuntimeCheck(get_runtime(name)).check(nodes).missing) for name in names)
        return tuple(_sentence(name, missing) for name, missing in found if missing)

    return find if names else lambda model: ()


def _runtimes(targets: Iterable[str]) -> Iterator[str]:
    """Yield the names of the runtimes with data about their kernels among some targets."""
    for target in targets:
        product = target.rpartition("-")[0]
        # before the import of the reader of YAML files, which other targets do not need
        if product and (OPSETS / RUNTIMES / product).is_dir():
            from opshift.registry.runtimes.files import find_runtime

            found = find_runtime(target)
            if found is not None:
                yield found


def _sentence(name: str, missing: Iterable[MissingKernel]) -> str:
    counts = [(missing_label(each), len(each.places)) for each in missing]
    return (
        f"{name} does not implement all nodes of the result: {counted_labels(counts, MAX_OPERATORS)}; "
        f"`opshift fit IN OUT --runtime {name}` converts to nodes that it implements"
    )


def missing_label(missing: MissingKernel) -> str:
    """Return the operator version and its types, such as `Add:14 (bfloat16)`."""
    if not missing.operator:
        return "version"
    types = dict.fromkeys(short_type(each) for each in missing.types.values())
    return f"{short_label(missing.operator)} ({', '.join(types)})" if types else short_label(missing.operator)
