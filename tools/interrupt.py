"""Interrupt commands at random moments, as Ctrl+C does, and check what they leave.

    python tools/interrupt.py [--count 200] [--seed 0]

Each trial starts a command in a new folder and sends SIGINT to it, or to it and its workers like a terminal,
at a random moment: half of them in the first quarter of the command, which is mostly start-up. The command
has to exit with 130, or as it does without an interruption, with at most one line on standard error. Each
file of the folder has to be as before or as after a whole run, and no process may remain. The moments depend
on the seed and on the speed of the machine.

Python itself handles signals that arrive before the first line of opshift: it may end with a traceback of its
own modules. Such trials are counted separately.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import onnx
from onnx import TensorProto, helper

INTERRUPTED = 128 + signal.SIGINT
"""Exit code after Ctrl+C."""

MESSAGE = "error: interrupted\n"
"""The only text on standard error after Ctrl+C."""

SECONDS = 60.0
"""Maximum seconds until an interrupted command ends."""

SECONDS_TO_END = 5.0
"""Maximum seconds until the workers of an interrupted command end."""

START = 0.25
"""Fraction of a command's duration that counts as start-up."""

COMMANDS = (
    "convert m0.onnx out.onnx -t 17",
    "convert large.onnx out.onnx -t 17 --report out.html",
    "convert m1.onnx --in-place -t 17",
    "convert m0.onnx m1.onnx m2.onnx m3.onnx --out out -t 17",
    "convert . --out out -t 17 --jobs 2",
    "fit m0.onnx out.onnx -r onnxruntime-1.16.3",
    "runs m0.onnx",
    "runs m0.onnx m1.onnx -r onnxruntime-1.20.1 --format json",
    "plan . -t 13 --jobs 2 --format json",
    "check m0.onnx m2.onnx --sarif out.sarif",
    "simplify large.onnx out.onnx",
    "doctor m0.onnx out.onnx --fix",
    "diff-model m0.onnx m1.onnx --report out.html",
    "reach m0.onnx",
    "stubs out.py --opset 17",
)
"""Commands to interrupt: they write files, start processes or take long."""

LEDGER = "opshift-ledger.jsonl"
"""Name of the file of a batch that grows with each model."""

Files = Mapping[str, bytes]


class WholeRun(NamedTuple):
    """Run of a command without interruption: its exit code, duration, standard error, and files."""

    code: int
    seconds: float
    errors: str
    files: Files


class Trial(NamedTuple):
    """Interrupted run of a command.

    Attributes:
        command: the arguments.
        moment: seconds after its start.
        outcome: `interrupted`, `finished`, `other`, or `in Python` for a signal before opshift started.
        faults: descriptions of the faults.
    """

    command: str
    moment: float
    outcome: str
    faults: tuple[str, ...]


def write_models(folder: Path) -> None:
    """Write the models that the commands read: four small ones, and one with 16 MB of weights."""
    for index in range(4):
        onnx.save(_small_model(index + 1, 8), folder / f"m{index}.onnx")
    onnx.save(_small_model(2, 2_000), folder / "large.onnx")


def _small_model(layers: int, size: int) -> onnx.ModelProto:
    weights = helper.make_tensor("w", TensorProto.FLOAT, [size, size], bytes(4 * size * size), raw=True)
    nodes = []
    for index in range(layers):
        nodes.append(helper.make_node("MatMul", [f"v{index}", "w"], [f"m{index}"]))
        nodes.append(helper.make_node("Softmax", [f"m{index}"], [f"v{index + 1}"], axis=1))
    inputs = [helper.make_tensor_value_info("v0", TensorProto.FLOAT, ["N", size])]
    outputs = [helper.make_tensor_value_info(f"v{layers}", TensorProto.FLOAT, None)]
    graph = helper.make_graph(nodes, "g", inputs, outputs, [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=6)


class Interruption:
    """Trials with the models of a folder."""

    def __init__(self, models: Path, random: random.Random) -> None:
        self._models = {path.name: path.read_bytes() for path in models.iterdir()}
        self._random = random
        self._whole_runs: dict[str, WholeRun] = {}

    def try_command(self, command: str) -> Trial:
        """Interrupt a command once."""
        whole = self._whole_run(command)
        limit = whole.seconds * (START if self._random.random() < 0.5 else 1.05)
        moment, is_group = self._random.uniform(0, limit), self._random.random() < 0.5
        with TemporaryDirectory(prefix="opshift-interrupt-") as name:
            process = self._start_command(command, Path(name))
            time.sleep(moment)
            try:
                (os.killpg if is_group else os.kill)(process.pid, signal.SIGINT)
                _, errors = process.communicate(timeout=SECONDS)
            except ProcessLookupError:
                _, errors = process.communicate()
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                return Trial(command, moment, "interrupted", (f"it does not end within {SECONDS:g} seconds",))
            remaining = _processes_remain(process.pid)
            outcome = outcome_of(process.returncode, errors, whole)
            faults = [] if outcome != "other" else [f"exit code {process.returncode}: {errors[-2000:]}"]
            faults += ["a process remains"] if remaining else []
            faults += self._file_faults(_files_in(Path(name)), whole)
            return Trial(command, moment, outcome, tuple(faults))

    def _whole_run(self, command: str) -> WholeRun:
        if command not in self._whole_runs:
            with TemporaryDirectory(prefix="opshift-interrupt-") as name:
                # the first run compiles data that later runs find in the cache
                self._start_command(command, Path(name)).communicate()
            with TemporaryDirectory(prefix="opshift-interrupt-") as name:
                started = time.monotonic()
                process = self._start_command(command, Path(name))
                _, errors = process.communicate()
                seconds = time.monotonic() - started
                self._whole_runs[command] = WholeRun(
                    process.returncode, seconds, errors, _files_in(Path(name))
                )
        return self._whole_runs[command]

    def _start_command(self, command: str, folder: Path) -> subprocess.Popen[str]:
        for name, content in self._models.items():
            (folder / name).write_bytes(content)
        return subprocess.Popen(
            [Path(sys.executable).with_name("opshift"), *command.split()],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            start_new_session=True,
        )

    def _file_faults(self, files: Files, whole: WholeRun) -> Iterator[str]:
        for name in self._models.keys() - files.keys():
            yield f"{name} was removed"
        for name, content in files.items():
            if name.endswith(LEDGER):
                continue
            if name.endswith(".sarif"):  # the SARIF file lists the findings up to the interruption
                if not _is_json(content):
                    yield f"{name} is torn"
            elif name not in whole.files:
                yield f"{name} remains"
            elif content not in (whole.files[name], self._models.get(name)):
                yield f"{name} is torn"


def outcome_of(code: int, errors: str, whole: WholeRun) -> str:
    """Return how an interrupted command ended, see `Trial`."""
    if code == INTERRUPTED and errors in (MESSAGE, ""):
        return "interrupted"
    if (code, errors) == (whole.code, whole.errors):
        return "finished"
    # Python has no handler yet, or a module that Python itself loads fails
    is_early = (code == -signal.SIGINT and not errors) or errors == "KeyboardInterrupt\n"
    is_early |= "Traceback" in errors and not re.search(
        r"[/\\](opshift[/\\]|opshift_start\.py)", _module_frames(errors)
    )
    return "in Python" if is_early else "other"


def _module_frames(errors: str) -> str:
    """Return the lines of a traceback that name files of modules, without the script that starts opshift."""
    return "\n".join(line for line in errors.splitlines() if line.startswith("  File "))


def _files_in(folder: Path) -> Files:
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def _is_json(content: bytes) -> bool:
    try:
        json.loads(content)
    except ValueError:
        return False
    return True


def _processes_remain(group: int) -> bool:
    """Wait for the processes of a group to end; if one remains, end it and return True."""
    end = time.monotonic() + SECONDS_TO_END
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.02)
    os.killpg(group, signal.SIGKILL)
    return True


def interrupt(count: int, seed: int, commands: Sequence[str] = COMMANDS) -> Iterator[Trial]:
    """Yield trials of commands in turn."""
    # The shell ignores SIGINT for background processes, and child processes would inherit this.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    with TemporaryDirectory(prefix="opshift-models-") as folder:
        write_models(Path(folder))
        trials = Interruption(Path(folder), random.Random(seed))
        for index in range(count):
            yield trials.try_command(commands[index % len(commands)])


def main() -> int:
    """Run the trials and return the exit code: 1 if a trial has a fault."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    outcomes: Counter[str] = Counter()
    faulty = 0
    for trial in interrupt(arguments.count, arguments.seed):
        outcomes[trial.outcome] += 1
        faulty += bool(trial.faults)
        for fault in trial.faults:
            print(f"opshift {trial.command}, after {trial.moment:.3f} s: {fault}", flush=True)
    counts = ", ".join(f"{number} {outcome}" for outcome, number in sorted(outcomes.items()))
    print(f"{arguments.count} interruptions: {counts}; {faulty} with faults")
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
