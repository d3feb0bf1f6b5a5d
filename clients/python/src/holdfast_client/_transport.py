"""What the synchronous and the asynchronous transport have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar

import httpx

from ._endpoints import Endpoints
from ._library import Library
from ._options import BACKOFF_MAX_S, BACKOFF_S, GIVE_UP_S, IDLE_S, MAX_RETRIES, RETRY_AFTER_MAX_S, Options
from ._request import StreamRequest
from ._resumption import Resumption
from ._steps import Call, Interruption, Outcome, Reply, Result, Work

Inner = TypeVar("Inner")


class Transport(Generic[Inner]):
    #: Of a subclass: the library it is for, and what sends requests unless something else is given.
    _library: ClassVar[Library]
    _default: ClassVar[type[Any]]

    def __init__(
        self,
        *,
        transport: Inner | None = None,
        endpoints: Sequence[str] | None = None,
        max_retries: int = MAX_RETRIES,
        give_up_s: float = GIVE_UP_S,
        idle_s: float = IDLE_S,
        backoff_s: float = BACKOFF_S,
        backoff_max_s: float = BACKOFF_MAX_S,
        retry_after_max_s: float = RETRY_AFTER_MAX_S,
        cancel_on_close: bool = True,
    ) -> None:
        """Raises `TypeError` or `ValueError`, naming the option at fault.

        transport: Sends the requests. A new `HTTPTransport` or `AsyncHTTPTransport` when absent.
        endpoints: Roots or base URLs of the replicas to resume at, `http://a:8080` or `http://a:8080/v1`. They must
            share a store. When absent, everything goes to the URL of the request, behind which a load balancer may
            stand.
        max_retries: Requests in a row that bring no new event, after which the stream is given up.
        give_up_s: No request is begun when nothing has come from any replica for this long.
        idle_s: A connection on which nothing comes for this long counts as broken, unless the application has less
            patience. Replicas send a keep-alive every 10 s.
        backoff_s: Wait before the first retry, doubled for every further one that brings no new event.
        backoff_max_s: Longest wait before a retry.
        retry_after_max_s: A replica that asks for a longer wait is not waited for any longer than this.
        cancel_on_close: Whether closing a response before its end ends the run too. Otherwise the run goes on without
            its client for as long as the server's `resume.detached_ms` allows.
        """
        self._options = Options.check(
            endpoints=endpoints,
            max_retries=max_retries,
            give_up_s=give_up_s,
            idle_s=idle_s,
            backoff_s=backoff_s,
            backoff_max_s=backoff_max_s,
            retry_after_max_s=retry_after_max_s,
            cancel_on_close=cancel_on_close,
        )
        self._endpoints = Endpoints(self._options.endpoints)
        self._inner: Any = self._default() if transport is None else transport
        self._is_closed = False


class Exchange:
    """The steps of one run, in terms of a library."""

    def __init__(self, transport: Transport[Any], request: httpx.Request) -> None:
        """The request has its body."""
        self._transport = transport
        self._library = transport._library
        self._extensions = request.extensions
        asked = StreamRequest(str(request.url), request.headers.raw, request.content)
        self._resumption = Resumption(
            asked, transport._options, transport._endpoints, self._library.truncated
        )
        self._steps = self._resumption.steps()
        self._proceed: Callable[[], Work | Result] = partial(next, self._steps)
        #: The application closed the response, or broke off a step.
        self._is_left = False

    def _next_step(self) -> Work | Result | None:
        """None after the last one."""
        if self._is_abandoned:
            raise self._closed_error()
        proceed, self._proceed = self._proceed, partial(next, self._steps)
        try:
            return proceed()
        except StopIteration:
            return None

    def _succeed(self, outcome: Outcome) -> None:
        self._proceed = partial(self._steps.send, outcome)

    def _fail(self, error: Exception) -> None:
        self._proceed = partial(self._steps.throw, Interruption(error))

    @property
    def _is_abandoned(self) -> bool:
        """Nobody is there to go on for: closing a client must not make it send more."""
        return self._is_left or self._transport._is_closed

    def _closed_error(self) -> Exception:
        return self._library.closed("The response was closed before it was read to its end")

    def _build(self, call: Call) -> httpx.Request:
        extensions = dict(self._extensions)
        allowed_s = dict(extensions.get("timeout", {}))
        for part, limit_s in call.limits_s.items():
            given_s = allowed_s.get(part)
            allowed_s[part] = limit_s if given_s is None else min(given_s, limit_s)
        extensions["timeout"] = allowed_s
        return self._library.request(
            call.method, call.url, headers=call.headers, content=call.body, extensions=extensions
        )

    def _cancellation(self, after_fault: bool) -> httpx.Request | None:
        if self._is_abandoned or not self._transport._options.cancel_on_close:
            return None
        call = self._resumption.cancellation(after_fault=after_fault)
        return self._build(call) if call else None

    def _opened(self, response: httpx.Response) -> httpx.Response:
        """With the head of `response`, and this as its body."""
        headers = response.headers.copy()
        # It spoke of the bytes of one connection.
        headers.pop("content-length", None)
        return self._library.response(
            response.status_code,
            headers=headers,
            stream=self,  # type: ignore[arg-type] # subclasses are byte streams of the library
            extensions=response.extensions,
        )

    def _whole(self, response: httpx.Response, body: bytes) -> httpx.Response:
        """`response`, to be read once more."""
        return self._library.response(
            response.status_code,
            headers=response.headers,
            stream=self._library.byte_stream(body),
            extensions=response.extensions,
        )


def head_of(response: httpx.Response) -> Reply:
    return Reply(response.status_code, response.headers)
