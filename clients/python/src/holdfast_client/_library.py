"""httpx and httpx2 are one interface in two packages; this is what is used of it."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

import anyio
import httpx


@dataclass(frozen=True)
class Library:
    """Typed as httpx is: httpx2 has the same classes under the same names."""

    request: type[httpx.Request]
    response: type[httpx.Response]
    byte_stream: type[httpx.ByteStream]
    #: What is raised where a response ends before its answer does.
    truncated: Callable[[str], Exception]
    #: What is raised for whoever still reads a response that was closed.
    closed: Callable[[str], Exception]
    #: What is raised where the application would wait no longer.
    impatient: type[Exception]
    #: What is raised where the network, or a replica, let a request down.
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
                # Not everything that TLS raises is translated by the library.
                ssl.SSLError,
                anyio.EndOfStream,
            ),
        )
