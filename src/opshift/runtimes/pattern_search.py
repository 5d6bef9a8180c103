"""Search for patterns of nodes that the optimizers of runtimes replace together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import Final, NamedTuple

from opshift.inference.facts import Producer
from opshift.inference.infer_shapes import known_shapes
from opshift.inference.scope import Scope
from opshift.model.element_types import type_string
from opshift.model.node import Node
from opshift.model.operator_ids import canonical_domain
from opshift.registry.models import OperatorVersion, Parameter
from opshift.registry.requirements import parse_requirement
from opshift.registry.runtimes.restrictions import NodePattern, pattern_nodes
from opshift.runtimes.constant_values import ConstantValues, SingleConstant, single_constant
from opshift.runtimes.inlined_values import is_unnecessary_cast, source_of

COMMUTATIVE: Final = ("Add", "Mul")
"""Operators with two inputs that optimizers accept in either order."""

Bound = Mapping[str, str]
"""Names of values in the model, by name in the pattern."""


class _Nodes(NamedTuple):
    """Nodes of a pattern: all, the last one, the others by output name, and the number of reads by value."""

    nodes: Sequence[Node]
    last: Node
    producers: Mapping[str, Node]
    reads: Mapping[str, int]


@cache
def _parse(text: str) -> _Nodes:
    *inner, last = nodes = pattern_nodes(text)
    producers = {name: each for each in inner for name in each.outputs}
    return _Nodes(nodes, last, producers, Counter(name for each in nodes for name in each.inputs))


class PatternSearch:
    """Search for nodes of a graph that form a pattern."""

    def __init__(self, pattern: NodePattern, scope: Scope, constants: ConstantValues) -> None:
        """`constants` are the values of the model that are the same in every run."""
        self._pattern = pattern
        self._nodes, self._last, self._producers, self._reads = _parse(pattern.nodes)
        # optimizers remove Identity nodes before they search for patterns
        self._skipped = (*pattern.skips, "Identity")
        self._scope = scope
        self._constants = constants

    def finds(self, node: Node, operator: OperatorVersion | None) -> bool:
        """Return whether the pattern occurs with this node as `NodePattern.node`, by default the last."""
        if not self._pattern.node:
            return any(map(self._holds, self._match(self._last, node, operator, {})))
        pattern = self._producers[self._pattern.node]
        starts = [*self._match(pattern, node, operator, {})]
        result = node.output(pattern.outputs.index(self._pattern.node))
        for value, reader in self._readers(result) if starts else ():
            known = self._scope.operator(reader.op_type, reader.domain)
            bounds = ({**each, self._pattern.node: value} for each in starts)
            found = (match for each in bounds for match in self._match(self._last, reader, known, each))
            if any(map(self._holds, found)):
                return True
        return False

    def _holds(self, bound: Bound) -> bool:
        """Return whether the conditions of the pattern on all its values together hold."""
        if self._pattern.holds:
            operator = _operator_with_inputs(tuple(bound))
            values = known_shapes(Node("", [*bound.values()], [], {}), operator, self._scope)
            if not all(parse_requirement(each).evaluate(values) for each in self._pattern.holds):
                return False
        return all(
            self._is_reused(name, bound[name], each.op_type, self._pattern.reused[name])
            for each in self._nodes
            for name in each.inputs
            if name in self._pattern.reused
        )

    def _is_reused(self, name: str, value: str, op_type: str, others: Sequence[str]) -> bool:
        """Return whether another node, with an operator in `others`, reads a constant equal to `value`.

        Nodes that match `NodePattern.fused` do not count. `value` must be a constant with one element, which
        the pattern reads with the operator `op_type`.
        """
        constant = single_constant(self._scope, value)
        if constant is None:
            return False
        reads = {each: self._constants.reads(self._scope, constant, each) for each in others}
        reads = {each: count - (each == op_type) for each, count in reads.items()}
        if not any(count > 0 for count in reads.values()):
            return False
        # the search for all occurrences takes long, and few models need it
        fused = self._fused_reads(name)
        return any(count > fused[constant, each] for each, count in reads.items())

    def _fused_reads(self, name: str) -> Counter[tuple[SingleConstant, str]]:
        """Count occurrences of `NodePattern.fused`, by the constant at input `name` and by the operator."""
        searched = [replace(self._pattern, nodes=each, node="", reused={}) for each in self._pattern.fused]

        def count(scope: Scope) -> Counter[tuple[SingleConstant, str]]:
            searches = [PatternSearch(each, scope, self._constants) for each in searched]
            return Counter(chain.from_iterable(each._constants_read(name) for each in searches))

        return self._constants.total(self._scope, f"{name} {self._pattern!r}", count)

    def _constants_read(self, name: str) -> Iterator[tuple[SingleConstant, str]]:
        """Yield the constant at input `name` of each occurrence of the pattern, and the reading operator."""
        op_type = next(each.op_type for each in self._nodes if name in each.inputs)
        known = self._scope.operator(self._last.op_type, self._last.domain)
        for record in self._scope.node_records:
            if record[2] == self._last.op_type:
                match = next(self._match(self._last, self._scope.node_of(record), known, {}), None)
                constant = single_constant(self._scope, match[name]) if match else None
                if constant is not None:
                    yield constant, op_type

    def _readers(self, result: str) -> Iterator[tuple[str, Node]]:
        """Yield the nodes that read `NodePattern.node`, directly or after nodes that the pattern skips.

        The first element of each pair is the value that the node reads. If the pattern shares this value,
        several skipped nodes may read it, as in `x * sigmoid(x)`.
        """
        pending, seen = [result], {""}  # a result that the node omits has an empty name
        while pending:
            value = pending.pop()
            # a node may read a value twice, as in `x * x`
            if value in seen or not self._is_inner(value, self._pattern.node):
                continue
            seen.add(value)
            readers = [self._scope.node_of(each) for each in self._scope.readers(value)]
            yield from ((value, each) for each in readers)
            # Continue only from the one input for which a node is skipped, to visit skipped nodes once.
            pending += [
                each.output(0)
                for each in readers
                if self._is_skipped(each) and self._skipped_input(each) == value
            ]

    def _computed_from(self, value: str) -> str:
        """Trace a value back through nodes the pattern skips; return `""` if they read constants only."""
        while value and (found := self._scope.producer(value)) is not None and self._is_skipped(found.node):
            value = self._skipped_input(found.node)
        return value

    def _is_skipped(self, node: Node) -> bool:
        return not node.domain and (node.op_type in self._skipped or is_unnecessary_cast(self._scope, node))

    def _skipped_input(self, node: Node) -> str:
        """Return the first input of a skipped node that depends on the run, or an empty name."""
        inputs = filter(None, node.inputs)
        return next((each for each in inputs if not self._constants.contain(self._scope, each)), "")

    def _match(
        self, pattern: Node, node: Node, operator: OperatorVersion | None, bound: Bound
    ) -> Iterator[Bound]:
        """Yield `bound` with further names for each way in which a node and its producers match `pattern`."""
        domains = canonical_domain(pattern.domain), canonical_domain(node.domain)
        if (
            pattern.op_type != node.op_type
            or domains[0] != domains[1]
            or is_unnecessary_cast(self._scope, node)
        ):
            return
        known = operator.attributes if operator is not None else {}
        if any(
            node.attribute(name) not in each
            for name, each in self._pattern.attributes.items()
            if name in known
        ):
            return
        names, count = pattern.inputs, len(pattern.inputs)
        is_variadic = operator is not None and operator.inputs and operator.inputs[-1].option == "variadic"
        further = node.inputs[count:] if is_variadic else ()
        given = [node.input(position) for position in range(count)]
        for values in (given, given[::-1]) if node.op_type in COMMUTATIVE else (given,):
            for each in self._bind([*zip(names, values, strict=True)], bound):
                # Check the further inputs last: a Sum of products would check all inputs for each product.
                if all(any(True for _ in self._bind([(names[-1], value)], {})) for value in further):
                    yield each

    def _bind(self, pairs: Sequence[tuple[str, str]], bound: Bound) -> Iterator[Bound]:
        """Yield `bound` with further names for each way to match pairs of a pattern name and a value."""
        if not pairs:
            yield bound
            return
        (name, value), *others = pairs
        if name in bound:
            if bound[name] == value:
                yield from self._bind(others, bound)
            return
        if name in self._pattern.types:
            element = self._scope.element_type(value)
            if element is None or type_string(element) not in self._pattern.types[name]:
                return
        known, pattern = {**bound, name: value}, self._producers.get(name)
        if pattern is None:
            if self._is_allowed(name, value):
                yield from self._bind(others, known)
            return
        found = self._producer(value, name)
        if found is not None and found.position == pattern.outputs.index(name):
            for each in self._match(pattern, found.node, found.operator, known):
                yield from self._bind(others, each)

    def _is_allowed(self, name: str, value: str) -> bool:
        """Return whether a value fulfils the conditions on an input of the pattern."""
        pattern = self._pattern
        constant = self._scope.constant(value) if name in pattern.scalars else None
        if name in pattern.scalars and (constant is None or len(constant.values) != 1):
            return False
        if name in pattern.vectors and not self._is_vector(value):
            return False
        if name in pattern.kept and not self._is_inner(value, name):
            return False
        if name in pattern.computed and not self._is_computed(value):
            return False
        if name in pattern.given and not self._is_given(value):
            return False
        if name in pattern.sources and self._source(value) not in ("", *pattern.sources[name]):
            return False
        if name in pattern.excluded_sources and self._source(value) in pattern.excluded_sources[name]:
            return False
        return name not in pattern.ranks or self._scope.rank(value) in pattern.ranks[name]

    def _is_vector(self, value: str) -> bool:
        """Return whether a value is a constant of known rank, with a size that is not known to be 1."""
        sizes = self._scope.shape(value) or ()
        return any(each != 1 for each in sizes) and self._constants.contain(self._scope, value)

    def _is_computed(self, value: str) -> bool:
        """Return whether a value is the result of a node that an optimizer neither folds nor removes."""
        source = self._computed_from(value)
        is_result = bool(source) and self._scope.producer(source) is not None
        return is_result and not self._constants.contain(self._scope, value)

    def _is_given(self, value: str) -> bool:
        """Return whether a value may differ between runs, and no node computes it."""
        scope, name, op_type = source_of(self._scope, value)
        is_result = bool(op_type) or not name
        return not is_result and not self._constants.contain(scope, name, allows_defaults=False)

    def _source(self, value: str) -> str:
        """Return the operator that computes a value, see `source_of`, or an empty string."""
        return source_of(self._scope, value).op_type

    def _producer(self, value: str, name: str) -> Producer | None:
        """Return the node that computes a value, past nodes that the pattern skips.

        The result is `None` if no node does, or if an optimizer has to keep the value, or folds it.
        """
        while value and (found := self._scope.producer(value)) is not None and self._is_inner(value, name):
            if not self._is_skipped(found.node):
                return found
            value = self._skipped_input(found.node)
        return None

    def _is_inner(self, value: str, name: str) -> bool:
        """Return whether a value may be inside a pattern: it varies, and has other uses only if permitted.

        A value in `NodePattern.kept` must have other uses.
        """
        scope = self._scope
        has_other_readers = scope.is_captured(value) or len(scope.readers(value)) > self._reads[name]
        is_output = self._constants.is_output(scope, value)
        if name in self._pattern.kept:
            is_inner = is_output or has_other_readers
        else:
            is_inner = name in self._pattern.outputs or not is_output
            is_inner &= name in self._pattern.shared or not has_other_readers
        return is_inner and not self._constants.contain(scope, value)


@cache
def _operator_with_inputs(names: tuple[str, ...]) -> OperatorVersion:
    """Return an operator for expressions about the values of a pattern."""
    inputs = tuple(Parameter(name=each, type="T") for each in names)
    return OperatorVersion(domain="", name="", since_version=1, inputs=inputs)
