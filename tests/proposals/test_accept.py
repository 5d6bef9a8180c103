"""Accepted proposals: part of the tree, and used by conversions."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from support.any_runtime import run_in_ort
from support.execution import assert_equal, op_types, opset_of, run
from support.proposals import rename_operator, replace_text, set_answers, write_content
from support.recorded import recorded_cases, recorded_operators
from typer.testing import CliRunner

import opshift
from opshift.adapters.core.adapter_table import temporary_adapters
from opshift.cli.main import app
from opshift.converter.convert import convert_version
from opshift.model.errors import UsageError
from opshift.proposals.accept import accept
from opshift.proposals.content.findings import NotAcceptable
from opshift.proposals.content.folder import ProposalFolder
from opshift.proposals.content.staged_registry import registry_of_tree
from opshift.proposals.evidence.run import load_module
from opshift.registry.errors import DefinitionError
from opshift.registry.fingerprints import load_lock, lock_differences

Make = Callable[..., Path]
X = np.array([[-1.0, 0.5, 2.0]], np.float32)


def _model(
    opset: int, *nodes: onnx.NodeProto, domain: str = "", shape: tuple[int, ...] = (1, 3)
) -> onnx.ModelProto:
    x, _y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "y"))
    alpha = helper.make_tensor_value_info("alpha", TensorProto.FLOAT, [1])
    graph = helper.make_graph(
        nodes, "test", [x, alpha], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    )
    imports = [helper.make_opsetid("", opset if not domain else 18)]
    imports += [helper.make_opsetid(domain, opset)] if domain else []
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def _digests(folder: Path) -> dict[Path, str]:
    return {each: hashlib.md5(each.read_bytes()).hexdigest() for each in folder.rglob("*") if each.is_file()}


@pytest.mark.parametrize(
    ("base", "edit", "rule"),
    [
        pytest.param("function", set_answers(title="Another"), "sign-off.count", id="too few sign-offs"),
        pytest.param(
            "function",
            replace_text("operator.yaml", "since_version: 29", "since_version: 28"),
            "opset.released",
            id="released opset",
        ),
        pytest.param(
            "function",
            replace_text("operator.yaml", "op_type: Sqrt", "op_type: Exp"),
            "body.agrees",
            id="error in the body",
        ),
    ],
)
def test_refuses_open_proposal_and_writes_nothing(
    base: str, edit: object, rule: str, make: Make, tree: Path
) -> None:
    path = make(base, edit, signed=rule != "sign-off.count")
    before = _digests(tree.parent)
    with pytest.raises(NotAcceptable) as refused:
        accept(path, tree)
    assert rule in {each.rule for each in refused.value.findings}
    assert _digests(tree.parent) == before


@pytest.mark.some_cases(2)
@pytest.mark.parametrize("base", ["function", "update", "deprecation", "removal", "promotion"])
def test_accepted_proposal_extends_tree(base: str, make: Make, tree: Path) -> None:
    known = {str(each.id) for each in registry_of_tree(tree).get_all_schemas_with_history()}
    accepted = accept(make(base), tree)
    registry = registry_of_tree(tree)
    assert registry.newest_opset() == 29
    assert {str(each.id) for each in registry.get_all_schemas_with_history()} == known | {
        str(accepted.operator)
    }
    assert list(lock_differences(registry.operators(), load_lock(tree / "fingerprints.yaml"))) == []
    assert accepted.operator.op_type in (tree / "CHANGELOG.md").read_text("utf-8")
    assert not registry.releases.onnx["1.24"].released


def test_refuses_texts_that_the_tree_lacks(make: Make, tree: Path) -> None:
    """The new version inherits a text from the proposal's copy of an earlier version."""
    earlier = "    operator: >-\n      Exponential linear unit: `y = x` for `x >= 0`, otherwise"
    texts = """\
    inputs: {X: A tensor of any shape.}
    outputs: {Y: A tensor of any shape.}
    attributes: {alpha: A number of any sign., consumed_inputs: No meaning.}
    types: {T: A type of numbers.}
"""
    path = make(
        "update",
        replace_text("operator.yaml", "      X: The values to rectify, of any shape.\n", ""),
        replace_text(
            "operator.yaml",
            f"{earlier} `alpha * (exp(x) - 1)`. Large",
            f"{texts}{earlier} `alpha * (exp(x) - 1)`. Large",
        ),
    )
    elu = tree / "ai.onnx" / "Elu.yaml"
    elu.write_text(re.sub(r"  descriptions:\n(    .*\n)*", "", elu.read_text("utf-8")), "utf-8")
    with pytest.raises(DefinitionError, match=r"inputs\.X: missing") as refused:
        accept(path, tree)
    assert refused.value.place.file == str(path / "operator.yaml")
    assert "copy the tree's definition" in refused.value.remedy


def test_marks_proposal_as_accepted(make: Make, tree: Path) -> None:
    path = make("function", replace_text("proposal.yaml", "state: in-review\n", ""))
    accept(path, tree)
    assert ProposalFolder(path).proposal.state == "accepted"
    assert len(ProposalFolder(path).proposal.sign_offs) == 2


def test_two_proposals_share_next_opset(make: Make, tree: Path) -> None:
    accept(make("function"), tree)
    accept(make("update"), tree)
    changes = (tree / "CHANGELOG.md").read_text("utf-8")
    assert changes.count("## ai.onnx 29") == 1
    assert changes.count("\n- **") == 2
    assert list(registry_of_tree(tree).releases.onnx)[-1] == "1.24"


def test_refuses_accepted_proposal(make: Make, tree: Path) -> None:
    path = make("function")
    accept(path, tree)
    with pytest.raises(NotAcceptable) as refused:
        accept(path, tree)
    assert {"proposal.open", "operator.taken"} <= {each.rule for each in refused.value.findings}


@pytest.mark.parametrize(
    ("node", "up", "down"),
    [
        pytest.param(helper.make_node("Elu", ["x"], ["y"], alpha=1.5), ["Elu"], ["Elu"], id="attribute"),
        pytest.param(helper.make_node("Elu", ["x"], ["y"]), ["Elu"], ["Elu"], id="default"),
    ],
)
def test_converts_models_across_accepted_update(
    node: onnx.NodeProto, up: list[str], down: list[str], make: Make, tree: Path
) -> None:
    accept(make("update"), tree)
    registry, model = registry_of_tree(tree), _model(22, node)
    with temporary_adapters():
        load_module(tree / "adapters" / "elu_29.py")
        newer = convert_version(model, 29, registry=registry)
        older = convert_version(newer, 22, registry=registry)
    assert (opset_of(newer), op_types(newer), op_types(older)) == (29, up, down)
    assert len(newer.graph.node[0].input) == 1 + len(node.attribute)
    feeds = {"x": X, "alpha": np.ones(1, np.float32)}
    np.testing.assert_allclose(run(older, feeds)[0], run(model, feeds)[0], rtol=1e-6)


def test_downgrades_computed_alpha(make: Make, tree: Path) -> None:
    accept(make("update"), tree)
    model = _model(29, helper.make_node("Elu", ["x", "alpha"], ["y"]))
    with temporary_adapters():
        load_module(tree / "adapters" / "elu_29.py")
        older = convert_version(model, 17, registry=registry_of_tree(tree))
    output = run(older, {"x": X, "alpha": np.array([3], np.float32)})[0]
    np.testing.assert_allclose(output, np.where(X < 0, 3 * np.expm1(X), X), rtol=1e-6)


def test_replaces_deprecated_operator(make: Make, tree: Path) -> None:
    accept(make("deprecation"), tree)
    model = _model(22, helper.make_node("GlobalMaxPool", ["x"], ["y"]), shape=(1, 2, 3))
    with temporary_adapters():
        load_module(tree / "adapters" / "global_max_pool_29.py")
        newer = convert_version(model, 29, registry=registry_of_tree(tree))
    assert op_types(newer) == ["ReduceMax"]


def test_error_for_removed_operator_names_replacement(make: Make, tree: Path) -> None:
    accept(make("removal"), tree)
    with pytest.raises(opshift.ResolveError, match="removed") as refused:
        registry_of_tree(tree).get_schema("GlobalMaxPool", 29)
    assert "ReduceMax" in refused.value.remedy


def test_promotion_deprecates_experimental_operator(make: Make, tree: Path) -> None:
    accept(make("promotion"), tree)
    schema = registry_of_tree(tree).get_schema("FlexAttention", 1, "ai.onnx.preview")
    assert schema.deprecation is not None
    assert schema.deprecation.replaced_by == "ai.onnx.Squareplus"


def test_refuses_promotion_if_the_deprecation_cannot_be_appended(make: Make, tree: Path) -> None:
    path = tree / "ai.onnx.preview" / "FlexAttention.yaml"
    text = path.read_text("utf-8").replace("domain: ai.onnx.preview\n", "") + "domain: ai.onnx.preview\n"
    path.write_text(text, "utf-8")
    with pytest.raises(DefinitionError, match="cannot append the deprecation") as refused:
        accept(make("promotion"), tree)
    assert refused.value.remedy
    assert path.read_text("utf-8") == text


def test_accepts_into_new_tree_of_custom_domain(make: Make, tmp_path: Path) -> None:
    first_version = replace_text(
        "operator.yaml", "since_version: 29\n  status: STABLE\n  before: body", "since_version: 1"
    )
    tree = tmp_path / "acme"
    accepted = accept(make("function", rename_operator("Bend", "com.acme"), first_version), tree)
    assert str(accepted.operator) == "com.acme.Bend:1"
    assert sorted(each.name for each in tree.iterdir()) == [
        "CHANGELOG.md",
        "cases",
        "com.acme",
        "fingerprints.yaml",
        "pages",
        "references",
    ]
    assert registry_of_tree(tree).get_schema("Bend", 1, "com.acme").body is not None


@pytest.mark.some_cases(1)
@pytest.mark.parametrize("base", ["function", "update", "deprecation", "removal"])
def test_recorded_cases_compute_their_outputs(base: str, make: Make, tree: Path) -> None:
    path = make(base)
    written = accept(path, tree)
    registry, cases = registry_of_tree(tree), list(recorded_cases(tree / "cases"))
    assert len(cases) == len(ProposalFolder(path).examples)
    for case in cases:
        assert case.path.parent == written.cases == tree / "cases" / "ai.onnx" / written.cases.name
        operators = recorded_operators(opset_of(case.model), registry, tree)
        if operators:
            outputs = ReferenceEvaluator(case.model, new_ops=list(operators)).run(None, case.feeds)
        else:
            outputs = run_in_ort(case.model, case.feeds)
        assert_equal(outputs, case.outputs)


def test_recorded_cases_have_layout_of_onnx(make: Make, tree: Path) -> None:
    (written,) = accept(make("deprecation"), tree).cases.glob("test_globalmaxpool_image")
    case = onnx.load(written / "model.onnx")
    onnx.checker.check_model(case, full_check=True)
    data = written / "test_data_set_0"
    assert sorted(each.name for each in data.iterdir()) == ["input_0.pb", "output_0.pb"]
    tensor = onnx.load_tensor(data / "input_0.pb")
    assert tensor.name == case.graph.input[0].name


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("a b", "a-B"), {"test_squareplus_a_b", "test_squareplus_a_b_1"}),
        (("../../../x", "\u00dc"), {"test_squareplus", "test_squareplus_x"}),
    ],
    ids=["equal in lower case", "no letters"],
)
def test_names_of_examples_become_names_of_folders(
    names: tuple[str, str], expected: set[str], make: Make, tree: Path
) -> None:
    pairs = zip(("default", "without a bend"), names, strict=True)
    edits = (replace_text("examples.yaml", f"name: {old}\n", f"name: {new}\n") for old, new in pairs)
    accept(make("function", *edits), tree)
    assert expected <= {each.path.name for each in recorded_cases(tree / "cases")}


def test_page_describes_accepted_version(make: Make, tree: Path) -> None:
    accept(make("update"), tree)
    page = (tree / "pages" / "ai.onnx" / "Elu-29.md").read_text("utf-8")
    assert page.startswith("# ai.onnx.Elu:29\n\n## Signature\n\n")
    assert "| input | `alpha` |" in page
    assert "### alpha for each channel" in page


def test_refuses_to_write_adapters_that_opshift_does_not_load(
    make: Make, released: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opshift.proposals.accept.OPSETS", released)
    before = _digests(released)
    with pytest.raises(UsageError, match=r"no folder is given for adapters\.py") as refused:
        accept(make("update"), released)
    assert "--adapters" in refused.value.remedy
    assert _digests(released) == before


def test_command_line_converts_across_accepted_update(make: Make, tree: Path, tmp_path: Path) -> None:
    accept(make("update"), tree)
    onnx.save(_model(22, helper.make_node("Elu", ["x"], ["y"], alpha=1.5)), tmp_path / "old.onnx")
    definitions = ("--opsets", str(tree), "--adapters", str(tree / "adapters"))
    with temporary_adapters():
        for source, target, opset in (("old", "new", "29"), ("new", "back", "17")):
            files = (str(tmp_path / f"{source}.onnx"), str(tmp_path / f"{target}.onnx"))
            accepted = CliRunner().invoke(app, ["convert", *files, "--target", opset, *definitions])
            assert accepted.exit_code == 0, accepted.output
    assert len(onnx.load(tmp_path / "new.onnx").graph.node[0].input) == 2
    assert onnx.load(tmp_path / "back.onnx").graph.node[0].attribute[0].f == 1.5


def _with_adapters(domain: str) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        (folder / "adapters.py").write_text(f'DOMAIN = "{domain}"\n', "utf-8")

    return edit


def _accept_bend(make: Make, domain: str, tree: Path, name: str = "Bend") -> tuple[Path, ...]:
    version = replace_text(
        "operator.yaml", "since_version: 29\n  status: STABLE\n  before: body", "since_version: 1"
    )
    path = make("function", rename_operator(name, domain), version, _with_adapters(domain))
    moved = path.rename(path.with_name(f"{domain}.{name}"))
    return accept(moved, tree).files


def test_adapters_without_code_are_not_accepted(make: Make, tree: Path) -> None:
    """`proposal new` writes a file of comments, which need not be deleted."""
    template = '"""Adapters of Squareplus."""\n\nfrom opshift.adapters import adapter\n\n# @adapter(...)\n'
    accept(make("function", write_content("adapters.py", template)), tree)
    assert not (tree / "adapters").exists()


def test_operators_of_two_domains_have_separate_files(make: Make, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    domains = ("com.acme", "com.other")
    for domain in domains:
        _accept_bend(make, domain, tree)
    texts = {path.name: path.read_text() for path in (tree / "adapters").iterdir()}
    assert texts == {f"{domain.replace('.', '_')}_bend_1.py": f'DOMAIN = "{domain}"\n' for domain in domains}
    assert {each.path.parents[1].name for each in recorded_cases(tree / "cases")} == set(domains)


@pytest.mark.parametrize("file", ["adapters/com_acme_bend_1.py", "cases/com.acme/Bend-1/model.onnx"])
def test_refuses_to_replace_file_of_another_operator(make: Make, tmp_path: Path, file: str) -> None:
    tree = tmp_path / "tree"
    (tree / file).parent.mkdir(parents=True)
    (tree / file).write_text("mine")
    with pytest.raises(UsageError, match="already exists"):
        _accept_bend(make, "com.acme", tree)
    assert [path for path in tree.rglob("*") if path.is_file()] == [tree / file]
    assert (tree / file).read_text() == "mine"


def test_writes_through_no_link_out_of_tree(make: Make, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tmp_path / "outside").mkdir()
    (tree / "com.acme").symlink_to(tmp_path / "outside", target_is_directory=True)
    with pytest.raises(UsageError, match="is outside of the folder"):
        _accept_bend(make, "com.acme", tree)
    assert list((tmp_path / "outside").iterdir()) == []
