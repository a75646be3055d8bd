"""
An agent process that knows nothing of pytest-approvals: what `docs/host-protocol.md` says is all that it uses.

One conversation, one gated tool, no concurrency: it reads a line, answers it, and calls back in between.
"""

import json
import sys

PROTOCOL = 1


class Raised(Exception):
    """The harness answered a call with an error."""


class Session:
    def __init__(self, number, tools):
        self.number, self.tools, self.messages, self.open = number, tools, [], []

    def turn(self, text, decisions):
        if text is not None:
            self.messages.append({"kind": "user", "text": text})
        for decision in decisions:
            self.settle(decision)
        while not self.open:
            reply = call("model", {"session": self.number, "items": self.messages})
            if not reply.get("calls"):
                return {"finished": {"output": reply.get("say")}}
            for one in reply["calls"]:
                asked = {"id": one["id"], "tool": one["tool"], "arguments": one["arguments"]}
                self.messages.append({"kind": "call", **asked})
                if self.gated(one):
                    self.open.append(asked)
                else:
                    self.run(asked)
        return {"paused": {"requests": self.requests()}}

    def gated(self, one):
        approval = next(tool for tool in self.tools if tool["name"] == one["tool"]).get("approval", "never")
        if isinstance(approval, str):
            return approval == "always"
        asked = {"session": self.number, "tool": one["tool"], "arguments": one["arguments"], "call_id": one["id"]}
        return call("gate", asked)["needed"]

    def settle(self, decision):
        asked = next(one for one in self.open if one["id"] == decision["request"]["id"])
        self.open.remove(asked)
        if decision["verdict"] == "approve":
            self.run(asked)
        else:
            self.tell(asked, f"rejected: {decision.get('reason')}")

    def run(self, asked):
        run = {"session": self.number, "tool": asked["tool"], "arguments": asked["arguments"], "call_id": asked["id"]}
        try:
            self.tell(asked, str(call("run", run).get("value")))
        except Raised as error:
            self.tell(asked, f"failed: {error}")

    def tell(self, asked, text):
        self.messages.append({"kind": "result", "id": asked["id"], "tool": asked["tool"], "text": text})

    def requests(self):
        return [{**asked, "call_id": asked["id"]} for asked in self.open]


SESSIONS = {}
NUMBERS = iter(range(1, 1_000_000))


def send(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def call(method, params):
    number = next(NUMBERS)
    send({"id": number, "m": method, "p": params})
    while True:
        message = json.loads(sys.stdin.readline())
        if message.get("re") == number:
            if "err" in message:
                raise Raised(message["err"]["message"])
            return message["ok"]
        take(message)


def take(message):
    if "id" not in message:
        return  # `stop`: everything here is over before it could be stopped
    try:
        answer = METHODS[message["m"]](message["p"])
    except Exception as error:
        failure = {"type": type(error).__name__, "message": str(error)}
        send({"re": message["id"], "err": failure})
    else:
        send({"re": message["id"], "ok": answer})


def hello(params):
    assert params["protocol"] == PROTOCOL
    facts = {"framework": "other", "version": "0.1", "wire_rules": "chat", "capabilities": ["serialize.json"]}
    return {"protocol": PROTOCOL, "pid": __import__("os").getpid(), "facts": facts, "language": "another one"}


def build(params):
    tools = params["blueprint"].get("tools", [])
    SESSIONS[params["session"]] = Session(params["session"], tools)
    return {"tools": tools}


def load(params):
    session = SESSIONS[params["session"]]
    session.messages, session.open = json.loads(params["parts"][-1])
    return {}


METHODS = {
    "hello": hello,
    "build": build,
    "turn": lambda p: SESSIONS[p["session"]].turn(p.get("text"), p.get("decisions", [])),
    "pending": lambda p: {"requests": SESSIONS[p["session"]].requests()},
    "dump": lambda p: {"text": json.dumps([SESSIONS[p["session"]].messages, SESSIONS[p["session"]].open])},
    "load": load,
    "close": lambda p: SESSIONS.pop(p["session"]) and {},
}

while line := sys.stdin.readline():
    take(json.loads(line))
