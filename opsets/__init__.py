"""Operator definitions, type sets, releases and IR versions, as data."""

from pathlib import Path
from typing import Final

OPSETS: Final = Path(__file__).parent
