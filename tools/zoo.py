"""Generate collections of models, and show that batches over them lose nothing when they are killed.

    python tools/zoo.py generate FOLDER [--models 10000] [--seed 0]
    python tools/zoo.py batch [--models 10000] [--kills 5] [--executor dask] [--local] [--target 17]
    python tools/zoo.py gate [--models 1000] [--target 17]

`batch` fills a bucket of an S3 server on loopback (or with `--local` a folder), converts it with two
workers, kills workers and the driver at random moments, resumes, and verifies all outputs, the ledger and the
bytes that clients received. `gate` measures `opshift plan` over a folder, and interrupts and resumes it. The
exit code is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from zoos.evidence import problems, traffic
from zoos.file_stores import Bucket, Folder, fill
from zoos.gate_trial import gate_problems, resumption_problems, run_plan
from zoos.generator import GeneratedModel, Mixture, generate
from zoos.s3_server import s3_server
from zoos.trial import (
    Trial,
    Workers,
    convert_command,
    count_files,
    count_requests,
    dask_cluster,
    pool_workers,
    random_kills,
)

WORKERS = 2
MOST_REPORTED = 20
LARGEST_SHARE = 0.05
"""Share of the bytes of large models that clients may receive."""


def main() -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    commands = parser.add_subparsers(required=True)
    generated = commands.add_parser("generate")
    generated.add_argument("folder", type=Path)
    generated.set_defaults(run=write_collection)
    batch = commands.add_parser("batch")
    batch.add_argument("--kills", type=int, default=5)
    batch.add_argument("--executor", choices=["dask", "processes"], default="dask")
    batch.add_argument("--local", action="store_true", help="convert from folder to folder")
    batch.set_defaults(run=run_batch)
    gate = commands.add_parser("gate")
    gate.add_argument("--longest-wait", type=float, default=2.0, help="seconds to the first result")
    gate.set_defaults(run=run_gate)
    for each in batch, gate:
        each.add_argument("--target", type=int, default=17)
    for each in generated, batch, gate:
        each.add_argument("--models", type=int, default=10_000)
        each.add_argument("--seed", type=int, default=0)
        each.add_argument("--large-bytes", type=int, default=200_000_000)
    options = parser.parse_args()
    return int(options.run(options))


def collection(options: argparse.Namespace) -> Iterator[GeneratedModel]:
    """Return the models that the options describe."""
    return generate(options.models, options.seed, Mixture(large_bytes=options.large_bytes))


def write_collection(options: argparse.Namespace) -> int:
    """Write the models to a folder, and their expected outcomes to FOLDER.jsonl."""
    fill(Folder(options.folder), collection(options))
    lines = "".join(f"{each.manifest_line()}\n" for each in collection(options))
    options.folder.with_suffix(".jsonl").write_text(lines)
    return 0


def run_batch(options: argparse.Namespace) -> int:
    """Convert a collection with kills, and print the evidence as JSON."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="zoo-")))
        server = None if options.local else stack.enter_context(s3_server(folder / "requests.jsonl"))
        source, out = (Bucket(each) if server else Folder(folder / each) for each in ("zoo", "zoo-converted"))
        start = time.monotonic()
        fill(source, collection(options))
        evidence: dict[str, object] = {"models": options.models, "fill seconds": time.monotonic() - start}
        written = count_requests(server) if server else count_files(out)
        first = len(list(server.requests())) if server else 0
        choice = ["--jobs", str(WORKERS)]
        workers: Workers = pool_workers
        if options.executor == "dask":
            address, workers = stack.enter_context(dask_cluster(WORKERS))
            choice = ["--dask", address]
        command = convert_command(source.location, out.location, options.target, *choice)
        trial = Trial(command, workers, written, folder / "output.txt")
        kills = random_kills(options.kills, options.models, options.seed, while_copying=server is not None)
        evidence["runs"] = [each._asdict() for each in trial.run(kills, options.seed)]
        requests = list(islice(server.requests(), first, None)) if server else []
        found = list(islice(problems(collection(options), source, out, options.target), MOST_REPORTED))
        found += [f"the batch ended before the kill {each}" for each in kills]
        if server:
            counted = traffic(requests, collection(options), "zoo")
            evidence["traffic"] = counted._asdict()
            if counted.share_of_large > LARGEST_SHARE:
                found.append("clients received too many bytes of large models")
        if found:
            print((folder / "output.txt").read_text()[-2000:])
        print(json.dumps({**evidence, "problems": found}, indent=2))
        return 1 if found else 0


def run_gate(options: argparse.Namespace) -> int:
    """Plan the conversion of a collection, interrupt it, resume it, and print the evidence as JSON."""
    with TemporaryDirectory(prefix="zoo-") as name:
        folder, ledger = Path(name) / "zoo", ["--ledger", str(Path(name) / "ledger.jsonl")]
        fill(Folder(folder), collection(options))
        expected = {each.path: str(each.expected) for each in collection(options)}
        whole = run_plan(folder, options.target)
        moment = Random(options.seed).randrange(1, options.models * 3 // 4)
        stopped = run_plan(folder, options.target, ledger, stop_after=moment)
        resumed = run_plan(folder, options.target, ledger)
        found = [
            *gate_problems(whole, expected, options.longest_wait),
            *resumption_problems(whole, stopped, resumed),
        ]
        runs = [each.figures() for each in (whole, stopped, resumed)]
        print(json.dumps({"runs": runs, "problems": found}, indent=2))
        return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
