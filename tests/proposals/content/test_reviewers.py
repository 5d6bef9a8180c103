"""Trees that restrict sign-offs to a list of reviewers, and require their signatures."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from support.proposals import Edit, proposal, replace_text, set_answers

from opshift.model.errors import UsageError
from opshift.proposals.check import check_proposal
from opshift.proposals.content.folder import ProposalFolder, fingerprint
from opshift.proposals.content.models import SignOff
from opshift.proposals.content.reviewers import ReviewerList, signature_of
from opshift.proposals.content.sign_off import sign, valid_sign_offs
from opshift.proposals.content.staged_registry import registry_of_tree
from opshift.registry.errors import DefinitionError

NAMES = "reviewers: [{name: Grace}, {name: Alan}]\n"
SIGNED = """\
allowed_signers: keys
reviewers:
- {name: Grace, identity: grace@example.com}
- {name: Alan, identity: alan@example.com}
- {name: Mary}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return proposal("function", tmp_path / "sq")


def _tree(folder: Path, reviewers: str) -> Path:
    tree = folder / "tree"
    tree.mkdir()
    (tree / "reviewers.yaml").write_text(reviewers)
    return tree


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Write a tree with a list of reviewers, and with their keys."""
    tree, keys = _tree(tmp_path, SIGNED), []
    for name in ("grace", "alan", "mallory"):
        command = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name))
        subprocess.run(command, check=True)
        keys.append(f"{name}@example.com {(tmp_path / f'{name}.pub').read_text()}")
    (tree / "keys").write_text("".join(keys[:2]))
    return tree


def _errors(path: Path, tree: Path) -> list[tuple[str, str]]:
    checked = check_proposal(path, registry_of_tree(tree), gate="accept", run=False)
    return [(each.rule, each.reason) for each in checked.findings if each.rule.startswith("sign-off.")]


def test_list_restricts_names(tmp_path: Path, path: Path) -> None:
    tree = _tree(tmp_path, NAMES)
    reviewers = ReviewerList(tree)
    sign(ProposalFolder(path), " grace", reviewers)
    with pytest.raises(UsageError, match=r"Mallory is not a reviewer in reviewers\.yaml"):
        sign(ProposalFolder(path), "Mallory", reviewers)
    sign(ProposalFolder(path), "Mallory")
    assert _errors(path, tree) == [
        ("sign-off.count", "expected 2 valid sign-offs, got 1"),
        ("sign-off.reviewer", "Mallory is not a reviewer in reviewers.yaml"),
    ]
    sign(ProposalFolder(path), "Alan", reviewers)
    assert "sign-off.count" not in dict(_errors(path, tree))


def test_accepts_signatures_of_reviewers(tmp_path: Path, path: Path, tree: Path) -> None:
    for name in ("Grace", "Alan"):
        sign(ProposalFolder(path), name, ReviewerList(tree), key=tmp_path / name.lower())
    assert _errors(path, tree) == []
    assert [each.name for each in valid_sign_offs(ProposalFolder(path), ReviewerList(tree))] == [
        "Grace",
        "Alan",
    ]


@pytest.mark.parametrize(
    ("name", "key", "reason"),
    [
        ("Grace", None, "the sign-off of Grace has no signature"),
        ("Grace", "mallory", r"the signature of Grace as grace@example\.com is invalid: "),
        ("Grace", "alan", r"the signature of Grace as grace@example\.com is invalid: "),
        ("Mary", "grace", r"Mary has no identity in reviewers\.yaml"),
        ("Grace", "nothing", "cannot sign: .*No such file"),
    ],
    ids=["no key", "unknown key", "key of another reviewer", "no identity", "missing key"],
)
def test_refuses_to_sign(
    name: str, key: str | None, reason: str, tmp_path: Path, path: Path, tree: Path
) -> None:
    with pytest.raises(UsageError, match=reason):
        sign(ProposalFolder(path), name, ReviewerList(tree), key=tmp_path / key if key else None)
    assert "sign_offs: []" in (path / "proposal.yaml").read_text()


def _change_sign_offs(of: Callable[[SignOff], SignOff]) -> Edit:
    def edit(folder: Path) -> None:
        signed = [of(each).model_dump() for each in ProposalFolder(folder).proposal.sign_offs]
        set_answers(sign_offs=signed)(folder)

    return edit


@pytest.mark.some_cases(2)
@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"date": "2030-01-01"}, id="date"),
        pytest.param({"name": "Alan"}, id="name"),
        pytest.param({"signature": "AAAA"}, id="signature"),
        pytest.param({"signature": "-----END SSH SIGNATURE-----\n"}, id="armor"),
        pytest.param({"signature": ""}, id="no signature"),
    ],
)
def test_change_invalidates_signature(change: dict[str, str], tmp_path: Path, path: Path, tree: Path) -> None:
    sign(ProposalFolder(path), "Grace", ReviewerList(tree), key=tmp_path / "grace", day=date(2026, 1, 31))
    _change_sign_offs(lambda each: each.model_copy(update=change))(path)
    assert "sign-off.signature" in dict(_errors(path, tree))
    assert valid_sign_offs(ProposalFolder(path), ReviewerList(tree)) == ()


def test_change_of_content_invalidates_signature(tmp_path: Path, path: Path, tree: Path) -> None:
    sign(ProposalFolder(path), "Grace", ReviewerList(tree), key=tmp_path / "grace")
    replace_text("operator.yaml", "default: 4.0", "default: 5.0")(path)
    assert dict(_errors(path, tree)).keys() == {"sign-off.count", "sign-off.void"}


def test_signature_for_another_purpose_is_invalid(
    tmp_path: Path, path: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed = SignOff(name="Grace", date="2026-01-31", fingerprint="0" * 32)
    with monkeypatch.context() as patch:
        patch.setattr("opshift.proposals.content.reviewers.NAMESPACE", "file")
        other = signature_of(signed, tmp_path / "grace")
    problem = ReviewerList(tree).signature_problem(signed.model_copy(update={"signature": other}))
    assert "is invalid" in problem


@pytest.mark.parametrize(
    ("reviewers", "error", "reason"),
    [
        ("reviewers: []", DefinitionError, "expected 1 or more items"),
        ("people: []", DefinitionError, "reviewers: the key is missing"),
        ("reviewers: [{name: Grace}]\nallowed_signers: ../keys", UsageError, "outside of the folder"),
    ],
    ids=["no reviewers", "unknown key", "path out of the tree"],
)
def test_refuses_invalid_list(
    reviewers: str, error: type[Exception], reason: str, tmp_path: Path, path: Path
) -> None:
    with pytest.raises(error, match=reason):
        _errors(path, _tree(tmp_path, reviewers))


def test_reports_missing_ssh_keygen(
    tmp_path: Path, path: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UsageError, match="need the program ssh-keygen") as refused:
        sign(ProposalFolder(path), "Grace", ReviewerList(tree), key=tmp_path / "grace")
    assert refused.value.remedy


def _set_signers(tree: Path, folder: Path, *lines: tuple[str, str]) -> None:
    texts = (f"{principals} {(folder / f'{key}.pub').read_text()}" for principals, key in lines)
    (tree / "keys").write_text("".join(texts))


ONE_KEY = {
    "two names of one identity": (
        "{name: Grace, identity: g@x}\n- {name: Ruth, identity: g@x}",
        [("g@x", "grace")],
    ),
    "two identities of one key": (
        "{name: Grace, identity: g@x}\n- {name: Ruth, identity: r@x}",
        [("g@x", "grace"), ("r@x", "grace")],
    ),
    "a wildcard": ("{name: Grace, identity: g@x}\n- {name: Ruth, identity: r@x}", [("*@x", "grace")]),
}


@pytest.mark.parametrize(("people", "signers"), ONE_KEY.values(), ids=ONE_KEY)
def test_one_person_counts_once(
    people: str, signers: list[tuple[str, str]], path: Path, tree: Path, tmp_path: Path
) -> None:
    (tree / "reviewers.yaml").write_text(f"allowed_signers: keys\nreviewers:\n- {people}\n")
    _set_signers(tree, tmp_path, *signers)
    reviewers, folder = ReviewerList(tree), ProposalFolder(path)
    sign(folder, "Grace", reviewers, key=tmp_path / "grace")
    key = tmp_path / signers[-1][1]
    with pytest.raises(UsageError, match="Grace has already signed off"):
        sign(ProposalFolder(path), "Ruth", reviewers, key=key)
    # and if the line is written by hand
    signed = SignOff(name="Ruth", date="2026-01-31", fingerprint=fingerprint(ProposalFolder(path)))
    signed = signed.model_copy(update={"signature": signature_of(signed, key)})
    own = ProposalFolder(path).proposal.sign_offs
    set_answers(sign_offs=[each.model_dump() for each in (*own, signed)])(path)
    assert [each.name for each in valid_sign_offs(ProposalFolder(path), reviewers)] == ["Grace"]


AUTHORS = {
    "an invisible character": {"name": "Grace\u200b", "email": "a@x"},
    "another script": {"name": "Gr\u0430ce", "email": "a@x"},
    "punctuation": {"name": "grace.", "email": "a@x"},
    "the same email": {"name": "Somebody", "email": "GRACE@example.com"},
    "the same key": {"name": "Somebody", "email": "other@example.com"},
}


@pytest.mark.parametrize("author", AUTHORS.values(), ids=AUTHORS)
def test_author_does_not_sign(author: dict[str, str], path: Path, tree: Path, tmp_path: Path) -> None:
    signers = ("grace@example.com", "grace"), ("other@example.com", "grace"), ("alan@example.com", "alan")
    _set_signers(tree, tmp_path, *signers)
    set_answers(author=author)(path)
    with pytest.raises(UsageError, match="Grace is the author of the proposal"):
        sign(ProposalFolder(path), "Grace", ReviewerList(tree), key=tmp_path / "grace")
    sign(ProposalFolder(path), "Alan", ReviewerList(tree), key=tmp_path / "alan")


def test_trusted_reviewers_decide(path: Path, tree: Path, tmp_path: Path) -> None:
    trusted = tmp_path / "trusted"
    shutil.copytree(tree, trusted)
    registry = registry_of_tree(tree)
    same = check_proposal(path, registry, run=False, trusted=trusted)
    assert "sign-off.trust" not in {each.rule for each in same.findings}
    (tree / "reviewers.yaml").write_text("reviewers: [{name: Mallory}, {name: Eve}]\n")
    sign(ProposalFolder(path), "Mallory", ReviewerList(tree))
    found = check_proposal(path, registry, run=False, trusted=trusted)
    rules = {each.rule for each in found.findings}
    assert {"sign-off.trust", "sign-off.reviewer"} <= rules
    assert found.draft is not None
    assert found.draft.sign_offs == ()


def test_refuses_reviewers_whose_names_look_alike(tmp_path: Path) -> None:
    tree = _tree(tmp_path, "reviewers: [{name: Grace}, {name: Gr\u0430ce}]\n")
    with pytest.raises(UsageError, match="two reviewers have similar names"):
        ReviewerList(tree)
