"""Replicas that answer as the contract says, out of one list of events, and break where they are told to.

Real sockets on 127.0.0.1: only those are reset, refused and closed the way a network does it.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Union

from answer import EVENTS, SHORTS, framed

WIRE_PATHS = [f"/v1{path}" for path in SHORTS]

#: Nothing in a test takes that long unless it hangs.
PATIENCE_S = 20


@dataclass(frozen=True)
class Break:
    """Where the body of a stream breaks off, and how.

    `reset`: RST. `cut`: FIN within a chunked body. `end`: as if all was said. `hang`: nothing more comes.
    """

    at_bytes: int
    how: str = "reset"


@dataclass(frozen=True)
class Refusal:
    """Answered instead of a stream."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    code: str = "shutting_down"


@dataclass(frozen=True)
class HangUp:
    """The request is read, and its connection reset."""


@dataclass(frozen=True)
class Silence:
    """The request is read, and never answered."""


#: What becomes of a request for a stream; None is all of it.
Fate = Union[Break, Refusal, HangUp, Silence, None]


@dataclass(frozen=True)
class Request:
    replica: int
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Run:
    question: str
    body: bytes
    events: list[str]
    requests: list[Request] = field(default_factory=list)
    #: The last one was told that it is not known what the run was asked for.
    wants_request: bool = False


class Replicas:
    """Any number of them, with one store."""

    def __init__(self, number: int = 2) -> None:
        self.requests: list[Request] = []
        #: What a client did that the contract does not allow.
        self.complaints: list[str] = []
        self.cancelled: list[str] = []
        #: Clients that left a stream that was hanging.
        self.left = 0
        self._fates: dict[str, deque[Fate]] = {}
        self._answers: dict[str, list[str]] = {}
        self._runs: dict[str, Run] = {}
        self._keys: dict[str, str] = {}
        self._changed = threading.Condition()
        self._when_cancelled = "answer"
        self._hanging: dict[str, socket.socket] = {}
        #: Those that are open.
        self.connections: set[socket.socket] = set()
        self._listeners = [socket.create_server(("127.0.0.1", 0), backlog=512) for _ in range(number)]
        self.roots = [f"http://127.0.0.1:{listener.getsockname()[1]}" for listener in self._listeners]
        for index, listener in enumerate(self._listeners):
            self._spawn(self._accept, index, listener)

    @property
    def base_url(self) -> str:
        return f"{self.roots[0]}/v1"

    def plan(self, question: str, *fates: Fate, events: list[str] = EVENTS) -> None:
        """What becomes of the requests of the run with this question, in order; of later ones nothing special."""
        self._fates[question] = deque(fates)
        self._answers[question] = events

    def requests_of(self, question: str) -> list[Request]:
        return [each for run in self._runs.values() if run.question == question for each in run.requests]

    def when_cancelled(self, do: str) -> None:
        """What is done with a request to cancel a run: `answer`, `ignore`, or `hang up` on whoever reads it, too."""
        self._when_cancelled = do

    def stop(self, replica: int) -> None:
        """From here on its port refuses."""
        listener = self._listeners[replica]
        # Closing alone does not wake the thread that accepts.
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()

    def wait_until(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, PATIENCE_S), "that never happened"

    def close(self) -> None:
        for replica in range(len(self._listeners)):
            self.stop(replica)
        with self._changed:
            for connection in self.connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            gone = self._changed.wait_for(lambda: not self.connections, PATIENCE_S)
        assert gone, "a connection was never closed"
        assert not self.complaints, self.complaints

    def __enter__(self) -> Replicas:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _spawn(self, target: Callable[..., None], *arguments: object) -> None:
        threading.Thread(target=target, args=arguments, daemon=True).start()

    def _accept(self, replica: int, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                # What waits for company when a connection is reset is lost.
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._changed:
                    self.connections.add(connection)
                self._spawn(self._serve, replica, connection)

    def _serve(self, replica: int, connection: socket.socket) -> None:
        try:
            # What a client leaves in the middle is its own business.
            with connection, suppress(ConnectionError), connection.makefile("rb") as reader:
                while self._answer(replica, connection, reader):
                    pass
        finally:
            with self._changed:
                self.connections.discard(connection)
                self._changed.notify_all()

    def _answer(self, replica: int, connection: socket.socket, reader: socket.SocketIO) -> bool:
        """Whether the connection can be used again."""
        request = read_request(replica, reader)
        if request is None:
            return False
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
        if "key" not in (request.headers.get("authorization", "")[7:], request.headers.get("x-api-key")):
            self._complain(f"no credential in {request}")
        _, _, run_path = request.path.partition("/holdfast/v1/runs/")
        run_id, _, action = run_path.partition("/")
        if request.path.split("?")[0] in WIRE_PATHS and request.method == "POST":
            return self._begin(connection, request)
        if action == "resume" and request.method == "POST":
            return self._resume(connection, request, run_id)
        if request.path == "/holdfast/v1/runs" and request.method == "DELETE":
            return self._cancel(connection, self._keys[request.headers["idempotency-key"]])
        if run_id and request.method == "DELETE":
            return self._cancel(connection, run_id)
        return send_json(connection, 200, {"path": request.path}, {})

    def _cancel(self, connection: socket.socket, run_id: str) -> bool:
        if self._when_cancelled == "ignore":
            connection.recv(1)
            return False
        if self._when_cancelled == "hang up":
            self._hanging[run_id].shutdown(socket.SHUT_RDWR)
        with self._changed:
            self.cancelled.append(run_id)
            self._changed.notify_all()
        return send_json(connection, 200, {"id": run_id}, {})

    def _begin(self, connection: socket.socket, request: Request) -> bool:
        fields = json.loads(request.body)
        if fields.get("stream") is not True:
            return self._tell_whole(connection, request, question_of(fields))
        if request.headers.get("holdfast-resume") != "1":
            self._complain(f"not resumable: {request}")
        question = question_of(fields)
        with self._changed:
            key = request.headers["idempotency-key"]
            run_id = self._keys.setdefault(key, f"run_{len(self._keys):04}")
            events = self._answers.get(question, EVENTS)
            run = self._runs.setdefault(run_id, Run(question, request.body, events))
        if run.body != request.body:
            self._complain(f"another body under the key of {run_id}")
        return self._stream(connection, request, run_id, 0)

    def _tell_whole(self, connection: socket.socket, request: Request, question: str) -> bool:
        fates = self._fates.get(question)
        fate = fates.popleft() if fates else None
        if isinstance(fate, HangUp):
            reset(connection)
            return False
        if isinstance(fate, Silence):
            return self._hang(connection)
        if isinstance(fate, Refusal):
            return refuse(connection, fate)
        return send_json(connection, 200, {"headers": request.headers}, {})

    def _resume(self, connection: socket.socket, request: Request, run_id: str) -> bool:
        fields = json.loads(request.body)
        cursor, tail = fields["cursor"], fields["tail"]
        run = self._runs[run_id]
        if tail != run.events[:cursor]:
            self._complain(f"at {cursor} the client has {tail}")
        path = run.requests[0].path.split("?")[0]
        wanted = {"path": path, "body": run.body.decode()} if run.wants_request else None
        if fields.get("request") != wanted:
            self._complain(f"the client sent {fields.get('request')} for {wanted}")
        run.wants_request = False
        return self._stream(connection, request, run_id, cursor)

    def _stream(self, connection: socket.socket, request: Request, run_id: str, after: int) -> bool:
        run = self._runs[run_id]
        run.requests.append(request)
        fates = self._fates.get(run.question)
        fate = fates.popleft() if fates else None
        if isinstance(fate, HangUp):
            reset(connection)
            return False
        if isinstance(fate, Silence):
            return self._hang(connection)
        if isinstance(fate, Refusal):
            run.wants_request = fate.code in ("not_resumable", "run_not_found")
            return refuse(connection, fate)
        if isinstance(fate, Break) and fate.how == "hang":
            self._hanging[run_id] = connection
        body = framed(run.events, run_id, after)
        head = f"HTTP/1.1 200 OK\r\nholdfast-run-id: {run_id}\r\ncontent-type: text/event-stream\r\n"
        connection.sendall(f"{head}transfer-encoding: chunked\r\n\r\n".encode())
        if fate is None or (fate.how == "reset" and fate.at_bytes >= len(body)):
            connection.sendall(chunk(body) + b"0\r\n\r\n")
            return True
        # More was to come: a chunk that is cut is not complete for the parser of HTTP either.
        sent = chunk(body, fate.at_bytes) if fate.how != "end" else chunk(body[: fate.at_bytes])
        connection.sendall(sent)
        if fate.how == "end":
            connection.sendall(b"0\r\n\r\n")
            return True
        if fate.how == "hang":
            return self._hang(connection)
        if fate.how == "reset":
            reset(connection)
        return False

    def _hang(self, connection: socket.socket) -> bool:
        """Until the client has closed its side."""
        with suppress(ConnectionError):
            connection.recv(1)
        with self._changed:
            self.left += 1
            self._changed.notify_all()
        return False

    def _complain(self, complaint: str) -> None:
        with self._changed:
            self.complaints.append(complaint)


def chunk(data: bytes, sent_bytes: int | None = None) -> bytes:
    """Of HTTP/1.1; only its first bytes, if they are given."""
    if not data:
        return b""
    end = b"\r\n" if sent_bytes is None else b""
    return f"{len(data):x}\r\n".encode() + data[:sent_bytes] + end


def refuse(connection: socket.socket, refusal: Refusal) -> bool:
    error = {"code": refusal.code, "message": "no"}
    return send_json(connection, refusal.status, {"error": error}, refusal.headers)


def question_of(fields: dict[str, Any]) -> str:
    """On whichever wire it is asked."""
    messages = fields.get("messages")
    if messages:
        return str(messages[0]["content"])
    return str(fields.get("input") or fields.get("prompt"))


def send_json(connection: socket.socket, status: int, fields: object, headers: dict[str, str]) -> bool:
    body = json.dumps(fields).encode()
    lines = [f"HTTP/1.1 {status} X", "content-type: application/json", f"content-length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
    return True


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def read_request(replica: int, reader: socket.SocketIO) -> Request | None:
    """None when the client has closed the connection."""
    line = reader.readline()
    if not line:
        return None
    method, path, _ = line.decode().split()
    headers: dict[str, str] = {}
    while True:
        name, separator, value = reader.readline().decode().strip().partition(":")
        if not separator:
            break
        headers[name.lower()] = value.strip()
    return Request(replica, method, path, headers, reader.read(int(headers.get("content-length", 0))))
