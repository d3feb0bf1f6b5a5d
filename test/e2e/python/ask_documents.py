"""Asks for whole answers with `openai` and `anthropic`, as `serving` says.

    python ask_documents.py BASE_URL API_KEY RETRIES

`chat` and `response` are the synchronous and the asynchronous client of `openai`, `message` is that of `anthropic`.
"""

import sys

from anthropic import Anthropic
from openai import AsyncOpenAI, OpenAI
from serving import serve


class Both:
    """The synchronous clients, in the place of one."""

    def __init__(self, url, **options):
        self.openai = OpenAI(base_url=url, **options)
        # The SDK adds the version to the address itself.
        self.anthropic = Anthropic(base_url=url.removesuffix("/v1"), **options)

    def close(self):
        self.openai.close()
        self.anthropic.close()


def chat(clients, request):
    return clients.openai.chat.completions.create(**request).to_dict()


def message(clients, request):
    return clients.anthropic.messages.create(**request).to_dict()


async def response(client, request):
    return (await client.responses.create(**request)).to_dict(mode="json")


if __name__ == "__main__":
    options = {"api_key": sys.argv[2], "max_retries": int(sys.argv[3])}
    serve(
        {"chat": chat, "message": message},
        {"response": response},
        Both(sys.argv[1], **options),
        AsyncOpenAI(base_url=sys.argv[1], **options),
    )
