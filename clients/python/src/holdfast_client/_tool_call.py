"""Tool calls in the forms of SDKs and frameworks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ToolCall:
    name: str
    args: Any
    #: A digest of its content, regardless of the order of its keys.
    digest: str

    @staticmethod
    def of(call: object) -> ToolCall:
        """Of chat completions, responses, messages or LangChain: an object, or a dictionary with the same fields.

        Raises `TypeError` if it isn't a tool call, and `ValueError` if its arguments aren't JSON.
        """
        described = _field(call, "function")
        if described is None:
            described = call
        name = _field(described, "name")
        if not isinstance(name, str) or not name:
            raise TypeError(f"call must be a tool call with a name, not {type(call).__name__}")
        args = _arguments(name, described)
        call_id = _field(call, "call_id")
        said = [name, _field(call, "id") if call_id is None else call_id, args]
        return ToolCall(name, args, digest_of(said))


def digest_of(said: object) -> str:
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _arguments(name: str, described: object) -> Any:
    text = _field(described, "arguments")
    if isinstance(text, str):
        try:
            return json.loads(text) if text.strip() else {}
        except ValueError as error:
            raise ValueError(f"the arguments of {name!r} must be JSON") from error
    for field in ("arguments", "input", "args"):
        args = _field(described, field)
        if args is not None:
            return args
    return {}


def _field(value: object, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
