"""Operators with a meaning that depends on the choice among several valid opsets."""

from collections.abc import Iterable, Iterator

from opshift.analysis.doctor.diagnosis import Stamp
from opshift.converter.report import Report
from opshift.model.errors import OpshiftError
from opshift.model.messages import ModelProto
from opshift.model.operator_ids import canonical_domain, model_domain
from opshift.registry.registry import Registry


def choices(model: ModelProto, stamps: Iterable[Stamp], registry: Registry) -> Iterator[str]:
    """Yield a sentence for each wrong or missing import of the model if its fitting opset is a guess.

    The results of a node may depend on the choice of the opset if a conversion from the oldest to the newest
    valid opset changes or refuses the node.
    """
    for stamp in stamps:
        if stamp.fits or stamp.place != "model" or not stamp.opsets or stamp.fitting is None:
            continue
        oldest, newest = stamp.opsets[0][0], stamp.opsets[-1][1]
        if oldest == newest:
            continue
        changed = sorted(set(_changed_operators(model, stamp, oldest, newest, registry)))
        if changed:
            yield (
                f"{stamp.domain} {stamp.fitting} is a guess: the results of {', '.join(changed)} may depend "
                f"on the choice among opsets {oldest} to {newest}"
            )


def _changed_operators(
    model: ModelProto, stamp: Stamp, oldest: int, newest: int, registry: Registry
) -> Iterator[str]:
    """Yield the operators of the stamp's domain that a conversion between two opsets changes or refuses."""
    from opshift.converter.convert import plan_version  # imported here: most declared opsets fit

    copy = ModelProto.FromString(model.SerializeToString())
    kept = [each for each in copy.opset_import if canonical_domain(each.domain) != stamp.domain]
    del copy.opset_import[:]
    copy.opset_import.extend(kept)
    copy.opset_import.add(domain=model_domain(stamp.domain), version=oldest)
    try:
        report = Report.of(plan_version(copy, {stamp.domain: newest}, registry=registry))
    except OpshiftError:  # another part of the model is invalid
        return
    operators = [each.operator for each in report.changed] + [each.operator for each in report.refusals]
    for operator in operators:
        domain, _, name = operator.partition(":")[0].rpartition(".")
        if domain == stamp.domain:
            yield name
