"""The replicas, and which of them to ask next."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

#: For this long after a failure, a replica isn't asked first, so not every new run has to find out by itself.
AVOID_S = 10.0

_BASE_PATH = re.compile(r"(/v1)?/*$")


def root_of_endpoint(endpoint: object) -> str | None:
    """An endpoint's URL without `/v1` and slashes at its end; None if it can't be a replica's URL."""
    if not isinstance(endpoint, str):
        return None
    try:
        url = urlsplit(endpoint)
        is_complete = url.scheme in ("http", "https") and bool(url.hostname) and url.port != 0
    except ValueError:
        return None
    # A path can't follow a query or fragment, and credentials belong to the request.
    if not is_complete or "@" in url.netloc or url.query or url.fragment:
        return None
    return f"{url.scheme}://{url.netloc.lower()}{_BASE_PATH.sub('', url.path)}"


class Endpoints:
    """The replicas' roots, and which replicas failed recently. All runs of one transport share this."""

    def __init__(self, roots: Sequence[str], clock: Callable[[], float] = time.monotonic) -> None:
        self._roots = list(roots)
        self._clock = clock
        self._failed_at_s: dict[str, float] = {}

    def first(self, root: str) -> str:
        """The replica to send a request for `root` to first."""
        return self.after(root) if self.has_failed(root) else root

    def after(self, root: str) -> str:
        """The replica after `root`: the next one that hasn't failed recently, or simply the next."""
        start = self._roots.index(root) + 1 if root in self._roots else 0
        order = [*self._roots[start:], *self._roots[:start]] or [root]
        return next((candidate for candidate in order if not self.has_failed(candidate)), order[0])

    def has_failed(self, root: str) -> bool:
        """Recently."""
        failed_at_s = self._failed_at_s.get(root)
        return failed_at_s is not None and self._clock() - failed_at_s < AVOID_S

    def failed(self, root: str) -> None:
        self._failed_at_s[root] = self._clock()

    def answered(self, root: str) -> None:
        self._failed_at_s.pop(root, None)
