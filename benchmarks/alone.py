"""One job on one model, in a process of its own: prints the MiB of memory that it takes beside the model.

python alone.py MODEL JOB TARGET

The highest mark of memory is set back before the job, by `/proc/self/clear_refs` of Linux.
"""

from __future__ import annotations

import gc
import re
import sys
from pathlib import Path

import onnx

from graphs import mixed
from jobs import JOBS


def main() -> None:
    """Run the job, on a small model first: what is imported and read then is not counted."""
    path, job, target = sys.argv[1:]
    JOBS[job](mixed(30, 9), int(target))
    model = onnx.load(path)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    result = JOBS[job](model, int(target))
    print(memory("VmHWM") - before)
    del result


def memory(what: str) -> float:
    """MiB."""
    found = re.search(rf"{what}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


if __name__ == "__main__":
    main()
