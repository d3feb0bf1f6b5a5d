"""httpx and httpx2 are one interface in two packages; this is the part that the transports use."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

import anyio
import httpx


@dataclass(frozen=True)
class Library:
    """Has httpx's types: httpx2 has the same classes with the same names."""

    request: type[httpx.Request]
    response: type[httpx.Response]
    byte_stream: type[httpx.ByteStream]
    #: Raised if a response ends before its answer does.
    truncated: Callable[[str], Exception]
    #: Raised if a caller still reads a closed response.
    closed: Callable[[str], Exception]
    #: Raised if the application's own timeout is over.
    impatient: type[Exception]
    #: Raised if the network or a replica failed a request.
    interruptions: tuple[type[Exception], ...]

    @staticmethod
    def of(module: ModuleType) -> Library:
        return Library(
            request=module.Request,
            response=module.Response,
            byte_stream=module.ByteStream,
            truncated=module.RemoteProtocolError,
            closed=module.ReadError,
            impatient=module.ReadTimeout,
            interruptions=(
                module.NetworkError,
                module.RemoteProtocolError,
                module.ProxyError,
                module.ConnectTimeout,
                module.ReadTimeout,
                module.WriteTimeout,
                # The library doesn't translate all errors of TLS.
                ssl.SSLError,
                anyio.EndOfStream,
            ),
        )
