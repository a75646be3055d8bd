"""A provider on the loopback interface, which programs that store the story are pointed at.

It speaks Anthropic Messages and Chat Completions, as streams, and says one reply after the other to requests that offer
tools. Requests of the model `side`, and those without tools, as for a title, get a title.
"""

import itertools
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PROMPT = "Pay 5 and 6"
CALLS = (("c1", "pay", {"amount": 5}), ("c2", "pay", {"amount": 6}), ("c3", "read", {"path": "x"}))


class ScriptedProvider:
    """The server.

    Args:
        replies: Each a text, or a text and the calls that follow it: ids, tools and arguments.
        name_tool: Returns the name by which the program offers a tool to its model.

    Attributes:
        url: Its address.
        inner: The replies to a sub-agent, which is told to "Pay 6".
    """

    def __init__(self, replies, name_tool=lambda tool: tool):
        provider = self
        self.replies, self.numbers = iter(replies), itertools.count(1)
        self.name_tool, self.inner = name_tool, iter(())

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def do_GET(self):
                self.answer(404, b"{}", "application/json")

            def do_POST(self):
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
                if "messages" not in asked or "count_tokens" in self.path:
                    return self.answer(404, b"{}", "application/json")
                write = write_chat if "completions" in self.path else write_messages
                body = write(provider.reply_to(asked), next(provider.numbers))
                return self.answer(200, body.encode(), "text/event-stream")

            def answer(self, status, body, kind):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def reply_to(self, asked):
        """Return the text and the calls of the reply to a request."""
        if not asked.get("tools") or asked.get("model") == "side":
            return "Payments", ()
        is_inner = '"Pay 6"' in json.dumps(asked["messages"][:2])
        reply = next(self.inner if is_inner else self.replies, "Done.")
        text, calls = (reply, ()) if isinstance(reply, str) else reply
        return text, [(call_id, self.name_tool(tool), given) for call_id, tool, given in calls]

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exc):
        self.server.shutdown()


def write_messages(reply, number):
    """Return a stream of Anthropic Messages."""
    text, calls = reply
    usage = {"input_tokens": 1, "output_tokens": 1}
    head = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "scripted", "content": []}
    events = [
        {"type": "message_start", "message": {**head, "stop_reason": None, "stop_sequence": None, "usage": usage}}
    ]
    blocks = [({"type": "text", "text": ""}, {"type": "text_delta", "text": text})] if text else []
    for call_id, tool, given in calls:
        delta = {"type": "input_json_delta", "partial_json": json.dumps(given)}
        blocks.append(({"type": "tool_use", "id": call_id, "name": tool, "input": {}}, delta))
    for number, (block, delta) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": number, "content_block": block})
        events.append({"type": "content_block_delta", "index": number, "delta": delta})
        events.append({"type": "content_block_stop", "index": number})
    reason = "tool_use" if calls else "end_turn"
    events.append({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage})
    events.append({"type": "message_stop"})
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


def write_chat(reply, number):
    """Return a stream of Chat Completions."""
    text, calls = reply
    deltas = [{"role": "assistant", "content": text or ""}]
    for number, (call_id, tool, given) in enumerate(calls):
        function = {"name": tool, "arguments": json.dumps(given)}
        deltas.append({"tool_calls": [{"index": number, "id": call_id, "type": "function", "function": function}]})
    head = {"id": f"r{number}", "object": "chat.completion.chunk", "created": 0, "model": "scripted"}
    chunks = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    reason = "tool_calls" if calls else "stop"
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    chunks.append({**head, "choices": [], "usage": usage})
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
