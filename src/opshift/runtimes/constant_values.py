"""Find out whether a value is the same in every run, as runtimes that fold constants do."""

from __future__ import annotations

from typing import Final

from opshift.inference.facts import InferenceScope

MAX_VISITED: Final = 256
"""Maximum number of values that are visited to find out whether one is constant."""

SIZED_BY_VALUES: Final = frozenset(
    {
        "Compress", "NonMaxSuppression", "NonZero", "OneHot", "Range", "Resize", "StringSplit", "Unique",
        "Upsample",
    }
)  # fmt: skip
"""Operators with output sizes that depend on elements of other inputs than integers."""

INTEGERS: Final = ("int32", "int64")
"""Element types of inputs, such as `shape`, with elements that output sizes depend on."""


def is_constant(scope: InferenceScope, name: str, *, knows_sizes: bool = False) -> bool:
    """Return whether a value is the same in every run.

    Runtimes compute values in advance that depend on constants and on known sizes only. With `knows_sizes`,
    they compute with sizes that are known only at run time, too.
    """
    pending, visited = [(scope, name, False)], {(name, False)}
    while pending:
        scope, name, is_about_sizes = pending.pop()
        while not scope.is_local(name) and scope.parent is not None:
            scope = scope.parent
        # runtimes treat defaults of graph inputs as constants, too
        if scope.initializer(name) is not None or scope.constant(name) is not None:
            continue
        if is_about_sizes and (knows_sizes or has_known_sizes(scope, name)):
            continue
        producer = scope.producer(name)
        if producer is None or producer.operator is None or len(visited) > MAX_VISITED:
            return False
        if producer.operator.holds_graphs or producer.operator.determinism != "deterministic":
            return False
        op_type = producer.node.op_type
        for each in filter(None, producer.node.inputs):
            wanted = [op_type in ("Shape", "Size")]
            if is_about_sizes:
                depends_on_elements = op_type in SIZED_BY_VALUES or scope.element_type(each) in INTEGERS
                wanted = [True, False] if depends_on_elements else [True]
            new = [(each, sizes) for sizes in wanted if (each, sizes) not in visited]
            visited.update(new)
            pending += [(scope, *question) for question in new]
    return True


def is_stored(scope: InferenceScope, name: str) -> bool:
    """Return whether a value is an initializer or the result of a Constant node."""
    while not scope.is_local(name) and scope.parent is not None:
        scope = scope.parent
    producer = scope.producer(name)
    return scope.initializer(name) is not None or (
        producer is not None and producer.node.op_type == "Constant"
    )


def has_known_sizes(scope: InferenceScope, name: str) -> bool:
    """Return whether all sizes of a value are known before a run."""
    shape = scope.shape(name)
    return shape is not None and None not in shape
