"""Hooks of pre-commit and the action for GitHub: their definitions and commands."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx
import pytest
import yaml
from onnx import TensorProto, helper
from support.mistakes import VALID
from support.sarif import read_run

from opshift.cli.main import COMMANDS

ROOT = Path(__file__).parents[1]
HOOKS = {each["id"]: each for each in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))}
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
CHANGELOG = (ROOT / "CHANGELOG.md").read_text("utf-8")
CHANGELOG_VERSIONS = re.findall(r"^## (.*)$", CHANGELOG, re.M)
EXPRESSION = re.compile(r"\$\{\{(.*?)\}\}")
BASH = shutil.which("bash")

needs_bash = pytest.mark.skipif(BASH is None or os.name == "nt", reason="the programs are shell scripts")


@pytest.fixture
def zoo(tmp_path: Path) -> Path:
    """Write a folder with a valid model and one of a wrong opset, and a definition with mistakes beside."""
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Mish", ["x"], ["y"])], "test", value[:1], value[1:])
    folder = tmp_path / "zoo"
    (folder / "sub folder").mkdir(parents=True)
    for name, opset in ("good.onnx", 18), ("sub folder/wrong.onnx", 13):
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
        onnx.save(model, folder / name)
    definitions = tmp_path / "acme" / "com.acme" / "Blur.yaml"
    definitions.parent.mkdir(parents=True)
    definitions.write_text("domain: com.acme\n", encoding="utf-8")
    return folder


def run_hook(name: str, arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a hook on all files of a folder, as pre-commit does."""
    hook = HOOKS[name]
    program, *entry = shlex.split(hook["entry"])
    assert program == "opshift"
    paths = sorted(each.relative_to(folder).as_posix() for each in folder.rglob("*") if each.is_file())
    files = [each for each in paths if re.search(hook["files"], each)]
    assert files
    passed = files if hook.get("pass_filenames", True) else []
    command = [sys.executable, "-m", "opshift", *entry, *arguments, *passed]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.some_cases(1)
@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("opshift-check", [], "node.operator"),
        ("opshift-doctor", [], "declared.opset"),
        ("opshift-plan", ["--target", "17"], "operator.not-introduced"),
        ("opshift-lint-definitions", ["acme"], "format.missing-key"),
    ],
)
def test_hook_reports_problem_and_accepts_other_files(
    zoo: Path, name: str, arguments: list[str], problem: str
) -> None:
    failed = run_hook(name, arguments, zoo.parent)
    assert failed.returncode == 1
    assert problem in failed.stdout
    (zoo / "sub folder" / "wrong.onnx").unlink()
    valid = VALID.replace("T: [floats]", "T: [tensor(double), tensor(float)]")
    (zoo.parent / "acme/com.acme/Blur.yaml").write_text(valid, encoding="utf-8")
    assert run_hook(name, arguments, zoo.parent).returncode == 0


def test_hooks_are_tested_and_documented() -> None:
    page = (ROOT / "docs/ci.md").read_text("utf-8")
    for name, hook in HOOKS.items():
        assert name in page
        assert hook["language"] == "python"
        assert shlex.split(hook["entry"])[1] in {each.name for each in COMMANDS}


def test_inputs_of_action_are_used_and_documented() -> None:
    text = json.dumps(STEPS)
    page = (ROOT / "docs/ci.md").read_text("utf-8")
    used = set(re.findall(r"inputs\.([\w-]+)", text))
    assert used == set(ACTION["inputs"])
    for name, each in {**ACTION["inputs"], **ACTION["outputs"]}.items():
        assert each["description"]
        assert f"`{name}`" in page
    steps = {each["id"] for each in STEPS}
    outputs = json.dumps([STEPS, ACTION["outputs"]])
    assert set(re.findall(r"steps\.(\w+)\.outputs", outputs)) <= steps


def test_scripts_of_action_contain_no_expressions() -> None:
    for step in STEPS:
        assert "${{" not in step.get("run", "")
        assert step.get("shell", "bash") == "bash"


def documented_workflows() -> list[str]:
    """Return the workflows in the pages about CI."""
    pages = "".join((ROOT / each).read_text("utf-8") for each in ("docs/ci.md", "docs/gate.md"))
    return [each for each in re.findall(r"^```yaml\n(.*?)^```", pages, re.M | re.S) if "\njobs:" in each]


def workflows() -> list[dict[str, Any]]:
    """Return the workflows of the project and those that its pages show."""
    files = [each.read_text("utf-8") for each in sorted((ROOT / ".github/workflows").glob("*.yml"))]
    return [yaml.safe_load(each) for each in (*files, *documented_workflows())]


def test_other_actions_are_pinned() -> None:
    jobs = [job for each in workflows() for job in each["jobs"].values()]
    steps = [*STEPS, *(step for job in jobs for step in job["steps"])]
    used = [each["uses"] for each in steps if "uses" in each]
    assert len(used) > 10
    assert all(re.fullmatch(r"[\w-]+(/[\w-]+)+@[0-9a-f]{40}", each) for each in used)


def test_workflows_have_only_the_permissions_that_they_need() -> None:
    for each in workflows():
        assert each["permissions"] == {}
        for job in each["jobs"].values():
            assert "write" not in {**job["permissions"], "security-events": "", "id-token": ""}.values()


def test_files_of_the_project_have_one_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert citation["version"] == CHANGELOG_VERSIONS[0].partition(" ")[0]
    assert citation["repository-code"] == project["urls"]["Repository"]


def test_changelog_is_short_until_the_first_release() -> None:
    assert CHANGELOG_VERSIONS[-1].startswith("0.1.0 - ")
    assert len(CHANGELOG[CHANGELOG.index("## 0.1.0") :].splitlines()) <= 60


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
def test_pages_say_how_to_install_before_the_first_release(page: Path) -> None:
    text = page.read_text("utf-8")
    if "unreleased" in CHANGELOG_VERSIONS[-1] and re.search(r"pip install\s+'?opshift", text):
        assert re.search(r"[Bb]efore the first release|No release is on the package index yet", text)


@needs_bash
@pytest.mark.parametrize(("tag", "code"), [("v1.2.3", 0), ("v1.2", 1), ("v99.0", 1)])
def test_release_compares_tag_with_version(tag: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "opshift-1.2.3.tar.gz").touch()
    release = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text("utf-8"))
    (command,) = (
        step["run"] for step in release["jobs"]["build"]["steps"] if "Compare" in step.get("name", "")
    )
    assert BASH
    done = subprocess.run(
        [BASH, "-e", "-c", command], cwd=tmp_path, env={**os.environ, "GITHUB_REF_NAME": tag}, check=False
    )
    assert done.returncode == code


def test_issue_forms_have_fields() -> None:
    for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"):
        form = yaml.safe_load(path.read_text("utf-8"))
        assert path.name == "config.yml" or {"name", "description", "body"} <= form.keys()


@pytest.mark.full
def test_zizmor_finds_nothing(tmp_path: Path) -> None:
    zizmor = shutil.which("zizmor", path=str(Path(sys.executable).parent))
    if zizmor is None:
        pytest.skip("zizmor is not installed")
    folder = tmp_path / ".github" / "workflows"
    folder.mkdir(parents=True)
    for position, text in enumerate(documented_workflows()):
        (folder / f"documented{position}.yml").write_text(text, encoding="utf-8")
    sources = [ROOT / ".github", ROOT / "action.yml", tmp_path]
    done = subprocess.run(
        [zizmor, "--offline", "--no-progress", *sources], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


class Job:
    """Job of GitHub Actions that runs the scripts of the action's steps."""

    def __init__(self, folder: Path, **inputs: str) -> None:
        self.workspace = folder
        self.temporary = folder.parent / "runner"
        self.temporary.mkdir(exist_ok=True)
        defaults = {name: str(each["default"]) for name, each in ACTION["inputs"].items()}
        self.values = {f"inputs.{name}": value for name, value in defaults.items()}
        self.values |= {f"inputs.{name.replace('_', '-')}": value for name, value in inputs.items()}
        self.values |= {"github.action_path": str(ROOT)}

    def run(self, name: str) -> subprocess.CompletedProcess[str]:
        """Run a step; its outputs become values of expressions."""
        (step,) = (each for each in STEPS if each["id"] == name)
        output, summary = self.temporary / "output", self.temporary / "summary.md"
        output.write_text("", encoding="utf-8")
        script = self.temporary / "script.sh"
        script.write_text(step["run"], encoding="utf-8")
        assert BASH
        done = subprocess.run(
            [BASH, "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.workspace,
            env={
                **os.environ,
                **{key: self._expand(text) for key, text in step["env"].items()},
                "RUNNER_TEMP": str(self.temporary),
                "GITHUB_OUTPUT": str(output),
                "GITHUB_STEP_SUMMARY": str(summary),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        for key, value in read_outputs(output.read_text("utf-8")).items():
            self.values[f"steps.{name}.outputs.{key}"] = value
        return done

    @property
    def summary(self) -> str:
        """The summary of the job."""
        return (self.temporary / "summary.md").read_text("utf-8")

    def _expand(self, text: str) -> str:
        def value(match: re.Match[str]) -> str:
            alternatives = (each.strip() for each in match[1].split("||"))
            found = (each[1:-1] if each[0] == "'" else self.values.get(each, "") for each in alternatives)
            return next(filter(None, found), "")

        return EXPRESSION.sub(value, text)


def read_outputs(text: str) -> Mapping[str, str]:
    """Return the outputs of a step, in both forms that GitHub reads."""
    outputs = {}
    lines = iter(text.splitlines())
    for line in lines:
        if "<<" in line:
            key, end = line.split("<<")
            outputs[key] = "\n".join(iter(lambda: next(lines), end))
        else:
            key, _, outputs[key] = line.partition("=")
    return outputs


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """Write a folder with the program `opshift`, as the step that installs it does."""
    folder = tmp_path / "environment" / "bin"
    folder.mkdir(parents=True)
    program = folder / "opshift"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m opshift "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return folder


@needs_bash
def test_action_reports_findings(zoo: Path, installed: Path) -> None:
    job = Job(zoo)
    job.values["steps.install.outputs.folder"] = str(installed)
    done = job.run("run")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("::error file=sub folder/wrong.onnx,line=1,title=node.operator::")
    assert "1 file with errors" in job.summary
    assert (job.values["steps.run.outputs.exit-code"], job.values["steps.run.outputs.sarif-file"]) == (
        "1",
        "opshift.sarif",
    )
    (result,) = read_run((zoo / "opshift.sarif").read_text("utf-8"))["results"]
    assert result["ruleId"] == "node.operator"


@pytest.mark.some_cases(4)
@needs_bash
@pytest.mark.parametrize(
    ("inputs", "code", "output"),
    [
        ({"command": "plan", "target": "17\n", "fail_on": "never"}, 0, "title=operator.not-introduced"),
        ({"command": "plan", "target": "onnxruntime-1.14\r\nai.onnx.ml=3", "paths": "good.onnx"}, 0, ""),
        (
            {"command": "plan", "target": "11", "paths": "good.onnx", "format": "text"},
            0,
            "All nodes can be converted",
        ),
        ({"command": "doctor", "paths": "sub folder\n\ngood.onnx\n"}, 1, "title=declared.opset"),
        ({"command": "doctor", "paths": "*.onnx"}, 0, ""),
        ({"command": "reach", "paths": "good.onnx", "format": "json"}, 0, '"highest": '),
        ({"command": "runs", "paths": "good.onnx", "runtime": "onnxruntime-1.31\n"}, 0, ""),
        ({"command": "runs", "paths": "good.onnx", "runtime": "tract-0.23.9\nonnxruntime-1.20.1"}, 0, ""),
        ({"command": "runs", "runtime": "tract-0.23.9"}, 1, "title="),
        ({"command": "plan", "target": "17", "paths": "good.onnx", "allow": "aproximate"}, 2, "approximate"),
        ({"paths": "good.onnx", "opsets": "../none"}, 2, "../none"),
        ({"paths": "none/*.onnx", "if_empty": "ignore"}, 0, ""),
        ({"paths": "none*.onnx"}, 2, "matches no files"),
        ({"if_empty": "skip"}, 2, "the input if-empty must be"),
        ({"paths": "none.onnx"}, 2, "none.onnx: file does not exist"),
        ({"paths": "--version"}, 2, "--version: file does not exist"),
        ({"paths": "none.onnx", "fail_on": "never"}, 2, "none.onnx: file does not exist"),
        ({"command": "convert"}, 2, "the input command must be"),
        ({"fail_on": "always"}, 2, "the input fail-on must be"),
        ({"format": "yaml"}, 2, "'yaml' is not one of"),
    ],
)
def test_inputs_of_action(zoo: Path, installed: Path, inputs: dict[str, str], code: int, output: str) -> None:
    job = Job(zoo, sarif_file="", **inputs)
    job.values["steps.install.outputs.folder"] = str(installed)
    done = job.run("run")
    assert done.returncode == code, done.stdout + done.stderr
    assert output in done.stdout + done.stderr
    assert list(zoo.glob("*.sarif")) == []


@pytest.mark.some_cases(4)
@needs_bash
@pytest.mark.parametrize(
    "name", ["command", "paths", "target", "runtime", "opsets", "allow", "format", "sarif_file", "fail_on"]
)
@pytest.mark.parametrize(
    "text", ["x; touch injected", "$(touch injected)", "`touch injected`", '"; touch injected; "']
)
def test_inputs_of_action_cannot_run_commands(zoo: Path, installed: Path, name: str, text: str) -> None:
    job = Job(zoo, **{name: text})
    job.values["steps.install.outputs.folder"] = str(installed)
    assert job.run("run").returncode == 2
    assert not (zoo / "injected").exists()


@needs_bash
def test_action_installs_its_own_sources(zoo: Path, tmp_path: Path) -> None:
    stub = tmp_path / "python"
    stub.write_text(
        '#!/bin/sh\nif [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; fi\necho "$@"\n',
        encoding="utf-8",
    )
    stub.chmod(0o755)
    job = Job(zoo)
    job.values["steps.python.outputs.python-path"] = str(stub)
    done = job.run("install")
    assert done.returncode == 0, done.stderr
    environment = job.temporary / "opshift"
    assert done.stdout.splitlines() == [
        f"-m venv {environment}",
        f"-m pip install --quiet --require-hashes -r {ROOT}/tools/locks/action.txt",
        f"-m pip install --quiet --no-deps --no-build-isolation {ROOT}",
    ]
    assert job.values["steps.install.outputs.folder"] == f"{environment}/bin"
