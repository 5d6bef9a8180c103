"""Credentials of locations in messages of libraries, which nothing shows."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from support.small_models import save
from typer.testing import CliRunner

from opshift.cli.main import app
from opshift.model.errors import InvalidModel, OpshiftError
from opshift.model.locations import without_secrets, without_secrets_of
from opshift.stores.find_models import FoundModel, find_models

MESSAGES = {
    "user and password": ("s3://bob:sekret@zoo/x", 'name "bob:sekret@zoo"', 'name "***@zoo"'),
    "path": ("github://u:sekret@r/x", "/repos/u/sekret/git/trees/r", "/repos/***/***/git/trees/r"),
    "address": ("tcp://u:sekret@h:1", "invalid address 'u:sekret@h:1'", "invalid address '***@h:1'"),
    "place with a URL": ("--dask tcp://u:sekret@h:1", "no u:sekret@h:1", "no ***@h:1"),
    "address without a scheme": ("u:sekret@h:1", "no u:sekret@h:1", "no ***@h:1"),
    "letter": ("s3://u:sekret@zoo/x", "u is unknown: u, suu", "*** is unknown: ***, suu"),
    "short password": ("s3://bob:pw@zoo/x", "pw and spw", "*** and spw"),
    "password in a word": ("s3://bob:sekret@zoo/x", "xsekret1", "x***1"),
    "other case": ("s3://Bob:SeKret@zoo/x", "bob and sekret", "*** and ***"),
    "encoded": ("s3://bob:a%2Fb%20cd@zoo/x", "'a/b cd' a%2fb%20cd a/b%20cd", "'***' *** ***"),
    "decoded": ("s3://bob:sek ret@zoo/x", "sek%20ret sek+ret? sek", "*** ***+***? ***"),
    "slash": ("http://bob:se/kret@zoo/x", "port 'se', host kret@zoo", "port '***', host ***@zoo"),
    "question mark": ("http://bob:se?kret@zoo/x", "port 'se', query kret@zoo", "port '***', query ***@zoo"),
    "header of HTTP": ("http://u:sekret@h/x", "Basic dTpzZWtyZXQ=", "Basic ***"),
    "token": ("https://ghp_123@h/x", "for ghp_123", "for ***"),
    "signature": ("https://h/x?v=1&sig=ab%2Bcd%3D", "v=1, ab+cd= or ab%2Bcd%3D", "v=1, *** or ***"),
    "query without a name": ("https://h/x?0123456789abc", "/x%3F0123456789abc", "/x%3F***"),
    "no credentials": ("s3://zoo/x?versionId=0123456789abc", "zoo 0123456789abc", "zoo 0123456789abc"),
}


@pytest.mark.parametrize(("location", "message", "shown"), MESSAGES.values(), ids=MESSAGES)
def test_hides_credentials_of_a_location(location: str, message: str, shown: str) -> None:
    assert without_secrets_of(location, message) == shown


@pytest.mark.parametrize(("location", "message", "shown"), MESSAGES.values(), ids=MESSAGES)
def test_errors_hide_credentials_of_their_place(location: str, message: str, shown: str) -> None:
    place = location if "://" in location else f"tcp://{location}"
    error: OpshiftError = InvalidModel(message, place=place, remedy=message)
    for each in (error, pickle.loads(pickle.dumps(error))):
        assert (each.reason, each.remedy) == (shown, shown)


TEXTS = {
    "space": ("http://u:sek ret@h/m.onnx: refused", "http://***@h/m.onnx: refused"),
    "quote": ("http://u:se'k\"ret@h/m.onnx", "http://***@h/m.onnx"),
    "question mark": ("http://u:se?kret@h/m.onnx", "http://***@h/m.onnx"),
    "port": ("http://host:80 sent a@b", "http://host:80 sent a@b"),
    "port and reason": ("tcp://host:80: no address a@b", "tcp://host:80: no address a@b"),
    "place and reason": ("s3://zoo: unknown a@b", "s3://zoo: unknown a@b"),
    "two URLs": ("http://h:x and http://u:p@h/m", "http://h:x and http://***@h/m"),
    "two strings of JSON": ('{"a": "http://h:x", "b": "c@d"}', '{"a": "http://h:x", "b": "c@d"}'),
    "query with an address": ("https://h/m?v=a@b", "https://h/m?v=a@b"),
}


@pytest.mark.parametrize(("text", "shown"), TEXTS.values(), ids=TEXTS)
def test_hides_passwords_that_are_not_encoded(text: str, shown: str) -> None:
    assert without_secrets(text) == shown
    assert without_secrets(shown) == shown


# fsspec keeps stores: one without the endpoint and the credentials of the server would fail later tests
pytestmark = pytest.mark.usefixtures("server")


def test_takes_linear_time() -> None:
    # quadratic time would take minutes
    without_secrets_of("http://u:sekret@h/" + "a" * 100_000, "sek " * 100_000)
    without_secrets_of("http://u:" + "".join(f"{part}/" for part in range(50_000)) + "@h", "1" * 100_000)


COMMANDS = {
    "object": "plan s3://u:sekret@zoo/x.onnx -t 17",
    "folder": "plan s3://u:sekret@zoo/ -t 17",
    "bucket": "plan s3://u:sekret@zoo -t 17",
    "glob": "plan s3://u:sekret@zoo/*.onnx -t 17",
    "list": "plan --files-from LIST -t 17",
    "output": "convert MODEL s3://u:sekret@zoo/x.onnx -t 17",
    "output by force": "convert MODEL s3://u:sekret@zoo/x.onnx -t 17 --force",
    "output folder": "convert MODEL --out s3://u:sekret@zoo/x -t 17",
    "source of a batch": "convert s3://u:sekret@zoo/x.onnx --out OUT -t 17",
    "ledger": "convert MODEL --out OUT -t 17 --ledger s3://u:sekret@zoo/x",
    "list to a folder": "convert --files-from LIST --out OUT -t 17 --report OUT/report.html",
    "report": "convert --files-from LIST --out OUT -t 17 --report OUT/report.json",
    "ledger of plan": "plan MODEL MODEL -t 17 --ledger s3://u:sekret@zoo/x",
    "scheduler": "convert MODEL --out OUT -t 17 --dask tcp://u:sekret@127.0.0.1:1",
    "scheduler without a scheme": "convert MODEL --out OUT -t 17 --dask u:sekret@127.0.0.1:1",
    "check": "check s3://u:sekret@zoo/x.onnx",
    "inspect": "inspect s3://u:sekret@zoo/x.onnx",
    "web": "plan http://u:sek%20ret@127.0.0.1:1/x.onnx -t 17",
    "space": "plan http://u:sek␣ret@127.0.0.1:1/x.onnx -t 17",
    "slash": "plan http://u:sek/ret@127.0.0.1:1/x.onnx -t 17",
    "signature": "plan http://127.0.0.1:1/x.onnx?sig=sekret -t 17",
}


@pytest.mark.parametrize("form", ["text", "json", "sarif"])
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_commands_print_no_credentials(command: str, form: str, tmp_path: Path) -> None:
    (tmp_path / "list").write_text("s3://u:sekret@zoo/x.onnx\ns3://u:sekret@zoo/\n")
    model = save(tmp_path / "m.onnx")
    if form == "sarif" and not command.startswith("plan"):
        pytest.skip("the command has no such format")
    names = {"MODEL": str(model), "OUT": str(tmp_path / "out"), "LIST": str(tmp_path / "list")}
    for name, value in names.items():
        command = command.replace(name, value)
    arguments = [each.replace("␣", " ") for each in command.split()]
    result = CliRunner().invoke(app, [*arguments, "--format", form])
    assert result.exit_code in (1, 2), result.output
    files = [path.read_text() for path in (tmp_path / "out").glob("*.*")]
    assert len(files) == (2 if "--report" in command else len(files))
    for text in (result.output, result.stderr, *files):
        assert not [each for each in ("sek", "ret@", "'ret", '"ret') if each in text], text


NAMES = {
    "s3://u:sekret@zoo/a/x.onnx": "a/x.onnx",
    "http://u:se/kret@h/a/x.onnx?v=1": "a/x.onnx",
    "http://u:sekret@h": "",
    "s3://zoo/a@b.onnx": "a@b.onnx",
}


@pytest.mark.parametrize(("url", "relative"), NAMES.items(), ids=NAMES)
def test_names_of_outputs_have_no_credentials(url: str, relative: str) -> None:
    assert list(find_models(["-"], lines=[url])) == [FoundModel(url, relative)]
