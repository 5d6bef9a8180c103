"""Cached rewrites and refusals of nodes, reusable for nodes that differ only in value names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from operator import itemgetter
from typing import Any, Final, Generic, NamedTuple, TypeVar

from opshift.inference.facts import Facts
from opshift.model.errors import CannotConvert, UnknownShape
from opshift.model.messages import NodeProto
from opshift.model.node import Node, Tensor, serialized_attributes
from opshift.registry.models import OperatorVersion
from opshift.registry.steps import Allow
from opshift.rewriting.result import ComputedRewrite, ConvertedNode, fill_node, update_node, values_read
from opshift.rewriting.version_steps import VersionStep
from opshift.rewriting.workspace import constant_key

ValueNames = tuple[str, ...]
"""All value names of one rewrite; templates refer to them by position."""

NameSelector = Callable[[ValueNames], ValueNames]
"""Function that selects the names of a node from all names of the rewrite."""

EMPTY_NODE: Final = Node("", (), (), {})
"""Empty node: the template of an added node stores its differences from an empty node."""


# Not a named tuple, because slots are read faster; a dataclass would take longer to import.
class _NodeTemplate:
    """Node of a cached rewrite, serialized without value names.

    The attributes of the node are copies that do not keep a model alive. `payload` contains the changed
    fields, serialized. `fill` clears `cleared_fields` of the NodeProto that it overwrites, and appends the
    names that `new_inputs` and `new_outputs` select.
    """

    __slots__ = ("cleared_fields", "converted", "inputs", "new_inputs", "new_outputs", "outputs", "payload")

    def __init__(
        self,
        converted: ConvertedNode,
        inputs: NameSelector | None,
        outputs: NameSelector | None,
        cleared_fields: tuple[str, ...],
        payload: bytes,
        new_inputs: NameSelector | None,
        new_outputs: NameSelector | None,
    ) -> None:
        self.converted = converted
        self.inputs = inputs
        self.outputs = outputs
        self.cleared_fields = cleared_fields
        self.payload = payload
        self.new_inputs = new_inputs
        self.new_outputs = new_outputs

    @classmethod
    def of(
        cls, written: ConvertedNode, original: Node, is_main: bool, places: Mapping[str, int]
    ) -> _NodeTemplate:
        """Return the template of an emitted node; with `is_main`, it overwrites the original NodeProto.

        `places` maps all names of the rewrite to their positions.
        """
        copy = original.copy_proto()
        old, old_attributes = (original, serialized_attributes(copy)) if is_main else (EMPTY_NODE, ())
        proto = copy if is_main else type(copy)()
        if is_main:
            update_node(proto, written, original)
        else:
            fill_node(proto, written, copy)
        attribute_proto = type(copy)(attribute=proto.attribute)
        attributes = {each.name: each for each in attribute_proto.attribute}
        node = Node(proto.op_type, written.node.inputs, written.node.outputs, attributes, proto.domain)
        # Only differences are stored: unchanged fields remain in the NodeProto that is overwritten.
        differs = {
            "domain": node.domain != old.domain,
            "attribute": list(serialized_attributes(attribute_proto)) != list(old_attributes),
            "input": node.inputs[: len(old.inputs)] != old.inputs,
            "output": node.outputs[: len(old.outputs)] != old.outputs,
        }
        filling = type(copy)(attribute=attribute_proto.attribute if differs["attribute"] else ())
        if node.op_type != old.op_type:
            filling.op_type = node.op_type
        if node.domain and differs["domain"]:
            filling.domain = node.domain
        return cls(
            written._replace(node=node),
            _selector(node.inputs, places),
            _selector(node.outputs, places),
            tuple(field for field in differs if differs[field]) if is_main else (),
            filling.SerializeToString(),
            _selector(node.inputs[0 if differs["input"] else len(old.inputs) :], places),
            _selector(node.outputs[0 if differs["output"] else len(old.outputs) :], places),
        )

    def instantiate(self, names: ValueNames) -> ConvertedNode:
        """Return the node with the given names."""
        node = self.converted.node
        inputs = self.inputs(names) if self.inputs else ()
        outputs = self.outputs(names) if self.outputs else ()
        node = Node(node.op_type, inputs, outputs, node.attributes, node.domain)
        return self.converted._replace(node=node)

    def fill(self, proto: NodeProto, names: ValueNames) -> None:
        """Write the node with the given names into a NodeProto."""
        for field in self.cleared_fields:
            proto.ClearField(field)
        if self.payload:
            proto.MergeFromString(self.payload)
        if self.new_inputs:
            proto.input.extend(self.new_inputs(names))
        if self.new_outputs:
            proto.output.extend(self.new_outputs(names))


def _selector(chosen: ValueNames, places: Mapping[str, int]) -> NameSelector | None:
    """Return a function that selects `chosen` from all names of a rewrite; `None` if `chosen` is empty."""
    positions = [places[name] for name in chosen]
    if len(positions) == 1:  # itemgetter of a single index would return a string, not a tuple
        return itemgetter(slice(positions[0], positions[0] + 1))
    return itemgetter(*positions) if positions else None


MAX_SHARED_ELEMENTS = 1024
"""Maximum number of constant elements in a rewrite that is shared between models; bounds memory."""


class Question(NamedTuple):
    """Query of a step for a fact about inputs or outputs of its node.

    `question` is the name of a method of `Facts`. Its argument is the name at position `start` in the list of
    inputs and outputs or, with `stop`, the names from `start` up to, but not including, `stop`.
    """

    question: str
    start: int
    stop: int | None = None


Answers = tuple[object, ...]
"""Answers to the questions of a step, in the hashable form of `answer_key`."""


def answer_to(question: Question, names: ValueNames, facts: Facts) -> object:
    """Return the answer to a question about a node with these value names, in the form of `answer_key`."""
    method, start, stop = question
    return answer_key(getattr(facts, method)(names[start] if stop is None else names[start:stop]))


def answer_key(answer: object) -> object:
    """Return an answer for comparison, with floats in tensors as text, because 0.0 == -0.0 and NaN != NaN."""
    if type(answer) is Tensor and float in map(type, answer.values):
        return answer.element_type, answer.dims, repr(answer.values)
    return answer


def questions_and_answers(asked: Mapping[Question, object]) -> tuple[tuple[Question, ...], Answers]:
    """Return the recorded questions, and their answers in the form of `answer_key`, in the same order."""
    return tuple(asked), tuple(map(answer_key, asked.values()))


Content = TypeVar("Content")


class _Branch(NamedTuple):
    """Inner node of a decision tree; `outcomes` maps each answer to the next branch or to an outcome."""

    question: Question
    outcomes: dict[object, Any]


class Candidates(Generic[Content]):
    """Decision tree that finds the outcome (rewrite or refusal) among those stored for one node key.

    The node key and the earlier answers determine the next question of the steps. A search therefore asks
    only questions that the steps ask: other questions may need more inference than the rest of a conversion.
    """

    __slots__ = ("_count", "_outcomes")

    def __init__(self) -> None:
        self._count = 0
        self._outcomes: dict[object, Any] = {}
        """The first branch or the only outcome, under the key `None`."""

    def __len__(self) -> int:
        return self._count

    def add(self, questions: tuple[Question, ...], answers: Answers, content: Content) -> None:
        """Add an outcome; drop it if a private adapter asked different questions after the same answers."""
        outcomes, answer = self._outcomes, None
        for question, next_answer in zip(questions, answers, strict=True):
            branch = outcomes.setdefault(answer, _Branch(question, {}))
            if type(branch) is not _Branch or branch.question != question:
                return
            outcomes, answer = branch.outcomes, next_answer
        if outcomes.setdefault(answer, content) is content:
            self._count += 1

    def find(self, names: ValueNames, facts: Facts) -> Content | None:
        """Return the outcome for a node with these value names; `None` if no stored outcome applies."""
        found = self._outcomes.get(None)
        while type(found) is _Branch:
            # Inlined `answer_to`: calls would take longer than the rest of most searches.
            (method, start, stop), outcomes = found
            answer = getattr(facts, method)(names[start] if stop is None else names[start:stop])
            found = outcomes.get(answer_key(answer) if type(answer) is Tensor else answer)
        return found


class CachedRewrite:
    """Rewrite of a node without its value names; unless it emits graphs, it keeps no model alive."""

    def __init__(
        self,
        result: ComputedRewrite,
        asked: Mapping[Question, object],
        fresh: Mapping[str, str],
        constants: Mapping[str, Tensor],
        *,
        shaped: Mapping[str, int | None],
        allowed: Sequence[tuple[Allow, str]],
    ) -> None:
        node = result.original
        self.with_graphs = result if result.has_graphs else None
        """The rewrite if it emits graphs, else `None`; `rename` copies it in place of using templates."""
        self.questions, self.answers = questions_and_answers(asked)
        self._answered_tensors = [each for each in asked.values() if isinstance(each, Tensor)]
        self.name_hints = tuple(fresh.values())
        self.allowed = tuple(allowed)
        self.constants = tuple((constant_key(each), each) for each in constants.values())
        read = set(values_read(result.nodes))
        self.read_constants = tuple(name in read for name in constants)
        self.operator = result.operator
        self.steps = result.steps
        self.operators = result.operators
        self.replacement_index = result.replacement_index
        self.is_unchanged = result.is_unchanged
        names = self._names = (*node.inputs, *node.outputs, *fresh, *constants, "")
        positions = {name: position for position, name in enumerate(names)}
        self.unread_inputs = _selector(
            tuple(each for each in node.inputs if each and each not in read), positions
        )
        self.shaped = _selector(tuple(shaped), positions)
        self.shaped_ranks = tuple(shaped.values())
        self.templates = tuple(
            _NodeTemplate.of(each, node, position == self.replacement_index, positions)
            for position, each in enumerate(() if self.with_graphs else result.nodes)
        )

    def rename(self, node: Node, names: ValueNames) -> ComputedRewrite:
        """Return a copy of this rewrite, which emits graphs, for another node; see `CacheHit` for `names`."""
        assert self.with_graphs is not None
        return self.with_graphs.with_names(node, dict(zip(self._names, names, strict=True)))

    @property
    def is_small(self) -> bool:
        """Whether the rewrite is small enough to be shared between models."""
        tensors = (
            *(tensor for _, tensor in self.constants),
            *self._answered_tensors,
        )
        return sum(len(each.values) for each in tensors) <= MAX_SHARED_ELEMENTS

    def matches(self, names: ValueNames, facts: Facts) -> bool:
        """Return whether all questions have the recorded answers for a node with these value names."""
        for question, answer in zip(self.questions, self.answers, strict=True):
            if answer_to(question, names, facts) != answer:
                return False
        return True


class CacheHit:
    """Cached rewrite applied to a node with other value names; templates write the new nodes."""

    __slots__ = ("_cached", "_names", "is_unchanged", "operators")

    def __init__(self, cached: CachedRewrite, names: ValueNames) -> None:
        """`names` lists the value names of the node, fresh names, names of constants, and the empty name."""
        self._cached = cached
        self._names = names
        self.operators = cached.operators
        self.is_unchanged = cached.is_unchanged

    @property
    def operator(self) -> OperatorVersion:
        """Operator version of the original node."""
        return self._cached.operator

    @property
    def steps(self) -> tuple[VersionStep, ...]:
        """Steps that the rewrite applied."""
        return self._cached.steps

    @property
    def replacement_index(self) -> int:
        """Position of the replacement among the new nodes."""
        return self._cached.replacement_index

    @property
    def node_count(self) -> int:
        """Number of nodes that replace the original; none of them has an emitted graph."""
        return len(self.operators)

    @property
    def nodes(self) -> tuple[ConvertedNode, ...]:
        """Nodes that replace the original."""
        return tuple(template.instantiate(self._names) for template in self._cached.templates)

    def write(self, protos: Sequence[NodeProto]) -> None:
        """Write the nodes that replace the original into NodeProtos."""
        names = self._names
        for position, template in enumerate(self._cached.templates):
            template.fill(protos[position], names)


NodeRewrite = ComputedRewrite | CacheHit


def mentions_any(text: str, names: Iterable[str]) -> bool:
    """Return whether a text contains one of the names as a whole word."""
    words = set(re.findall(r"\w+", text))
    return any(
        name in words
        if name.isidentifier()
        else name in text and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None
        for name in names
    )


QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
"""Quoted text in a message, such as the name of a value."""


class CachedRefusal:
    """Refusal of a node, without the names of its values."""

    def __init__(self, error: CannotConvert, names: ValueNames) -> None:
        self._error, self._names = error, names

    @property
    def is_reusable(self) -> bool:
        """Whether the messages name values of the node only in quotes, where `for_names` replaces them."""
        error = self._error
        text = QUOTED.sub("", " ".join((error.reason, error.subject, error.remedy)))
        # Names of one letter are ignored, because messages contain such words.
        return not mentions_any(text, [name for name in self._names if len(name) > 1])

    def for_names(self, names: ValueNames) -> CannotConvert:
        """Return the error with the value names in its messages replaced by the names of another node."""
        found = copy(self._error)
        new = {repr(old): repr(name) for old, name in zip(self._names, names, strict=True)}
        for field in ("reason", "subject", "remedy"):
            text = QUOTED.sub(lambda quoted: new.get(quoted[0], quoted[0]), getattr(found, field))
            setattr(found, field, text)
        if isinstance(found, UnknownShape):
            given = dict(zip(self._names, names, strict=True))
            found.values = tuple(given.get(name, name) for name in found.values)
            if found.causes is not None:
                found.causes = tuple((given[name], fact) for name, fact in found.causes)
        return found
