"""A provider of Chat Completions in this process, which clients of OpenAI reach instead of a network."""

import json

import httpx
from exporting import CALLS

REPLIES = [
    {
        "role": "assistant",
        "content": "Let me see.",
        "tool_calls": [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
            for call_id, name, given in CALLS
        ],
    },
    {"role": "assistant", "content": "Done."},
]


def transport():
    """Return a transport that answers with one reply after the other."""
    replies = iter(REPLIES)

    def answer(request):
        message = next(replies)
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if "tool_calls" in message else "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        body = {"id": "r", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}
        return httpx.Response(200, json=body)

    return httpx.MockTransport(answer)
