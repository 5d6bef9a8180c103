"""Compare predictions of `runs` with releases of onnxruntime, which load and run models.

    python tools/measure_runs.py
    python tools/measure_runs.py --count 1000 --release 1.20.1=~/releases/1.20.1 --release 1.31.1
    python tools/measure_runs.py --contrib --count 2000
    python tools/measure_runs.py --models folder --log outcomes.jsonl

The models are random networks that onnxruntime optimized and quantized, and that compute in several types,
with `--contrib` models with one random node of com.microsoft, or those below a folder; a model may have a
file of inputs `.npz` with the same name. The releases are the installed one, or those in folders as
`pip install --no-deps --target` makes them; releases before 1.19 need numpy 1: separate several folders by
`:`. The command prints the wrong predictions by cause, and returns 1 if more than 0.5 % are wrong, or one in
which a kernel or schema is missing.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime
from onnx import helper

from comparison.compare import OPERATORS, case_at
from measurement.networks import NetworkModel
from measurement.run_models import Outcome, Worker, loader_of
from measurement.variants import random_variants
from opshift.model.errors import InvalidModel
from opshift.model.files import model_of
from opshift.registry.registry import default_registry
from opshift.registry.runtimes.files import get_runtime
from opshift.runtimes.check_support import ModelSupport, RuntimeCheck, UnsupportedGroup
from opshift.runtimes.model_nodes import ModelNodes, ordered

MAX_WRONG = 0.005


class Release(NamedTuple):
    """Release of onnxruntime, with a process in which models run."""

    name: str
    check: RuntimeCheck
    worker: Worker


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 1 if predictions are less accurate than required."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=200, help="number of random models (default: 200)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--contrib", action="store_true", help="nodes of com.microsoft instead of networks")
    parser.add_argument("--models", type=Path, help="folder with models instead of random ones")
    parser.add_argument("--release", action="append", default=[], help="VERSION=FOLDER; may be repeated")
    parser.add_argument("--log", type=Path, help="file for the wrong predictions")
    options = parser.parse_args(arguments)
    models = _models_to_run(options)
    counts: Counter[str] = Counter()
    with ExitStack() as stack:
        releases = [release(each, stack) for each in options.release or [onnxruntime.__version__]]
        log = stack.enter_context(options.log.open("w", encoding="utf-8")) if options.log else None
        for model in models:
            for found in compare(model, releases):
                counts[found["class"]] += 1
                if found["class"].startswith("wrong"):
                    print(f"{found['model']} on {found['release']}: {found['class']}: {found['text'][:300]}")
                    if log:
                        print(json.dumps(found), file=log, flush=True)
    total = counts.total()
    wrong = sum(count for name, count in counts.items() if name.startswith("wrong"))
    print(f"{total} predictions, {wrong} wrong ({wrong / max(total, 1):.2%}): {dict(counts)}")
    return int(wrong > MAX_WRONG * total or counts["wrong: does not run"] > 0)


def _models_to_run(options: argparse.Namespace) -> Iterator[NetworkModel]:
    if options.models:
        return models_in(options.models)
    draw = contrib_models if options.contrib else random_variants
    return draw(options.count, options.seed)


def contrib_models(count: int, seed: int) -> Iterator[NetworkModel]:
    """Yield a number of models with one random node of com.microsoft."""
    for index in range(count):
        case = case_at(seed, index)
        name = f"{index} {OPERATORS[index % len(OPERATORS)]} {case.sample.attributes}"
        declare_empty(case.model, case.feeds)
        yield NetworkModel(name, case.model, case.feeds)


def declare_empty(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> None:
    """Declare the sizes of inputs that are 0, because predictions are about runs without other sizes of 0."""
    for each in model.graph.input:
        kind, sizes = each.type.tensor_type, np.shape(feeds[each.name])
        if not kind.HasField("shape") and 0 in sizes:
            unknown = helper.make_tensor_type_proto(kind.elem_type, [None] * len(sizes))
            each.type.CopyFrom(unknown)
        for dim, size in zip(each.type.tensor_type.shape.dim, sizes, strict=False):
            if not size:
                dim.dim_value = 0


def release(text: str, stack: ExitStack) -> Release:
    """Return a release, given its version and the folders of its installation."""
    version, _, folders = text.partition("=")
    paths = [Path(each).expanduser() for each in folders.split(":") if each]
    runtime = get_runtime(f"onnxruntime-{version}")
    worker = Worker(sys.executable, loader_of("onnxruntime"), folders=paths)
    return Release(runtime.name, RuntimeCheck(runtime), stack.enter_context(closing(worker)))


def models_in(folder: Path) -> Iterator[NetworkModel]:
    """Yield the models below a folder, with their inputs."""
    for path in sorted(folder.rglob("*.onnx")):
        values = path.with_suffix(".npz")
        feeds: Mapping[str, Any] = dict(np.load(values)) if values.exists() else {}
        yield NetworkModel(str(path.relative_to(folder)), onnx.load(path), feeds)


def compare(model: NetworkModel, releases: Sequence[Release]) -> Iterator[dict[str, str]]:
    """Yield the class of each prediction about a model, with the reason for the prediction."""
    content, problem = model.model.SerializeToString(), ""
    nodes: ModelNodes | None
    try:
        _, nodes = ordered(model_of(content)[0], default_registry())
    except InvalidModel as error:
        nodes, problem = None, str(error)
    values = {f"in.{name}": each for name, each in model.feeds.items()}
    for each in releases:
        invalid = UnsupportedGroup(("model",), "", {}, problem, "")
        support = each.check.check(nodes) if nodes else ModelSupport((invalid,))
        outcome = each.worker.run(content, values)
        text = outcome.error if not support.missing else support.missing[0].reason
        yield {
            "model": model.name,
            "release": each.name,
            "class": prediction_class(support, outcome),
            "text": text,
            "uncertain": "; ".join(support.uncertain),
        }


def prediction_class(support: ModelSupport, outcome: Outcome) -> str:
    """Return the class of a prediction, such as `right`, and whether the prediction is uncertain."""
    # without expected outputs, a model that runs has too many outputs
    has_run = outcome.outcome in ("loads", "differs", "equal")
    if support.missing:
        return "right: does not run" if not has_run else "wrong: does not run"
    verdict = "may run" if support.uncertain else "runs"
    return f"{'right' if has_run else 'wrong'}: {verdict}"


if __name__ == "__main__":
    sys.exit(main())
