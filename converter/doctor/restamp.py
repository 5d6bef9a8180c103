"""Give a model the opset imports and the IR version that it is written for; nothing else changes."""

from __future__ import annotations

from typing import Any

from opshift.converter.convert import BYTES, model_of
from opshift.converter.doctor.diagnose import diagnose
from opshift.converter.doctor.diagnosis import Diagnosis, Stamp
from opshift.converter.errors import InvalidModel
from opshift.converter.functions import title
from opshift.registry.catalogue import Registry
from opshift.registry.names import DEFAULT_DOMAIN, canonical_domain


def restamp(model: Any, *, inplace: bool = False, registry: Registry | None = None) -> Any:
    """A model with the stamps that fit it; what it computes there is what its nodes mean at those opsets.

    Args:
        model: a ModelProto, its bytes, or a path.
        inplace: change the given ModelProto itself.
        registry: the definitions to go by, if not the project's own.

    Returns:
        A model of the class that was given; for bytes, bytes; for a path, the project's ModelProto.

    Raises:
        InvalidModel: it has no meaning whatever it states.
    """
    source, owned = model_of(model)
    diagnosis = diagnose(source, registry=registry)
    require_curable(diagnosis)
    result = source
    if not owned and not inplace:
        result = type(source)()
        result.CopyFrom(source)
    apply_stamps(diagnosis, result)
    return result.SerializeToString() if isinstance(model, BYTES) else result


def require_curable(diagnosis: Diagnosis) -> None:
    """Raise if no stamp would fit.

    Raises:
        InvalidModel: no opset of a domain is legal for all nodes.
    """
    for stamp in diagnosis.hopeless:
        raise InvalidModel(
            f"no opset of {stamp.domain} is legal for all nodes",
            place=stamp.place,
            remedy="opshift doctor lists for which opsets each of them is",
        )


def apply_stamps(diagnosis: Diagnosis, model: Any) -> None:
    """Write the stamps that fit into `model`, which is the diagnosed model or a copy of it."""
    model.ir_version = diagnosis.ir_version.fitting
    owners = {"model": model, **{f"function {title(each)}": each for each in model.functions}}
    for stamp in diagnosis.stamps:
        if not stamp.fits:
            _write(owners[stamp.place].opset_import, stamp)


def _write(imports: Any, stamp: Stamp) -> None:
    found = [each for each in imports if canonical_domain(each.domain) == stamp.domain]
    for each in found or [imports.add()]:
        if not found and stamp.domain != DEFAULT_DOMAIN:
            each.domain = stamp.domain
        each.version = stamp.fitting
