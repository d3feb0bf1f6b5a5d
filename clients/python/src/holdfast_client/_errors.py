"""Why a tool wasn't run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable


class LedgerError(Exception):
    """Holdfast refused a request about a task or one of its tool calls, or couldn't be reached.

    Don't run the tool then. `code` is the code of Holdfast's error; None if no replica answered.
    """

    def __init__(self, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code


class UnknownCallError(Exception):
    """It's unknown whether a tool ran: its process was lost, or it raised.

    It doesn't run again before you've found out, since it may have had its effect. If it had none, call `release()`
    and run the tool again; after `Task.async_tool`, `await async_release()`.
    """

    def __init__(
        self, tool: str, release: Callable[[], None], async_release: Callable[[], Awaitable[None]]
    ) -> None:
        super().__init__(
            f"It is unknown whether {tool!r} was run. Look for its effect; if there is none, release this error "
            "and run the tool again."
        )
        self.release = release
        self.async_release = async_release


class ResultNotKeptError(Exception):
    """An earlier process ran the tool, but its result was too long to keep."""

    def __init__(self, tool: str) -> None:
        super().__init__(
            f"{tool!r} was run by an earlier process, whose result was too long to be kept. Keep such results where "
            "the tool finds them again, and return where that is."
        )
