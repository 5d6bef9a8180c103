"""Measure which operator versions and types a runtime implements, and write `opsets/runtimes/`.

    python tools/measure_runtime.py openvino 2026.4.1 --python ~/venv/bin/python

The runtime and numpy are installed in the environment of `--python`. Its loader is
`tools/measurement/loaders/load_openvino.py`, or that of `--loader`. Results are kept in `--results`, from
which an interrupted measurement continues. Existing files are replaced. Then run tools/write_fingerprints.py.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from measurement.fold import Folded, combinations_differ, fold
from measurement.probes import (
    DOMAINS,
    Probe,
    distinct,
    generated_probes,
    local_function_model,
    published_probes,
    type_probes,
    version_probes,
)
from measurement.run_models import Outcome, Results, Worker, loader_of
from opshift.model.operator_ids import OperatorId
from opshift.registry.registry import default_registry
from runtime_files import file_text, new_path, operator_rows

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "opshift" / "measurements"

TEMPLATES = 3
"""Number of nodes of an operator version whose types are varied if none of these nodes loads."""

Measured = list[tuple[Probe, Outcome]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("runtime")
    parser.add_argument("version")
    parser.add_argument("--python", default=sys.executable, help="interpreter with the runtime")
    parser.add_argument("--loader", type=Path, help="module with a function `load`")
    parser.add_argument("--results", type=Path, help="file of results (default: in the cache folder)")
    parser.add_argument("--jobs", type=int, default=1, help="number of processes (default: 1)")
    options = parser.parse_args(arguments)
    results = Results(options.results or CACHE / f"{options.runtime}-{options.version}.jsonl")
    path = new_path(options.runtime, options.version)
    loader = options.loader or loader_of(options.runtime)
    with ExitStack() as stack:
        workers = [stack.enter_context(closing(Worker(options.python, loader))) for _ in range(options.jobs)]
        measured, expands_functions = measure(results, workers)
    folded = fold(measured)
    path.write_text(
        file_content(options.runtime, options.version, folded, expands_functions=expands_functions), "utf-8"
    )
    print(f"wrote {path}")
    for name, found in folded.items():
        for each in found.unexplained:
            print(f"{name}: refused without a restriction: {each}")
    return 0


def file_content(runtime: str, version: str, folded: Mapping[str, Folded], *, expands_functions: bool) -> str:
    """Return the content of the file of a runtime."""
    listed = [
        (*name.rpartition(".")[::2], span, box)
        for name, found in folded.items()
        for span, boxes in found.boxes.items()
        for box in boxes
    ]
    domains = {domain for domain, *_ in listed}
    facts = {
        "opsets": {each: default_registry().newest_opset(each) for each in DOMAINS if each in domains},
        "expands_functions": expands_functions,
    }
    evidence = ("measurement", f"https://pypi.org/project/{runtime}/{version}/")
    restrictions = {name: found.restrictions for name, found in folded.items() if found.restrictions}
    wrong = {f"{name}:{since}": rows for name, found in folded.items() for since, rows in found.wrong.items()}
    rows = operator_rows(listed)
    return file_text(runtime, version, facts, rows, evidence, restrictions=restrictions, wrong=wrong)


def measure(results: Results, workers: Sequence[Worker]) -> tuple[Measured, bool]:
    """Return the outcomes of all probes, and whether the runtime loads a model with a local function."""

    def run(probes: Iterable[Probe]) -> Measured:
        listed = list(probes)
        outcomes = results.measure(((each.key, each.model, each.values) for each in listed), workers)
        return list(zip(listed, outcomes, strict=True))

    published = list(published_probes())
    measured = run(published) + run(distinct(version_probes(published)))
    covered = {probe.described.operator for probe, _ in measured}
    operators = (each for domain in DOMAINS for each in default_registry().operators(domain))
    for version in (each for operator in operators for each in operator.versions):
        if version.id not in covered:
            # One loading template is enough, because the other probes vary its types.
            for group in generated_probes(version):
                measured += run(group)
                if any(outcome.loads for _, outcome in measured[-len(group) :]):
                    break
    for template in templates(measured):
        varied = run(type_probes(template))
        if combinations_differ(varied):
            varied = run(type_probes(template, every=True))
        measured += varied
    return measured, results.measure([("local function", local_function_model(), {})], workers)[0].loads


def templates(measured: Measured) -> list[Probe]:
    """Return the probes whose types are varied, by operator version: one that loads, or several."""
    found: dict[OperatorId, list[tuple[bool, bool, int, Probe]]] = defaultdict(list)
    for probe, outcome in measured:
        operator, types, _ = probe.described
        found[operator].append((outcome.loads, not probe.form, len(types), probe))
    ordered = (sorted(each, key=lambda one: one[:3], reverse=True) for each in found.values())
    return [each[-1] for group in ordered for each in group[: 1 if group[0][0] else TEMPLATES]]


if __name__ == "__main__":
    sys.exit(main())
