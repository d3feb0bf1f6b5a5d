"""What the synchronous and the asynchronous transport have in common."""

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
    #: Of a subclass: the library it is for, and what sends requests unless something else is given.
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
        """Raises `TypeError` or `ValueError`, naming the option at fault.

        transport: Sends the requests. A new `HTTPTransport` or `AsyncHTTPTransport` when absent.
        task: All requests are steps of it.
        endpoints: Roots or base URLs of the replicas to resume at, `http://a:8080` or `http://a:8080/v1`. They must
            share a store. When absent, everything goes to the URL of the request, behind which a load balancer may
            stand.
        max_retries: Answers in a row that bring no new event, after which the stream is given up. Connections that are
            refused do not count, nor do replicas that turn the request away: they have `give_up_s`. 0: nothing is ever
            asked again.
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
        if task is not None and not isinstance(task, Task):
            raise TypeError(f"task must be a Task, not {task!r}")
        self._task = task
        self._is_closed = False

    def _join(self, request: httpx.Request) -> None:
        """The request is a step of the task, if there is one."""
        if self._task is not None:
            self._task._join(self, request)

    def _may_be_ours(self, request: httpx.Request) -> bool:
        """Whether the body is worth a look."""
        return may_be_ours(request.method, str(request.url), request.headers.raw)

    def _course_of(self, request: httpx.Request) -> Course | None:
        """What is to become of a request that has its body; None if it goes through as it is."""
        asked = WireRequest.of(str(request.url), request.headers.raw, request.content)
        if asked and asked.is_stream:
            return Resumption(asked, self._options, self._endpoints, self._library.truncated)
        if asked and self._options.endpoints:
            return WholeAnswer(asked, self._options, self._endpoints, self._library.impatient)
        return None
