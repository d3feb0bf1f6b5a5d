"""The transports for httpx2 clients, such as those of openai-python 3."""

import httpx2

from ._async import AsyncExchange, AsyncTransport
from ._library import Library
from ._sync import SyncExchange, SyncTransport

__all__ = ["AsyncResumableTransport", "ResumableTransport"]

_LIBRARY = Library.of(httpx2)


class _SyncExchange(SyncExchange, httpx2.SyncByteStream):
    pass


class _AsyncExchange(AsyncExchange, httpx2.AsyncByteStream):
    pass


class ResumableTransport(SyncTransport[httpx2.BaseTransport], httpx2.BaseTransport):
    """`holdfast_client.ResumableTransport`, for `httpx2.Client`."""

    _library = _LIBRARY
    _exchange = _SyncExchange
    _default = httpx2.HTTPTransport


class AsyncResumableTransport(AsyncTransport[httpx2.AsyncBaseTransport], httpx2.AsyncBaseTransport):
    """`holdfast_client.AsyncResumableTransport`, for `httpx2.AsyncClient`."""

    _library = _LIBRARY
    _exchange = _AsyncExchange
    _default = httpx2.AsyncHTTPTransport
