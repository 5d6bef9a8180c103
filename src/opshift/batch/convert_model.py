"""Conversion of one model of a batch in a worker, which returns errors in the outcome."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from opshift.batch.file_states import FileStates, are_unchanged, full_name, states_of
from opshift.batch.outcome import STARTED, WRITTEN, Entry, ModelError, ModelOutcome, Status, Task
from opshift.batch.outputs import require_no_link
from opshift.batch.settings import Settings, options_of
from opshift.checker.findings import IllegalModel
from opshift.converter.convert import convert_with
from opshift.converter.options import Options
from opshift.converter.refusals import ConversionRefused
from opshift.converter.report import Report, conversion_report
from opshift.converter.streaming.convert_file import converting
from opshift.converter.streaming.external_data import data_exists, external_locations, require_files
from opshift.converter.streaming.external_weights import relocate_external_data
from opshift.model.errors import InvalidModel, OpshiftError, UsageError
from opshift.model.file_formats import unreadable
from opshift.model.files import FileLike, read_model
from opshift.model.locations import is_url, without_secrets
from opshift.model.messages import ModelProto
from opshift.model.progress import Progress
from opshift.registry.registry import Registry
from opshift.stores.locations import exists, metadata_of, with_data

if TYPE_CHECKING:
    from opshift.analysis.verification.result import Verification
    from opshift.converter.streaming.weights import OutputFile

OPTIONS_KEY, SOURCE_KEY = "opshift-options", "opshift-source"
"""Metadata keys of an output object, for the digest of the options and the digest of the source model."""


def convert_model(settings: Settings, digest: str, task: Task) -> ModelOutcome:
    """Convert a model unless its outcome is already known; return all errors in the outcome."""
    start = time.perf_counter()
    try:
        outcome = _known_outcome(settings, digest, task) or _convert_or_refuse(settings, digest, task)
    except OpshiftError as error:
        outcome = failure(task, _error_with_user(task, error))
    except OSError as error:
        outcome = _system_failure(task, error)
    except Exception as error:  # a bug must not stop the conversion of the other models
        reason = f"{type(error).__name__}: {error}"
        bug = OpshiftError(reason, place=task.source, remedy="report this as a bug")
        outcome = failure(task, bug, "InternalError")
    return replace(outcome, seconds=time.perf_counter() - start)


def _system_failure(task: Task, error: OSError) -> ModelOutcome:
    """Return the outcome for an OSError about the source model or another file."""
    place = str(error.filename or task.source)
    if not is_url(task.source) and os.path.abspath(place) == os.path.abspath(task.source):
        return failure(task, unreadable(task.source, error))
    return failure(task, OpshiftError(error.strerror or str(error), place=place), type(error).__name__)


def failure(task: Task, error: OpshiftError, name: str = "") -> ModelOutcome:
    """Return the outcome of a model that was not converted; `name` replaces the name of the error's class."""
    return ModelOutcome(task.source, task.output, "failed", ModelError.of(error, name))


def _error_with_user(task: Task, error: OpshiftError) -> OpshiftError:
    """Return `error`, or an error that names another output if that output owns the existing data file."""
    place = str(error.place)
    user = task.data_users.get(full_name(place))
    if user is None or error.reason != data_exists(place).reason:
        return error
    reason = f"contains weights of {user}, which this conversion would replace"
    remedy = (
        "convert the models into separate folders; or replace the file with --force, and convert the other "
        "model again into another folder"
    )
    return UsageError(reason, place=place, remedy=remedy)


def _known_outcome(settings: Settings, digest: str, task: Task) -> ModelOutcome | None:
    """Return the outcome of a model that need not be converted; `None` if it must be.

    The output is up to date, the conversion was refused before, or the model is skipped. Raise the error of
    the task, or UsageError for an output that must not be replaced.
    """
    if task.error is not None:
        raise task.error
    entry = task.entry
    if entry is not None and entry.options == digest and _is_proven(entry, task):
        if entry.status in WRITTEN:
            return ModelOutcome(task.source, task.output, "skipped", files=entry.files, from_ledger=True)
        if entry.status == "refused":
            files, error = entry.files, entry.error
            return ModelOutcome(task.source, task.output, "refused", error, files=files, from_ledger=True)
    if is_url(task.output) and (not task.may_replace or (entry is not None and entry.status == STARTED)):
        adopted = _adopted_outcome(settings, digest, task)
        if adopted is not None:
            return adopted
    if task.may_replace or not exists(task.output):
        return None
    if task.skips_existing:
        return ModelOutcome(task.source, task.output, "skipped")
    remedy = "replace it with --force, or keep it with --skip-existing"
    raise UsageError("already exists", place=task.output, remedy=remedy)


def _adopted_outcome(settings: Settings, digest: str, task: Task) -> ModelOutcome | None:
    """Return the outcome for an up-to-date object that a killed run wrote without recording it, or `None`."""
    found = metadata_of(task.output) if exists(task.output) else None
    if not found or found.get(OPTIONS_KEY) != digest:
        return None
    from opshift.converter.streaming.convert_object import is_copy

    data = tuple(external_locations(task.source))
    states = states_of(with_data(task.source, data))
    if found.get(SOURCE_KEY) != states[full_name(task.source)].digest:
        return None
    copied = data if settings.external != "keep" else ()
    copies = with_data(task.output, copied)
    if not all(
        exists(new) and is_copy(new, old)
        for new, old in zip(copies[1:], with_data(task.source, copied)[1:], strict=True)
    ):
        return None
    files = {**states, **states_of(copies)}
    output_data = _output_data(task, copied, data)
    return ModelOutcome(
        task.source, task.output, "converted", external_data=data, files=files, output_data=output_data
    )


def _is_proven(entry: Entry, task: Task) -> bool:
    """Return whether an entry names the source, and the output if written, and its files are unchanged."""
    needed = {task.source, task.output} if entry.status in WRITTEN else {task.source}
    # Names in the ledger lack credentials: read the model files by the names in the task.
    names = {without_secrets(name): name for name in map(full_name, needed)}
    if not names.keys() <= entry.files.keys():
        return False
    files = {names.get(name, name): state for name, state in entry.files.items()}
    return are_unchanged(files)


def _convert_or_refuse(settings: Settings, digest: str, task: Task) -> ModelOutcome:
    options = options_of(settings, digest)
    # states before the conversion: if a file changes meanwhile, the next run sees another state
    if not is_url(task.source):  # missing data files raise the errors of `convert_file`
        require_files(dict.fromkeys(task.data, 0), Path(task.source).parent)
    states = states_of(with_data(task.source, task.data))
    try:
        return _convert_with_states(settings, options, digest, task, states)
    except (ConversionRefused, IllegalModel) as error:
        reported = ModelError.of(error)
        return ModelOutcome(task.source, task.output, "refused", reported, files=states)


def _convert_with_states(
    settings: Settings, options: Options, digest: str, task: Task, states: FileStates
) -> ModelOutcome:
    def convert_in_place(model: ModelProto) -> Report:
        result, plan = convert_with(model, options)
        return conversion_report(plan, result, options)

    verification = None
    if not is_url(task.output):
        require_no_link(task.output)
        Path(task.output).parent.mkdir(parents=True, exist_ok=True)
    is_owned = task.entry is not None and task.entry.owns_output
    may_replace_data = settings.force or (is_owned and not task.data_users)
    conversion = converting(
        task.source,
        task.output,
        convert_in_place,
        settings.external,
        may_replace_data,
        metadata={OPTIONS_KEY: digest, SOURCE_KEY: states[full_name(task.source)].digest},
        needs_file=settings.verify,
        rewrites_data=bool(options.types),
    )
    with conversion as written:
        data = tuple(written.external)
        if not is_url(task.source) and set(data) != set(task.data):
            reason, remedy = "changed while it was converted", "convert it again when no process writes to it"
            raise InvalidModel(reason, place=task.source, remedy=remedy)
        copied = written.data if settings.external != "keep" or written.data != data else ()
        if copied and not task.may_copy_data:
            reason = "has external data files, and models of several folders are converted into one folder"
            remedy = "convert each folder separately, or keep the data files: --external keep"
            raise UsageError(reason, place=task.source, remedy=remedy)
        states = {**states_of(with_data(task.source, data)[1:]), **states}
        if settings.verify and written.path:
            result = read_model(written.path)
            verification = verify_conversion(
                task.source, result, settings, options.registry, data_file=written.data_file
            )
    files = {**states, **states_of(with_data(task.output, copied))}
    status: Status = "unchanged" if _is_unchanged(task, written, data, copied, files) else "converted"
    output_data = _output_data(task, copied, data)
    return ModelOutcome(
        task.source,
        task.output,
        status,
        None,
        written.report,
        verification,
        data,
        files,
        output_data=output_data,
    )


def _is_unchanged(
    task: Task, written: OutputFile, data: tuple[str, ...], copied: tuple[str, ...], files: FileStates
) -> bool:
    report = written.report
    if report.sizes is None or report.sizes[0] != report.sizes[1]:
        return False
    if report.opsets or report.changed or report.repairs or len(set(report.ir_version)) > 1:
        return False
    if written.data_file is None:
        return True
    # a conversion of element types writes all external data to a new file, at other positions
    pairs = (task.source, data), (task.output, copied)
    old, new = ([files[full_name(each)].digest for each in with_data(*pair)] for pair in pairs)
    return old == new


def _output_data(task: Task, written: tuple[str, ...], data: tuple[str, ...]) -> dict[str, str]:
    """Map the full name of each data file of an output to that of its source.

    A conversion of element types writes one new data file; its source is the model file.
    """
    places = with_data(task.output, written)[1:]
    sources = [with_data(task.source, (name,))[1] if name in data else task.source for name in written]
    return {full_name(place): full_name(source) for place, source in zip(places, sources, strict=True)}


def verify_conversion(
    source: FileLike,
    converted: ModelProto,
    settings: Settings,
    registry: Registry,
    progress: Progress | None = None,
    data_file: Path | None = None,
) -> Verification:
    """Run the original and the converted model, and compare their outputs; raise the errors of `verify`.

    `data_file` is the temporary file with the external data of `converted`, if element types are converted.
    """
    from opshift.analysis.verification.verify import verify

    tolerance = settings.tolerance
    if settings.types:
        from opshift.analysis.verification.compare import tolerance_for

        if tolerance is None:
            tolerance = tolerance_for(each for pair in settings.types for each in pair)
    if data_file is not None:
        relocate_external_data(converted, data_file.name)
    inputs: dict[str, object] = {}
    if settings.inputs:
        from opshift.analysis.verification.inputs import read_arrays

        inputs |= read_arrays(settings.inputs)
    inputs |= dict(settings.input_files)
    return verify(
        source,
        converted,
        inputs,
        tolerance=tolerance,
        registry=registry,
        custom_ops=settings.custom_ops,
        progress=progress,
        folder=data_file and data_file.parent,
    )
