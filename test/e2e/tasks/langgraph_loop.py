"""The agent of `ledger-agent.ts` as a loop of LangChain, which is one of LangGraph.

    python langgraph_loop.py BASE_URLS TASK MAILBOX PLACE
"""

import asyncio
import json
import sys

import httpx2
from langchain.agents import create_agent
from langchain.tools import ToolRuntime, tool
from langchain_openai import ChatOpenAI
from mail_tool import MailTool

from holdfast_client import Task
from holdfast_client.httpx2 import AsyncResumableTransport

base_urls, name, mailbox, place = sys.argv[1:5]
endpoints = base_urls.split(",")
invitations = Task(name)
mail = MailTool(invitations, mailbox, place)


@tool
async def send_mail(to: str, runtime: ToolRuntime) -> str:
    """Sends a mail."""
    return await mail.async_run({"id": runtime.tool_call_id, "name": "send_mail", "args": {"to": to}}, to)


async def main() -> None:
    transport = AsyncResumableTransport(task=invitations, endpoints=endpoints)
    http_client = httpx2.AsyncClient(transport=transport, timeout=20)
    model = ChatOpenAI(
        model="model", base_url=endpoints[0], api_key="sk-agent", http_async_client=http_client, streaming=True
    )
    agent = create_agent(model, tools=[send_mail])
    messages = []
    asked = {"messages": [{"role": "user", "content": f"Invite them both. {name}"}]}
    async for mode, said in agent.astream(asked, stream_mode=["messages", "values"]):
        if mode == "messages":
            mail.may_be_lost_here("chunk")
        else:
            messages = said["messages"]
    told = [
        [message.type, message.content, [call["args"] for call in getattr(message, "tool_calls", [])]]
        for message in messages
    ]
    print(json.dumps({"messages": told, "places": mail.places}))


asyncio.run(main())
