"""Lint rules for steps between versions, function bodies and recognized forms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from opshift.registry.lint.rule_table import Keys, LintProblem, rule
from opshift.registry.models import Operator, OperatorVersion
from opshift.registry.recognized_forms import form_problems
from opshift.registry.step_rules import body_problems, is_derivable, refutations, verb_problem
from opshift.registry.steps import Refuse, StepAction


class Direction(NamedTuple):
    """One direction of the step between two versions; `action` is `None` if it is not declared."""

    source: OperatorVersion
    target: OperatorVersion
    name: Literal["up", "down"]
    action: StepAction | None

    @property
    def keys(self) -> Keys:
        """The path to the direction in the newer version: `("step", "up")` or `("step", "down")`."""
        return ("step", self.name)


def directions(old: OperatorVersion, new: OperatorVersion) -> Iterator[Direction]:
    """Yield both directions of the step between two adjacent versions."""
    yield Direction(old, new, "up", new.step.up if new.step else None)
    yield Direction(new, old, "down", new.step.down if new.step else None)


@rule("step.missing", "declare `up` as compatible, verbs, adapter or {refuse: reason}")
def step_missing(step: Direction) -> Iterator[LintProblem]:
    """The upgrade from the previous version is declared, unless only element types differ."""
    if step.action is None and step.name == "up" and not is_derivable(step.source, step.target):
        reason = f"no upgrade from version {step.source.since_version} is declared"
        yield LintProblem(reason, step.keys)


@rule("step.verb", "correct the name, or the definition")
def step_verb(step: Direction) -> Iterator[LintProblem]:
    """A verb names attributes, inputs and outputs of the two versions."""
    if isinstance(step.action, tuple):
        for position, verb in enumerate(step.action):
            problem = verb_problem(verb, step.source, step.target)
            if problem:
                yield LintProblem(problem, (*step.keys, position))


@rule("step.refuted", "handle the change with a verb or an adapter, or refuse the nodes")
def step_refuted(step: Direction) -> Iterator[LintProblem]:
    """The two definitions do not refute `compatible` and verbs."""
    if step.action is None or step.action == "adapter" or isinstance(step.action, Refuse):
        return
    verbs = step.action if isinstance(step.action, tuple) else ()
    for each in refutations(step.source, step.target, verbs):
        yield LintProblem(f"{each.rule}: {each.reason}", step.keys)


@rule("step.first", "remove `step`, or use `before`")
def step_first(operator: Operator) -> Iterator[LintProblem]:
    """The first version has no `step`: there is no previous version."""
    if operator.versions[0].step is not None:
        yield LintProblem("the first version cannot have a step", ("versions", 0, "step"))


@rule("step.before", "move `before` to the first version, or use `step`")
def step_before(operator: Operator) -> Iterator[LintProblem]:
    """Only the first version has `before`; the value `body` needs a function body."""
    for position, version in enumerate(operator.versions):
        keys: Keys = ("versions", position, "before")
        if position and version.before is not None:
            yield LintProblem("only the first version can have `before`", keys)
        if version.before == "body" and version.body is None:
            yield LintProblem("`before` is `body`, but the version has no body", keys, "write the `body`")
        if version.before == "compatible":
            yield LintProblem(
                "`compatible` is impossible: the target opset lacks the operator",
                keys,
                "use verbs or an adapter",
            )
        if version.removal is not None and version.removal.up == "compatible":
            keys = ("versions", position, "removal", "up")
            yield LintProblem(
                "`compatible` is impossible: the target opset lacks the operator",
                keys,
                "use verbs or an adapter",
            )


@rule("body.valid", "correct the node")
def body_valid(version: OperatorVersion) -> Iterator[LintProblem]:
    """A function body computes all outputs from the inputs and declared attributes, in topological order."""
    for each in body_problems(version):
        node = () if each.node is None else ("nodes", each.node)
        yield LintProblem(each.reason, ("body", *node))


@rule("form.valid", "correct the form")
def form_valid(operator: Operator) -> Iterator[LintProblem]:
    """A form in `recognize` computes an output of the newest version, and its `since_version` exists."""
    newest = operator.versions[-1]
    inputs = [each.name for each in newest.inputs]
    outputs = [each.name for each in newest.outputs]
    for position, form in enumerate(operator.recognize):
        for reason in dict.fromkeys(form_problems(form, inputs, outputs, newest.attributes)):
            yield LintProblem(reason, ("recognize", position, "form"))
        if form.since_version not in (0, *(each.since_version for each in operator.versions)):
            yield LintProblem(
                f"the operator has no version {form.since_version}", ("recognize", position, "since_version")
            )
