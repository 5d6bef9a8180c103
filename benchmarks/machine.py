"""Description of the machine and of the installed packages."""

from __future__ import annotations

import os
import platform
import re
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path


def facts() -> str:
    """Return processor, memory, system and package versions as a Markdown list."""
    processor = _first("/proc/cpuinfo", r"model name\s*: (.*)")
    memory = int(_first("/proc/meminfo", r"MemTotal:\s*(\d+)")) / 2**20
    values = {
        "Processor": f"{processor}, {os.cpu_count()} cores",
        "Memory": f"{memory:.1f} GiB",
        "System": platform.platform(),
        "Load at the start": f"{os.getloadavg()[0]:.1f}",
        "Python": platform.python_version(),
        "Packages": ", ".join(f"{each} {version(each)}" for each in ("opshift", "onnx", "protobuf")),
        "Measured": f"{datetime.now(UTC):%Y-%m-%d}",
    }
    return "\n".join(f"* {label}: {value}" for label, value in values.items())


def available() -> float:
    """Return the available memory in GiB."""
    return int(_first("/proc/meminfo", r"MemAvailable:\s*(\d+)")) / 2**20


def _first(path: str, pattern: str) -> str:
    found = re.search(pattern, Path(path).read_text())
    return found[1] if found else "?"
