"""How often, how soon and how long the transport tries to resume a run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime

from ._options import Options

#: Several clients that lost the same replica shouldn't reach the next one at the same time.
_RETRY_AFTER_SPREAD = 0.1

#: More doublings would overflow a float.
_DOUBLINGS_MAX = 64

_DECIMAL = re.compile(r"\d+(\.\d+)?")
_DELAY_HEADERS = (("retry-after-ms", 0.001), ("x-ms-retry-after-ms", 0.001), ("retry-after", 1.0))


class Budget:
    """Counts answers in a row without a new event, and the time in which nothing at all arrives."""

    def __init__(self, options: Options, clock: Callable[[], float], jitter: Callable[[], float]) -> None:
        """`jitter` is at least 0 and less than 1."""
        self._options = options
        self._clock = clock
        self._jitter = jitter
        self._retries = 0
        #: Failed rounds in a row: an answer without a new event, or closed doors at all replicas.
        self._rounds = 0
        #: In a row.
        self._closed_doors = 0
        self._heard_at_s = clock()

    def heard(self) -> None:
        """Something arrived, possibly a keep-alive: a replica that sends them is at work."""
        self._heard_at_s = self._clock()

    def progressed(self) -> None:
        """New events arrived."""
        self._retries = 0
        self._rounds = 0
        self._closed_doors = 0

    def next_s(self, retry_after_s: float | None = None, *, is_closed_door: bool = False) -> float | None:
        """How long to wait before the next try; None when there's none left.

        `is_closed_door`: the last try got no answer. That costs no retry, because a connection is refused within
        a millisecond: such tries end after `give_up_s`. Only after a round of all replicas does the wait grow, because
        any of them may be back.
        """
        options = self._options
        is_spent = self._retries >= options.max_retries and not is_closed_door
        if is_spent or options.max_retries == 0:
            return None
        self._closed_doors = self._closed_doors + 1 if is_closed_door else 0
        is_round_over = self._closed_doors % max(len(options.endpoints), 1) == 0
        doublings = min(self._rounds, _DOUBLINGS_MAX) if is_round_over else 0
        longest_s = min(options.backoff_s * 2.0**doublings, options.backoff_max_s)
        backoff_s = longest_s * (0.5 + 0.5 * self._jitter())
        asked_s = min(retry_after_s or 0.0, options.retry_after_max_s)
        wait_s = max(backoff_s, asked_s * (1 + _RETRY_AFTER_SPREAD * self._jitter()))
        if is_round_over:
            self._rounds += 1
        if not is_closed_door:
            self._retries += 1
        remaining_s = self._heard_at_s + options.give_up_s - self._clock()
        return wait_s if wait_s < remaining_s else None


def retry_after_s(headers: Mapping[str, str], wall_clock_s: float) -> float | None:
    """How long a response asks to wait; None if it doesn't ask."""
    for name, unit_s in _DELAY_HEADERS:
        value = headers.get(name, "").strip()
        if _DECIMAL.fullmatch(value):
            return float(value) * unit_s
    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - wall_clock_s)
    except (TypeError, ValueError):
        return None
