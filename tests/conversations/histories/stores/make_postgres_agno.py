"""
Writes what Agno stores of one story, by `PostgresDb`: paused, and finished.

Run it from this folder, with an empty database; the files next to it are written anew:

    uv run --no-project --with agno==3.1.10 --with sqlalchemy --with 'psycopg[binary]' \
      python make_postgres_agno.py postgresql://postgres@127.0.0.1:5432/made
"""

import json
import sys

from agno.agent import Agent
from agno.db.postgres import PostgresDb
from agno.models.base import Model
from agno.models.response import ModelResponse
from agno.tools import tool
from dumping import CALLS, PROMPT, dump_server
from dumping import pay as pay_amount
from dumping import read as read_path

CALLED = [
    {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
    for call_id, name, given in CALLS
]
REPLIES = [
    ModelResponse(role="assistant", content="Let me see.", tool_calls=CALLED),
    ModelResponse(role="assistant", content="Done."),
]


class Scripted(Model):
    def invoke(self, *args, **kwargs):
        return REPLIES.pop(0)

    async def ainvoke(self, *args, **kwargs):
        return REPLIES.pop(0)

    def invoke_stream(self, *args, **kwargs):
        yield REPLIES.pop(0)

    async def ainvoke_stream(self, *args, **kwargs):
        yield REPLIES.pop(0)

    def _parse_provider_response(self, response, **kwargs):
        return response

    def _parse_provider_response_delta(self, response):
        return response


@tool(requires_confirmation=True)
def pay(amount: int) -> str:
    """Pays."""
    return pay_amount(amount)


@tool
def read(path: str) -> str:
    """Reads."""
    return read_path(path)


def main(url):
    store = PostgresDb(db_url=url.replace("postgresql://", "postgresql+psycopg://"))
    agent = Agent(model=Scripted(id="scripted"), tools=[pay, read], db=store, session_id="thread-7", telemetry=False)
    run = agent.run(PROMPT)
    dump_server(url, "agno_paused")
    one, other = run.active_requirements
    one.confirm()
    other.reject("no 6")
    agent.continue_run(run_id=run.run_id, requirements=run.requirements, session_id="thread-7")
    dump_server(url, "agno_done")


main(sys.argv[1])
