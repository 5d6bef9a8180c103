"""Workers that die or are terminated: other files are converted, and nothing is left over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from random import Random

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from opshift.batch.ledger import LEDGER_NAME

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not Path("/proc").exists(), reason="reads /proc"),
]


def _children(process: int) -> list[int]:
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((each / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == process:
            found += [int(each.name), *_children(int(each.name))]
    return found


def _is_worker(process: int) -> bool:
    try:
        return b"spawn_main" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


COUNT = 20


def write_models(folder: Path) -> None:
    """Write models to the folder `in`."""
    (folder / "in").mkdir()
    weight = numpy_helper.from_array(np.ones((600, 1000), np.float32), "w")
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [600, 1000]) for name in "xy")
    nodes = [helper.make_node("Clip", ["x"], ["c"], min=0.0), helper.make_node("Add", ["c", "w"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [y], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=4)
    for number in range(COUNT):
        onnx.save(model, folder / "in" / f"{number}.onnx")


def start(folder: Path, jobs: str) -> subprocess.Popen[str]:
    """Start a conversion of the folder `in`."""
    command = [sys.executable, "-m", "opshift", "convert", "in", "--out", "out", "-t", "13", "--jobs", jobs]
    pipe = subprocess.PIPE
    # without the measurement of coverage, which prints a message if a signal interrupts it at exit
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    return subprocess.Popen(command, cwd=folder, stdout=pipe, stderr=pipe, text=True, env=env)


@pytest.fixture
def batch(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a conversion of many files with two workers, and wait until the first file is written."""
    write_models(tmp_path)
    with start(tmp_path, "2") as process:
        deadline = time.monotonic() + 60
        while not list((tmp_path / "out").glob("*.onnx")) and time.monotonic() < deadline:
            time.sleep(0.005)
        yield process
        process.kill()


def test_killed_worker_loses_nothing(batch: subprocess.Popen[str], tmp_path: Path) -> None:
    """The models of its chunk are converted again, one by one."""
    worker = next(each for each in _children(batch.pid) if _is_worker(each))
    os.kill(worker, signal.SIGKILL)
    output, error = batch.communicate(timeout=60)
    assert (batch.returncode, error) == (0, "")
    assert f"{COUNT} models: {COUNT} converted" in output
    _require_complete(tmp_path)


def _require_complete(folder: Path) -> None:
    names = sorted(path.name for path in (folder / "in").iterdir())
    assert sorted(path.name for path in (folder / "out").iterdir()) == sorted([*names, LEDGER_NAME])
    lines = [json.loads(line) for line in (folder / "out" / LEDGER_NAME).read_text().splitlines()]
    assert sorted(Path(each["output"]).name for each in lines) == names
    for each in lines:
        assert each["status"] == "converted"
        content = Path(each["output"]).read_bytes()
        assert each["output_digest"] == f"sha256:{sha256(content).hexdigest()}"
        assert onnx.load_model_from_string(content).opset_import[0].version == 13


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_killed_runs_are_continued(tmp_path: Path, jobs: str) -> None:
    write_models(tmp_path)
    ledger, random = tmp_path / "out" / LEDGER_NAME, Random(jobs)
    kills = 0
    while True:
        with start(tmp_path, jobs) as process:
            before = ledger.stat().st_size if ledger.exists() else 0
            while process.poll() is None and (not ledger.exists() or ledger.stat().st_size == before):
                time.sleep(0.001)
            time.sleep(random.uniform(0, 0.05))
            process.kill()
            process.communicate(timeout=60)
            if process.returncode == 0:
                break
            kills += 1
    assert kills > 2
    _require_complete(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_termination_leaves_nothing(
    batch: subprocess.Popen[str], tmp_path: Path, number: signal.Signals
) -> None:
    workers = [each for each in _children(batch.pid) if _is_worker(each)]
    assert len(workers) == 2
    batch.send_signal(number)
    _, error = batch.communicate(timeout=60)
    assert "Traceback" not in error
    assert batch.returncode in (128 + number, 130)
    assert not any(map(_is_worker, workers))
    assert not list((tmp_path / "out").glob(".opshift*"))
    for path in (tmp_path / "out").glob("*.onnx"):
        onnx.load(path)


def test_workers_end_after_killed_parent(batch: subprocess.Popen[str]) -> None:
    workers = [each for each in _children(batch.pid) if _is_worker(each)]
    batch.kill()
    batch.communicate(timeout=60)
    deadline = time.monotonic() + 30
    while any(map(_is_worker, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(_is_worker, workers))
