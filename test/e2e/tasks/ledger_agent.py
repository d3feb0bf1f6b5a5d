"""The agent of `ledger-agent.ts`, in Python: see there.

    python ledger_agent.py BASE_URLS TASK MAILBOX PLACE
"""

import json
import sys

import httpx2
from mail_tool import MailTool
from openai import OpenAI

from holdfast_client import Task
from holdfast_client.httpx2 import ResumableTransport

base_urls, name, mailbox, place = sys.argv[1:5]
endpoints = base_urls.split(",")
invitations = Task(name)
mail = MailTool(invitations, mailbox, place)
transport = ResumableTransport(task=invitations, endpoints=endpoints)
http_client = httpx2.Client(transport=transport, timeout=20)
client = OpenAI(base_url=endpoints[0], api_key="sk-agent", http_client=http_client)
parameters = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
tools = [{"type": "function", "function": {"name": "send_mail", "parameters": parameters}}]
messages = [{"role": "user", "content": f"Invite them both. {name}"}]

while True:
    with client.chat.completions.stream(model="model", messages=messages, tools=tools) as stream:
        for event in stream:
            if event.type == "chunk":
                mail.may_be_lost_here("chunk")
        message = stream.get_final_completion().choices[0].message
    calls = [
        {"id": call.id, "type": "function", "function": call.function.model_dump(include={"name", "arguments"})}
        for call in message.tool_calls or []
    ]
    messages.append({"role": "assistant", "content": message.content, **({"tool_calls": calls} if calls else {})})
    for call in message.tool_calls or []:
        to = json.loads(call.function.arguments)["to"]
        messages.append({"role": "tool", "tool_call_id": call.id, "content": mail.run(call, to)})
    if not calls:
        break
print(json.dumps({"messages": messages, "places": mail.places}))
