"""Comparison of the results of a batch with a collection, independent of the code of the batch."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, NamedTuple

import opshift
from zoos.file_stores import THREADS, FileStore
from zoos.generator import GeneratedModel
from zoos.s3_server import Request

LEDGER = "opshift-ledger"
LARGE = 64 << 20
STATUSES = {"converted": {"converted", "unchanged"}, "refused": {"refused"}, "broken": {"failed"}}


def ledger_lines(out: FileStore) -> Iterator[dict[str, Any]]:
    """Yield the lines of the ledger; a torn last line is an error."""
    for path in sorted(out.paths()):
        if path.startswith(LEDGER):
            yield from map(json.loads, out.read(path).splitlines())


def problems(
    models: Iterable[GeneratedModel], source: FileStore, out: FileStore, target: int
) -> Iterator[str]:
    """Yield each difference between what a batch had to write, and what the ledger and the output hold."""
    by_source: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in ledger_lines(out):
        by_source[line["source"].removeprefix(source.location).lstrip("/")].append(line)
    present = {path for path in out.paths() if not path.startswith(LEDGER)}

    def check(model: GeneratedModel) -> list[str]:
        return [
            f"{model.path}: {each}"
            for each in _problems_of_model(model, by_source[model.path], present, out, target)
        ]

    expected = set()
    with ThreadPoolExecutor(THREADS) as pool:
        remaining = iter(models)
        while group := list(islice(remaining, 64)):  # few models in memory
            for found in pool.map(check, group):
                yield from found
            for model in group:
                if model.expected == "converted":
                    expected |= {model.path, model.data_path} if model.data else {model.path}
    yield from (f"{path}: is not an expected output" for path in sorted(present - expected))
    yield from out.unfinished()


def _problems_of_model(
    model: GeneratedModel, lines: list[dict[str, Any]], present: set[str], out: FileStore, target: int
) -> Iterator[str]:
    statuses = [line["status"] for line in lines]
    if len(statuses) != 1 or statuses[0] not in STATUSES[model.expected]:
        yield f"the ledger has {statuses}, expected {model.expected}"
    if model.expected != "converted":
        return
    if model.path not in present:
        yield "has no output"
    elif out.read(model.path) != opshift.convert_version(model.content, target):
        yield "the output differs from that of convert_version"
    if model.data and (model.data_path not in present or out.read(model.data_path) != model.data):
        yield "the data file is missing or differs"


class Traffic(NamedTuple):
    """Requests of all clients, and the bytes of their bodies."""

    requests: dict[str, int]
    received: int
    sent: int
    large: int
    """Bytes of the large models."""
    received_of_large: int
    share_of_large: float
    written_again: int
    """Number of models that were written more than once: what the kills cost."""


def traffic(requests: Iterable[Request], models: Iterable[GeneratedModel], bucket: str) -> Traffic:
    """Count requests, and the bytes that clients received of the large models in a bucket."""
    kinds: Counter[str] = Counter()
    received = sent = received_of_large = 0
    writes: Counter[str] = Counter()
    large = {f"/{bucket}/{each.path}": size for each in models if (size := len(each.content)) > LARGE}
    for each in requests:
        kinds[each.kind] += 1
        received += each.sent
        sent += each.received
        if each.writes and each.path.endswith(".onnx"):
            writes[each.path] += 1
        if each.path in large:
            received_of_large += each.sent
    total = sum(large.values())
    again = sum(count > 1 for count in writes.values())
    share = received_of_large / total if total else 0.0
    return Traffic(dict(kinds), received, sent, total, received_of_large, round(share, 4), again)
