"""What a `Course` asks a transport to do, one step at a time, and what it gets in return."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Protocol, Union

Headers = list[tuple[bytes, bytes]]


@dataclass(frozen=True)
class Call:
    """A request to make."""

    method: str
    url: str
    headers: Headers
    body: bytes
    #: Limits for the parts of it that a library has timeouts for, if the application allows more.
    limits_s: Mapping[str, float]


@dataclass(frozen=True)
class Send:
    """Make this request; its response becomes the one at hand. Answered by a `Reply`."""

    call: Call


@dataclass(frozen=True)
class Read:
    """Read the response at hand. Answered by bytes, or None at its end."""


@dataclass(frozen=True)
class ReadWhole:
    """Read the response at hand to its end, and keep it. Answered by bytes."""


@dataclass(frozen=True)
class Drop:
    """Close the response at hand."""


@dataclass(frozen=True)
class Sleep:
    delay_s: float


@dataclass(frozen=True)
class PassOn:
    """Passes the response at hand to the application unchanged. The last step."""


@dataclass(frozen=True)
class Open:
    """Passes the head of the response at hand to the application; the body follows in `Deliver` steps."""


@dataclass(frozen=True)
class Deliver:
    """Whole events, for the application."""

    data: bytes


@dataclass(frozen=True)
class Reply:
    """The head of a response. The lookup of header names ignores case."""

    status: int
    headers: Mapping[str, str]


class Interruption(Exception):  # noqa: N818 - it's what happened, and not always an error
    """Thrown into a `Course` if a step failed because of the network."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


#: Steps that the transport takes by itself, and those that the application waits for.
Work = Union[Send, Read, ReadWhole, Drop, Sleep]
Result = Union[PassOn, Open, Deliver]
Outcome = Union[Reply, bytes, None]
Steps = Generator[Union[Work, Result], Outcome, None]


class Course(Protocol):
    """The course of one of the application's requests, without input and output of its own."""

    def steps(self) -> Steps:
        """Take them in order. Raises the error for the application when the request can't continue."""

    def cancellation(self, *, after_fault: bool = False) -> Call | None:
        """The request that ends the work if the application leaves now; None if closing is enough."""
