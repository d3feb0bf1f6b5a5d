"""Why a tool was not run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable


class LedgerError(Exception):
    """Holdfast has refused what was asked about a task or one of its tool calls, or could not be reached.

    Then the tool must not be run. `code` is that of Holdfast's error; None where no replica has answered.
    """

    def __init__(self, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code


class UnknownCallError(Exception):
    """A tool was to be run, and it is unknown whether it was: its process was lost, or it has raised.

    It is not run again before you have found out, since it may have had its effect. If it had none, call `release()`
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
    """A tool was run by an earlier process, and its result was too long to be kept."""

    def __init__(self, tool: str) -> None:
        super().__init__(
            f"{tool!r} was run by an earlier process, whose result was too long to be kept. Keep such results where "
            "the tool finds them again, and return where that is."
        )
