"""Object store for trials: moto's S3 on loopback in a separate process, which records each request.

    python -m zoos.s3_server --port 5555 --log requests.jsonl

A line of the log has the method, the path with its query, the status, and the bytes of the bodies that the
server received and sent. The server counts: a client could miss requests of other processes.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote
from urllib.request import urlopen

ACCESS = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_DEFAULT_REGION": "us-east-1"}


class Request(NamedTuple):
    """Recorded request, with the sizes of both bodies."""

    method: str
    path: str
    query: str
    copies: bool
    status: int
    received: int
    sent: int

    @property
    def kind(self) -> str:
        """Name of the S3 operation."""
        if self.copies:
            return "UploadPartCopy" if "partNumber" in self.query else "CopyObject"
        if self.method == "PUT" and "partNumber" in self.query:
            return "UploadPart"
        if self.method == "POST":
            operations = {"uploads": "CreateMultipartUpload", "uploadId": "CompleteMultipartUpload"}
            return operations.get(self.query.partition("=")[0], "POST")
        if self.method == "GET" and self.path.strip("/").count("/") == 0:
            return "LIST"
        return self.method

    @property
    def writes(self) -> bool:
        """Whether the request created an object."""
        return self.status == 200 and self.kind in {"PUT", "CopyObject", "CompleteMultipartUpload"}


class Server(NamedTuple):
    """Running server."""

    url: str
    log: Path

    def environment(self) -> dict[str, str]:
        """Return the variables with which boto3 and s3fs use this server."""
        return {**ACCESS, "AWS_ENDPOINT_URL": self.url}

    def requests(self) -> Iterator[Request]:
        """Yield the requests that the server has answered."""
        with self.log.open() as lines:
            yield from (Request(*json.loads(line)) for line in lines if line.endswith("\n"))


@contextmanager
def s3_server(log: Path) -> Iterator[Server]:
    """Run the server until the end of the block, and set the variables of its clients."""
    port = _free_port()
    command = [sys.executable, "-m", "zoos.s3_server", "--port", str(port), "--log", str(log)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "PYTHONWARNINGS": "ignore"}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    server = Server(f"http://127.0.0.1:{port}", log)
    before = {name: os.environ.get(name) for name in server.environment()}
    try:
        _wait_until_ready(server.url, process)
        os.environ.update(server.environment())
        yield server
    finally:
        process.kill()
        process.wait()
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        try:
            urlopen(f"{url}/moto-api/").close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise SystemExit(f"the server at {url} did not start")


Environ = dict[str, Any]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


def record(application: Application, log: Path) -> Application:
    """Return an application that also writes a line for each request of the store."""
    file = log.open("ab", buffering=0)  # one write for each line, because threads write them

    def answer(environ: Environ, start: Callable[..., Any]) -> Iterable[bytes]:
        status = ""

        def note(line: str, *arguments: Any) -> Any:
            nonlocal status
            status = line.partition(" ")[0]
            return start(line, *arguments)

        body = list(application(environ, note))
        sent = sum(map(len, body)) if environ["REQUEST_METHOD"] != "HEAD" else 0
        path, query = unquote(environ["PATH_INFO"]), environ["QUERY_STRING"]
        if not path.startswith("/moto-api"):
            received = int(
                environ.get("HTTP_X_AMZ_DECODED_CONTENT_LENGTH") or environ.get("CONTENT_LENGTH") or 0
            )
            copies = "HTTP_X_AMZ_COPY_SOURCE" in environ
            request = Request(environ["REQUEST_METHOD"], path, query, copies, int(status), received, sent)
            file.write(f"{json.dumps(request)}\n".encode())
        return body

    return answer


def main() -> None:
    """Serve until the process is killed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--port", type=int, default=5555)
    parser.add_argument("--log", type=Path, required=True)
    options = parser.parse_args()
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, run_simple

    class Handler(WSGIRequestHandler):
        """Handler of requests that keeps connections open and writes no log."""

        protocol_version = "HTTP/1.1"  # clients keep their connections

        def log_request(self, *_: object) -> None:
            pass

    application = record(DomainDispatcherApplication(create_backend_app), options.log)
    run_simple("127.0.0.1", options.port, application, threaded=True, request_handler=Handler)


if __name__ == "__main__":
    main()
