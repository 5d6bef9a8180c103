"""Reviewers of a tree of definitions, and signatures of sign-offs, which `ssh-keygen` writes and verifies.

Source: ssh-keygen(1), options `-Y sign` and `-Y verify`, and the section "ALLOWED SIGNERS".
"""

import base64
import subprocess
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Annotated, Final
from unicodedata import category, normalize

from pydantic import Field

from opshift.model.atomic_files import destination_below
from opshift.model.errors import UsageError
from opshift.proposals.content.models import Frozen, Person, SignOff
from opshift.registry.definition_files import REVIEWERS
from opshift.registry.record import from_file_content
from opshift.registry.yaml_files import load_yaml

NAMESPACE = "opshift-proposal"
"""Namespace of the signatures (option `-n` of ssh-keygen); it makes signatures for other purposes invalid."""

PREAMBLE = b"SSHSIG"

ARMOR = "-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----\n"


_LOOK_ALIKE: Final = str.maketrans(
    "\u0430\u0441\u0435\u0456\u0458\u043e\u0440\u0455\u0445\u0443\u04bb\u0501\u051b\u051d\u03bf\u03b1\u03b9\u03bd\u03c1\u03c5"
    "\u03ba\u03c4\u0432\u043d\u043c\u0442\u043a\u0131\u0237\u0261\u0269",
    "aceijopsxyhdqwoaivpuktbhmtkijgi",
)
"""Translation of lower-case Cyrillic, Greek and phonetic letters to Latin letters that look the same.

Source: Unicode Technical Standard 39, confusables.txt.
"""

_DIGITS: Final = str.maketrans("013", "ole")
"""Translation of digits to letters that look similar."""


class Reviewer(Frozen):
    """Person whose sign-offs count."""

    name: str
    identity: str = ""
    """Principal in the file of allowed signers, usually an email address."""


class Reviewers(Frozen):
    """Content of `reviewers.yaml`. Without the file, everyone may sign off, without a signature."""

    reviewers: Annotated[tuple[Reviewer, ...], Field(min_length=1)]
    allowed_signers: str = ""
    """File of public keys in the folder of `reviewers.yaml`. If it is set, sign-offs need signatures."""


class ReviewerList:
    """Reviewers of a tree of definitions and their keys; determines which sign-offs count.

    Raises:
        DefinitionError: `reviewers.yaml` is invalid.
        UsageError: two names are similar, or the file of allowed signers is outside of the tree.
    """

    def __init__(self, tree: Path | None) -> None:
        self._known: dict[str, Reviewer] | None = None
        """Reviewers by name; `None` if everyone may sign off."""
        self._signers: Path | None = None
        self._content = b""
        if tree is not None and (path := tree / REVIEWERS).exists():
            content = from_file_content(Reviewers, load_yaml(path), path)
            self._known = {same_letters(each.name): each for each in content.reviewers}
            if len(self._known) != len(content.reviewers):
                reason, remedy = "two reviewers have similar names", "spell one of them differently"
                raise UsageError(reason, place=str(path), remedy=remedy)
            self._signers = (
                destination_below(tree, content.allowed_signers) if content.allowed_signers else None
            )
            self._content = path.read_bytes()

    def has_same_rules(self, other: "ReviewerList") -> bool:
        """Return whether two lists have identical `reviewers.yaml` files and identical files of keys."""
        return self._content == other._content and self._keys == other._keys

    @cached_property
    def _keys(self) -> bytes:
        """Content of the file with the reviewers' keys; empty without a file."""
        return self._signers.read_bytes() if self._signers and self._signers.exists() else b""

    def is_author(self, sign_off: SignOff, author: Person) -> bool:
        """Return whether a sign-off has the author's identity or key, or a name similar to the author's."""
        if is_same_person(sign_off.name, author.name):
            return True
        own = [each for each in (self._known or {}).values() if is_same_person(each.name, author.name)]
        identities = {each.identity.casefold() for each in own} | {author.email.casefold()}
        identities.discard("")
        if self.identity_of(sign_off).casefold() in identities:
            return True
        key = base64.b64encode(key_of(sign_off.signature)).decode()
        lines = (line.split() for line in self._keys.decode(errors="replace").splitlines())
        return any(
            key and key in parts and not identities.isdisjoint(parts[0].casefold().split(","))
            for parts in lines
            if parts
        )

    def identity_of(self, sign_off: SignOff) -> str:
        """Return the identity of the reviewer whom a sign-off names; empty if it is unknown."""
        reviewer = (self._known or {}).get(same_letters(sign_off.name))
        return reviewer.identity if reviewer else ""

    def problem(self, sign_off: SignOff) -> str:
        """Return the reason why a sign-off does not count; empty if it counts."""
        return self.name_problem(sign_off.name) or self.signature_problem(sign_off)

    def name_problem(self, name: str) -> str:
        """Return the reason why a person may not sign off; empty if the person may."""
        if self._known is None or same_letters(name) in self._known:
            return ""
        return f"{name} is not a reviewer in {REVIEWERS}"

    def signature_problem(self, sign_off: SignOff) -> str:
        """Return the problem of a missing or invalid signature; empty if it is valid or not required."""
        if self._signers is None:
            return ""
        if not sign_off.signature:
            return f"the sign-off of {sign_off.name} has no signature"
        reviewer = (self._known or {}).get(same_letters(sign_off.name))
        if reviewer is None or not reviewer.identity:
            return f"{sign_off.name} has no identity in {REVIEWERS}"
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "signature"
            file.write_text(ARMOR.format(sign_off.signature), "utf-8")
            # ssh-keygen takes the values of -s and -I literally, even with a leading dash.
            arguments = ("verify", "-f", str(self._signers), "-I", reviewer.identity, "-s", str(file))
            result = _ssh_keygen(arguments, sign_off)
        if result.returncode == 0:
            return ""
        details = " ".join((result.stderr + result.stdout).decode(errors="replace").split())
        return f"the signature of {sign_off.name} as {reviewer.identity} is invalid: {details}"


EVERYONE = ReviewerList(None)


def signature_of(sign_off: SignOff, key: Path) -> str:
    """Sign a sign-off, and return the signature as base64 text on one line.

    `key` is the file of a private key, or of a public key if the SSH agent holds the private key.

    Raises:
        UsageError: ssh-keygen is not installed, or cannot use the key.
    """
    result = _ssh_keygen(("sign", "-f", str(key)), sign_off)
    if result.returncode:
        reason = " ".join(result.stderr.decode(errors="replace").split())
        remedy = "pass a key that `ssh-keygen` created, or its .pub file if an agent holds the key"
        raise UsageError(f"cannot sign: {reason}", place=str(key), remedy=remedy)
    return "".join(line for line in result.stdout.decode().split("\n") if not line.startswith("-----"))


def _ssh_keygen(arguments: tuple[str, ...], sign_off: SignOff) -> subprocess.CompletedProcess[bytes]:
    # The date is signed, too, because approvals of preview operators expire.
    message = f"{sign_off.fingerprint} {sign_off.date} {sign_off.name}\n"
    command = ("ssh-keygen", "-Y", *arguments, "-n", NAMESPACE)
    try:
        return subprocess.run(command, input=message.encode(), capture_output=True, check=False)
    except FileNotFoundError as error:
        remedy = "install OpenSSH 8.2 or newer"
        raise UsageError("signatures need the program ssh-keygen", remedy=remedy) from error


def key_of(signature: str) -> bytes:
    """Return the public key in a signature; `b""` if the signature is malformed.

    A signature begins with SSHSIG, a version (four bytes), the length of the key (four bytes), and the key.
    Source: PROTOCOL.sshsig of OpenSSH.
    """
    try:
        content = base64.b64decode(signature, validate=True)
    except ValueError:
        return b""
    start = len(PREAMBLE) + 8
    length = int.from_bytes(content[start - 4 : start])
    return content[start : start + length] if content.startswith(PREAMBLE) else b""


def same_letters(name: str) -> str:
    """Normalize a name to letters and digits, so that names that look similar become equal.

    Case, accents, punctuation, spaces and invisible characters are ignored.
    """
    spelled = normalize("NFKD", normalize("NFKD", name).casefold()).translate(_LOOK_ALIKE).translate(_DIGITS)
    return "".join(each for each in spelled if category(each)[0] in "LN")


def is_same_person(one: str, other: str) -> bool:
    """Return whether two names are equal regardless of case, or look similar, see `same_letters`."""
    return one.casefold() == other.casefold() or same_letters(one) == same_letters(other) != ""
