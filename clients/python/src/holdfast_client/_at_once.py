"""Coroutines that never wait, for synchronous callers."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

Returned = TypeVar("Returned")


def run_at_once(coroutine: Coroutine[Any, Any, Returned]) -> Returned:
    """Returns the result of a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        returned: Returned = stop.value
        return returned
    raise RuntimeError("it waited")
