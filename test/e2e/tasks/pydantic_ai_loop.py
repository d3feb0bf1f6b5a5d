"""The agent of `ledger-agent.ts` as a loop of Pydantic AI.

    python pydantic_ai_loop.py BASE_URLS TASK MAILBOX PLACE
"""

import asyncio
import json
import sys
from typing import Any

import httpx2
from mail_tool import MailTool
from openai import AsyncOpenAI
from pydantic_ai import Agent, RunContext
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from holdfast_client import Task
from holdfast_client.httpx2 import AsyncResumableTransport

base_urls, name, mailbox, place = sys.argv[1:5]
endpoints = base_urls.split(",")
invitations = Task(name)
mail = MailTool(invitations, mailbox, place)


async def see(_context: RunContext[Any], events: Any) -> None:
    async for _event in events:
        mail.may_be_lost_here("chunk")


async def main() -> None:
    transport = AsyncResumableTransport(task=invitations, endpoints=endpoints)
    http_client = httpx2.AsyncClient(transport=transport, timeout=20)
    client = AsyncOpenAI(base_url=endpoints[0], api_key="sk-agent", http_client=http_client)
    agent = Agent(OpenAIChatModel("model", provider=OpenAIProvider(openai_client=client)))

    @agent.tool
    async def send_mail(context: RunContext[Any], to: str) -> str:
        call = {"id": context.tool_call_id, "name": context.tool_name, "args": {"to": to}}
        return await mail.async_run(call, to)

    result = await agent.run(f"Invite them both. {name}", event_stream_handler=see)
    said = [
        [part.part_kind, str(getattr(part, "args", None)), str(getattr(part, "content", None))]
        for message in result.all_messages()
        for part in message.parts
    ]
    print(json.dumps({"messages": said, "places": mail.places}))


asyncio.run(main())
