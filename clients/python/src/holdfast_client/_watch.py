"""A task's events as they arrive."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from random import random
from typing import Any

from ._budget import Budget
from ._calls import OpenedEvents, TaskRequests
from ._errors import LedgerError
from ._events import EventReader, EventTooLargeError
from ._seen_task import SeenTask, TaskProgress


class TaskWatch:
    """The progress of a task, over as many connections as needed."""

    def __init__(self, requests: TaskRequests) -> None:
        self._requests = requests
        self._faults: tuple[type[Exception], ...] = (
            *requests.interruptions,
            EventTooLargeError,
            # An event isn't JSON.
            ValueError,
        )
        self._budget = Budget(requests.options, time.monotonic, random)
        self._seen = SeenTask()
        self._told: TaskProgress | None = None
        self._opened: OpenedEvents | None = None
        self._reader = EventReader()
        self._last_id: bytes | None = None

    async def next(self) -> TaskProgress | None:
        """None when the task is over. Raises `LedgerError`."""
        seen = self._seen
        while not seen.is_purged:
            events = await self._events()
            if events is None:
                return None
            news = [event for event in events if seen.add(event)]
            if not news or seen.is_catching_up:
                continue
            if not seen.is_purged:
                await self._show_again()
            if seen.progress != self._told:
                self._told = seen.progress
                return self._told
        return None

    async def close(self) -> None:
        opened, self._opened = self._opened, None
        if opened:
            await opened.connection.close()

    async def _show_again(self) -> None:
        # A step's event doesn't say how many tokens the task has used so far.
        try:
            self._seen.show(await self._requests.show())
        except LedgerError as error:
            # It was just deleted, as the next event will say.
            if error.code != "task_not_found":
                raise

    async def _events(self) -> list[Mapping[str, Any]] | None:
        """The next event; None when the task is over."""
        while True:
            if self._opened is None:
                self._opened = await self._requests.open_events(self._last_id, self._budget)
                self._reader = EventReader()
            opened = self._opened
            cause: Exception | None = None
            try:
                data = await opened.connection.read()
                if data is not None:
                    # A keep-alive counts as progress, too: in a paused task, nothing else arrives.
                    self._budget.heard()
                    self._budget.progressed()
                    return self._take(data)
                if self._seen.is_ended:
                    return None
            except self._faults as error:
                cause = error
            await self.close()
            await self._requests.move_on(opened.root, self._budget, cause)

    def _take(self, data: bytes) -> list[Mapping[str, Any]]:
        events = [event for event in self._reader.feed(data) if event.payload is not None]
        told = [json.loads(event.payload or "") for event in events]
        if events:
            self._last_id = events[-1].id
        return told
