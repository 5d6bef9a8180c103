"""docs/changes.md says what the definitions and rules say now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_the_page_is_fresh() -> None:
    command = [sys.executable, str(ROOT / "tools" / "write_changes.py"), "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
