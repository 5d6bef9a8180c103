"""Run one job on one model and print the MiB of memory that it needs in addition to the model.

python alone.py MODEL JOB TARGET

The peak memory of the process is reset before the job through `/proc/self/clear_refs`, so this needs Linux.
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
    """Run the job once on a small model, so that imports and caches do not count, then measure it."""
    path, job, target = sys.argv[1:]
    JOBS[job](mixed(30, 9), int(target))
    model = onnx.load(path)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # 5 resets VmHWM to VmRSS
    before = memory("VmRSS")
    result = JOBS[job](model, int(target))
    print(memory("VmHWM") - before)
    del result  # keeps the result alive until the peak is read


def memory(field: str) -> float:
    """Return a field of `/proc/self/status` in MiB."""
    found = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


if __name__ == "__main__":
    main()
