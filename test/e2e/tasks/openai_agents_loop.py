"""The agent of `ledger-agent.ts` as a loop of the OpenAI Agents SDK.

    python openai_agents_loop.py BASE_URLS TASK MAILBOX PLACE
"""

import asyncio
import json
import sys
from typing import Any

import httpx2
from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from agents.tool_context import ToolContext
from mail_tool import MailTool
from openai import AsyncOpenAI

from holdfast_client import Task
from holdfast_client.httpx2 import AsyncResumableTransport

base_urls, name, mailbox, place = sys.argv[1:5]
endpoints = base_urls.split(",")
invitations = Task(name)
mail = MailTool(invitations, mailbox, place)
set_tracing_disabled(True)


@function_tool
async def send_mail(context: ToolContext[Any], to: str) -> str:
    call = {"call_id": context.tool_call_id, "name": context.tool_name, "arguments": context.tool_arguments}
    return await mail.async_run(call, to)


async def main() -> None:
    transport = AsyncResumableTransport(task=invitations, endpoints=endpoints)
    http_client = httpx2.AsyncClient(transport=transport, timeout=20)
    client = AsyncOpenAI(base_url=endpoints[0], api_key="sk-agent", http_client=http_client)
    model = OpenAIChatCompletionsModel(model="model", openai_client=client)
    agent = Agent(name="Invitations", model=model, tools=[send_mail])
    result = Runner.run_streamed(agent, f"Invite them both. {name}")
    async for event in result.stream_events():
        if event.type == "raw_response_event":
            mail.may_be_lost_here("chunk")
    # Without the ids of answers, which are others in each task.
    said = [
        {field: value for field, value in item.items() if field not in ("id", "provider_data")}
        for item in result.to_input_list()
    ]
    print(json.dumps({"messages": said, "places": mail.places}))


asyncio.run(main())
