"""Prints how far the task T23 has come, as it comes: `watch_task.py sync|async CREDENTIAL ENDPOINT…`."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
from typing import Any

import httpx

from holdfast_client import AsyncResumableTransport, ResumableTransport, Task, TaskProgress

_, manner, credential, *endpoints = sys.argv
task = Task("T23")
options: dict[str, Any] = {"task": task, "endpoints": endpoints, "backoff_s": 0.001}
#: It is refused, and says where Holdfast is.
request: dict[str, Any] = {
    "url": f"{endpoints[0]}/v1/chat/completions",
    "headers": {"authorization": credential},
    "json": {},
}


def tell(progress: TaskProgress) -> None:
    print(json.dumps(dataclasses.asdict(progress)), flush=True)


async def watch() -> None:
    async with httpx.AsyncClient(transport=AsyncResumableTransport(**options)) as client:
        await client.post(**request)
        async for progress in task.async_progress():
            tell(progress)


if manner == "async":
    asyncio.run(watch())
else:
    with httpx.Client(transport=ResumableTransport(**options)) as client:
        client.post(**request)
        for each in task.progress():
            tell(each)
