"""The agent of `ledger-agent.ts`, in Python: see there.

    python ledger_agent.py BASE_URLS TASK MAILBOX PLACE
"""

import json
import os
import signal
import sys

import httpx2
from openai import OpenAI

from holdfast_client import Task, UnknownCallError
from holdfast_client.httpx2 import ResumableTransport

base_urls, name, mailbox, place = sys.argv[1:5]
endpoints = base_urls.split(",")
invitations = Task(name)
transport = ResumableTransport(task=invitations, endpoints=endpoints)
http_client = httpx2.Client(transport=transport, timeout=20)
client = OpenAI(base_url=endpoints[0], api_key="sk-agent", http_client=http_client)
parameters = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}
tools = [{"type": "function", "function": {"name": "send_mail", "parameters": parameters}}]
messages = [{"role": "user", "content": f"Invite them both. {name}"}]

#: Where it may be lost, in order.
places = []


def may_be_lost_here(at):
    places.append(at)
    if len(places) == int(place):
        os.kill(os.getpid(), signal.SIGKILL)


def send_mail(args, _context):
    may_be_lost_here("tool")
    with open(mailbox, "a") as mails:
        mails.write(f"{args['to']}\n")
    may_be_lost_here("tool")
    return f"sent to {args['to']}"


def mails_to(to):
    if not os.path.exists(mailbox):
        return 0
    with open(mailbox) as mails:
        return mails.read().split("\n").count(to)


def run_tool(call):
    try:
        return invitations.tool(call, send_mail, hold_s=0.3)
    except UnknownCallError as error:
        # Whether it has had its effect can be seen.
        to = json.loads(call.function.arguments)["to"]
        if mails_to(to) > 0:
            return f"sent to {to}"
        error.release()
        return invitations.tool(call, send_mail, hold_s=0.3)


while True:
    with client.chat.completions.stream(model="model", messages=messages, tools=tools) as stream:
        for event in stream:
            if event.type == "chunk":
                may_be_lost_here("chunk")
        message = stream.get_final_completion().choices[0].message
    calls = [
        {"id": call.id, "type": "function", "function": call.function.model_dump(include={"name", "arguments"})}
        for call in message.tool_calls or []
    ]
    messages.append({"role": "assistant", "content": message.content, **({"tool_calls": calls} if calls else {})})
    for call in message.tool_calls or []:
        may_be_lost_here("tool")
        messages.append({"role": "tool", "tool_call_id": call.id, "content": run_tool(call)})
        may_be_lost_here("tool")
    if not calls:
        break
print(json.dumps({"messages": messages, "places": places}))
