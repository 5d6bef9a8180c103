"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
import re
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path


def facts() -> str:
    """One line each, as a Markdown list."""
    processor = _first("/proc/cpuinfo", r"model name\s*: (.*)")
    memory = int(_first("/proc/meminfo", r"MemTotal:\s*(\d+)")) / 2**20
    told = {
        "Processor": f"{processor}, {os.cpu_count()} cores",
        "Memory": f"{memory:.1f} GiB",
        "System": platform.platform(),
        "Load when it began": f"{os.getloadavg()[0]:.1f}",
        "Python": platform.python_version(),
        "Packages": ", ".join(f"{each} {version(each)}" for each in ("opshift", "onnx", "protobuf")),
        "Measured": f"{datetime.now(UTC):%Y-%m-%d}",
    }
    return "\n".join(f"* {what}: {fact}" for what, fact in told.items())


def available() -> float:
    """GiB of memory that a process can get."""
    return int(_first("/proc/meminfo", r"MemAvailable:\s*(\d+)")) / 2**20


def _first(path: str, pattern: str) -> str:
    found = re.search(pattern, Path(path).read_text())
    return found[1] if found else "?"
