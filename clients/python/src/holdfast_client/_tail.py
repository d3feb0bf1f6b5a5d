"""The part of an answer to keep, so that a replica whose checkpoint lags behind can catch up with its client."""

from __future__ import annotations

from collections import deque

TAIL_EVENTS_MAX = 4096
TAIL_BYTES_MAX = 1024 * 1024


class Tail:
    """The payloads of the last events, oldest first; always includes the last one's."""

    def __init__(self) -> None:
        self._payloads: deque[str] = deque()
        self._sizes_bytes: deque[int] = deque()
        self._bytes = 0

    def append(self, payload: str) -> None:
        size_bytes = len(payload.encode())
        self._payloads.append(payload)
        self._sizes_bytes.append(size_bytes)
        self._bytes += size_bytes
        while len(self._payloads) > 1 and self._is_too_large():
            self._payloads.popleft()
            self._bytes -= self._sizes_bytes.popleft()

    def payloads(self) -> list[str]:
        return list(self._payloads)

    def _is_too_large(self) -> bool:
        return len(self._payloads) > TAIL_EVENTS_MAX or self._bytes > TAIL_BYTES_MAX
