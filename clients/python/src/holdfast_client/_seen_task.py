"""A task's progress, as its events show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

TaskStatus = Literal["pending", "running", "failed", "paused", "completed", "cancelled"]
#: Anything but `running` and `complete` means that it has no complete answer.
RunStatus = Literal["running", "complete", "failed", "cancelled", "recovered_from_partial", "timeout_partial"]


@dataclass(frozen=True)
class TaskStep:
    #: From 1 on.
    number: int
    #: `Holdfast-Task-Step` of its request.
    name: str | None
    #: The id of the run that answers it; None while there's none.
    status: RunStatus | None
    #: How Holdfast continued its answer after interruptions, in order: `attempt`, `upstream`, `mode`, `plan`, `cause`.
    recoveries: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class TaskProgress:
    """A task's progress."""

    status: TaskStatus
    #: Why it has this status, if someone gave a reason.
    reason: str | None
    #: How many steps have a complete answer.
    steps_done: int
    #: How many steps have begun.
    steps: int
    #: How many steps it takes, if the task states that.
    steps_total: int | None
    #: `prompt_tokens`, `completion_tokens` and `total_tokens` of its steps.
    usage: Mapping[str, int]
    #: The step that changed last: what's happening now.
    step: TaskStep | None


class SeenTask:
    """A task's state, as its events show it."""

    def __init__(self) -> None:
        #: The task was deleted.
        self.is_purged = False
        self._shown: Mapping[str, Any] = {"status": "pending"}
        self._created_at: object = None
        self._step: TaskStep | None = None
        self._done: set[int] = set()
        #: The events begin with the existing steps: up to this number.
        self._known = 0
        #: The highest number so far.
        self._last = 0

    @property
    def is_ended(self) -> bool:
        """The task accepts no new steps. One may still be under way."""
        return self.progress.status in ("completed", "cancelled")

    @property
    def is_catching_up(self) -> bool:
        """Whether events of the steps that existed at the beginning are still missing."""
        return not self.is_purged and self._last < self._known

    @property
    def progress(self) -> TaskProgress:
        shown = self._shown
        return TaskProgress(
            status="cancelled" if self.is_purged else shown["status"],
            reason=shown.get("reason"),
            steps_done=len(self._done),
            steps=shown.get("steps", 0),
            steps_total=shown.get("steps_total"),
            usage=shown.get("usage", {}),
            step=self._step,
        )

    def add(self, event: Mapping[str, Any]) -> bool:
        """Returns whether this may have changed the progress."""
        kind = event.get("object")
        if kind == "holdfast.step":
            self._add_step(event)
        elif kind == "holdfast.task":
            if event.get("purged") or self._is_another(event):
                self.is_purged = True
            else:
                self._add_task(event)
        return kind in ("holdfast.step", "holdfast.task")

    def show(self, document: Mapping[str, Any]) -> None:
        """The client has read the task again."""
        self._shown = document

    def _add_task(self, task: Mapping[str, Any]) -> None:
        self._known = self._known or (task.get("last_step") or {}).get("number", 0)
        self._created_at = task.get("created_at")
        self._shown = task

    def _add_step(self, step: Mapping[str, Any]) -> None:
        number, run = step["number"], step.get("run") or {}
        self._last = max(self._last, number)
        if run.get("status") == "complete":
            self._done.add(number)
        self._step = TaskStep(number, run.get("step_name"), run.get("status"), tuple(step["recoveries"]))

    def _is_another(self, task: Mapping[str, Any]) -> bool:
        """While no replica was reachable, the task was deleted and another one with its name began."""
        return self._created_at is not None and self._created_at != task.get("created_at")
