"""Valid small proposals, and edits that invalidate them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opshift.registry.yaml_files import dump_yaml, load_yaml

EXAMPLES = Path(__file__).resolve().parents[2] / "src" / "opshift" / "proposals" / "examples"
Edit = Callable[[Path], None]


def replace_text(name: str, old: str, new: str) -> Edit:
    """Replace all occurrences of a text, which must occur in the file."""

    def edit(folder: Path) -> None:
        content = (folder / name).read_text("utf-8")
        assert old in content, f"{name} has no {old!r}"
        (folder / name).write_text(content.replace(old, new), "utf-8")

    return edit


def replace_last(name: str, old: str, new: str) -> Edit:
    """Replace the last occurrence of a text."""

    def edit(folder: Path) -> None:
        before, found, after = (folder / name).read_text("utf-8").rpartition(old)
        assert found, f"{name} has no {old!r}"
        (folder / name).write_text(before + new + after, "utf-8")

    return edit


def write_content(name: str, content: str) -> Edit:
    """Replace the content of a file."""

    def edit(folder: Path) -> None:
        (folder / name).write_text(content, "utf-8")

    return edit


def truncate(name: str, start: str) -> Edit:
    """Remove the rest of a file, starting at a text."""

    def edit(folder: Path) -> None:
        content = (folder / name).read_text("utf-8")
        (folder / name).write_text(content[: content.index(start)], "utf-8")

    return edit


def set_answers(**answers: Any) -> Edit:
    """Replace answers in proposal.yaml."""

    def edit(folder: Path) -> None:
        path = folder / "proposal.yaml"
        path.write_text(dump_yaml({**load_yaml(path), **answers}), "utf-8")

    return edit


def operator_fields(**fields: Any) -> Edit:
    """Replace fields at the top of operator.yaml."""

    def edit(folder: Path) -> None:
        path = folder / "operator.yaml"
        path.write_text(dump_yaml({**load_yaml(path), **fields}), "utf-8")

    return edit


def set_newest_version(**fields: Any) -> Edit:
    """Replace fields of the last version in operator.yaml; `None` removes a field."""

    def edit(folder: Path) -> None:
        content = load_yaml(folder / "operator.yaml")
        changed = {**content["versions"][-1], **fields}
        kept = {name: value for name, value in changed.items() if value is not None}
        operator_fields(versions=[*content["versions"][:-1], kept])(folder)

    return edit


def describe_parameters(folder: Path) -> None:
    """Write a text for each parameter of the last version in operator.yaml."""
    version = load_yaml(folder / "operator.yaml")["versions"][-1]
    names = {side: [each["name"] for each in version[side]] for side in ("inputs", "outputs")}
    names |= {"attributes": version["attributes"], "types": version["type_constraints"]}
    texts = {
        group: {name: f"The {group} named {name} of a test." for name in names[group]} for group in names
    }
    set_newest_version(descriptions={**version["descriptions"], **texts})(folder)


def rename_operator(name: str, domain: str = "ai.onnx") -> Edit:
    """Rename the new function."""

    def edit(folder: Path) -> None:
        set_answers(operator={"domain": domain, "name": name})(folder)
        replace_text("operator.yaml", "domain: ai.onnx\nname: Squareplus", f"domain: {domain}\nname: {name}")(
            folder
        )

    return edit


NO_BODY = set_newest_version(body=None, before={"refuse": "nothing else computes it"})
REMOVED = """\
  removal:
    removed_in: 29
    replaced_by: ReduceMax
    mapping: ReduceMax takes the same `X`; its `axes` are 2, 3 and so on, and `keepdims` is 1.
    up: adapter
"""
BASES: dict[str, tuple[str, tuple[Edit, ...]]] = {
    "function": ("squareplus", (replace_text("operator.yaml", "[all_float_types_ir4]", "[tensor(float)]"),)),
    "update": ("elu_alpha", ()),
    "deprecation": ("global_max_pool", ()),
    "removal": (
        "global_max_pool",
        (
            truncate("operator.yaml", "- since_version: 29"),
            lambda folder: _append(folder / "operator.yaml", REMOVED),
            set_answers(kind="removal"),
        ),
    ),
    "promotion": (
        "squareplus",
        (
            replace_text("operator.yaml", "[all_float_types_ir4]", "[tensor(float)]"),
            set_answers(
                kind="promotion",
                promotes="ai.onnx.preview.FlexAttention:1",
                mapping="Every node is taken over as it is.",
            ),
        ),
    ),
}
"""Valid proposals: an example of the project and the edits applied to it."""


def proposal(base: str, folder: Path, *edits: Edit) -> Path:
    """Copy a valid proposal to a new folder and apply edits."""
    example, base_edits = BASES[base]
    worked_example(example, folder)
    for edit in (*base_edits, *edits):
        edit(folder)
    return folder


def worked_example(name: str, folder: Path) -> Path:
    """Copy a worked example to a new folder, without the sign-offs and the state of an accepted one."""
    shutil.copytree(EXAMPLES / name, folder)
    text = (folder / "proposal.yaml").read_text("utf-8")
    before, _, _ = text.partition("sign_offs:")
    text = re.sub(r"^state: .*$", "state: in-review", before, flags=re.MULTILINE) + "sign_offs: []\n"
    (folder / "proposal.yaml").write_text(text, "utf-8")
    return folder


def _append(path: Path, content: str) -> None:
    path.write_text(path.read_text("utf-8") + content, "utf-8")
