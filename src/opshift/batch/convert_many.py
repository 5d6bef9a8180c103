"""Conversion of many models: `convert_many`."""

from __future__ import annotations

import os
from collections.abc import Container, Generator, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Executor
from contextlib import closing, suppress
from functools import partial
from itertools import chain, islice
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, Unpack

from opshift.batch.convert_model import convert_model, failure
from opshift.batch.file_states import full_name, options_digest
from opshift.batch.ledger import Ledger, ledger_location
from opshift.batch.outcome import STARTED, ModelOutcome, Task
from opshift.batch.outputs import (
    Destinations,
    foreign_objects,
    output_location,
    remove_unfinished,
    require_no_link,
    without_links,
)
from opshift.batch.run_chunks import WORKER_LOST, LostTask, run_chunks
from opshift.batch.settings import Settings, nonempty_arguments
from opshift.converter.arguments import Dims, members_of, read_shapes
from opshift.converter.options import (
    Options,
    PlainTarget,
    SharedArguments,
    StoredFlags,
    Target,
    TargetLike,
    require_known,
    split_target,
)
from opshift.converter.streaming.external_data import ExternalHandling, external_locations, require_handling
from opshift.model.errors import (
    OpshiftError,
    UsageError,
    path_argument,
    path_arguments,
    require_collection,
    wrong_type,
)
from opshift.model.locations import is_url
from opshift.model.operator_ids import DEFAULT_DOMAIN
from opshift.stores.find_models import LIST, FoundModel, find_models
from opshift.stores.locations import address_of, folder_location, folder_prefix, with_data

MODELS_BEFORE_START = 1_000
"""Number of models to check before the first conversion: if their files conflict, nothing is converted."""

MAX_DATA_USERS = 100
"""Maximum size of `Task.data_users` for a model in a store, whose data files are not yet known."""


def convert_many(
    sources: PathsLike,
    target: TargetLike | None,
    out: PathLike,
    *,
    executor: Executor | None = None,
    jobs: int | None = None,
    ledger: PathLike | None = None,
    skip_existing: bool = False,
    external: ExternalHandling = "copy",
    force: bool = False,
    opsets: PathsLike | None = (),
    adapters: PathsLike | None = (),
    verify: bool = False,
    **arguments: Unpack[SharedArguments],
) -> Generator[ModelOutcome]:
    """Convert models into a folder, and yield an outcome for each model, even if it failed.

    A later call with the same ledger skips a model if its source and output, the options and the version of
    opshift are unchanged, or if the same conversion was refused. An iteration that ends early, even because
    the process was killed, can be continued in this way.

    Args:
        sources: files, folders and globs, as paths or URLs; a model keeps its path below the named
            folder. Results of earlier runs in `out` are left out.
        target: as for `convert_version`.
        out: the folder of the results, or its URL.
        executor: runs the conversions: any executor with the interface of `concurrent.futures`, such as
            `dask.distributed.Client.get_executor()`. Its workers need opshift, and the same paths.
        jobs: without an executor, the number of processes; 1 by default, which converts in this process.
            Each process imports the script: for more than one, call this function below
            `if __name__ == "__main__":`. With an executor, the maximum number of submitted chunks of models.
        ledger: the file that records outcomes; `opshift-ledger.jsonl` in `out` by default. If `out` is a URL,
            the default is the folder `opshift-ledger`, in which each object has the lines of about a second.
        skip_existing: skip a model if its output exists, and no run with this ledger wrote the output; by
            default, the model fails.
        external: as for `convert_file`.
        force: also replace existing files that no earlier run with this ledger wrote.
        opsets: paths of definitions of private domains, as for `--opsets`.
        adapters: paths of Python files with adapters, as for `--adapters`.
        verify: run both models on the same inputs, and write nothing unless the outputs agree.
        arguments: the keyword arguments of `convert_version`, except `inplace` and `registry`.

    Raises:
        UsageError: an argument is invalid, a source is missing, or two of the first models have the same
            output: nothing was converted. Also if another run uses the ledger, or no worker process starts.
        CannotWrite, InvalidModel: the ledger cannot be written, or cannot be read from a store.
        OpshiftError: the executor is broken or shut down.
    """
    require_handling(external)
    own = Settings(
        external=external,
        force=force,
        opsets=path_arguments("opsets", opsets),
        adapters=path_arguments("adapters", adapters),
        verify=verify,
    )
    settings = settings_of(target, arguments, own)
    jobs = number_of_jobs(jobs)
    if executor is not None and not hasattr(executor, "submit"):
        raise wrong_type("executor", executor, "an executor with the interface of concurrent.futures")
    batch = Batch(
        find_models(source_names(sources)),
        _location("out", out),
        settings,
        None if ledger is None else _location("ledger", ledger),
        skip_existing,
    )
    return batch.run(jobs, executor)


class Batch(NamedTuple):
    """Arguments of a batch, see `convert_many`."""

    models: Iterator[FoundModel]
    out: str
    settings: Settings
    ledger: str | None = None
    skip_existing: bool = False

    def run(self, jobs: int | None = None, executor: Executor | None = None) -> Generator[ModelOutcome]:
        """Return an iterator over the outcomes; errors in arguments are raised by the call itself."""
        digest = options_digest(self.settings)
        if not is_url(self.out) and os.path.lexists(self.out) and not os.path.isdir(self.out):
            raise UsageError("is not a folder", place=self.out, remedy="name a folder with --out")
        destinations = Destinations()
        claimed = self._claim_outputs(destinations)
        first = list(islice(claimed, MODELS_BEFORE_START))
        error = next((each.error for each in first if each.is_conflict), None)
        if error is not None:
            raise error
        return self._convert_claimed(chain(first, claimed), destinations, digest, jobs, executor)

    def _claim_outputs(self, destinations: Destinations) -> Iterator[_Model]:
        out, first_root = _folder_of_location(self.out), None
        for source, relative, problem in self.models:
            root = _folder_of_location(address_of(source).removesuffix(relative) or ".")
            output, place = os.path.join(self.out, relative.lstrip("/")), without_links(source)
            if root != out and out.startswith(root) and place.startswith(out):
                reason = "is in the output folder, and no run with this ledger wrote it"
                remedy = "name another folder with --out, or remove the file if it is a result"
                misplaced = UsageError(reason, place=source, remedy=remedy)
                result = os.path.join(self.out, place.removeprefix(out))
                yield _Model(source, output, (), True, problem or misplaced, result=result)
                continue
            first_root = first_root or root
            is_remote = is_url(source) or is_url(self.out)
            # `Destinations` cannot compare the data files of objects: only models of the first source folder
            # may copy data files, because the names of these files are distinct.
            model = _Model(source, output, (), not is_remote or root == first_root, problem)
            if problem is not None:
                yield model
                continue
            try:
                output = output_location(self.out, relative)
            except OpshiftError as error:  # only the conversion of this model fails
                yield model._replace(error=error)
                continue
            try:
                model = model._replace(output=output, data=_data_of(source))
                rewrites_data = bool(self.settings.types)
                destinations.claim(*model[:3], self.settings.external, rewrites_data=rewrites_data)
            except UsageError as error:
                model = model._replace(error=error, is_conflict=True)
            yield model

    def _convert_claimed(
        self,
        models: Iterable[_Model],
        destinations: Destinations,
        digest: str,
        jobs: int | None,
        executor: Executor | None,
    ) -> Generator[ModelOutcome]:
        location = self.ledger or ledger_location(self.out)
        if self.ledger is None and not is_url(location):
            require_no_link(location)
        ledger, is_complete = Ledger(location), False
        existing = foreign_objects(self.out, ledger)
        chunks = run_chunks(
            partial(convert_model, self.settings, digest),
            (
                self._task_of(each, ledger, destinations, existing)
                for each in models
                if not _is_result(each, ledger)
            ),
            jobs=jobs,
            executor=executor,
            on_error=_remove_unfinished_of,
        )
        try:
            with closing(chunks):
                for chunk in chunks:
                    done = [(task, _outcome_of(task, result)) for task, result in chunk]
                    ledger.add(done, digest)
                    yield from (outcome for _, outcome in done)
            is_complete = True
        finally:
            ledger.close(is_complete=is_complete)

    def _task_of(
        self, model: _Model, ledger: Ledger, destinations: Destinations, existing: Container[str]
    ) -> Task:
        source, output, data, may_copy_data, error, *_ = model
        entry = ledger.entry(output)
        if entry is not None and entry.status == STARTED:
            remove_unfinished(output)
        is_owned = entry is not None and entry.owns_output
        exists = output in existing if is_url(output) else os.path.lexists(output)
        may_replace = self.settings.force or is_owned or not exists
        is_started = may_replace and not is_owned and error is None
        if is_started:
            ledger.start(source, output)
        skips = self.skip_existing
        users = {
            path: user
            for path, user in self._data_users(model, ledger)
            # Skip outputs of this run: `Destinations` has compared their data files.
            if not destinations.is_output(user) and (is_url(user) or os.path.lexists(user))
        }
        return Task(source, output, entry, data, may_copy_data, may_replace, skips, is_started, error, users)

    def _data_users(self, model: _Model, ledger: Ledger) -> Iterator[tuple[str, str]]:
        """Yield pairs of a data file and another output in the ledger that copied it from another source."""
        if self.settings.external == "keep" or model.error is not None:
            return
        if is_url(model.source):  # the data files of an object are known only during its conversion
            folders = (folder_location(each) for each in (model.output, model.source))
            yield from islice(ledger.data_users_below(model.output, *folders), MAX_DATA_USERS)
            return
        copies = zip(*(with_data(each, model.data) for each in (model.output, model.source)), strict=True)
        pairs = list(copies)[1:]
        if self.settings.types and pairs:
            pairs = [(f"{model.output}.data", model.source)]
        for path, source in pairs:
            yield from ((full_name(path), user) for user in ledger.data_users(model.output, path, source))


class _Model(NamedTuple):
    """Model of a batch, with its external data files.

    `error` is set if the model cannot be read, its name is not valid for an output, or its files conflict
    with other files of the batch. Only a conflict also sets `is_conflict`. A model in the output folder has
    an error, too; the run leaves out this model if the ledger has the output `result`.
    """

    source: str
    output: str
    data: tuple[str, ...]
    may_copy_data: bool
    error: OpshiftError | None = None
    is_conflict: bool = False
    result: str = ""


def _is_result(model: _Model, ledger: Ledger) -> bool:
    """Return whether a run with the ledger wrote this model."""
    entry = ledger.entry(model.result) if model.result else None
    return entry is not None and entry.owns_output


def _folder_of_location(location: str) -> str:
    return folder_prefix(without_links(location))


def _data_of(source: str) -> tuple[str, ...]:
    # reading a pipe here would consume its content, and only workers read objects
    if not is_url(source) and os.path.isfile(source):
        with suppress(OpshiftError, OSError):  # the conversion of the model reports the error
            return tuple(external_locations(Path(source)))
    return ()


def _remove_unfinished_of(tasks: Sequence[Task], _: BaseException) -> None:
    for task in tasks:
        remove_unfinished(task.output)


def _outcome_of(task: Task, result: ModelOutcome | LostTask) -> ModelOutcome:
    if not isinstance(result, LostTask):
        return result
    return failure(task, result.as_error(task.source), WORKER_LOST)


Item = TypeVar("Item")

PathLike = str | os.PathLike[str]

PathsLike = PathLike | Iterable[PathLike]


def settings_of(target: TargetLike | None, arguments: SharedArguments, settings: Settings) -> Settings:
    """Return settings with the target and the arguments of `convert_version`, as texts.

    Raises:
        UsageError, UnknownOpset, UnknownDomain: as for `convert_version`. Also UsageError if the name of a
            dimension has a comma or an equals sign, which separate the parts of a text.
    """
    require_known(arguments, SharedArguments.__annotations__)
    # copied, because the validation would exhaust iterators
    kept: dict[str, Any] = {name: _without_iterator(value) for name, value in arguments.items()}
    plain, ir_version = split_target(target, kept.pop("ir_version", None))
    plain = _without_iterator(plain)
    options = Options.of(plain, ir_version=ir_version, registry=settings.load_definitions(), **kept)
    _require_texts_of_shapes(options.shapes)
    # Equal arguments must become equal texts, because a later run compares their digest.
    flags = {"exact", *StoredFlags.__annotations__}
    texts: dict[str, object] = {name: True for name, value in kept.items() if name in flags and value}
    texts |= {
        "allow": tuple(sorted(options.allow)),
        "recognize": tuple(sorted(options.recognize)),
        "shapes": _mapping_texts(dict(options.shapes)),
        "types": _mapping_texts(dict(options.types)),
        "without": tuple(sorted(map(str, options.without))),
    }
    requested = options.target.requested_ir_version
    return settings._replace(
        target=() if plain is None else _target_texts(plain, options.target),
        ir_version=None if requested is None else str(requested),
        arguments=nonempty_arguments(texts),
    )


def _target_texts(target: PlainTarget, read: Target) -> tuple[str, ...]:
    """Return a target as texts; `read` is the parsed target."""
    # a target without releases
    if read == Target(read.opsets, requested_ir_version=read.requested_ir_version):
        opsets = sorted(read.opsets.items())
        return tuple(str(opset) if name == DEFAULT_DOMAIN else f"{name}={opset}" for name, opset in opsets)
    texts = dict.fromkeys(str(each).strip() for each in members_of(target))
    # a list keeps its order, in which reports name the releases
    return tuple(sorted(texts) if isinstance(target, Set) else texts)


def source_names(sources: PathsLike) -> list[str]:
    """Return the names of the sources of a batch.

    Raises:
        UsageError: a name is `-`, which means standard input, or the argument has a wrong type.
    """
    if isinstance(sources, str | os.PathLike):
        sources = (sources,)
    require_collection("sources", sources, "paths or URLs of models and folders")
    names = [_location("sources", each) for each in sources]
    if LIST in names:
        remedy = "pass the paths of the models, or ./- for a file with this name"
        raise UsageError("is standard input, which has no models for a batch", place=LIST, remedy=remedy)
    return names


def number_of_jobs(jobs: int | None) -> int | None:
    """Return the number of processes; raise UsageError unless it is a positive integer or `None`."""
    if jobs is None:
        return None
    if not isinstance(jobs, Integral) or isinstance(jobs, bool) or jobs < 1:
        raise UsageError(f"{jobs!r} is not a number of processes", remedy="pass jobs=1 or more")
    return int(jobs)


def _without_iterator(argument: Item) -> Item:
    """Return an argument; an iterator becomes a tuple, which can be read several times."""
    return tuple(argument) if hasattr(argument, "__next__") else argument  # type: ignore[return-value, arg-type]


def _location(argument: str, value: PathLike) -> str:
    """Return a path or URL as text; raise UsageError for other types."""
    path_argument(argument, value)
    return os.fspath(value)


def _mapping_texts(argument: Mapping[str, object]) -> tuple[str, ...]:
    """Return the entries of a mapping as texts, such as `x=1,?`."""
    return tuple(f"{name}={_shape_text(value)}" for name, value in argument.items())


def _shape_text(dims: object) -> str:
    return ",".join("?" if each is None else str(each) for each in members_of(dims))


def _require_texts_of_shapes(shapes: Iterable[tuple[str, Dims]]) -> None:
    """Raise UsageError if the text of a shape would be read as another shape, as with `,` in a name."""
    for name, dims in shapes:
        if read_shapes(_mapping_texts({name: dims})) != {name: dims}:
            reason = f"the shape of {name!r} has a dimension with a comma or an equals sign"
            raise UsageError(reason, remedy="rename the dimension, or convert the models with convert_file")
