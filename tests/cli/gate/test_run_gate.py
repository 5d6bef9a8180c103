"""`plan`, `check`, `reach`, `doctor` and `convert --dry-run` over several models."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE
from typing import IO, Any, cast

import onnx
import pytest
from cli.test_output import OPSHIFT, run_in_terminal
from support.unmeasured import unmeasured
from typer.testing import Result

Run = Callable[..., Result]
COMMANDS = [
    ["plan", "-t", "6"],
    ["check"],
    ["check", "-t", "6"],
    ["reach"],
    ["doctor"],
    ["doctor", "-t", "6"],
    ["convert", "-t", "6", "--dry-run"],
]


@pytest.fixture
def zoo(folder: Path, old_model: Path, new_model: Path) -> Path:
    """Write `zoo` with a convertible model, a broken one, one that opset 6 refuses and one of opset 6."""
    place = folder / "zoo"
    (place / "more").mkdir(parents=True)
    old_model.rename(place / "a.onnx")
    (place / "b.onnx").write_bytes(b"\x01\x02")
    new_model.rename(place / "more" / "c.onnx")
    model = onnx.load(place / "a.onnx")
    model.opset_import[0].version, model.ir_version = 6, 4
    onnx.save(model, place / "d.onnx")
    return place


def objects(result: Result) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the objects of the models, and the summary."""
    *models, last = map(json.loads, result.stdout.splitlines())
    assert list(last) == ["summary"]
    return models, last["summary"]


def test_prints_rows_causes_and_numbers(run: Run, zoo: Path) -> None:
    result = run("plan", "zoo", "-t", "6")
    assert result.exit_code == 1
    rows, _, causes = result.stdout.partition("\n\nCauses\n\n")
    assert [line.split("  ")[0] for line in rows.splitlines()] == [
        "result",
        "convertible",
        "failed",
        "unchanged",
        "refused",
    ]
    assert [line[35:] for line in rows.splitlines()] == [
        "model in zoo/",
        "a.onnx",
        "b.onnx  InvalidModel",
        "d.onnx",
        "more/c.onnx  operator.no-equivalent (2)",
    ]
    assert rows.splitlines()[1].split()[:5] == ["convertible", "10", "->", "6", "0"]
    assert (
        "\noperator.no-equivalent: 1 model, 2 findings\n"
        "  The target has no equivalent of the operator.\n"
        "  help: convert to opset 7 or later\n"
    ) in f"\n{causes}"
    assert "  more/c.onnx: graph, node 'sin1': ai.onnx.Sin:7: " in causes
    last = result.stdout.splitlines()[-1]
    assert last.startswith("4 models: 1 failed, 1 refused, 1 convertible, 1 unchanged (")


def test_plan_without_new_opsets_is_convertible_if_a_node_changes(run: Run, zoo: Path) -> None:
    node = onnx.helper.make_node("Gelu", ["x"], ["y"])
    x, y = (onnx.helper.make_tensor_value_info(each, 1, [2]) for each in "xy")
    graph = onnx.helper.make_graph([node], "g", [x], [y])
    for name in ("a", "c"):
        opsets = [onnx.helper.make_opsetid("", 20)]
        onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9), zoo / f"{name}.onnx")
    models, _ = objects(
        run("plan", "zoo/a.onnx", "zoo/c.onnx", "--without", "ai.onnx.Gelu", "--format", "json")
    )
    assert [each["result"] for each in models] == ["convertible", "convertible"]


@pytest.mark.some_cases(4)
@pytest.mark.parametrize(
    ("command", "jobs"),
    [
        pytest.param(each, jobs, id=" ".join((*each, "-j", str(jobs))))
        for jobs, each in (*((1, each) for each in COMMANDS), (2, COMMANDS[0]), (2, COMMANDS[2]))
    ],
)
def test_objects_are_those_of_single_models(run: Run, zoo: Path, command: list[str], jobs: int) -> None:
    name, *options = command
    several = run(name, "zoo", *options, "--jobs", str(jobs), "--format", "json")
    models, summary = objects(several)
    assert sorted(each["input"] for each in models) == [
        "zoo/a.onnx",
        "zoo/b.onnx",
        "zoo/d.onnx",
        "zoo/more/c.onnx",
    ]
    codes = set()
    for each in models:
        result = each.pop("result")
        single = run(name, each["input"], *options, "--format", "json")
        codes.add(single.exit_code)
        data = json.loads(single.stdout)
        assert each == {"input": each["input"], **(data["models"][0] if name == "check" else data)}
        assert summary["results"][result] > 0
    assert several.exit_code == max(codes)
    assert (summary["models"], summary["interrupted"]) == (4, False)
    assert sum(summary["results"].values()) == 4


def test_check_with_target_reports_refusals(run: Run, zoo: Path) -> None:
    result = run("check", "zoo/more/c.onnx", "-t", "6")
    assert result.exit_code == 1
    assert "\nvalid: 1 warning\n\nzoo/more/c.onnx\n" in result.stdout
    assert "operator.no-equivalent: " in result.stdout
    assert run("check", "zoo/a.onnx", "-t", "6").exit_code == 0
    models, summary = objects(run("check", "zoo/more", "zoo/a.onnx", "-t", "6", "--format", "json"))
    assert [each["result"] for each in models] == ["refused", "valid"]
    cause, _ = summary["causes"]
    assert (cause["rule"], cause["models"], cause["findings"]) == ("operator.no-equivalent", 1, 2)


def test_doctor_with_target_plans_models_with_correct_versions(run: Run, zoo: Path) -> None:
    model = onnx.load(zoo / "more" / "c.onnx")
    model.opset_import[0].version = 6
    onnx.save(model, zoo / "wrong.onnx")
    models, summary = objects(run("doctor", "zoo/*.onnx", "zoo/more", "-t", "6", "--format", "json"))
    results = {each["input"]: each["result"] for each in models}
    assert results == {
        "zoo/a.onnx": "correct",
        "zoo/b.onnx": "failed",
        "zoo/d.onnx": "correct",
        "zoo/wrong.onnx": "wrong",
        "zoo/more/c.onnx": "refused",
    }
    assert {each["input"] for each in models if "plan" in each} == {
        "zoo/a.onnx",
        "zoo/d.onnx",
        "zoo/more/c.onnx",
    }
    rules = {each["rule"] for each in summary["causes"]}
    assert {"declared.opset", "declared.node", "operator.no-equivalent"} <= rules


def test_reach_succeeds_with_limits(run: Run, zoo: Path) -> None:
    result = run("reach", "zoo/a.onnx", "zoo/more/c.onnx", "--format", "json")
    assert result.exit_code == 0
    models, summary = objects(result)
    assert [each["result"] for each in models] == ["unlimited", "limited"]
    assert [(each["rule"], each["level"]) for each in summary["causes"]] == [
        ("operator.no-equivalent", "note")
    ]


@pytest.mark.parametrize(
    ("names", "found"),
    [
        pytest.param(["zoo"], ["a", "b", "d", "more/c"], id="folder"),
        pytest.param(["zoo/[ad].onnx"], ["a", "d"], id="glob"),
        pytest.param(["zoo/more", "zoo/a.onnx"], ["more/c", "a"], id="folder and file"),
        pytest.param(["zoo/d.onnx", "--files-from", "list.txt"], ["d", "a", "more/c"], id="file and list"),
        pytest.param(["--files-from", "list.txt"], ["a", "more/c"], id="list"),
    ],
)
def test_accepts_names(run: Run, zoo: Path, names: list[str], found: list[str]) -> None:
    Path("list.txt").write_text("zoo/a.onnx\n\nzoo/more\n")
    models, _ = objects(run("doctor", *names, "--format", "json"))
    assert [each["input"] for each in models] == [f"zoo/{each}.onnx" for each in found]


@pytest.mark.parametrize("name", ["memory://gate", "memory://gate/*.onnx"])
def test_reads_models_of_a_store(run: Run, zoo: Path, name: str) -> None:
    store = pytest.importorskip("fsspec").filesystem("memory")
    for each in ("a.onnx", "b.onnx", "d.onnx"):
        store.pipe(f"/gate/{each}", (zoo / each).read_bytes())
    try:
        for _ in range(2):
            options = ("-t", "6", "--format", "json", "--ledger", "memory://ledger")
            models, summary = objects(run("plan", name, *options))
            assert [(each["input"], each["result"]) for each in models] == [
                ("memory://gate/a.onnx", "convertible"),
                ("memory://gate/b.onnx", "failed"),
                ("memory://gate/d.onnx", "unchanged"),
            ]
            assert summary["causes"][0]["examples"][0]["file"] == "memory://gate/b.onnx"
    finally:
        store.store.clear()


LISTS: dict[str, tuple[dict[str, str], list[str]]] = {
    "several lists": ({"q1": "zoo/a.onnx\n", "q2": "zoo/d.onnx\n"}, ["a", "d"]),
    "empty lines": ({"q1": "\n\nzoo/a.onnx\n\n"}, ["a"]),
}


@pytest.mark.parametrize(("lists", "found"), LISTS.values(), ids=LISTS)
def test_reads_lists(run: Run, zoo: Path, lists: dict[str, str], found: list[str]) -> None:
    for name, content in lists.items():
        Path(name).write_text(content)
    options = [part for name in lists for part in ("--files-from", name)]
    models, _ = objects(run("reach", *options, "--format", "json"))
    assert [each["input"] for each in models] == [f"zoo/{each}.onnx" for each in found]


EMPTY_LISTS: dict[str, tuple[str, str]] = {
    "no lines": ("", "list.txt: names no models"),
    "empty lines": ("\n\n", "list.txt: names no models"),
    "empty folder": ("empty\n", "empty: contains no *.onnx files"),
    "empty folder after a model": ("zoo/a.onnx\nempty\n", "empty: contains no *.onnx files"),
}


@pytest.mark.parametrize(("content", "message"), EMPTY_LISTS.values(), ids=EMPTY_LISTS)
def test_lists_without_models_are_wrong_usage(run: Run, zoo: Path, content: str, message: str) -> None:
    Path("empty").mkdir()
    Path("list.txt").write_text(content)
    result = run("reach", "--files-from", "list.txt")
    assert result.exit_code == 2
    assert f"error: {message}" in result.stderr
    assert run("reach", "--files-from", "list.txt", "--allow-empty").exit_code == 0
    result = run("convert", "--files-from", "list.txt", "-t", "17", "--out", "out", "--format", "json")
    assert (result.exit_code, len(result.stdout.splitlines())) == (2, 1)
    assert not Path("out").exists()


def test_missing_model_of_a_list_is_a_result(run: Run, zoo: Path) -> None:
    Path("list.txt").write_text("zoo/none.onnx\nzoo/a.onnx\n")
    result = run("plan", "--files-from", "list.txt", "-t", "17", "--format", "json")
    assert result.exit_code == 1
    models, _ = objects(result)
    assert [each["result"] for each in models] == ["failed", "convertible"]
    assert "No such file" in models[0]["reason"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["plan", "-t", "17"], "IN is not given", id="no name"),
        pytest.param(
            ["plan", "zoo", "none.onnx", "-t", "17"], "none.onnx: file does not exist", id="missing"
        ),
        pytest.param(["plan", "zoo", "-t", "99"], "99", id="unknown target"),
        pytest.param(["check", "zoo", "-t", "99"], "99", id="unknown target of a check"),
        pytest.param(["doctor", "zoo", "-t", "99"], "99", id="unknown target of a diagnosis"),
        pytest.param(["reach", "zoo", "--opsets", "none"], "none: does not exist", id="definitions"),
        pytest.param(["plan", "zoo", "-", "-t", "17"], "--files-from -", id="standard input among others"),
        pytest.param(["plan", "--files-from", "none", "-t", "17"], "none: file does not exist", id="list"),
        pytest.param(["plan", "zoo", "--report", "r.md", "-t", "17"], "describes one model", id="report"),
        pytest.param(["check", "none*.onnx"], "none*.onnx: matches no files", id="glob without files"),
        *(
            pytest.param(
                ["convert", "zoo", "-t", "17", "--dry-run", *option.split()],
                f"{option.split()[0]} has no effect with --dry-run",
                id=f"dry run with {option}",
            )
            for option in ("--verify", "--bump", "--external keep", "--skip-existing", "--dask a:1")
        ),
        pytest.param(
            ["convert", "zoo", "-t", "17", "--dry-run", "--out", "o", "--in-place"],
            "both --out and --in-place",
            id="two outputs",
        ),
        pytest.param(
            ["convert", "zoo/a.onnx", "zoo/d.onnx", "-t", "17", "--dry-run"], "already exists", id="output"
        ),
    ],
)
def test_refuses_wrong_usage(run: Run, zoo: Path, arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_reads_standard_input_in_this_process(zoo: Path) -> None:
    command = [*OPSHIFT, "plan", "-", "-t", "6", "--format", "github", "--jobs", "2"]
    with (zoo / "more" / "c.onnx").open("rb") as model:
        completed = subprocess.run(command, stdin=model, capture_output=True, check=False)
    assert completed.returncode == 1
    assert b"operator.no-equivalent" in completed.stdout


def test_error_of_a_later_name_ends_the_run(run: Run, zoo: Path) -> None:
    Path("empty").mkdir()
    result = run("doctor", "zoo/a.onnx", "empty", "--format", "json")
    assert result.exit_code == 2
    _, line, last = result.stdout.splitlines()
    summary = json.loads(line)["summary"]
    assert json.loads(last)["error"] == "UsageError"
    assert json.loads(last)["place"] == "empty"
    assert summary["interrupted"]
    assert summary["error"].startswith("empty: contains no *.onnx files")
    result = run("doctor", "zoo/a.onnx", "empty")
    assert result.stdout.splitlines()[-1].startswith("interrupted after 1 model: 1 correct (")
    assert "empty: contains no *.onnx files" in result.stderr


def test_dry_run_writes_nothing(run: Run, zoo: Path) -> None:
    before = sorted(zoo.rglob("*"))
    for names in (
        ["zoo/a.onnx", "new.onnx"],
        ["zoo/a.onnx"],
        ["zoo", "--out", "new"],
        ["zoo/a.onnx", "--in-place"],
    ):
        result = run("convert", *names, "-t", "17", "--dry-run")
        assert "10 -> 17" in result.stdout
    assert sorted(zoo.rglob("*")) == before
    assert os.listdir() == ["zoo"]


def test_dry_run_reads_two_folders(run: Run, zoo: Path) -> None:
    models, _ = objects(run("convert", "zoo/more", "zoo", "-t", "17", "--dry-run", "--format", "json"))
    assert [each["input"] for each in models][:2] == ["zoo/more/c.onnx", "zoo/a.onnx"]


ILLEGAL: dict[str, tuple[Callable[[onnx.ModelProto], object], int]] = {
    "legal": (lambda model: None, 0),
    "unknown attribute": (lambda model: model.graph.node[0].attribute.add(name="bogus", type=2), 1),
    "wrong shape": (lambda model: model.graph.output[0].type.tensor_type.shape.dim.add(dim_value=2), 1),
}


@pytest.mark.parametrize(("change", "code"), ILLEGAL.values(), ids=ILLEGAL)
def test_dry_run_checks_as_the_conversion(
    run: Run, zoo: Path, change: Callable[[onnx.ModelProto], object], code: int
) -> None:
    model = onnx.load(zoo / "a.onnx")
    change(model)
    onnx.save(model, "changed.onnx")
    options = ("-t", "17", "--check")
    converted = run("convert", "changed.onnx", "out.onnx", *options)
    planned = run("convert", "changed.onnx", "--dry-run", *options)
    assert (converted.exit_code, planned.exit_code) == (code, code)
    assert converted.stderr == planned.stderr
    several = run("convert", "changed.onnx", "zoo/d.onnx", "--out", "out", "--dry-run", *options)
    assert several.exit_code == code
    assert run("convert", "changed.onnx", "--dry-run", "-t", "17").exit_code == 0


def test_quiet_prints_rows_of_failures(run: Run, zoo: Path) -> None:
    result = run("plan", "zoo", "-t", "6", "--quiet")
    shown = result.stdout.partition("\n\n")[0].splitlines()
    assert [line.split()[0] for line in shown] == ["result", "failed", "refused"]
    assert "4 models" not in result.stdout


def test_name_cannot_control_the_terminal(run: Run, zoo: Path) -> None:
    (zoo / "b.onnx").rename(zoo / "\x1b[31mb\n.onnx")
    result = run("plan", "zoo", "-t", "6")
    assert "\x1b" not in result.stdout
    assert r"  \x1b[31mb\n.onnx  InvalidModel" in result.stdout


def test_worker_that_dies_is_a_result(run: Run, zoo: Path) -> None:
    kill = "import multiprocessing, os\nif multiprocessing.parent_process():\n    os._exit(3)\n"
    Path("adapters.py").write_text(kill)
    options = ("-t", "6", "--adapters", "adapters.py", "--format", "json", "--jobs", "2")
    models, _ = objects(run("plan", "zoo/a.onnx", "zoo/d.onnx", *options))
    assert sorted((each["input"], each["error"]) for each in models) == [
        ("zoo/a.onnx", "WorkerLost"),
        ("zoo/d.onnx", "WorkerLost"),
    ]
    assert models[0]["reason"] == "the worker that read the model failed: exit code 3"


@pytest.mark.some_cases(1)
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs POSIX")
@pytest.mark.parametrize(
    ("number", "jobs", "form"),
    [
        (signal.SIGINT, 1, "text"),
        (signal.SIGTERM, 1, "json"),
        (signal.SIGINT, 2, "json"),
        (signal.SIGTERM, 2, "text"),
    ],
    ids=str,
)
def test_interrupted_run_prints_its_summary(zoo: Path, number: signal.Signals, jobs: int, form: str) -> None:
    Path("list.txt").write_text("zoo/a.onnx\nzoo/b.onnx\n" * 100_000)
    arguments = ["plan", "--files-from", "list.txt", "-t", "6", "--format", form, "--jobs", str(jobs)]
    command = [*OPSHIFT, *arguments]
    with subprocess.Popen(command, stdout=PIPE, stderr=PIPE, env=unmeasured()) as process:
        output = cast("IO[bytes]", process.stdout)
        first = [output.readline() for _ in range(5)]
        process.send_signal(number)
        rest = output.read()
        message = b"error: interrupted" if number == signal.SIGINT else b""
        assert cast("IO[bytes]", process.stderr).read().strip() == message
    assert process.returncode == 128 + number
    lines = rest.splitlines()
    if form == "text":
        assert lines[-1].startswith(b"interrupted after ")
    else:
        summary = json.loads(lines[-1])["summary"]
        assert summary["interrupted"]
        assert summary["models"] == len(first) + len(lines) - 1


def test_first_result_precedes_the_end_of_the_list(zoo: Path) -> None:
    command = [*OPSHIFT, "plan", "--files-from", "-", "-t", "6"]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE) as process:
        source, output = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
        source.write(b"zoo/a.onnx\n")
        source.flush()
        assert b"result" in output.readline()
        assert b"zoo/a.onnx" in output.readline()
        rest, _ = process.communicate(b"zoo/d.onnx\n", timeout=60)
    assert rest.splitlines()[-1].startswith(b"2 models: 1 convertible, 1 unchanged (")


def test_closed_pipe_ends_quietly(zoo: Path) -> None:
    Path("list.txt").write_text("zoo/b.onnx\n" * 100_000)
    command = f"{' '.join(OPSHIFT)} plan --files-from list.txt -t 6 | head -n 3"
    completed = subprocess.run(["bash", "-c", command], capture_output=True, check=False, timeout=60)
    assert completed.stdout.count(b"\n") == 3
    assert completed.stderr == b""


@pytest.mark.some_cases(1)
@pytest.mark.parametrize("width", [60, 120])
def test_terminal_gets_failures_first_and_fifty_other_models(zoo: Path, width: int) -> None:
    for position in range(60):
        (zoo / f"a{position:02}.onnx").hardlink_to(zoo / "a.onnx")
    (zoo / "z.onnx").write_bytes(b"\x01")
    output, code = run_in_terminal(width, "plan", "zoo", "-t", "6")
    assert code == 1
    assert output.count("convertible") == 50 + 1  # in rows and the summary
    assert " z.onnx" in output.partition("Causes")[0]
    assert output.index(" z.onnx") < output.index(" a.onnx")
    assert "... and 12 more models; --verbose prints all" in " ".join(output.split())
    output, _ = run_in_terminal(width, "plan", "zoo", "-t", "6", "--verbose")
    assert output.count("convertible") == 61 + 1


@pytest.mark.full
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux reports the memory")
def test_memory_does_not_grow_with_models(zoo: Path) -> None:
    script = (
        "import pathlib, sys\n"
        "from opshift.cli.main import app\n"
        "try:\n"
        "    app(sys.argv[1:])\n"
        "finally:\n"
        "    status = pathlib.Path('/proc/self/status').read_text()\n"
        "    print(status.partition('VmHWM:')[2].split()[0], file=sys.stderr)\n"
    )
    peaks = []
    for count in (50, 1000):
        Path("list.txt").write_text("zoo/a.onnx\nzoo/b.onnx\nzoo/d.onnx\nzoo/more/c.onnx\n" * (count // 4))
        command = [
            OPSHIFT[0],
            "-c",
            script,
            "plan",
            "--files-from",
            "list.txt",
            "-t",
            "6",
            "--format",
            "json",
        ]
        completed = subprocess.run(command, capture_output=True, check=False, timeout=100)
        assert len(completed.stdout.splitlines()) == count // 4 * 4 + 1
        peaks.append(int(completed.stderr) // 1024)
    assert peaks[1] < 300
    assert peaks[1] - peaks[0] < 15


DAMAGED = {
    "pointer.onnx": b"version https://git-lfs.github.com/spec/v1\noid sha256:aa\nsize 1\n",
    "other.onnx": b"version https://git-lfs.github.com/spec/v1\noid sha256:bb\nsize 2\n",
    "page.onnx": b"<!DOCTYPE html><html></html>",
    "empty.onnx": b"",
}


def test_groups_files_by_kind_with_a_remedy_each(run: Run, zoo: Path) -> None:
    for name, content in DAMAGED.items():
        (zoo / name).write_bytes(content)
    (zoo / "gone.onnx").symlink_to("nowhere.onnx")
    (zoo / "b.onnx").rename(zoo / "LOUD.ONNX")
    causes = run("plan", "zoo", "-t", "6").stdout.partition("Causes")[2]
    pointers = causes.partition("git lfs pull\n")[2].partition("\n\n")[0]
    assert pointers == "  other.onnx\n  pointer.onnx"
    assert "was not downloaded\n  help: download" in causes
    assert "gone.onnx: is a link to nowhere.onnx, which does not exist" in causes
    for name in ("page.onnx", "empty.onnx", "gone.onnx", "LOUD.ONNX"):
        assert re.search(rf"InvalidModel: 1 model, 1 finding\n  help: .*\n(  .*\n)?  {name}: ", causes)
