"""A streamed answer survives the death of the Holdfast replica that serves it.

    OpenAI(base_url=…, http_client=httpx.Client(transport=ResumableTransport(endpoints=[…])))
    AsyncOpenAI(base_url=…, http_client=httpx.AsyncClient(transport=AsyncResumableTransport(endpoints=[…])))

The same classes for httpx2, which openai-python 3 and anthropic 2 are built on, are in `holdfast_client.httpx2`.
"""

import httpx

from ._async import AsyncExchange, AsyncTransport
from ._calls import TaskTerms
from ._errors import LedgerError, ResultNotKeptError, UnknownCallError
from ._library import Library
from ._seen_task import TaskProgress, TaskStep
from ._sync import SyncExchange, SyncTransport
from ._task import Task, ToolContext

__all__ = [
    "AsyncResumableTransport",
    "LedgerError",
    "ResultNotKeptError",
    "ResumableTransport",
    "Task",
    "TaskProgress",
    "TaskStep",
    "TaskTerms",
    "ToolContext",
    "UnknownCallError",
]

_LIBRARY = Library.of(httpx)


class _SyncExchange(SyncExchange, httpx.SyncByteStream):
    pass


class _AsyncExchange(AsyncExchange, httpx.AsyncByteStream):
    pass


class ResumableTransport(SyncTransport[httpx.BaseTransport], httpx.BaseTransport):
    """Continues broken streamed answers where they broke, on any available replica.

    It resumes a broken response after the last event that the application has, and repeats a request that found no
    replica. It does so for every `POST` to `…/chat/completions`, `…/completions`, `…/messages` and `…/responses` with
    `stream: true`. Without a stream, if an endpoint doesn't accept such a request, the next endpoint gets it, if there
    are any. Everything else passes unchanged.
    """

    _library = _LIBRARY
    _exchange = _SyncExchange
    _default = httpx.HTTPTransport


class AsyncResumableTransport(AsyncTransport[httpx.AsyncBaseTransport], httpx.AsyncBaseTransport):
    """`ResumableTransport` for asynchronous clients."""

    _library = _LIBRARY
    _exchange = _AsyncExchange
    _default = httpx.AsyncHTTPTransport
