"""All shape rules of the project, and the tables of facts about the rules, such as `KEEPS_RANK`.

Import the tables from here: in `rule_table`, they lack the rules of modules that are not imported yet.
"""

from opshift.registry.shapes.rule_table import (
    FIXED_RANKS,
    KEEPS_RANK,
    RANK_INPUTS,
    RANKING_LISTS,
    SHAPE_RULES,
    TABLE,
)

__all__ = ["FIXED_RANKS", "KEEPS_RANK", "RANKING_LISTS", "RANK_INPUTS", "SHAPE_RULES"]

TABLE.load()
