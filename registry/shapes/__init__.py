"""Shape inference rules, by the name that definitions use (`shape: broadcast`).

A rule returns certain facts only: an output of unknown rank is `None`, and so is each unknown dimension.

Import the tables from here, not from `rule_table`: an import of this package waits until another thread has
loaded all rules, but the import of a module in it does not.
"""

from opshift.registry.shapes.rule_table import (
    FIXED_RANKS,
    KEEPS_RANK,
    RANK_INPUTS,
    RANKING_LISTS,
    SHAPE_RULES,
    TABLE,
)

__all__ = ["FIXED_RANKS", "KEEPS_RANK", "RANKING_LISTS", "RANK_INPUTS", "SHAPE_RULES", "TABLE"]

TABLE.load()
