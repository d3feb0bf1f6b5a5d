"""A response that another thread reads."""

from __future__ import annotations

import sys
import threading

import httpx
from replicas import PATIENCE_S


class Reading:
    """Begins at once, and ends with the response, however that ends."""

    def __init__(self, response: httpx.Response) -> None:
        #: Something was read.
        self.begun = threading.Event()
        self._response = response
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    @property
    def is_waiting(self) -> bool:
        """For another thread, and for nothing else."""
        frame = sys._current_frames().get(self._thread.ident or 0)
        return frame is not None and frame.f_code is threading.Condition.wait.__code__

    def end(self) -> Exception | None:
        """Waits for the end. What the thread was told that was no data."""
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "it still reads"
        return self._error

    def _read(self) -> None:
        try:
            for _ in self._response.iter_bytes():
                self.begun.set()
        except Exception as error:
            self._error = error
