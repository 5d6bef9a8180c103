"""Run the examples of a proposal, before and after conversions, to collect evidence for the rules."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from opshift.adapters.core.adapter_table import temporary_adapters, unregister
from opshift.analysis.verification.runtimes import CannotRun
from opshift.checker.check import check
from opshift.checker.findings import ERROR
from opshift.converter.convert import convert_version
from opshift.converter.refusals import ConversionRefused
from opshift.model.errors import OpshiftError
from opshift.model.extensions import ExtensionFailed
from opshift.model.graphs import node_place
from opshift.model.messages import ModelProto
from opshift.proposals.content.draft import DefinedDraft, Draft
from opshift.proposals.content.findings import InvalidProposal, ProposalProblem
from opshift.proposals.content.folder import ADAPTERS, EXAMPLES, REFERENCE, SHAPES
from opshift.proposals.content.models import Example
from opshift.proposals.content.staged_registry import module_name
from opshift.proposals.evidence.cases import Arrays, BadValue, Case, case_of_example, cases_in_other_types
from opshift.proposals.evidence.node_models import body_model, feeds_of, node_model, with_initializers
from opshift.proposals.evidence.outcomes import Outcome, OutputComparison, compare_outputs, run_and_compare
from opshift.proposals.evidence.run import (
    Reference,
    ReferenceFails,
    References,
    load_module,
    load_reference,
    run_model,
    run_reference,
)
from opshift.registry.models import OperatorVersion
from opshift.registry.shapes.all_rules import SHAPE_RULES
from opshift.registry.shapes.rule_table import rule as shape_rule
from opshift.registry.shapes.rule_table import temporary_rules
from opshift.registry.step_rules import body_problems

Direction = Literal["up", "down"]


def convert_and_run(
    case: Case, outputs: Arrays, draft: DefinedDraft, references: References
) -> Iterator[tuple[Direction, OutputComparison]]:
    """Convert the model of a case, run each result, and yield its direction and comparison with `outputs`.

    Cases of the proposed version are downgraded and upgraded again; cases of older versions are upgraded. A
    case with several inputs is also converted with all inputs except the first as initializers, because
    adapters may treat constants differently.
    """
    opset = _opset_of_case(case, draft)
    model = node_model(case, outputs, opset)
    models = [model, with_initializers(model, case)] if len(feeds_of(case)) > 1 else [model]
    targets: dict[Direction, int] = {"down": draft.opset - 1, "up": draft.opset}
    if opset < draft.opset:
        del targets["down"]
    for current in models:
        for direction, target in targets.items():
            converted = _convert(current, target, draft, case)
            if isinstance(converted, OutputComparison):
                yield direction, converted
                break
            comparison = run_and_compare(case, outputs, converted, references)
            yield direction, comparison
            if comparison.verdict == "differs":
                break  # a further conversion would start from a wrong model
            current = converted


def run_published_version(case: Case, draft: DefinedDraft, references: References) -> Arrays:
    """Return the outputs of a case of a published version, computed by a runtime.

    Raises:
        CannotRun: no installed runtime supports the version.
    """
    return tuple(run_model(_model_before_run(case, draft), feeds_of(case), references))


def _model_before_run(case: Case, draft: DefinedDraft) -> ModelProto:
    # Only the number of outputs matters here: their types are cleared below.
    placeholders = (np.zeros(1, np.float32),) * case.version.min_output
    model = node_model(case, placeholders, _opset_of_case(case, draft))
    for value in model.graph.output:
        value.ClearField("type")  # the shape is unknown before the run; runtimes infer it
    return model


def _require_no_violations(case: Case, draft: DefinedDraft) -> None:
    """Raise BadValue if the node of a case violates a rule of the specification, such as a range."""
    model = with_initializers(_model_before_run(case, draft), case)
    place = node_place("graph", model.graph.node[0])
    try:
        findings = check(model, registry=draft.staged)
    except ExtensionFailed:  # a shape rule of the proposal fails, which `shape.agrees` reports
        return
    for each in findings:
        if each.level is ERROR and each.place.startswith(place):
            raise BadValue(f"{each.place.removeprefix(place).removeprefix(', ')} {each.reason}".strip())


def _opset_of_case(case: Case, draft: DefinedDraft) -> int:
    """Return the opset for the model of a case: the last opset in which its version is in effect.

    For the proposed version this is the proposal's opset.
    """
    if case.version.since_version == draft.opset:
        return draft.opset
    since_versions = [each.since_version for each in draft.operator.versions]
    next_version = next((each for each in since_versions if each > case.version.since_version), draft.opset)
    return next_version - 1


def _convert(model: ModelProto, opset: int, draft: DefinedDraft, case: Case) -> ModelProto | OutputComparison:
    """Convert the model to another opset of the operator's domain; return the error if that fails."""
    domain = draft.operator.domain
    try:
        return convert_version(model, {domain: opset}, ir_version="keep", registry=draft.staged)
    except ConversionRefused as error:
        return OutputComparison(case, "refused", "; ".join(each.reason for each in error.refusals))
    except ExtensionFailed as error:
        return OutputComparison(case, "differs", error.reason)  # a refusal would hide the mistake
    except OpshiftError as error:
        return OutputComparison(case, "refused", error.reason)


@dataclass
class Evidence:
    """Results of running a proposal: outputs of the cases, and their comparisons with other computations."""

    reference_error: InvalidProposal | None = None
    """Error that prevents loading the reference, and so all runs; `None` if there is none."""
    bad_examples: list[tuple[int, str]] = field(default_factory=list)
    """Index and problem of each example that is not a valid node of the operator."""
    outcomes: list[Outcome] = field(default_factory=list)
    expected: list[OutputComparison] = field(default_factory=list)
    bodies: list[OutputComparison] = field(default_factory=list)
    steps: dict[Direction, list[OutputComparison]] = field(default_factory=lambda: {"down": [], "up": []})
    numpy: list[OutputComparison] = field(default_factory=list)


RULES = "_shapes.py"
"""Suffix of files with shape rules in a tree, such as `elu_29_shapes.py`."""

_SHAPE_RULE = re.compile(r"""rule\(\s*["'](\w+)["']""")


@contextmanager
def registered_shape_rules(draft: Draft, run: bool = True) -> Iterator[InvalidProposal | None]:
    """Register the shape rules of the trees and of a proposal within a `with` block.

    If `run` is false, no code is executed, and placeholders are registered under the names of the rules.
    Yields the error that prevents loading the rules, or `None`.
    """
    failure = None
    with temporary_rules():
        try:
            for path in _shape_files(draft):
                if run:
                    load_module(path)
                else:
                    for name in _rule_names(path):
                        shape_rule(name)(lambda node: [])
        except OpshiftError as error:
            failure = InvalidProposal(error.reason, place=error.place, remedy=error.remedy)
        yield failure


def _shape_files(draft: Draft) -> list[Path]:
    """Return the files with shape rules of the tree, then `shapes.py` of the proposal.

    Files of the tree are omitted if their rules are already registered, or if they belong to the operator and
    the proposal defines a rule with the same name.
    """
    path, operator = draft.folder.file(SHAPES), draft.proposal.operator
    proposed = [path] if path.is_file() else []
    names = {name for each in proposed for name in _rule_names(each)}
    own = module_name(operator.domain, operator.name, 1).removesuffix("1.py")
    accepted = (each for tree in draft.registry.folders for each in sorted(tree.glob(f"adapters/*{RULES}")))
    missing = (each for each in accepted if not _rule_names(each) <= SHAPE_RULES.keys())
    kept = (each for each in missing if not (each.name.startswith(own) and names & _rule_names(each)))
    return [*kept, *proposed]


def _rule_names(path: Path) -> set[str]:
    return set(_SHAPE_RULE.findall(path.read_text("utf-8")))


@contextmanager
def registered_adapters(draft: DefinedDraft) -> Iterator[InvalidProposal | None]:
    """Register the adapters of the tree and of the proposal within a `with` block.

    Yields the error that prevents loading the adapters, or `None`.
    """
    path = draft.folder.file(ADAPTERS)
    files = [each for tree in draft.registry.folders for each in sorted(tree.glob("adapters/*.py"))]
    # A proposal that edits a version contains all of its adapters: do not load those of the tree.
    replaced = module_name(*draft.version.id).removesuffix(".py") if draft.edits_version else None
    adapters = [
        each
        for each in files
        if not each.name.endswith(RULES) and not (replaced and each.name.startswith(replaced))
    ]
    failure = None
    with temporary_adapters():
        try:
            for each in adapters:
                load_module(each)
            if replaced:
                unregister(*draft.version.id)
            if path.is_file():
                load_module(path)
        except OpshiftError as error:
            failure = InvalidProposal(error.reason, place=str(path), remedy=error.remedy)
        yield failure


def gather_evidence(draft: DefinedDraft, examples: tuple[Example, ...]) -> Evidence:
    """Run every example with the reference, the function body, the numpy function, and after conversions.

    Nothing is run if the body is recursive or the reference cannot be loaded. The adapters of the proposal
    must be registered, see `registered_adapters`.
    """
    evidence = Evidence()
    if draft.is_recursive:  # a conversion would expand nodes of a recursive body without end
        return evidence
    try:
        reference = load_reference(draft.folder.file(REFERENCE))
    except InvalidProposal as error:
        evidence.reference_error = error
        return evidence
    references = References(draft.staged, Reference(implemented_version(draft), reference))
    for case in _valid_cases(draft, examples, evidence):
        if _run_case(case, draft, references, evidence):
            for other in cases_in_other_types(case):
                _run_case(other, draft, references, evidence)
    return evidence


def implemented_version(draft: DefinedDraft) -> OperatorVersion:
    """Return the version that the reference implements.

    Models cannot use a deprecated version, so the reference implements the version before it.
    """
    return draft.previous if draft.version.deprecation and draft.previous else draft.version


def _valid_cases(draft: DefinedDraft, examples: tuple[Example, ...], evidence: Evidence) -> Iterator[Case]:
    for position, example in enumerate(examples):
        try:
            case = case_of_example(example, position, draft.operator, implemented_version(draft))
            _require_no_violations(case, draft)
            yield case
        except BadValue as error:
            evidence.bad_examples.append((position, error.reason))


def _run_case(case: Case, draft: DefinedDraft, references: References, evidence: Evidence) -> bool:
    """Run a case, add all comparisons to `evidence`, and return whether the case has outputs."""
    outcome = _case_outcome(case, draft, references)
    evidence.outcomes.append(outcome)
    outputs = outcome.outputs
    if outputs is None:
        return False
    if case.expected is not None:
        evidence.expected.append(compare_outputs(case, case.expected, outputs))
    if case.version is implemented_version(draft):
        if case.version.body is not None and not any(body_problems(case.version)):
            evidence.bodies.append(_compare_body(case, outputs, references))
        if draft.proposal.numpy:
            evidence.numpy.extend(_compare_numpy(case, outputs, draft.proposal.numpy))
    for direction, comparison in convert_and_run(case, outputs, draft, references):
        evidence.steps[direction].append(comparison)
    return True


def _case_outcome(case: Case, draft: DefinedDraft, references: References) -> Outcome:
    try:
        reference = references.of_version(case.version)
        if reference:
            return Outcome(case, run_reference(reference, case.inputs, case.attributes))
        return Outcome(case, run_published_version(case, draft, references))
    except (ReferenceFails, CannotRun) as error:
        return Outcome(case, None, error.reason)


def _compare_body(case: Case, outputs: Arrays, references: References) -> OutputComparison:
    try:
        model = body_model(case, outputs, references.registry)
        return run_and_compare(case, outputs, model, references)
    except (OpshiftError, KeyError) as error:
        return OutputComparison(case, "not run", str(error))


def _compare_numpy(case: Case, outputs: Arrays, name: str) -> Iterator[OutputComparison]:
    """Compare outputs with the results of numpy, unless the case has attributes or omits inputs."""
    function = numpy_function(name)
    if function is None or case.attributes or any(each is None for each in case.inputs):
        return
    try:
        with np.errstate(all="ignore"):
            found = function(*case.inputs)
    except Exception as error:  # numpy functions raise many classes of errors
        yield OutputComparison(case, "not run", f"{name} raises {type(error).__name__}: {error}")
        return
    listed = found if isinstance(found, tuple) else (found,)
    yield compare_outputs(case, outputs, [np.asarray(each) for each in listed])


def numpy_function(name: str) -> Callable[..., Any] | None:
    """Return the numpy function with a name such as `numpy.linalg.det` or `clip`, or `None`."""
    found: Any = np
    for part in name.removeprefix("numpy.").removeprefix("np.").split("."):
        found = getattr(found, part, None)
    return found if callable(found) else None


@dataclass(frozen=True)
class Evaluated(DefinedDraft):
    """Proposal with its evidence. The proposal's adapters stay registered while the rules check it."""

    evidence: Evidence
    adapters_error: InvalidProposal | None
    """Error that prevents loading the adapters, or `None`."""

    def at_examples(self, reason: str, *position: int) -> ProposalProblem:
        """Return a problem with the example at index `position`, or, without an index, with all examples."""
        return ProposalProblem(reason, self.folder.locate(EXAMPLES, "examples", *position))

    def at_case(self, case: Case, reason: str) -> ProposalProblem:
        """Return a problem with the example of a case."""
        return self.at_examples(f"{case.name}: {reason}", case.position)
