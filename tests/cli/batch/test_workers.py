"""Workers that die or are terminated: other files are converted, and nothing is left over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from opshift.cli.batch.workers import Lost, run_in_workers

pytestmark = pytest.mark.skipif(not Path("/proc").exists(), reason="reads /proc")


def _convert_or_die(task: str) -> str:
    if task.startswith("kill"):
        os.kill(os.getpid(), signal.SIGKILL)
    if task.startswith("exit"):
        os._exit(3)
    return task.upper()


@pytest.mark.parametrize("count", [1, 2, 5])
def test_dead_worker_costs_one_task(count: int) -> None:
    groups = [["a", "kill 1", "b"], ["exit 1", "c"], ["kill 2"], ["d"], ["e", "f"]]
    found = dict(run_in_workers(_convert_or_die, groups, count))
    lost = {task for task, result in found.items() if isinstance(result, Lost)}
    assert lost == {"kill 1", "kill 2", "exit 1"}
    assert {found[name] for name in "abcdef"} == set("ABCDEF")
    assert (str(found["kill 1"]), str(found["exit 1"])) == ("Killed", "exit code 3")


def test_stopped_iteration_ends_workers() -> None:
    running = run_in_workers(_convert_or_die, [["a"], ["b"], ["c"]], 2)
    next(running)
    children = _children(os.getpid())
    running.close()  # type: ignore[attr-defined]
    assert not any(_is_worker(each) for each in children)


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


@pytest.fixture
def batch(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a conversion of many files with two workers, and wait until the first file is written."""
    (tmp_path / "in").mkdir()
    weight = numpy_helper.from_array(np.ones((600, 1000), np.float32), "w")
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [600, 1000]) for name in "xy")
    nodes = [helper.make_node("Clip", ["x"], ["c"], min=0.0), helper.make_node("Add", ["c", "w"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [y], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 9)], ir_version=4)
    for number in range(COUNT):
        onnx.save(model, tmp_path / "in" / f"{number}.onnx")
    command = [sys.executable, "-m", "opshift", "convert", "in", "--out", "out", "-t", "13", "--jobs", "2"]
    pipe = subprocess.PIPE
    # without the measurement of coverage, which prints a message if a signal interrupts it at exit
    env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    with subprocess.Popen(command, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True, env=env) as process:
        deadline = time.monotonic() + 60
        while not list((tmp_path / "out").glob("*.onnx")) and time.monotonic() < deadline:
            time.sleep(0.005)
        yield process
        process.kill()


def test_killed_worker_loses_its_file_at_most(batch: subprocess.Popen[str], tmp_path: Path) -> None:
    """The worker may have written its file, but not reported it."""
    worker = next(each for each in _children(batch.pid) if _is_worker(each))
    os.kill(worker, signal.SIGKILL)
    output, error = batch.communicate(timeout=60)
    written = list((tmp_path / "out").glob("*.onnx"))
    assert (batch.returncode, error) == (1, "")
    assert len(written) in (COUNT - 1, COUNT)
    assert "the process that converted the file ended: Killed" in output
    assert not list((tmp_path / "out").glob(".opshift*"))


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
    for path in (tmp_path / "out").iterdir():
        onnx.load(path)


def test_workers_end_after_killed_parent(batch: subprocess.Popen[str]) -> None:
    workers = [each for each in _children(batch.pid) if _is_worker(each)]
    batch.kill()
    batch.communicate(timeout=60)
    deadline = time.monotonic() + 30
    while any(map(_is_worker, workers)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(_is_worker, workers))
