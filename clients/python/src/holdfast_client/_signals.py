"""The last request of a process that a signal ends."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from types import FrameType
from typing import Any, Callable

SIGNALS = (signal.SIGINT, signal.SIGTERM)

#: How long a process waits for its last request at most.
_LAST_S_MAX = 5.0


def on_signals(signals: Sequence[signal.Signals], last: Callable[[str], object]) -> None:
    """On the first of these signals, calls `last`, and leaves the signal to its previous handler."""
    before = {each: signal.getsignal(each) for each in signals}

    def say_last(received: signal.Signals) -> None:
        with suppress(Exception):
            last(received.name)

    def end(received: signal.Signals) -> None:
        words = threading.Thread(target=say_last, args=(received,), daemon=True)
        words.start()
        words.join(_LAST_S_MAX)
        os.kill(os.getpid(), received)

    def handle(number: int, _frame: FrameType | None) -> None:
        for each, handler in before.items():
            signal.signal(each, handler)
        # The signal may have interrupted the main thread anywhere, even while it holds a lock that `last` needs.
        threading.Thread(target=end, args=(signal.Signals(number),)).start()

    for each in signals:
        signal.signal(each, handle)


def async_on_signals(signals: Sequence[signal.Signals], last: Callable[[str], Awaitable[Any]]) -> None:
    """The same in the running event loop."""
    loop = asyncio.get_running_loop()
    before = {each: signal.getsignal(each) for each in signals}
    tasks: list[asyncio.Task[None]] = []

    async def end(received: signal.Signals) -> None:
        with suppress(Exception):
            await asyncio.wait_for(last(received.name), _LAST_S_MAX)
        os.kill(os.getpid(), received)

    def handle(received: signal.Signals) -> None:
        for each, handler in before.items():
            loop.remove_signal_handler(each)
            signal.signal(each, handler)
        # The loop itself doesn't keep tasks alive.
        tasks.append(loop.create_task(end(received)))

    for each in signals:
        loop.add_signal_handler(each, handle, each)
