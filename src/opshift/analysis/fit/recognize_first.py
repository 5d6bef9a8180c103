"""Recognition of operators for which a runtime has kernels, before a model is fitted."""

from __future__ import annotations

from collections.abc import Set
from copy import deepcopy
from dataclasses import replace
from typing import NamedTuple

from opshift.converter.convert import try_convert
from opshift.converter.options import EVERY_OPERATOR, Options, Target
from opshift.converter.recognition.load import operator_names
from opshift.converter.recognition.result import Recognition
from opshift.converter.report import Report
from opshift.model.message_text import count_text
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import DEFAULT_DOMAIN, opset_imports, without_version
from opshift.registry.runtimes.runtime import Runtime
from opshift.runtimes.check_support import RuntimeCheck
from opshift.runtimes.model_nodes import ModelNodes


class FirstRecognition(NamedTuple):
    """Result of recognition before a model is fitted.

    Attributes:
        converted: the converted copy, with the report; `None` if nothing is recognized, or if the conversion
            is refused.
        slow: operators that were found, but whose kernels are slow, a sentence each.
    """

    converted: tuple[ModelProto, Report] | None
    slow: tuple[str, ...] = ()


def recognize_first(model: ModelProto, runtime: Runtime, options: Options) -> FirstRecognition:
    """Convert a copy of a model to an opset of a runtime, and recognize operators that have kernels there.

    The opset is the one with kernels for most operators, because a runtime may lack the newest versions.
    An operator is not recognized if the runtime may refuse one of its nodes or compute it wrongly, or if its
    kernel is slow.
    """
    newest = min(
        runtime.newest_import(DEFAULT_DOMAIN) or options.registry.newest_opset(),
        options.registry.newest_opset(),
    )
    own = opset_imports(model.opset_import, model.ir_version).get(DEFAULT_DOMAIN, newest)
    choices = {each: _with_kernel(options, runtime, each) for each in range(min(own, newest), newest + 1)}
    slow = runtime.slow_kernels.keys() - options.recognize
    opset, names = max(choices.items(), key=lambda each: (len(each[1] - slow), each[0]))
    notes: list[str] = []
    while names - slow:
        target = Target({DEFAULT_DOMAIN: opset}, runtime.ir_version)
        result, plan = try_convert(deepcopy(model), replace(options, target=target, recognize=names))
        if result is None:
            break
        report = Report.of(plan, result)
        recognized = {without_version(each.operator) for each in report.recognized}
        if not recognized:
            break
        if found := recognized & slow:
            notes += _slow_notes(report, found, runtime)
            names -= found
            continue
        support = RuntimeCheck(runtime).check(ModelNodes(result, options.registry))
        problems = (*(each.operator for each in support.missing), *support.doubtful)
        refused = recognized & set(map(without_version, problems))
        if not refused:
            return FirstRecognition((result, report), tuple(notes))
        names -= refused
    return FirstRecognition(None, tuple(notes))


def _slow_notes(report: Report, names: Set[str], runtime: Runtime) -> list[str]:
    return [
        f"{count_text(count, 'node')} of {operator}: {runtime.name} takes longer than for the "
        f"{count_text(replaced, 'node')} that compute the same ({runtime.slow_kernels[name]})"
        for operator, count, replaced in Recognition(report.recognized).groups()
        if (name := without_version(operator)) in names
    ]


def _with_kernel(options: Options, runtime: Runtime, opset: int) -> frozenset[str]:
    """Return the requested operators for which a runtime has a kernel at an opset."""
    registry, requested = options.registry, options.recognize
    every = operator_names(registry) if EVERY_OPERATOR in requested else ()
    found: set[str] = set()
    for name in (*(f"{DEFAULT_DOMAIN}.{each}" for each in every), *(requested - {EVERY_OPERATOR})):
        domain, _, op_type = name.rpartition(".")
        version = registry.known_at(op_type, opset if domain == DEFAULT_DOMAIN else 1, domain)
        if version is not None and runtime.kernel(version.id, {}):
            found.add(name)
    return frozenset(found)
