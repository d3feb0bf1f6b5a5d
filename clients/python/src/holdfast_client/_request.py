"""The requests to replicas on behalf of one application, all with its own credential."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from ._options import Options
from ._steps import Call, Headers
from ._wires import Wire, wire_at

#: A caller that closes a response doesn't want to wait.
CANCEL_S = 2.0

_JSON = (b"content-type", b"application/json")
#: Compressed events can't be separated as they arrive.
_PLAIN = (b"accept-encoding", b"identity")
_RESUMABLE = (b"holdfast-resume", b"1")

#: Headers of the message, not of the run.
_MESSAGE_HEADERS = (b"content-length", b"transfer-encoding")
#: Headers of the request that began the run: after that, the path names the run.
_BEGINNING_HEADERS = (b"content-type", b"idempotency-key", b"holdfast-run-id")

_RUNS_PATH = "/holdfast/v1/runs"


@dataclass(frozen=True)
class WireRequest:
    """The application's request on one of the wires."""

    url: str
    headers: Headers
    body: bytes
    wire: Wire
    #: The root of the replica or load balancer that the application named.
    root: str
    #: Whether the application wants a stream.
    is_stream: bool

    @staticmethod
    def of(url: str, headers: Headers, body: bytes) -> WireRequest | None:
        """None if it's on none of the wires."""
        parts = urlsplit(url)
        at = wire_at(parts.path)
        if not at:
            return None
        wire, prefix = at
        root = f"{parts.scheme}://{parts.netloc}{prefix}"
        return WireRequest(url, headers, body, wire, root, _asks_for_stream(body))


def may_be_ours(method: str, url: str, headers: Headers) -> bool:
    """Whether the body is worth checking. With `Last-Event-ID` an application resumes by itself."""
    is_on_wire = method == "POST" and wire_at(urlsplit(url).path) is not None
    return is_on_wire and _header(headers, b"last-event-id") is None


def _asks_for_stream(body: bytes) -> bool:
    # Bodies can be large, and many without a stream don't contain the word.
    if b'"stream"' not in body:
        return False
    try:
        fields = json.loads(body)
    except ValueError:
        return False
    return isinstance(fields, dict) and fields.get("stream") is True


class RunRequests:
    """The requests of one run, to any replica, by its root."""

    def __init__(self, request: WireRequest, options: Options) -> None:
        self._request = request
        self._limits_s = dict.fromkeys(("connect", "read", "write"), min(options.idle_s, options.give_up_s))
        # If the request is repeated, its key leads to the same run.
        key = _header(request.headers, b"idempotency-key") or f"holdfast-{secrets.token_hex(16)}".encode()
        self._key = (b"idempotency-key", key)
        run = _header(request.headers, b"holdfast-run-id")
        #: The run that the application named.
        self.run = run.decode("latin-1") if run else None

    def original(self, root: str) -> Call:
        """The application's own request."""
        asked = self._request
        query = urlsplit(asked.url).query
        elsewhere = f"{root}/v1{asked.wire.path}" + (f"?{query}" if query else "")
        url = asked.url if root == asked.root else elsewhere
        if not asked.is_stream:
            return Call("POST", url, self._headers(root, self._key), asked.body, {})
        headers = self._headers(root, self._key, _PLAIN, _RESUMABLE)
        return Call("POST", url, headers, asked.body, self._limits_s)

    def rest(
        self,
        root: str,
        run: str,
        cursor: int,
        tail: list[str],
        last_id: bytes | None,
        *,
        is_whole: bool = False,
    ) -> Call:
        """Asks for the rest of a run after event `cursor`, whose id is `last_id`.

        `is_whole`: includes the application's own request.
        """
        # Its epoch distinguishes events that were lost with a log from those that replaced them.
        last = [(b"last-event-id", last_id)] if last_id else []
        headers = self._headers(root, _PLAIN, _RESUMABLE, _JSON, *last, without=_BEGINNING_HEADERS)
        fields: dict[str, object] = {"cursor": cursor, "tail": tail}
        if is_whole:
            fields["request"] = {
                "path": f"/v1{self._request.wire.path}",
                "body": self._request.body.decode(),
            }
        body = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
        return Call("POST", f"{_run_url(root, run)}/resume", headers, body.encode(), self._limits_s)

    def cancellation(self, root: str, run: str | None) -> Call:
        """`run` is None while the run's id is unknown: the key identifies it then."""
        url = f"{root}{_RUNS_PATH}" if run is None else _run_url(root, run)
        key = (self._key,) if run is None else ()
        without = (*_BEGINNING_HEADERS, _RESUMABLE[0])
        headers = self._headers(root, _PLAIN, *key, without=without)
        limits_s = dict.fromkeys(("connect", "read", "write", "pool"), CANCEL_S)
        return Call("DELETE", url, headers, b"", limits_s)

    def _headers(self, root: str, *ours: tuple[bytes, bytes], without: tuple[bytes, ...] = ()) -> Headers:
        """Includes all of the application's headers, except those that `ours` replace: a replica that takes a run over
        sends them to the provider.
        """
        # Another replica has another name.
        host = () if root == self._request.root else (b"host",)
        left_out = {*_MESSAGE_HEADERS, *without, *host, *(name for name, _ in ours)}
        return [
            *((name, value) for name, value in self._request.headers if name.lower() not in left_out),
            *ours,
        ]


def _run_url(root: str, run: str) -> str:
    return f"{root}{_RUNS_PATH}/{quote(run, safe='')}"


def _header(headers: Headers, name: bytes) -> bytes | None:
    return next((value for key, value in headers if key.lower() == name), None)
