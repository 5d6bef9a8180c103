"""Sentences about target runtimes that do not implement all nodes of a converted model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from opshift.model.errors import InvalidModel
from opshift.model.files import requiring_text
from opshift.model.message_text import counted_labels
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import short_label
from opshift.model.types import short_type
from opshift.registry.registry import Registry
from opshift.registry.runtimes.files import find_runtime, get_runtime
from opshift.runtimes.check_support import RuntimeCheck, UnsupportedGroup
from opshift.runtimes.model_nodes import ModelNodes

MAX_OPERATORS = 3
"""Maximum number of missing operators that a sentence names."""


def unsupported_by(runtimes: Iterable[str], model: ModelProto, registry: Registry) -> tuple[str, ...]:
    """Return a sentence for each runtime with kernel data that is known not to run the whole model."""
    names = list(filter(None, map(find_runtime, runtimes)))
    try:
        return _warning_sentences(names, model, registry) if names else ()
    except InvalidModel:  # calls that are nested too deeply, or invalid text, must not prevent the conversion
        return ()


@requiring_text
def _warning_sentences(names: Iterable[str], model: ModelProto, registry: Registry) -> tuple[str, ...]:
    nodes = ModelNodes(model, registry)
    found = ((name, RuntimeCheck(get_runtime(name)).check(nodes).missing) for name in names)
    return tuple(_warning_sentence(name, missing) for name, missing in found if missing)


def _warning_sentence(name: str, missing: Sequence[UnsupportedGroup]) -> str:
    counts: Counter[str] = Counter()
    for each in missing:
        counts[missing_label(each)] += len(each.places)
    nodes = "implement all nodes of" if any(each.operator for each in missing) else "run"
    fits = f"`opshift fit IN OUT --runtime {name}` converts to nodes that it implements"
    remedy = next((each.remedy for each in missing if not each.is_convertible), fits)
    labels = counted_labels([*counts.items()], MAX_OPERATORS)
    return f"{name} does not {nodes} the result: {labels}; {remedy}"


def missing_label(missing: UnsupportedGroup) -> str:
    """Return operator version and types, such as `Add:14 (bfloat16)`, or the label of a property."""
    if not missing.operator:
        return missing.label
    types = dict.fromkeys(short_type(each) for each in missing.types.values())
    return f"{short_label(missing.operator)} ({', '.join(types)})" if types else short_label(missing.operator)
