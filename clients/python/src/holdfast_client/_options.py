"""The transports' options, and their checks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ._endpoints import root_of_endpoint

MAX_RETRIES = 8
GIVE_UP_S = 120.0
IDLE_S = 30.0
BACKOFF_S = 0.05
BACKOFF_MAX_S = 2.0
RETRY_AFTER_MAX_S = 10.0

_LEAST_S = 0.001


@dataclass(frozen=True)
class Options:
    """Checked options of a transport; see `ResumableTransport` for what they mean."""

    #: Roots of the replicas.
    endpoints: tuple[str, ...]
    max_retries: int
    give_up_s: float
    idle_s: float
    backoff_s: float
    backoff_max_s: float
    retry_after_max_s: float
    cancel_on_close: bool

    @staticmethod
    def check(
        *,
        endpoints: Sequence[str] | None = None,
        max_retries: int = MAX_RETRIES,
        give_up_s: float = GIVE_UP_S,
        idle_s: float = IDLE_S,
        backoff_s: float = BACKOFF_S,
        backoff_max_s: float = BACKOFF_MAX_S,
        retry_after_max_s: float = RETRY_AFTER_MAX_S,
        cancel_on_close: bool = True,
    ) -> Options:
        """Raises `TypeError` or `ValueError`, which names the option and what it must be."""
        if isinstance(max_retries, bool) or not isinstance(max_retries, int):
            raise TypeError(f"max_retries must be a whole number, not {max_retries!r}")
        if max_retries < 0:
            raise ValueError(f"max_retries must be 0 or more, not {max_retries}")
        if not isinstance(cancel_on_close, bool):
            raise TypeError(f"cancel_on_close must be True or False, not {cancel_on_close!r}")
        backoff_s = _seconds("backoff_s", backoff_s, 0)
        return Options(
            endpoints=_roots(endpoints),
            max_retries=max_retries,
            give_up_s=_seconds("give_up_s", give_up_s, _LEAST_S),
            idle_s=_seconds("idle_s", idle_s, _LEAST_S),
            backoff_s=backoff_s,
            backoff_max_s=_seconds("backoff_max_s", backoff_max_s, backoff_s),
            retry_after_max_s=_seconds("retry_after_max_s", retry_after_max_s, 0),
            cancel_on_close=cancel_on_close,
        )


def _seconds(name: str, value: float, least_s: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number of seconds, not {value!r}")
    if not math.isfinite(value) or value < least_s:
        raise ValueError(f"{name} must be a number of seconds, {least_s:g} at least, not {value}")
    return float(value)


def _roots(endpoints: Sequence[str] | None) -> tuple[str, ...]:
    if endpoints is None:
        return ()
    if isinstance(endpoints, (str, bytes)) or not isinstance(endpoints, Sequence) or not endpoints:
        raise TypeError(f"endpoints must be a list of at least one URL, not {endpoints!r}")
    roots = []
    for index, endpoint in enumerate(endpoints):
        root = root_of_endpoint(endpoint)
        if root is None:
            # Without the value: it may be wrong because it has a password.
            raise ValueError(
                f"endpoints[{index}] must be the http(s) URL of a replica, like 'http://holdfast-1:8080', "
                "without credentials, query and fragment"
            )
        roots.append(root)
    return tuple(dict.fromkeys(roots))
