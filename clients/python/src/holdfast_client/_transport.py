"""The common part of the synchronous and the asynchronous transport."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

import httpx

from ._endpoints import Endpoints
from ._library import Library
from ._options import BACKOFF_MAX_S, BACKOFF_S, GIVE_UP_S, IDLE_S, MAX_RETRIES, RETRY_AFTER_MAX_S, Options
from ._request import WireRequest, may_be_ours
from ._resumption import Resumption
from ._steps import Course
from ._task import Task
from ._whole import WholeAnswer

Inner = TypeVar("Inner")


class Transport(Generic[Inner]):
    #: Set by subclasses: their library, and the default inner transport.
    _library: ClassVar[Library]
    _default: ClassVar[type[Any]]

    def __init__(
        self,
        *,
        transport: Inner | None = None,
        task: Task | None = None,
        endpoints: Sequence[str] | None = None,
        max_retries: int = MAX_RETRIES,
        give_up_s: float = GIVE_UP_S,
        idle_s: float = IDLE_S,
        backoff_s: float = BACKOFF_S,
        backoff_max_s: float = BACKOFF_MAX_S,
        retry_after_max_s: float = RETRY_AFTER_MAX_S,
        cancel_on_close: bool = True,
    ) -> None:
        """Raises `TypeError` or `ValueError`, which names the wrong option.

        transport: Sends the requests. A new `HTTPTransport` or `AsyncHTTPTransport` when absent.
        task: All requests are steps of it.
        endpoints: Roots or base URLs of the replicas to resume at, `http://a:8080` or `http://a:8080/v1`. They must
            share a store. When absent, everything goes to the request's URL, which may be a load balancer's.
        max_retries: Gives the stream up after this many answers in a row without a new event. Refused connections and
            replicas that turn the request away don't count: `give_up_s` limits them. 0: never retry.
        give_up_s: Begins no request when nothing has arrived from any replica for this long.
        idle_s: Treats a connection as broken when nothing arrives for this long, unless the application's own timeout
            is shorter. Replicas send a keep-alive every 10 s.
        backoff_s: Wait before the first retry; doubles with each further one that brings no new event. While replicas
            are down, it lies between requests to different `endpoints`, and only a round of all of them doubles the
            next.
        backoff_max_s: Longest wait before a retry.
        retry_after_max_s: Longest wait that a replica can ask for.
        cancel_on_close: Whether closing a response before its end also ends its run. Otherwise the run continues
            without its client for as long as the server's `resume.detached_ms` allows.
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
        if task is not None and not isinstance(task, Task):
            raise TypeError(f"task must be a Task, not {task!r}")
        self._task = task
        self._is_closed = False

    def _join(self, request: httpx.Request) -> None:
        """Makes the request a step of the task, if there is one."""
        if self._task is not None:
            self._task._join(self, request)

    def _may_be_ours(self, request: httpx.Request) -> bool:
        """Whether the body is worth checking."""
        return may_be_ours(request.method, str(request.url), request.headers.raw)

    def _course_of(self, request: httpx.Request) -> Course | None:
        """The course of a request whose body is available; None if it passes unchanged."""
        asked = WireRequest.of(str(request.url), request.headers.raw, request.content)
        if asked and asked.is_stream:
            return Resumption(asked, self._options, self._endpoints, self._library.truncated)
        if asked and self._options.endpoints:
            return WholeAnswer(asked, self._options, self._endpoints, self._library.impatient)
        return None
