"""Compare a converted model with its original."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from opshift.converter.convert import model_of
from opshift.converter.errors import UsageError
from opshift.converter.verification.randomness import require_repeatable
from opshift.converter.verification.result import CannotVerify, Runtime, Verification, VerificationFailed
from opshift.registry.catalogue import Registry, default_registry

if TYPE_CHECKING:
    from opshift.converter.verification.runtimes import Source


def verify(
    original: Any,
    converted: Any,
    inputs: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    runtime: Runtime = "auto",
    samples: int = 3,
    seed: int = 0,
    tolerance: float | None = None,
    registry: Registry | None = None,
) -> Verification:
    """Run two models on the same inputs and compare all outputs.

    Args:
        original: a ModelProto (the project's or `onnx`'s), the bytes of one, or a path. Weights in files of
            their own are looked for beside the path.
        converted: likewise; if it is no path, its weights are looked for where the original's are.
        inputs: arrays by input name, or the path of an .npz file of them. What is not given is generated from
            the types and shapes that the original declares; inputs with a default are left at it.
        runtime: `onnxruntime`, `reference` (onnx.reference), or `auto`: for each model the first of these
            that takes it.
        samples: how many sets of inputs to generate.
        seed: what they come from.
        tolerance: how far apart elements may be, relative and absolute, of the types that are computed with
            (double, float, float16, bfloat16 and complex), in place of what is usual for each; all others
            have to be equal. NaN equals NaN.
        registry: the definitions to go by, if not the project's own.

    Returns:
        What was compared, and how far apart it was.

    Raises:
        VerificationFailed: the models differ, or the converted one does not run; has the `verification`.
        CannotVerify: the original draws at random, does not run, or what runs it is not installed.
        UsageError: the given inputs, or the other arguments, make no sense.
        InvalidModel: one of the two is no model.
    """
    if runtime not in get_args(Runtime):
        raise UsageError(f"{runtime!r} is no runtime", remedy=f"there are {', '.join(get_args(Runtime))}")
    if samples < 1:
        raise UsageError(f"{samples} samples compare nothing", remedy="give 1 or more")
    registry = registry or default_registry()
    try:
        from opshift.converter.verification.execution import Request, execute
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        raise CannotVerify("numpy is not installed", remedy="pip install 'opshift[verify]'") from error
    first, second = _sources(original, converted)
    require_repeatable(first.model)
    request = Request(first, second, inputs, runtime, samples, seed, tolerance)
    found = execute(request, registry)
    if not found.equal:
        raise VerificationFailed(found)
    return found


def _sources(original: Any, converted: Any) -> tuple[Source, Source]:
    from opshift.converter.verification.runtimes import Source

    folder = _folder(original)
    first = Source(model_of(original)[0], folder)
    second = Source(model_of(converted)[0], _folder(converted) or folder)
    return first, second


def _folder(model: Any) -> Path | None:
    is_path = isinstance(model, str | os.PathLike)
    return Path(model).resolve().parent if is_path else None
