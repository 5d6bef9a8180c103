"""Comparison of the names of people, which an attacker may imitate by other characters."""

from typing import Final
from unicodedata import category, normalize

_LOOK_ALIKE: Final = str.maketrans(
    "\u0430\u0441\u0435\u0456\u0458\u043e\u0440\u0455\u0445\u0443\u04bb\u0501\u051b\u051d\u03bf\u03b1\u03b9\u03bd\u03c1\u03c5"
    "\u03ba\u03c4\u0432\u043d\u043c\u0442\u043a\u0131\u0237\u0261\u0269",
    "aceijopsxyhdqwoaivpuktbhmtkijgi",
)
"""Letters of Cyrillic, Greek and phonetic alphabets in lower case that look like Latin ones.

Source: Unicode Technical Standard 39, confusables.txt.
"""

_DIGITS: Final = str.maketrans("013", "ole")
"""Digits that look like letters."""


def same_letters(name: str) -> str:
    """Return the letters and digits of a name in one spelling, which similar names share.

    Case, accents, punctuation, spaces and invisible characters are ignored.
    """
    spelled = normalize("NFKD", normalize("NFKD", name).casefold()).translate(_LOOK_ALIKE).translate(_DIGITS)
    return "".join(each for each in spelled if category(each)[0] in "LN")


def is_same_person(one: str, other: str) -> bool:
    """Return whether two names are equal or similar."""
    return one.casefold() == other.casefold() or same_letters(one) == same_letters(other) != ""
