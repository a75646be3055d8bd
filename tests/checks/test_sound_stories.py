"""Unusual stories, played on the reference agent: it does what is right, so no check fails."""

from __future__ import annotations

import asyncio
import hashlib
from functools import cache
from pathlib import Path

import pytest

import pytest_approvals
from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.campaigns.exploration import Exploration, StoryPlayer, kills_process, leaves_process
from pytest_approvals.checks import SHOWN_STATUSES, judge, judge_group
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.runner.run import run_scenario
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.load import parse_scenario
from pytest_approvals.scenario.variants import allowed_variants
from pytest_approvals.simulation import FLAVOURS
from pytest_approvals.simulation.reference import ReferenceAgent
from pytest_approvals.simulation.reference.designs import DESIGNS

PACKAGE = Path(pytest_approvals.__file__).parent
STORIES_PLAYED = 375
"""How many drawn stories each flavour of the reference agent plays in each profile."""
STORIES_OF_A_PART = 375

PAY = """
title: Pay
tools:
  pay: {approval: always, parameters: {amount: integer}, returns: 'paid {amount}'}
"""
ONE_CALL = PAY + "model:\n- calls: [{id: c1, tool: pay, arguments: {amount: 5}}]\n"
SAYS = "- {say: Done.}\n- {say: 'Anything else?'}\n- {say: 'Still here.'}\n"
WEB = """
title: Search
tools:
  search:
    {kind: hosted_mcp, server: web, approval: APPROVAL, parameters: {amount: integer}, returns: 'found {amount}'}
  pay: {approval: always, parameters: {amount: integer}, returns: 'paid {amount}'}
"""

STORIES = {
    "a hand-over is closed, and an equal one is approved later": (
        "none-held",
        """
title: Hand over
equal_arguments: true
tools:
  to_clerk: {approval: always, hands_over_to: clerk}
  clerk/pay: {approval: always}
model:
- calls: [{id: t1, tool: to_clerk}]
- {say: Not now.}
- calls: [{id: t2, tool: to_clerk}]
- {say: Done.}
caller:
- {send: Hand over}
- {send: Wait}
- {send: Now}
- decide: {t2: approve}
""",
    ),
    "of two equal hand-overs in one reply the second is approved": (
        "none-held",
        """
title: Hand over
equal_arguments: true
tools:
  to_clerk: {approval: always, hands_over_to: clerk}
  clerk/pay: {approval: always}
model:
- calls: [{id: t1, tool: to_clerk}, {id: t2, tool: to_clerk}]
- {say: Done.}
caller:
- {send: Hand over}
- decide: {t1: reject, t2: approve}
""",
    ),
    "the provider ran the call of a reply that broke, and another session has made an equal one": (
        "none-held",
        """
title: Search
equal_arguments: true
tools:
  search: {kind: hosted_mcp, server: web}
model:
  Search: [{calls: [{id: c1, tool: search}]}, {say: Found.}]
  Search for bob: [{calls: [{id: c2, tool: search}], breaks_after: 3}, {say: Done.}]
caller:
- {send: Search for bob, session: bob}
- {send: Search}
""",
    ),
    "a staged decision is lost with a save that cannot be restored": (
        "json-append-restored",
        """
title: Pay
tools:
  pay: {approval: always}
model:
- calls: [{id: c2, tool: pay}]
- {say: Done.}
vary: [history]
caller:
- {send: Pay}
- stage: {c2: approve}
- rewrite: {old: "2", new: "5002"}
""",
    ),
    "a tool returns the word for a rejection, and its next call is rejected": (
        "none-held",
        """
title: Look and pay
equal_arguments: true
tools:
  look: {returns: rejected}
  pay: {approval: always, returns: rejected}
model:
- calls: [{id: c1, tool: look}]
- calls: [{id: c2, tool: pay}]
- {say: Done.}
- calls: [{id: c3, tool: pay}]
- {say: Done.}
caller:
- {send: Look and pay}
- decide: {c2: reject}
- {send: Again}
- decide: {c3: approve}
""",
    ),
    "a long story asks its models more than fifty times": (
        "none-held",
        """
title: Talk
model:
"""
        + "".join(f"- {{say: 'Answer {number}'}}\n" for number in range(60))
        + "caller:\n"
        + "".join(f"- {{send: 'Question {number}'}}\n" for number in range(60)),
    ),
    "turns at the same time that hand over at last, of which one asks before the other has run its calls": (
        "copy-restored",
        """
title: Settle at the same time
tools:
  delete_file: {approval: always}
  list_files: {parameters: {folder: string}, calls: {c3: {waits_for: ended c4, returns: "a file in {folder}"}}}
  to_clerk: {hands_over_to: clerk}
  clerk/settle: {approval: always, parameters: {bill: integer}}
model:
  - calls: [{id: c1, tool: delete_file}]
  - calls: [{id: c3, tool: list_files, arguments: {folder: a2}}, {id: c4, tool: list_files, arguments: {folder: a3}}]
  - calls: [{id: t5, tool: to_clerk}]
  - calls: [{id: c6, tool: clerk/settle, arguments: {bill: "5"}, invalid: true}]
caller:
  - send: Go ahead.
  - together: [{decide: {c1: approve}}, {decide: {c1: approve}}]
""",
    ),
    "turns at the same time that ask their models the same, of which one answers with what does not fit": (
        "copy-restored",
        """
title: Pay at the same time
answer: {total: integer}
tools:
  look: {parameters: {what: string}, calls: {c8: {waits_for: started c9, returns: "saw {what}"}}}
  ask_helper: {runs: helper}
  helper/wire: {approval: always, parameters: {sum: integer}}
agents:
  helper:
    model:
      Wire for grace:
        - fails: 500
        - calls: [{id: h1, tool: wire, arguments: {sum: 5}}]
        - calls: [{id: k1, tool: wire, arguments: {sum: 6}}]
        - say: Done.
      Wire for judy: [{say: Done.}, {say: Done.}]
model:
  - say: Done.
  - calls:
      - {id: o6, tool: ask_helper, arguments: {input: Wire for grace}}
      - {id: o7, tool: ask_helper, arguments: {input: Wire for judy}}
  - calls: [{id: c8, tool: look, arguments: {what: a3}}, {id: c9, tool: look, arguments: {what: a4}}]
  - answer: {total: much}
    invalid: true
  - answer: {total: 15}
caller:
  - send: Go ahead.
  - send: Go ahead.
  - send: Go ahead.
  - decide: {o6/h1: approve}
  - together:
      - decide: {o6/k1: {never: ask me again tomorrow, shows: {sum: 24}, source: restored}}
      - decide: {o6/k1: {edit: {sum: 25}}}
""",
    ),
    "a changed save makes a standing approval one of another tool, whose open call runs without an answer": (
        "json-restored",
        """
title: Write
tools:
  cap: {approval: always, parameters: {limit: integer}}
  write_row: {approval: always}
model:
- calls: [{id: c2, tool: write_row}, {id: c1, tool: cap, arguments: {limit: 1}}]
- {say: Done.}
caller:
- {send: Write}
- decide: {c2: always}
- rewrite: {old: write_row, new: cap}
- {go_on: true}
""",
    ),
    "a streamed call has ids of its own in later chunks, and one with the same first id follows": (
        "none-stream-changing-ids-held-approve-all",
        PAY
        + """
model:
- calls: [{id: c1, tool: pay, arguments: {amount: 1}}]
- calls: [{id: c1, tool: pay, arguments: {amount: 2}, repeats: true}]
- {say: Done.}
caller:
- {send: Pay}
only: {stream: true, chunking: changing_ids}
""",
    ),
    "a changed save makes a rejection for good one of another tool, whose open call is told its reason": (
        "json-restored",
        """
title: Write
tools:
  cap: {approval: always}
  write_row: {approval: always}
model:
- calls: [{id: c3, tool: write_row}]
- calls: [{id: c1, tool: cap}]
"""
        + SAYS
        + """
caller:
- {send: Write}
- decide: {c3: {never: ask me again tomorrow}}
- rewrite: {old: write_row, new: cap}
- {send: Go on}
""",
    ),
    "a call that has raised is not rejected by what is decided about another one": (
        "none-held",
        """
title: Pay
answer: {total: integer}
tools:
  pay: {approval: {argument: amount, greater_than: 1}, parameters: {amount: integer}, raises: failed}
model:
- calls: [{id: c1, tool: pay, arguments: {amount: 1}}, {id: c2, tool: pay, arguments: {amount: 2}}]
- answer: {total: 0}
caller:
- {send: Go ahead.}
- decide: {c2: {never: not today}}
""",
    ),
    "of two servers' tools of one name the gated one is removed, and called": (
        "copy-restored-approve-all",
        """
title: Search
tools:
  find_on_web: {called: find, kind: hosted_mcp, server: web}
  find_on_wiki: {approval: always, called: find, kind: hosted_mcp, server: wiki}
model:
- {say: Done.}
- calls: [{id: mcpr_4, tool: find_on_wiki}]
- {say: Done.}
caller:
- {send: Go ahead.}
- restart: {without: [find_on_wiki]}
- {send: Go ahead.}
""",
    ),
    "a staged approval outlives the refusal of another decision": (
        "json-stream-restored",
        PAY
        + """
model:
- calls: [{id: c1, tool: pay, arguments: {amount: 5}}, {id: c2, tool: pay, arguments: {amount: 6}}]
"""
        + SAYS
        + """
caller:
- {send: Pay twice}
- decide: {c1: approve}
- stage: {c2: approve}
- decide: {c1: approve}
- {send: And now?}
""",
    ),
    "a staged approval outlives the refusal of a decision about nothing": (
        "copy-stream-interleaved-restored",
        PAY
        + "model:\n- calls: [{id: c1, tool: pay, arguments: {amount: 5}}]\n"
        + SAYS
        + """
caller:
- {send: Pay}
- stage: {c1: approve}
- decide: [{unknown: r-77, verdict: approve}]
- {send: And now?}
""",
    ),
    "a rejection replaces a staged approval": (
        "json-stream-interleaved-restored",
        ONE_CALL
        + SAYS
        + """
caller:
- {send: Pay}
- stage: {c1: approve}
- decide: {c1: {reject: too much}}
- {send: And now?}
""",
    ),
    "a staged approval of a closed call is refused": (
        "json-stream-interleaved-rebuilt",
        ONE_CALL
        + SAYS
        + """
caller:
- {send: Pay}
- {send: Never mind}
- stage: {c1: approve}
- {send: And now?}
""",
    ),
    "an approved call waits for its sibling, and the model fails when that is answered": (
        "json-restored",
        WEB.replace("APPROVAL", "always")
        + """
model:
- calls: [{id: mcpr_1, tool: search, arguments: {amount: 1}}, {id: mcpr_2, tool: search, arguments: {amount: 2}}]
- {fails: 429}
"""
        + SAYS
        + """
caller:
- {send: Search}
- decide: {mcpr_1: approve}
- decide: {mcpr_2: approve}
""",
    ),
    "a session is restarted after an oracle that finds nothing": (
        "native.sqlite-stream-interleaved-restored",
        ONE_CALL
        + SAYS
        + """
caller:
- {send: Pay}
- decide: {c1: reject}
- {oracle: true}
- {restart: true}
- {send: And now?}
""",
    ),
    "a session is restarted twice": (
        "copy-stream-interleaved-rebuilt",
        ONE_CALL
        + SAYS
        + """
caller:
- {send: Pay}
- decide: {c1: approve}
- {restart: true}
- {restart: true}
- {send: And now?}
""",
    ),
    "a provider runs a free call, and then its stream breaks": (
        "native.sqlite-stream-restored-approve-all",
        WEB.replace("APPROVAL", "never")
        + """
model:
- {calls: [{id: mcpr_1, tool: search, arguments: {amount: 1}}], breaks_after: 2}
"""
        + SAYS
        + """
caller:
- {send: Search}
- {send: Again}
""",
    ),
    "after a disconnect only a settled call is answered": (
        "json-rebuilt",
        ONE_CALL
        + SAYS
        + """
caller:
- {send: Pay}
- {decide: {c1: approve}, hangs_up: started c1}
- {decide: {c1: always}, send: by the way}
""",
    ),
    "after a disconnect the model fails": (
        "native.sqlite-stream-rebuilt",
        ONE_CALL
        + "- {fails: disconnect}\n"
        + SAYS
        + """
caller:
- {send: Pay}
- {decide: {c1: approve}, hangs_up: started c1}
- {send: And now?}
""",
    ),
    "after a refusal the caller leaves the right step": (
        "json-restored",
        PAY
        + """
model:
- calls: [{id: c1, tool: pay, arguments: {amount: 5}}, {id: c2, tool: pay, arguments: {amount: 6}}]
"""
        + SAYS
        + """
caller:
- {send: Pay}
- decide: {c1: {reject: too much}}
- decide: {c1: approve}
- {decide: {c2: approve}, hangs_up: started c2}
""",
    ),
    "after a refusal an edit that does not fit is refused": (
        "json-stream-interleaved-rebuilt",
        ONE_CALL
        + SAYS
        + """
caller:
- {send: Pay}
- decide: [{unknown: r-77, verdict: approve}]
- decide: {c1: {edit: {amount: 7, surplus: 1}, invalid: true}}
""",
    ),
    "a raw word that is a verdict is a decision": (
        "json-rebuilt",
        ONE_CALL
        + SAYS
        + """
caller:
- {send: Pay}
- decide: {c1: {raw: approve}}
""",
    ),
    "a standing approval covers a call whose tool takes more by then": (
        "copy-stream-restored",
        PAY
        + """
model:
- calls: [{id: c1, tool: pay, arguments: {amount: 5}}]
- {say: Done.}
- calls: [{id: c2, tool: pay, arguments: {amount: 6}}]
"""
        + SAYS
        + """
caller:
- {send: Pay}
- decide: {c1: always}
- restart: {parameters: {pay: {amount: integer, to: string}}}
- {send: Again}
""",
    ),
    "a tool is rejected for good, and a call below its limit follows": (
        "native.sqlite-rebuilt",
        """
title: Pay
tools:
  pay: {approval: {argument: amount, greater_than: 100}, parameters: {amount: integer}, returns: 'paid {amount}'}
model:
- calls: [{id: c1, tool: pay, arguments: {amount: 500}}]
- calls: [{id: c2, tool: pay, arguments: {amount: 5}}]
"""
        + SAYS
        + """
caller:
- {send: Pay}
- decide: {c1: {never: not today}}
""",
    ),
    "a durable store goes on from its present state after an earlier save is restored": (
        "native.sqlite-restored-approve-all",
        """
title: Read
tools:
  read_file: {approval: always}
model:
- {say: Hello.}
- calls: [{id: c2, tool: read_file}]
- {say: Done.}
- {say: Done.}
caller:
- {send: Hello}
- {save: save1}
- {send: Read}
- {restore: save1}
""",
    ),
    "a staged standing approval lets a tool run that asks again": (
        "copy-restored",
        """
title: Delete
tools:
  delete_file: {approval: always, asks_again: 'Really?', returns: ok}
model:
- calls: [{id: c1, tool: delete_file}]
- {say: Done.}
- {say: Done.}
caller:
- {send: Delete}
- stage: {c1: always}
- {go_on: true}
""",
    ),
    "a provider gives two calls one id": (
        "none-held-approve-all",
        """
title: Search
tools:
  search: {approval: always, parameters: {query: string}, kind: hosted_mcp, server: web}
model:
- calls: [{id: mcpr_3, tool: search, arguments: {query: a1}}]
- calls: [{id: mcpr_3, tool: search, arguments: {query: a2}, repeats: true}]
- {say: Done.}
- {say: Done.}
caller:
- {send: Search}
""",
    ),
    "a call is changed to another tool after the parameters of the first one changed": (
        "copy-restored",
        """
title: Write
tools:
  write_row: {approval: always}
  tag: {}
model:
- calls: [{id: c1, tool: write_row}]
- {say: Done.}
- {say: Done.}
caller:
- {send: Write}
- restart: {parameters: {write_row: {row: string, fields: object}}}
- decide: {c1: {edit: {}, tool: tag}}
""",
    ),
    "a provider runs its call although the agent was started with other parameters": (
        "copy-restored-approve-all",
        """
title: Search
tools:
  search: {approval: always, kind: hosted_mcp, server: web}
model:
- calls: [{id: mcpr_3, tool: search}]
- {say: Done.}
caller:
- {send: Search}
- restart: {parameters: {search: {query: integer}}}
""",
    ),
    "a save is restored whose reply names a tool that is missing": (
        "copy-restored",
        """
title: Report
held_back: [report]
tools:
  delete_file: {approval: always}
  report: {approval: always}
model:
- calls: [{id: c1, tool: delete_file}, {id: c2, tool: report}]
caller:
- {send: Report}
- {save: asked}
- decide: {c1: approve}
- {restore: asked}
- restart: {with: [report]}
""",
    ),
    "an approval is staged after an earlier save is restored": (
        "copy-restored",
        """
title: Book
tools:
  book: {approval: always}
model:
- calls: [{id: c1, tool: book}]
- {say: Done.}
- {say: Done.}
caller:
- {send: Book}
- {save: save1}
- decide: {c1: approve}
- {restore: save1}
- stage: {c1: approve}
""",
    ),
    "a limit is reached before the model is told of a call that does not fit": (
        "none-held-approve-all",
        """
title: Write
limits: {tool_calls: 1}
tools:
  write_row: {approval: always, parameters: {row: integer}}
  tag: {approval: always, parameters: {name: string}}
model:
- calls:
  - {id: c1, tool: write_row, arguments: {row: 1}}
  - {id: c3, tool: write_row, arguments: {row: 2}}
  - {id: c2, tool: tag, arguments: {name: 3}, invalid: true}
caller:
- {send: Write}
""",
    ),
    "the caller hangs up before the model is told that a tool is missing": (
        "copy-restored",
        """
title: Report
held_back: [report]
tools:
  book: {approval: always}
  report: {approval: always}
model:
- calls: [{id: c1, tool: book}, {id: c2, tool: report}]
caller:
- {send: Report}
- restart: {with: [report]}
- decide: {c1: approve}
  hangs_up: started c1
""",
    ),
    "a call is changed to a tool that asks again": (
        "none-held",
        """
title: Mail
tools:
  delete_file: {approval: always, asks_again: 'Really?', returns: ok}
  send_mail: {approval: always, parameters: {body: string}}
model:
- calls: [{id: c2, tool: send_mail, arguments: {body: a1}}]
- {say: Done.}
- {say: Done.}
caller:
- {send: Mail}
- decide: {c2: {edit: {}, tool: delete_file}}
- decide: {c2: approve}
""",
    ),
    "an earlier save is restored, and nobody answers": (
        "copy-restored-approve-all",
        """
title: Delete
tools:
  delete_file: {approval: always}
model:
- calls: [{id: c1, tool: delete_file}]
- {say: Done.}
caller:
- {send: Delete}
- {save: save1}
- {oracle: true}
- {restore: save1}
""",
    ),
    "a save is changed, and the model gave its call no id": (
        "json-restored-approve-all",
        """
title: Write
tools:
  write_row: {approval: always}
model:
- calls: [{id: null, tool: write_row, label: x1}]
- {say: Done.}
- {say: Done.}
caller:
- {send: Write}
- rewrite: {old: write_row, new: steal}
""",
    ),
    "the model names a tool of another agent": (
        "none-held-approve-all",
        """
title: Settle
tools:
  to_clerk: {approval: always, hands_over_to: clerk}
  clerk/settle: {approval: always}
model:
- calls: [{id: c5, tool: clerk/settle}]
- {say: Done.}
caller:
- {send: Settle}
""",
    ),
    "a provider gives two calls one id, and the first one is rejected": (
        "none-held",
        """
title: Search
tools:
  search: {approval: always, parameters: {query: string}, kind: hosted_mcp, server: web}
model:
- calls: [{id: mcpr_2, tool: search, arguments: {query: a1}}]
- calls: [{id: mcpr_2, tool: search, arguments: {query: a2}, repeats: true}]
- {say: Done.}
- {say: Done.}
caller:
- {send: Search}
- decide: {mcpr_2: reject}
""",
    ),
    "a durable store shows another call of the same id after an earlier save is restored": (
        "native.sqlite-restored",
        """
title: Read
tools:
  read_file: {approval: always, parameters: {path: string}}
model:
- calls: [{id: c4, tool: read_file, arguments: {path: a1}}]
- calls: [{id: c4, tool: read_file, arguments: {path: a2}, repeats: true}]
- {say: Done.}
caller:
- {send: Read}
- {save: save1}
- decide: {c4: approve}
- {restore: save1}
""",
    ),
    "a durable store goes on, and a message replaces the request of the earlier save": (
        "native.sqlite-restored-approve-all",
        ONE_CALL
        + SAYS
        + """
caller:
- {send: Pay}
- {save: save1}
- {send: Something else}
- {restore: save1}
""",
    ),
    "a durable store takes a second decision about a rejected call at the same time": (
        "native.sqlite-restored",
        PAY
        + """
model:
- calls: [{id: c2, tool: pay, arguments: {amount: 5}}]
- calls: [{id: c3, tool: pay, arguments: {amount: 6}}]
"""
        + SAYS
        + """
caller:
- {send: Pay}
- together: [{decide: {c2: reject}}, {decide: {c2: approve}}]
""",
    ),
    "a durable store gets a message while a decision is taken": (
        "native.sqlite-restored",
        PAY
        + """
  log: {}
model:
- calls: [{id: c4, tool: pay, arguments: {amount: 5}}]
- calls: [{id: c1, tool: log}]
"""
        + SAYS
        + """
caller:
- {send: Pay}
- together: [{decide: {c4: approve}}, {send: And log it}]
- {send: And now?}
""",
    ),
    "a durable store goes on in two turns at the same time after an earlier save is restored": (
        "native.sqlite-restored",
        WEB.replace("APPROVAL", "always")
        + """
model:
- calls: [{id: c1, tool: pay, arguments: {amount: 5}}]
- {say: Done.}
- calls: [{id: mcpr_4, tool: search, arguments: {amount: 6}}]
"""
        + SAYS
        + """
caller:
- {send: Pay}
- {save: save1}
- decide: {c1: approve}
- {restore: save1}
- together: [{decide: {c1: reject}}, {send: Thank you}]
""",
    ),
    "a durable store goes on in the scripts of two nested agents": (
        "native.sqlite-restored",
        """
title: Agents
tools:
  ask_helper: {runs: helper}
  helper/wire: {}
  helper/ask_expert: {approval: always, runs: expert}
agents:
  expert: {model: [{say: Done.}]}
  helper:
    model:
      Wire for dave: [{calls: [{id: e1, tool: ask_expert, arguments: {input: Well?}}]}, {say: Done.}, {say: Done.}]
      Wire for heidi: [{calls: [{id: h2, tool: wire}]}, {say: Done.}]
model:
- calls:
  - {id: o4, tool: ask_helper, arguments: {input: Wire for dave}}
  - {id: o5, tool: ask_helper, arguments: {input: Wire for heidi}}
"""
        + SAYS
        + """
caller:
- {send: Wire}
- together: [{decide: {o5/h2: reject}}, {send: Thank you}]
""",
    ),
    "two turns at the same time share a live agent, and the second one asks": (
        "none-held",
        PAY
        + """
model:
- calls: [{id: c1, tool: pay, arguments: {amount: 1}}]
- {say: Done.}
- calls: [{id: c2, tool: pay, arguments: {amount: 2}}]
"""
        + SAYS
        + """
caller:
- {send: Pay}
- together: [{decide: {c1: approve}}, {send: And now?}]
""",
    ),
    "an approval of a provider's call is staged, and its sibling is still open": (
        "copy-restored",
        WEB.replace("APPROVAL", "always")
        + """
model:
- calls: [{id: c1, tool: pay, arguments: {amount: 5}}, {id: mcpr_3, tool: search, arguments: {amount: 6}}]
- {fails: 500}
"""
        + SAYS
        + """
caller:
- {send: Pay and search}
- stage: {mcpr_3: approve}
- {go_on: true}
""",
    ),
    "a provider's call is closed by a message, and its tool is rejected for good later": (
        "none-held",
        WEB.replace("APPROVAL", "always")
        + """
model:
- calls: [{id: mcpr_3, tool: search, arguments: {amount: 1}}]
- {say: Done.}
- calls: [{id: mcpr_5, tool: search, arguments: {amount: 2}}]
"""
        + SAYS
        + """
caller:
- {send: Search}
- {send: Not this}
- {send: Search}
- decide: {mcpr_5: never}
""",
    ),
    "a limit ends the turn of a second session before it can ask": (
        "none-held-approve-all",
        """
title: Agents
limits: {tool_calls: 1}
tools:
  ask_helper: {runs: helper}
  helper/wire: {approval: always}
agents:
  helper:
    model:
      Wire for dave: [{calls: [{id: h1, tool: wire}]}, {say: Done.}]
      Wire for frank: [{say: Done.}, {say: Done.}]
model:
- {say: Done.}
- calls:
  - {id: o4, tool: ask_helper, arguments: {input: Wire for dave}}
  - {id: o5, tool: ask_helper, arguments: {input: Wire for frank}}
- {say: Done.}
caller:
- {send: Hello}
- {send: Hello, session: bob}
- {send: Wire}
- {send: And now?}
- {send: Wire, session: bob}
""",
    ),
    "a call that was changed to another tool asks again, and the closed request is answered": (
        "none-held",
        PAY
        + """
  tag: {approval: always, asks_again: 'Really?', returns: tagged}
model:
- calls: [{id: c1, tool: pay, arguments: {amount: 5}}]
"""
        + SAYS
        + """
caller:
- {send: Pay}
- decide: {c1: {edit: {}, tool: tag}}
- decide: {c1: approve}
- decide: {c1: approve}
- {send: And now?}
""",
    ),
    "a result is told after a word of it was changed in the save": (
        "json-restored",
        PAY
        + """
  refund: {approval: always, parameters: {order: integer}, returns: 'refunded {order}'}
model:
- calls: [{id: c1, tool: pay, arguments: {amount: 5}}]
- calls: [{id: c3, tool: refund, arguments: {order: 2}}]
"""
        + SAYS
        + """
caller:
- {send: Pay}
- decide: {c1: {edit: {order: 4}, tool: refund}}
- rewrite: {old: refund, new: pay}
""",
    ),
    "a save is changed so that the call hands over, to an agent without the tool": (
        "json-restored-approve-all",
        """
title: Hand over
tools:
  refund: {approval: always}
  to_clerk: {hands_over_to: clerk}
model:
- calls: [{id: c1, tool: refund}]
- calls: [{id: t3, tool: to_clerk}]
- {say: Done.}
caller:
- {send: Refund}
- rewrite: {old: refund, new: to_clerk}
""",
    ),
    "copies of a state that waits for a nested agent are answered at the same time": (
        "copy-restored",
        """
title: Agents
tools:
  ask_helper: {runs: helper}
  helper/wire: {approval: always}
agents:
  helper: {model: [{calls: [{id: h1, tool: wire}]}, {say: Done.}]}
model:
- calls: [{id: o3, tool: ask_helper, arguments: {input: Wire}}]
"""
        + SAYS
        + """
caller:
- {send: Wire}
- together: [{decide: {o3/h1: approve}}, {decide: {o3/h1: approve}}]
""",
    ),
    "an answer that was meant for one copy of a state comes to the other one": (
        "copy-restored",
        """
title: Copies
tools:
  pay: {approval: always, asks_again: 'Really?', returns: paid}
  to_clerk: {hands_over_to: clerk}
  clerk/settle: {approval: always}
model:
- calls: [{id: c1, tool: pay}]
- calls: [{id: t5, tool: to_clerk}]
- calls: [{id: c6, tool: clerk/settle}]
"""
        + SAYS
        + """
caller:
- {send: Pay and settle}
- together: [{decide: {c1: always}}, {decide: {c1: reject}}]
- decide: {c6: approve}
""",
    ),
    "an answer from before an earlier save was restored comes while another call is pending": (
        "copy-restored",
        """
title: Rewound
tools:
  delete_file: {approval: always}
  ask_helper: {runs: helper}
  helper/wire: {approval: always}
  helper/ask_expert: {approval: always, runs: expert}
agents:
  expert: {model: [{say: Done.}]}
  helper:
    model:
    - calls: [{id: h1, tool: wire}]
    - calls: [{id: e1, tool: ask_expert, arguments: {input: Well?}}]
    - {say: Done.}
model:
- fails: 500
- calls: [{id: c1, tool: delete_file}]
- calls: [{id: o3, tool: ask_helper, arguments: {input: Wire}}]
"""
        + SAYS
        + """
caller:
- {send: Delete}
- {save: save1}
- {send: And wire}
- {restore: save1}
- restart: {parameters: {delete_file: {path: string, note: 'string?', approver: string}}}
- {go_on: true}
- decide: {c1: reject}
""",
    ),
    "another session approves a call that only the first one was asked about": (
        "copy-restored",
        """
title: Two sessions
tools:
  pay: {approval: {argument: amount, greater_than: 0}, parameters: {amount: integer}, returns: 'paid {amount}'}
model:
- calls: [{id: c1, tool: pay, arguments: {amount: 1}}]
"""
        + SAYS
        + """
caller:
- {send: Pay}
- restart: {without: [pay]}
- {send: Pay, session: bob}
- {decide: {c1: approve}, session: bob}
""",
    ),
    "an approval for good is about the tool that a changed save shows": (
        "json-restored",
        """
title: Write
tools:
  cap: {approval: {raises: the policy is down}, parameters: {limit: integer}}
  write_row: {approval: always, parameters: {row: integer}}
model:
- calls: [{id: c2, tool: write_row, arguments: {row: 3}}, {id: c1, tool: cap, arguments: {limit: 1}}]
"""
        + SAYS
        + """
caller:
- {send: Write}
- rewrite: {old: write_row, new: cap}
- decide: {c2: always}
""",
    ),
    "a provider runs its own call after the save was changed": (
        "json-restored-approve-all",
        WEB.replace("APPROVAL", "always")
        + """
model:
- calls: [{id: mcpr_2, tool: search, arguments: {amount: 5}}]
"""
        + SAYS
        + """
caller:
- {send: Search}
- rewrite: {old: search, new: delete_file}
""",
    ),
    "a save is changed where it says what a person is asked about a provider's call": (
        "json-restored-approve-all",
        WEB.replace("APPROVAL", "always")
        + """
model:
- calls: [{id: mcpr_2, tool: search, arguments: {amount: 5}}]
"""
        + SAYS
        + """
caller:
- {send: Search}
- rewrite: {old: search, new: delete_file, where: shown}
""",
    ),
    "a changed save is a part of those that are appended to it": (
        "json-append-restored",
        """
title: Mail
tools:
  send_mail: {approval: always, parameters: {to: string}}
model:
- calls: [{id: c1, tool: send_mail, arguments: {to: ann}}]
"""
        + SAYS
        + """
caller:
- {send: Mail}
- {restart: true}
- rewrite: {old: ann, new: eve}
- decide: {c1: {edit: {to: dave, surplus: 6}, invalid: true}}
only: {serialize: json, history: append}
""",
    ),
    "the caller leaves after two turns at the same time, of which the first one asks": (
        "copy-restored",
        """
title: Agents
tools:
  ask_helper: {runs: helper}
  helper/wire: {approval: always, parameters: {sum: integer}}
agents:
  helper:
    model:
    - calls: [{id: h2, tool: wire, arguments: {sum: 3}}]
    - calls: [{id: k2, tool: wire, arguments: {sum: 4}}]
    - {say: Done.}
model:
- calls: [{id: o4, tool: ask_helper, arguments: {input: Wire}}]
"""
        + SAYS
        + """
caller:
- {send: Wire}
- together: [{decide: {o4/h2: approve}}, {send: Thank you}]
- {leave: true}
""",
    ),
    "a provider gives two calls of one reply one id, and only the first one is rejected": (
        "none-held",
        WEB.replace("APPROVAL", "always")
        + """
model:
- calls:
  - {id: mcpr_3, tool: search, arguments: {amount: 5}}
  - {id: mcpr_3, tool: search, arguments: {amount: 6}, repeats: true, label: second}
"""
        + SAYS
        + """
caller:
- {send: Search}
- decide: {mcpr_3: reject, second: approve}
""",
    ),
    "a save is changed where it is not shown, and the model gave its call no id": (
        "json-restored",
        """
title: Refund
tools:
  refund: {approval: always}
model:
- calls: [{id: null, tool: refund, label: x1}]
"""
        + SAYS
        + """
caller:
- {send: Refund}
- rewrite: {old: refund, new: to_clerk, where: hidden}
- decide: {x1: never}
""",
    ),
    "a provider runs two equal calls before it replies": (
        "none-held",
        """
title: Search
equal_arguments: true
tools:
  count: {}
  search: {kind: hosted_mcp, server: web}
model:
- calls: [{id: c3, tool: count}, {id: mcpr_4, tool: search}]
- calls: [{id: mcpr_6, tool: search}]
- {say: Done.}
caller:
- {send: Search}
""",
    ),
    "copies of a state that waits with a hand-over are answered at the same time": (
        "copy-restored",
        """
title: Hand over
tools:
  to_clerk: {approval: always, hands_over_to: clerk}
model:
- {say: Hello.}
- calls: [{id: t3, tool: to_clerk}]
"""
        + SAYS
        + """
caller:
- {send: Hello}
- {send: Hand over}
- together: [{decide: {t3: approve}}, {decide: {t3: approve}}]
""",
    ),
    "a rejection for good covers its sibling under the name that a changed save gives their tool": (
        "json-restored",
        PAY
        + """
model:
- calls: [{id: c1, tool: pay, arguments: {amount: 1}}, {id: c2, tool: pay, arguments: {amount: 2}}]
"""
        + SAYS
        + """
caller:
- {send: Pay}
- rewrite: {old: pay, new: steal}
- decide: {c1: {never: not today}}
""",
    ),
    "a staged approval takes effect when the tool is gone": (
        "copy-restored",
        """
title: Tag
tools:
  tag: {approval: always}
model:
- calls: [{id: c1, tool: tag}]
"""
        + SAYS
        + """
caller:
- {send: Tag, session: bob}
- {restart: true, session: bob}
- restart: {without: [tag]}
- {stage: {c1: approve}, session: bob}
- {go_on: true, session: bob}
""",
    ),
    "a changed save that cannot be restored is restored once more": (
        "json-restored-approve-all",
        """
title: Mail
tools:
  send_mail: {approval: always}
model:
- calls: [{id: c2, tool: send_mail}]
caller:
- {send: Mail}
- rewrite: {old: to, new: to_too}
- {restart: true}
- {restart: true}
""",
    ),
    "an agent is started with a type that the approved text does not have": (
        "copy-restored-approve-all",
        """
title: Search
tools:
  search: {approval: always, parameters: {limit: integer}, returns: 'found {limit}'}
model:
- calls: [{id: c1, tool: search, arguments: {limit: '1'}, invalid: true}]
"""
        + SAYS
        + """
caller:
- {send: Search}
- restart: {parameters: {search: {limit: string}}}
""",
    ),
    "text that looks like a number is approved, and its parameter becomes one": (
        "copy-restored-approve-all",
        """
title: Delete
tools:
  delete_file: {approval: always, parameters: {path: string}, returns: 'deleted {path}'}
model:
- calls: [{id: c1, tool: delete_file, arguments: {path: '001'}}]
"""
        + SAYS
        + """
caller:
- {send: Delete}
- restart: {parameters: {delete_file: {path: integer}}}
""",
    ),
    "a tool is missing by now, and a helper has one of the same name": (
        "copy-rebuilt-approve-all",
        """
title: Delete
tools:
  delete_file: {parameters: {path: string}, returns: 'deleted {path}'}
  ask_helper: {runs: helper, parameters: {input: string}}
  helper/delete_file: {approval: always, parameters: {path: string}, returns: 'deleted {path}'}
agents:
  helper: {model: [{say: Done.}]}
model:
- {say: Hello.}
- calls: [{id: c1, tool: delete_file, arguments: {path: /a}}]
"""
        + SAYS
        + """
caller:
- {send: Hello}
- restart: {without: [delete_file]}
- {send: Delete}
""",
    ),
    "a provider runs two calls with one id, which differ in their arguments": (
        "none-held",
        """
title: A message is sent
tools:
  search: {parameters: {query: string}, kind: hosted_mcp, server: web, returns: "found {query}"}
model:
  - calls:
      - {id: mcpr_2, tool: search, arguments: {query: a1}}
      - {id: mcpr_2, tool: search, arguments: {query: a2}, repeats: true}
caller:
  - send: Go ahead.
""",
    ),
    "a call that runs at the provider is edited before the state is saved, and its caller hangs up": (
        "copy-restored",
        """
title: A call of search is edited, nothing runs yet, a call of write_row is approved, the caller disconnects
tools:
  write_row: {approval: always}
  search: {approval: always, kind: hosted_mcp, server: web}
model:
  - calls: [{id: c1, tool: write_row}, {id: mcpr_2, tool: search}]
caller:
  - send: Go ahead.
  - stage: {mcpr_2: {edit: {}}}
  - decide: {c1: approve}
    hangs_up: started c1
""",
    ),
    "the agent is started with another type before a call whose text reads like a value of it": (
        "copy-restored-approve-all",
        """
title: Delete
tools:
  delete_file: {approval: always, parameters: {path: string}, returns: 'deleted {path}'}
model:
- calls: [{id: c1, tool: delete_file, arguments: {path: a1}}]
- calls: [{id: c4, tool: delete_file, arguments: {path: '004'}}]
"""
        + SAYS
        + """
caller:
- {send: Delete}
- restart: {parameters: {delete_file: {path: integer}}}
""",
    ),
    "a tool is rejected for good in the state, and then its call is approved": (
        "none-held",
        """
title: Delete
tools:
  delete_file:
    {approval: always, parameters: {path: string}, asks_again: 'Really?', returns: 'deleted {path}'}
model:
- calls: [{id: c1, tool: delete_file, arguments: {path: a1}}]
- calls: [{id: c4, tool: delete_file, arguments: {path: a2}}]
"""
        + SAYS
        + """
caller:
- {send: Delete}
- decide: {c1: always}
- stage: {c1: never}
- decide: {c1: approve}
""",
    ),
    "a provider runs a call whose id it has used in an earlier reply": (
        "none-held",
        """
title: Search
tools:
  search: {parameters: {query: string}, kind: hosted_mcp, server: web, returns: 'found {query}'}
model:
- calls: [{id: mcpr_2, tool: search, arguments: {query: a1}}]
- calls: [{id: mcpr_2, tool: search, arguments: {query: a2}, repeats: true}]
caller:
- {send: Search}
- {send: Again}
""",
    ),
    "a tool is missing by now, a helper has one of the same name, and nobody asks the model": (
        "copy-restored",
        """
title: Write
tools:
  write_row: {approval: always}
  ask_helper: {runs: helper}
  helper/write_row: {}
agents:
  helper: {model: [{say: Done.}]}
model:
- calls: [{id: c1, tool: write_row}]
"""
        + SAYS
        + """
caller:
- {send: Write}
- restart: {without: [write_row]}
- stage: {c1: {edit: {}}}
""",
    ),
    "two answers are malformed, and the caller hangs up after the third": (
        "none-held",
        PAY
        + """
model:
- calls: [{id: c1, tool: pay, arguments: {amount: 5}}]
- calls: [{id: c2, tool: pay, arguments: {amount: 6}}]
"""
        + SAYS
        + """
caller:
- {send: Pay}
- decide: {c1: {edit: {surplus: 5}, invalid: true}}
- {send: Again}
- decide: {c2: {raw: true}}
- {decide: {c2: approve}, hangs_up: started c2}
""",
    ),
    "a call is edited to a tool that asks again and then takes more": (
        "copy-restored",
        """
title: Delete
tools:
  refund: {approval: always}
  delete_file: {approval: always, parameters: {path: string}, asks_again: 'Really?', returns: 'deleted {path}'}
model:
- calls: [{id: c1, tool: refund}]
- {say: Done.}
caller:
- {send: Delete}
- decide: {c1: {edit: {path: /a}, tool: delete_file}}
- restart: {parameters: {delete_file: {path: string, approver: string}}}
""",
    ),
    "two calls have one id, and the save names a tool that does not exist": (
        "json-restored-approve-all",
        """
title: Refund
tools:
  refund: {approval: always, parameters: {order: integer}}
model:
- calls: [{id: c1, tool: refund, arguments: {order: 1}}, {id: c1, tool: refund, arguments: {order: 2}, repeats: true}]
- {say: Done.}
caller:
- {send: Refund}
- rewrite: {old: refund, new: steal}
""",
    ),
    "the result of a settled call is changed in the save, and the call is approved again": (
        "json-restored",
        """
title: Refund
tools:
  refund: {approval: always, parameters: {order: integer}, returns: 'refunded {order}'}
model:
- calls: [{id: c1, tool: refund, arguments: {order: 1}}]
"""
        + SAYS
        + """
caller:
- {send: Refund}
- {oracle: 1}
- rewrite: {old: refund, new: steal}
- decide: {c1: approve}
- {send: And now?}
""",
    ),
    "a staged standing rejection is replaced, and a call below the limit follows": (
        "none-held",
        """
title: Mail
tools:
  send_mail: {approval: {argument: to, starts_with: a}, parameters: {to: string}}
model:
- calls: [{id: c1, tool: send_mail, arguments: {to: a1}}]
- calls: [{id: c2, tool: send_mail, arguments: {to: carol}}]
"""
        + SAYS
        + """
caller:
- {send: Mail}
- stage: {c1: never}
- decide: {c1: approve}
""",
    ),
    "a message closes a helper after the caller hung up, and the model fails": (
        "copy-restored",
        """
title: Wire
tools:
  ask_helper: {runs: helper}
  helper/wire: {approval: always, parameters: {sum: integer}}
agents:
  helper:
    model:
      Wire for grace:
      - calls: [{id: h1, tool: wire, arguments: {sum: 3}}]
      - calls: [{id: k1, tool: wire, arguments: {sum: 4}}]
      - say: Done.
      Wire for judy: [{calls: [{id: h1, tool: wire, arguments: {sum: 5}}]}, {say: Done.}]
model:
- calls:
  - {id: o4, tool: ask_helper, arguments: {input: Wire for grace}}
  - {id: o5, tool: ask_helper, arguments: {input: Wire for judy}}
- {fails: 500}
caller:
- {send: Wire}
- {decide: {o4/h1: approve, o5/h1: approve}, hangs_up: started o5/h1}
- {send: And now?}
- decide: {o4/k1: approve}
""",
    ),
    "a standing approval lets a call run that a limit kept from running, after a cancellation": (
        "none-held",
        """
title: Read
limits: {tool_calls: 1}
tools:
  read_file: {approval: always, parameters: {path: string}}
model:
- calls: [{id: c2, tool: read_file, arguments: {path: a1}}, {id: c3, tool: read_file, arguments: {path: a2}}]
"""
        + SAYS
        + """
caller:
- {send: Read}
- decide: {c2: always}
- {cancel: true}
- stage: {c3: approve}
- {go_on: true}
""",
    ),
    "two equal calls have one id, and one of them has an empty text for no arguments": (
        "none-held-approve-all",
        """
title: Restart
tools:
  restart_server: {approval: always}
model:
- calls: [{id: c2, tool: restart_server, arguments: ''}, {id: c2, tool: restart_server, repeats: true}]
"""
        + SAYS
        + """
caller:
- {send: Restart}
""",
    ),
    "copies of a state are answered at the same time, and only the second answer approves": (
        "copy-restored",
        """
title: Delete
tools:
  delete_file: {approval: always}
  look: {parameters: {what: string}, calls: {c4: {waits_for: started c5, returns: 'saw {what}'}}}
model:
- calls: [{id: c1, tool: delete_file}]
- calls: [{id: c4, tool: look, arguments: {what: a2}}, {id: c5, tool: look, arguments: {what: a3}}]
"""
        + SAYS
        + """
caller:
- {send: Delete}
- together: [{decide: {c1: reject}}, {decide: {c1: approve}}]
""",
    ),
    "of two equal calls one has no id, and both are read as numbers": (
        "none-held-approve-all",
        """
title: Write
equal_arguments: true
tools:
  write_row: {approval: always, parameters: {row: integer}, returns: 'wrote {row}'}
model:
- calls:
  - {id: null, tool: write_row, arguments: {row: '7'}, label: x1, invalid: true}
  - {id: c6, tool: write_row, arguments: {row: '7'}, invalid: true}
"""
        + SAYS
        + """
caller:
- {send: Write}
""",
    ),
    "a changed save shows another tool than the one that was approved for good, in the middle of its calls": (
        "json-restored",
        """
title: Cap
tools:
  cap: {approval: always, parameters: {strict: boolean}, asks_again: 'Really?', returns: ok}
model:
- calls:
  - {id: c2, tool: cap, arguments: {strict: true}}
  - {id: c1, tool: cap, arguments: {strict: 'true'}, invalid: true}
"""
        + SAYS
        + """
caller:
- {send: Cap}
- decide: {c2: always}
- rewrite: {old: cap, new: steal}
""",
    ),
    "a call without an id comes after a restart with a type by which its text reads differently": (
        "copy-restored-approve-all",
        """
title: Delete
tools:
  delete_file: {approval: always, parameters: {path: string}}
model:
- {say: Done.}
- calls: [{id: null, tool: delete_file, arguments: {path: '004'}, label: x4}]
"""
        + SAYS
        + """
caller:
- {send: Hello}
- restart: {parameters: {delete_file: {path: integer, currency: {type: string, default: EUR}}}}
- {send: Delete}
""",
    ),
    "two calls have one id, and only one of them fits after a restart": (
        "copy-restored-approve-all",
        """
title: Delete
tools:
  delete_file: {approval: always, parameters: {path: string}, returns: {status: ok, id: 7}}
model:
- calls:
  - {id: c1, tool: delete_file, arguments: {path: '001'}}
  - {id: c1, tool: delete_file, arguments: {path: a2}, repeats: true}
"""
        + SAYS
        + """
caller:
- {send: Delete}
- restart: {parameters: {delete_file: {path: integer}}}
""",
    ),
    "an edit names no tool, and is about the one that a changed save shows": (
        "json-restored",
        """
title: Delete
tools:
  delete_file: {approval: always}
  restart_server: {approval: always}
model:
- calls: [{id: c1, tool: delete_file}]
"""
        + SAYS
        + """
caller:
- {send: Delete}
- rewrite: {old: delete_file, new: restart_server}
- decide: {c1: {edit: {}}}
""",
    ),
    "copies of a state are answered at the same time, and both hand over after calls that wait": (
        "copy-restored",
        """
title: Settle
tools:
  pay: {approval: always}
  look: {parameters: {what: string}, calls: {c4: {waits_for: started c5, returns: 'saw {what}'}}}
  to_clerk: {hands_over_to: clerk}
  clerk/settle: {approval: always}
model:
- calls: [{id: c1, tool: pay}]
- calls: [{id: c4, tool: look, arguments: {what: a2}}, {id: c5, tool: look, arguments: {what: a3}}]
- calls: [{id: t6, tool: to_clerk}]
- calls: [{id: c7, tool: clerk/settle}]
"""
        + SAYS
        + """
caller:
- {send: Settle}
- together: [{decide: {c1: approve}}, {decide: {c1: reject}}]
""",
    ),
    "a call that did not fit when it came would fit after a restart, before the model was told": (
        "copy-restored",
        """
title: Delete
tools:
  delete_file: {approval: always, parameters: {path: string}}
model:
- calls:
  - {id: c1, tool: delete_file, arguments: {path: a1}}
  - {id: c2, tool: delete_file, arguments: {path: 2}, invalid: true}
"""
        + SAYS
        + """
caller:
- {send: Delete}
- restart: {parameters: {delete_file: {path: integer}}}
- decide: {c1: always}
""",
    ),
    "a provider's call is approved after the one with its id before it was trimmed": (
        "none-held-approve-all",
        """
title: Search
tools:
  find: {approval: always, parameters: {page: string}, kind: hosted_mcp, server: web}
model:
- calls: [{id: m1, tool: find, arguments: {page: a1}}]
- calls: [{id: m1, tool: find, arguments: {page: a2}, repeats: true}]
- {say: Done.}
caller:
- {send: Search}
- {send: Search again}
- {trim: 2}
""",
    ),
    "a provider ran a call of a reply that broke off, and the next one has its id": (
        "none-held",
        """
title: Search
tools:
  find_on_wiki: {parameters: {page: string}, called: find, kind: hosted_mcp, server: wiki, returns: "found {page}"}
model:
- {calls: [{id: mcpr_4, tool: find_on_wiki, arguments: {page: a1}}], fails: garbled, breaks_after: 1}
- calls: [{id: mcpr_4, tool: find_on_wiki, arguments: {page: a2}, repeats: true}]
- {say: Done.}
caller:
- {send: Search}
- {send: Search again}
""",
    ),
    "a delegation is edited to an input for which the agent inside has a script of its own": (
        "none-held",
        """
title: Delegate
tools:
  ask_helper: {approval: always, runs: helper}
  helper/pay: {approval: always, parameters: {amount: integer}}
agents:
  helper:
    model:
      Pay 500: [{calls: [{id: c1, tool: pay, arguments: {amount: 500}}]}, {say: 500 went out.}]
      Pay 50: [{calls: [{id: c2, tool: pay, arguments: {amount: 50}}]}, {say: 50 went out.}]
model:
- calls: [{id: o1, tool: ask_helper, arguments: {input: Pay 500}}]
- {say: Done.}
caller:
- {send: Pay 500}
- decide: {o1: {edit: {input: Pay 50}}}
- decide: {o1/c2: approve}
""",
    ),
    "a call that says more than its tool takes, and one that says just that, have no id": (
        "none-held",
        """
title: Read
tools:
  read: {parameters: {path: string}}
model:
- calls:
  - {id: null, label: a, tool: read, arguments: {path: x, extra: 1}, invalid: true}
  - {id: null, label: b, tool: read, arguments: {path: x}}
- {say: Done.}
""",
    ),
}

FACTS = describe_adapter(ReferenceAgent)


def play(text, variant, agent=ReferenceAgent):
    facts = FACTS if agent is ReferenceAgent else describe_adapter(agent)
    story = parse_scenario(text, name="story", path="story.approval.yaml")
    chosen = next(one for one in allowed_variants(story, facts, {}) if one.id == variant)
    source = InProcessSource(name="reference", adapter=agent, facts=facts)
    return read_history(asyncio.run(run_scenario(story, chosen, source)).events)


@pytest.mark.parametrize("story", STORIES)
def test_the_reference_agent_fails_no_check(story):
    """A check that fails here is wrong, or the reference agent is."""
    variant, text = STORIES[story]

    shown = [verdict for verdict in judge(play(text, variant)) if verdict.status in SHOWN_STATUSES]

    assert [] == [verdict for verdict in shown if verdict.status != "warning"]


@pytest.mark.parametrize(
    ("design", "variant", "text"),
    [
        pytest.param(
            "CallIdsAreTheAgentsOwn",
            "json-restored",
            """
title: Pay
equal_arguments: true
tools:
  pay: {approval: always, parameters: {amount: integer}}
model:
  - calls: [{id: c1, tool: pay, arguments: {amount: 1}}, {id: c2, tool: pay, arguments: {amount: 2}}]
  - calls: [{id: c3, tool: pay, arguments: {amount: 2}}]
  - say: Done.
caller:
  - send: Go ahead.
  - rewrite: {old: amount, new: amount_too}
  - decide: {c1: always}
""",
            id="a call is equal to one that a changed save has made unlike it",
        ),
        pytest.param(
            "CallIdsAreTheAgentsOwn",
            "json-restored-approve-all",
            """
title: Send
equal_arguments: true
tools:
  send_mail: {approval: always}
model:
  - calls: [{id: c3, tool: send_mail}, {id: c2, tool: send_mail, arguments: "[1, 2]"}]
  - calls: [{id: c4, tool: send_mail, arguments: "[1, 2]"}]
  - say: Done.
caller:
  - send: Go ahead.
  - rewrite: {old: send_mail, new: steal}
""",
            id="a call that its tool cannot take is equal to one whose tool a changed save has renamed",
        ),
        pytest.param(
            "EditsRewriteTheCall",
            "none-held",
            PAY
            + "model:\n- calls: [{id: null, tool: pay, arguments: {amount: 5}, label: x1}]\n"
            + SAYS
            + "caller:\n- {send: Pay}\n- decide: {x1: {edit: {amount: 4}}}\n",
            id="an edit rewrites a call to which the model gave no id",
        ),
        pytest.param(
            "RequestIdsChangeAndAllCount",
            "none-rebuilt",
            ONE_CALL + SAYS + "caller:\n- {send: Pay}\n- decide: [{c1: approve}, {c1: approve}]\n",
            id="a request has another id when it is asked for after a refused turn",
        ),
        pytest.param(
            "CallIdsAreTheAgentsOwn",
            "copy-restored",
            """
title: Mail
equal_arguments: true
tools:
  send_mail: {approval: always}
model:
- calls: [{id: c2, tool: send_mail}]
- {say: Done.}
- calls: [{id: c4, tool: send_mail}]
"""
            + SAYS
            + """
caller:
- {send: Mail}
- decide: {c2: approve}
- {send: Again}
- restart: {parameters: {send_mail: {to: integer, body: string}}}
- {trim: 2}
- decide: {c4: approve}
""",
            id="a call is known by its new id after an equal one was trimmed",
        ),
        pytest.param(
            "CallIdsAreTheAgentsOwn",
            "copy-restored",
            """
title: Mail
equal_arguments: true
tools:
  send_mail: {approval: always}
model:
- calls: [{id: c2, tool: send_mail}]
- {say: Done.}
- calls: [{id: c3, tool: send_mail}]
- calls: [{id: c4, tool: send_mail}]
"""
            + SAYS
            + """
caller:
- {send: Mail}
- stage: {c2: always}
- decide: {c2: approve}
- {send: Again}
- restart: {parameters: {send_mail: {to: integer, body: string}}}
- {trim: 2}
- decide: {c3: approve}
""",
            id="a call gets its new id after an equal one was trimmed",
        ),
        pytest.param(
            "CallIdsAreTheAgentsOwn",
            "none-held-approve-all",
            """
title: Write
equal_arguments: true
tools:
  write_row: {approval: always}
model:
- calls: [{id: null, tool: write_row, label: x4}]
- calls: [{id: c5, tool: write_row}]
"""
            + SAYS
            + "caller:\n- {send: Write}\n",
            id="an equal call had no id in an earlier reply",
        ),
        pytest.param(
            "CallIdsAreTheAgentsOwn",
            "none-held-approve-all",
            """
title: Write
equal_arguments: true
tools:
  write_row: {approval: always}
model:
- thinks: I come to step 1.
  calls: [{id: c1, tool: write_row}, {thinks: Then comes step 2., id: null, tool: write_row, label: x4}]
"""
            + SAYS
            + "caller:\n- {send: Write}\n",
            id="reasoning leads to each of two equal calls of one reply",
        ),
        pytest.param(
            "RequestIdsChangeAndTheLastCounts",
            "copy-restored",
            """
title: Cap
tools:
  cap: {approval: always, parameters: {currency: {type: string, default: EUR}}, asks_again: 'Really?'}
  report: {approval: always}
model:
- calls: [{id: c2, tool: cap}]
- calls: [{id: c4, tool: report}]
"""
            + SAYS
            + """
caller:
- {send: Cap}
- together: [{decide: {c2: {edit: {surplus: 16}, invalid: true}}}, {send: One more thing.}]
- decide: {c2: approve}
- decide: {c4: approve}
""",
            id="a request of one of two futures is answered in the other one",
        ),
        pytest.param(
            "RequestsHideTheCallId",
            "none-held",
            """
title: Mail
equal_arguments: true
tools:
  send_mail: {approval: always}
model:
- calls: [{id: c2, tool: send_mail}, {id: c4, tool: send_mail}]
"""
            + SAYS
            + "caller:\n- {send: Mail}\n- decide: {c2: approve}\n",
            id="the request of the second of two equal calls stays open",
        ),
        pytest.param(
            "RequestsHideTheCallId",
            "json-restored-approve-all",
            """
title: Delete
tools:
  delete_file: {approval: always}
model:
- calls: [{id: null, tool: delete_file, label: x1}]
"""
            + SAYS
            + "caller:\n- {send: Delete}\n- rewrite: {old: delete_file, new: cap}\n",
            id="a changed save shows another tool of a call that no id tells",
        ),
        pytest.param(
            "EveryCallWaitsForItsSiblings",
            "json-restored",
            """
title: Mail
tools:
  send_mail: {approval: always, parameters: {body: string}}
model:
- calls: [{id: c2, tool: send_mail, arguments: {body: a1}}, {id: c5, tool: send_mail, arguments: {body: a2}}]
"""
            + SAYS
            + """
caller:
- {send: Mail}
- decide: {c2: approve}
- rewrite: {old: send_mail, new: steal}
- decide: {c5: approve}
""",
            id="an approved call waits for its sibling, and its save is changed by then",
        ),
        pytest.param(
            "MessagesAreRefusedWhilePending",
            "none-held",
            """
title: Book
tools:
  book: {approval: always}
  cap: {approval: always}
model:
- calls: [{id: c1, tool: book}, {id: c2, tool: cap}]
- {fails: 500}
caller:
- {send: Book}
- {decide: {c1: approve}, hangs_up: started c1}
- {send: And now?}
- decide: {c2: approve}
""",
            id="a message is refused after a disconnect, and the model fails in the turn with the answer",
        ),
        pytest.param(
            "RequestsAreListedBackwards",
            "none-held",
            """
title: Restart
tools:
  restart: {approval: always}
model:
- calls: [{id: c2, tool: restart, arguments: "", label: x1}, {id: c2, tool: restart, repeats: true, label: x2}]
"""
            + SAYS
            + """
caller:
- {send: Restart}
- decide: {x1: approve, x2: approve}
""",
            id="of two equal calls with one id, that with an id of the agent's own is listed first",
        ),
        pytest.param(
            "RequestsHideTheCallId",
            "none-held",
            """
title: Pay
tools:
  pay: {approval: always, parameters: {currency: {type: string, default: EUR}}, asks_again: "Really?", returns: ok}
  refund: {approval: always}
model:
- calls: [{id: c2, tool: refund}]
"""
            + SAYS
            + """
caller:
- {send: Refund}
- decide: {c2: {edit: {}, tool: pay}}
""",
            id="the tool of an edit asks again, with a default that the edit did not name",
        ),
        pytest.param(
            "CallsRunOneAfterTheOther",
            "copy-restored",
            """
title: Delete
limits: {tool_calls: 1}
tools:
  delete_file: {approval: always, parameters: {path: string}, asks_again: 'Really?', returns: 'deleted {path}'}
model:
- calls:
  - {id: c1, tool: delete_file, arguments: {path: a1}}
  - {id: c1, tool: delete_file, arguments: {path: a2}, repeats: true}
"""
            + SAYS
            + """
caller:
- {send: Delete}
- decide: {c1: always}
- decide: {c1: never}
""",
            id="a call that was released by a standing approval runs after its tool was rejected for good",
        ),
        pytest.param(
            "PoliciesAreAskedLast",
            "json-restored",
            """
title: Delete
tools:
  delete_file: {approval: always}
  to_clerk: {approval: always, hands_over_to: clerk}
model:
- calls: [{id: c1, tool: delete_file}]
- calls: [{id: t5, tool: to_clerk}]
"""
            + SAYS
            + """
caller:
- {send: Delete}
- decide: {c1: always}
- rewrite: {old: delete_file, new: to_clerk}
- {send: And now?}
""",
            id="a changed save has a standing approval of another tool",
        ),
        pytest.param(
            "EveryCallWaitsForItsSiblings",
            "copy-restored-approve-all",
            """
title: Book
tools:
  book: {approval: always}
  read_page: {}
model:
- calls: [{id: c1, tool: book}, {id: c3, tool: read_page}]
"""
            + SAYS
            + """
caller:
- {send: Book}
- restart: {parameters: {read_page: {page: string}}}
- {oracle: true}
""",
            id="a free call waits for its sibling, and its tool takes other arguments by then",
        ),
        pytest.param(
            "CallIdsAreTheAgentsOwn",
            "none-held",
            """
title: Send
equal_arguments: true
tools:
  send_mail: {approval: always}
model:
- calls: [{id: c2, tool: send_mail}, {id: c3, tool: send_mail}]
"""
            + SAYS
            + """
caller:
- {send: Send}
- decide: {c2: approve}
- decide: {c3: reject}
""",
            id="of two equal calls with ids of the agent's own the first is decided",
        ),
        pytest.param(
            "RequestIdsChangeAndAllCount",
            "copy-stream-restored",
            """
title: Delete
limits: {tool_calls: 3}
tools:
  delete_file: {approval: always, parameters: {path: string}}
  send_mail: {approval: always}
  ask_helper: {runs: helper}
  helper/wire: {approval: always}
agents:
  helper:
    model:
      Wire for erin: [{calls: [{id: h1, tool: wire}]}, {say: Done.}]
      Wire for grace: [{say: Done.}, {say: Done.}]
model:
- calls: [{id: c3, tool: send_mail}, {id: c4, tool: delete_file, arguments: {path: a2}}]
- calls:
  - {id: o5, tool: ask_helper, arguments: {input: Wire for erin}}
  - {id: o6, tool: ask_helper, arguments: {input: Wire for grace}}
"""
            + SAYS
            + """
caller:
- {send: Delete}
- together:
  - decide: {c3: {edit: {path: grace2}, tool: delete_file}, c4: approve}
  - decide: {c3: {edit: {path: heidi2}, tool: delete_file}, c4: {reject: not today}}
""",
            id="a save of one of two turns at the same time lists what the other's stream did not show",
        ),
    ],
)
def test_a_legitimate_design_fails_no_check(design, variant, text):
    """A drawn story in which a check failed on a design that is right."""
    shown = [verdict for verdict in judge(play(text, variant, DESIGNS[design])) if verdict.status in SHOWN_STATUSES]

    assert [] == [verdict for verdict in shown if verdict.status != "warning"]


def test_a_provider_runs_its_call_before_its_reply_breaks_off_in_any_variant():
    """A stream that breaks off and a reply that never comes have the same outcome."""
    text = (
        WEB.replace("APPROVAL", "always")
        + "model:\n- calls: [{id: mcpr_4, tool: search, arguments: {amount: 5}}]\n"
        + "- {calls: [{id: c5, tool: pay, arguments: {amount: 6}}], breaks_after: 2}\n"
        + SAYS
        + "caller:\n- {send: Search}\n- decide: {mcpr_4: approve}\n"
    )

    histories = [play(text, variant) for variant in ("copy-restored", "copy-stream-restored")]

    assert [] == [verdict for verdict in judge_group(histories) if verdict.status in SHOWN_STATUSES]
    assert [1, 1] == [len(history.executions) for history in histories]


def test_a_store_sorts_the_keys_of_an_edit_that_the_model_is_told():
    """What was saved has its keys in another order, and so has the text that the agent makes of it."""
    text = (
        PAY.replace("{amount: integer}", "{to: string, amount: integer}")
        + "model:\n- calls: [{id: c1, tool: pay, arguments: {to: Ann, amount: 5}}]\n- {say: Done.}\n"
        + "caller:\n- {send: Pay}\n- stage: {c1: {edit: {to: Bob, amount: 6}}}\n- {go_on: true}\n"
    )
    histories = [play(text, variant, DESIGNS["SavedKeysAreSorted"]) for variant in ("none-held", "json-restored")]

    assert [] == [verdict for verdict in judge_group(histories) if verdict.status in SHOWN_STATUSES]
    assert 2 == len({history.calls[0].deliveries[0].text for history in histories})


def test_a_save_that_was_restored_already_is_changed_in_any_variant():
    """Whether it is kept whole or turn by turn, the agent goes on with what the changed save says."""
    text = (
        PAY
        + "model:\n- calls: [{id: c1, tool: pay, arguments: {amount: 5}}]\n"
        + SAYS
        + "vary: [history]\ncaller:\n- {send: Pay}\n- {restart: true}\n- rewrite: {old: pay, new: steal}\n"
        + "- {oracle: true}\n- {send: And now?}\n"
    )

    variants = ("json-restored-approve-all", "json-append-restored-approve-all")
    histories = [play(text, variant) for variant in variants]

    assert [] == [verdict for verdict in judge_group(histories) if verdict.status in SHOWN_STATUSES]
    assert [[], []] == [history.executions for history in histories]


def test_a_caller_who_goes_back_does_not_answer_a_request_of_the_future_that_was_given_up():
    """The state was set back to a save that does not know the newer request, so the older one is answered."""
    text = (
        """
title: Tag
tools:
  tag: {approval: always, asks_again: 'Really?'}
model:
- calls: [{id: c1, tool: tag}]
"""
        + SAYS
        + "vary: [source]\ncaller:\n- {send: Tag}\n- {save: early}\n- decide: {c1: approve}\n- {restore: early}\n"
    )

    history = play(text, "copy-held", FLAVOURS["chat"])

    assert ["paused", "finished"] == [turn.outcome if not turn.refused else "refused" for turn in history.turns][-2:]
    assert [] == [verdict for verdict in judge(history) if verdict.status in SHOWN_STATUSES]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            """
title: Wire
limits: {model_replies: 1}
tools:
  ask_helper: {runs: helper}
  helper/wire: {approval: always}
agents:
  helper: {model: {Wire: [{calls: [{id: h1, tool: wire}]}, {say: Done.}], Else: [{say: Done.}]}}
model:
- calls:
  - {id: o3, tool: ask_helper, arguments: {input: Wire}}
  - {id: o4, tool: ask_helper, arguments: {input: Else}}
caller: [{send: Go}, {send: Go}, {oracle: true}, {send: Go}]
""",
            id="in a helper",
        ),
        pytest.param(
            """
title: Send
limits: {tool_calls: 1}
tools:
  send_mail: {approval: always, parameters: {body: string}, asks_again: 'Really?', returns: ok}
model:
- calls: [{id: c1, tool: send_mail, arguments: {body: a1}}, {id: c2, tool: send_mail, arguments: {body: a2}}]
caller: [{send: Go}, {oracle: 1}, {decide: {c1: approve}}]
""",
            id="that asks again",
        ),
    ],
)
def test_a_live_agent_is_compared_with_its_like_after_a_failure_that_showed_nothing(text):
    """A restored state lists the call that waits, so its caller can decide about it."""
    story = parse_scenario(text, name="story", path="story.approval.yaml")
    variants = [one.id for one in allowed_variants(story, describe_adapter(FLAVOURS["chat"]), {})]
    chosen = [variants[0], next(one for one in variants if one.startswith("native.sqlite"))]

    histories = [play(text, variant, FLAVOURS["chat"]) for variant in chosen]

    assert [] == [verdict for verdict in judge_group(histories) if verdict.status in SHOWN_STATUSES]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            """
title: Send
tools:
  send_mail: {approval: always, parameters: {body: string}, asks_again: 'Really?', returns: ok}
  wire: {approval: always}
model:
- calls: [{id: c5, tool: send_mail, arguments: {body: a1}}]
- calls: [{id: c6, tool: wire}]
- {say: Done.}
- {say: Done.}
caller:
- {send: Send}
- decide: {c5: {edit: {body: a9}}}
- decide: {c5: approve}
- together: [{decide: {c6: approve}}, {decide: {c6: reject}}]
""",
            id="a call was edited and asked again before the turns",
        ),
        pytest.param(
            """
title: Write
tools:
  write_row: {approval: always, parameters: {row: integer}}
  read_file: {approval: always}
  list_files: {approval: always}
model:
- calls: [{id: c1, tool: write_row, arguments: {row: 1}}]
- calls: [{id: c3, tool: read_file}, {id: c4, tool: write_row, arguments: {row: 2}}]
- calls: [{id: c5, tool: list_files}]
- {say: Done.}
- {say: Done.}
- {say: Done.}
caller:
- {send: Write}
- decide: {c1: always}
- together: [{decide: {c3: approve, c4: reject}}, {send: Thank you.}]
""",
            id="the first of them answers in two steps",
        ),
    ],
)
def test_a_session_goes_on_after_turns_at_the_same_time(text):
    """Nothing of what was said or decided before is taken for another thing."""
    history = play(text, "copy-restored", FLAVOURS["chat"])

    failing = [verdict for verdict in judge(history) if verdict.status in ("fail", "harness-error")]
    assert [] == [verdict.check for verdict in failing if verdict.check != "scenario-exercised"]


def test_a_save_from_before_a_streamed_turn_says_nothing_about_its_stream():
    """A request that surfaces when an old save is restored is not one that the stream has hidden."""
    text = """
title: Wire
tools:
  ask_helper: {runs: helper}
  helper/wire: {approval: always, parameters: {sum: integer}}
  helper/ask_expert: {runs: expert}
  expert/sign: {approval: always}
agents:
  expert: {model: [{calls: [{id: s1, tool: sign}]}, {say: Done.}]}
  helper:
    model:
      Wire for heidi:
      - calls: [{id: e1, tool: ask_expert, arguments: {input: a4}}]
      - calls: [{id: h1, tool: wire, arguments: {sum: 5}}]
      - say: Done.
      Wire for ann: [{calls: [{id: h2, tool: wire, arguments: {sum: 6}}]}, {say: Done.}]
model:
- calls:
  - {id: o4, tool: ask_helper, arguments: {input: Wire for heidi}}
  - {id: o5, tool: ask_helper, arguments: {input: Wire for ann}}
- {say: Done.}
caller:
- {send: Wire}
- decide: {o4/e1/s1: approve, o5/h2: approve}
  hangs_up: started o5/h2
- together: [{decide: {o4/h1: reject}}, {send: Go on.}]
"""

    assert [] == [each for each in judge(play(text, "copy-stream-restored")) if each.status in SHOWN_STATUSES]


def test_an_oracle_is_not_asked_about_what_a_failed_turn_did_not_show():
    """Only a restored state lists the request, so the outcome is another one than on a live object."""
    text = """
title: Wire
limits: {model_replies: 2}
tools:
  ask_helper: {runs: helper}
  helper/wire: {approval: always, parameters: {sum: integer}}
agents:
  helper:
    model:
      Wire for grace: [{calls: [{id: h1, tool: wire, arguments: {sum: 3}}]}, {say: Done.}]
      Wire for judy: [{say: Done.}]
model:
- calls:
  - {id: o5, tool: ask_helper, arguments: {input: Wire for grace}}
  - {id: o6, tool: ask_helper, arguments: {input: Wire for judy}}
"""
    histories = [
        play(text, variant, FLAVOURS["chat"]) for variant in ("none-held-reject-all", "copy-restored-reject-all")
    ]

    assert ["o5/h1"] == [request["label"] for request in histories[0].end.pending]
    assert [] == [verdict for verdict in judge_group(histories) if verdict.status in SHOWN_STATUSES]


EQUAL_CALLS = """
title: Drop
equal_arguments: true
tools:
  drop: {approval: always, asks_again: "Really?", returns: dropped}
model:
- calls: [{id: c1, tool: drop}, {id: c2, tool: drop}]
- {say: Dropped once.}
caller:
- {send: Go ahead.}
- decide: {c1: never, c2: approve}
- {oracle: true}
"""


@pytest.mark.parametrize("design", ["RequestsHideTheCallId", "RequestsHideTheCallIdAndComeBackwards"])
def test_of_equal_calls_the_one_that_ran_asks_again(design):
    """Its request shows no id of a call, and the other one was rejected for good."""
    history = play(EQUAL_CALLS, "none-held", DESIGNS[design])

    assert ["asked", "returned"] == [execution.how for execution in history.executions]
    assert [] == [verdict for verdict in judge(history) if verdict.status in SHOWN_STATUSES]


def test_an_id_of_the_agents_own_comes_again_with_that_of_the_model():
    """The second of two equal calls is asked about under the id that the agent has made of the first one's."""
    text = (
        PAY
        + "equal_arguments: true\nmodel:\n- calls: [{id: c1, tool: pay, arguments: {amount: 5}}]\n"
        + "- calls: [{id: c1, tool: pay, arguments: {amount: 5}, repeats: true}]\n"
        + SAYS
        + "caller:\n- {send: Pay twice}\n- {oracle: true}\n"
    )
    history = play(text, "none-held-approve-all", DESIGNS["CallIdsAreDigests"])

    assert [["c1"], ["c1#2"]] == [[call.label for call in turn.requested_calls] for turn in history.turns[:2]]
    assert [] == [verdict for verdict in judge(history) if verdict.status in SHOWN_STATUSES]


ASKING_TWICE = """
title: Drop
tools:
  read: {approval: always}
  drop:
    approval: always
    parameters: {amount: integer}
    does: [{asks_again: "Sure?"}, {asks_again: "Very sure?"}, {returns: ok}]
model:
- calls: [{id: c1, tool: read}, {id: c2, tool: drop, arguments: {amount: 2}}]
caller:
- {send: Go ahead.}
- together: [{decide: {c1: approve, c2: {edit: {amount: 1}}}}, {decide: {c1: approve, c2: approve}}]
vary: [source]
"""


def test_a_rebuilt_answer_is_about_a_question_of_its_own_copy():
    """After two submissions to copies of one state, the request that was shown last may be one of the other copy."""
    histories = [play(ASKING_TWICE, variant) for variant in ("copy-held", "copy-rebuilt")]

    assert [4, 6] == [len(history.executions) for history in histories]
    assert [] == [verdict for verdict in judge_group(histories) if verdict.status in SHOWN_STATUSES]


def test_equal_answers_have_equal_outcomes_in_copies_of_a_state():
    """Runs whose callers answer with requests of one kind are compared also then."""
    one, other = [play(ASKING_TWICE, variant) for variant in ("copy-held", "copy-rebuilt")]
    other.header.variant = {**other.header.variant, "source": "held"}

    assert ["fail"] == [verdict.status for verdict in judge_group([one, other]) if verdict.status in SHOWN_STATUSES]


def test_a_turn_that_is_left_out_uses_no_copy_of_the_session():
    """When one of two turns at the same time cannot be taken, the session goes on after the other one."""
    text = (
        PAY
        + "model:\n- {say: Hello.}\n- {say: Hello.}\n- calls: [{id: c2, tool: pay, arguments: {amount: 5}}]\n"
        + SAYS
        + "caller:\n- {send: Hello}\n- {send: Hello}\n- together: [{decide: {c2: approve}}, {send: Pay}]\n"
    )

    failing = {verdict.check for verdict in judge(play(text, "copy-restored")) if verdict.status in SHOWN_STATUSES}

    # That a step was left out is reported.
    assert {"scenario-exercised"} == failing


def test_helpers_that_ask_at_once_with_one_id_are_told_apart_by_values():
    """A value that one of them left out is shown as null."""
    text = (
        """
title: Write
tools:
  ask_helper: {runs: helper, approval: always, parameters: {input: string}}
  helper/write_row: {approval: always, parameters: {note: 'string?'}, returns: written}
agents:
  helper:
    model:
      Write one: [{calls: [{id: h1, tool: write_row, arguments: {}}]}, {say: Done.}]
      Write two: [{calls: [{id: h1, tool: write_row, arguments: {note: a4}}]}, {say: Done.}]
model:
- calls:
  - {id: o1, tool: ask_helper, arguments: {input: Write one}}
  - {id: o2, tool: ask_helper, arguments: {input: Write two}}
"""
        + SAYS
        + "caller:\n- {send: Write}\n- decide: {o1: approve, o2: approve}\n"
    )

    assert [] == [verdict for verdict in judge(play(text, "none-held", FLAVOURS["chat"])) if verdict.status == "fail"]


def test_a_tool_keeps_its_own_gate_beside_one_of_the_same_name():
    """Which of two servers' tools needs approval is declared by server, not by name."""
    text = (
        """
title: Search
tools:
  search: {kind: hosted_mcp, server: web, parameters: {q: string}, returns: 'the web found {q}'}
  bank_search: {called: search, kind: hosted_mcp, server: bank, approval: always, parameters: {q: string}}
model:
- calls: [{id: mcpr_1, tool: search, arguments: {q: weather}}]
"""
        + SAYS
        + "caller:\n- {send: Search}\n"
    )

    history = play(text, "none-held-approve-all")

    assert ["never", "always"] == [tool.approval for tool in history.declarations.values()]
    assert [] == [verdict for verdict in judge(history) if verdict.status == "fail"]


def test_a_staged_approval_may_be_cancelled_with_its_request():
    """It need not take effect with the message that comes next."""
    text = (
        """
title: Pay
tools:
  pay: {approval: always}
model:
- calls: [{id: c1, tool: pay}]
"""
        + SAYS
        + "caller:\n- {send: Pay}\n- stage: {c1: approve}\n- {cancel: true}\n- {send: Was it paid?}\n"
    )

    assert [] == [verdict for verdict in judge(play(text, "json-restored")) if verdict.status == "fail"]


def test_a_changed_save_of_one_of_two_turns_at_the_same_time():
    """What the model is told of the changed call is about the call of that turn, not of the one that ended last."""
    text = (
        """
title: Pay
tools:
  pay: {approval: always}
  read: {approval: always}
model:
- calls: [{id: c2, tool: pay}]
- calls: [{id: null, tool: read, label: c4}]
"""
        + SAYS
        + """
caller:
- {send: Pay}
- together: [{decide: {c2: always}}, {decide: {c2: approve}}]
- rewrite: {old: read, new: delete}
"""
    )

    verdicts = judge(play(text, "json-restored", FLAVOURS["chat"]))

    assert [] == [verdict for verdict in verdicts if verdict.status == "fail"]


def test_turns_at_the_same_time_are_left_out_after_a_state_that_cannot_be_restored():
    """A session without its agent does not go on, so nothing of what was said before is missing."""
    text = (
        """
title: Pay
tools:
  pay: {approval: always, parameters: {to: string}, returns: 'paid {to}'}
model:
- calls: [{id: c1, tool: pay, arguments: {to: bob}}]
"""
        + SAYS
        + """
caller:
- {send: Pay}
- rewrite: {old: to, new: to_too}
- together: [{decide: {c1: always}}, {send: And now?}]
"""
    )

    shown = [verdict for verdict in judge(play(text, "json-restored")) if verdict.status in SHOWN_STATUSES]

    assert [] == [(verdict.check, verdict.status) for verdict in shown]


@cache
def seed_of_the_code():
    """Another seed with each change of what draws, plays or judges stories, and the same one for the same code."""
    digest = hashlib.sha256()
    for room in ("scenario/generation", "runner", "journal", "checks", "simulation/reference"):
        for path in sorted((PACKAGE / room).rglob("*.py")):
            digest.update(path.read_bytes())
    return int.from_bytes(digest.digest()[:4], "big")


def test_calls_with_one_id_are_told_apart_by_arguments_where_a_changed_save_names_another_tool():
    """The agent gives the second call an id of its own, and runs the first one under the id of both."""
    text = """
title: Delete
tools:
  delete_file: {approval: always, parameters: {path: string}}
  read_file: {approval: always, parameters: {path: string}, returns: "text of {path}"}
model:
- calls:
  - {id: c1, tool: delete_file, arguments: {path: a1}}
  - {id: c1, tool: delete_file, arguments: {path: a2}, repeats: true}
- {say: Done.}
caller:
- {send: Go ahead.}
- rewrite: {old: delete_file, new: read_file}
"""
    history = play(text, "json-restored-approve-all", FLAVOURS["chat"])

    assert [("c1", "a1"), ("c1#2", "a2")] == [(run.call.label, run.arguments["path"]) for run in history.executions]
    assert [] == [verdict for verdict in judge(history) if verdict.status == "fail"]


def test_calls_with_one_id_are_told_apart_by_how_the_model_left_their_arguments_out():
    """One has an empty text and the other an empty object; the agent renames the second, and nothing runs."""
    text = """
title: Restart
tools:
  pay: {approval: always}
  restart_server: {approval: always}
model:
- calls: [{id: c1, tool: pay}]
- thinks: I come to the first.
  calls:
  - {id: c2, tool: restart_server, arguments: ""}
  - {thinks: Then to the second., id: c2, tool: restart_server, repeats: true}
- {say: Done.}
caller:
- {send: Go ahead.}
- {restart: {without: [restart_server]}}
"""
    history = play(text, "copy-restored-approve-all")
    last = history.exchanges[-1]

    assert [("c2", "c2"), ("c2-2", "c2#2")] == [
        (last.items[index]["id"], call.label) for index, call in last.placed_calls[1:]
    ]
    assert [] == [verdict for verdict in judge(history) if verdict.status == "fail"]


def test_a_tool_that_is_gone_is_not_missed_because_another_agent_has_one_of_its_name():
    """The only tool of a helper is taken away, and no warning says that it is offered none."""
    text = """
title: Wipe
tools:
  wipe: {approval: always, parameters: {disk: string}}
  ask_helper: {runs: helper}
  helper/wipe: {approval: always, parameters: {disk: string}}
agents:
  helper:
    model:
    - calls: [{id: c1, tool: wipe, arguments: {disk: sda}}]
    - {say: I cannot wipe it.}
model:
- calls: [{id: o1, tool: ask_helper, arguments: {input: Wipe sda}}]
- {say: Not wiped.}
caller:
- {send: Wipe sda}
- {restart: {without: [helper/wipe]}}
- decide: {o1/c1: approve}
"""
    history = play(text, "copy-restored")

    assert [("wipe",), ()] == [tuple(one.tools) for one in history.exchanges if one.agent == "helper"]
    assert [] == [verdict for verdict in judge(history) if verdict.status in ("warning", "fail")]


@pytest.mark.parametrize("part", range(STORIES_PLAYED // STORIES_OF_A_PART))
@pytest.mark.parametrize("profile", ["realistic", "adversarial"])
@pytest.mark.parametrize("flavour", FLAVOURS, ids=["responses", "chat"])
def test_drawn_stories_fail_no_check(flavour, profile, part):
    """Of a fresh seed, `pytest-approvals explore --agent reference --seed SEED` draws the same ones."""
    adapter = FLAVOURS[flavour]
    source = InProcessSource(name="reference", adapter=adapter, facts=describe_adapter(adapter))
    numbers = range(part * STORIES_OF_A_PART, (part + 1) * STORIES_OF_A_PART)
    with asyncio.Runner() as runner:
        player = StoryPlayer(source, runner.run, limit=RunLimits(seconds=60.0))
        exploration = Exploration(player=player, seed=seed_of_the_code(), profile=profile)
        # Every fiftieth story leaves the process, which is slow.
        stay = (number for number in numbers if not (leaves_process(number) or kills_process(number)))
        list(exploration.explore(stay))

    found = [f"{cause.failure.check}: {cause.title}, number {cause.first}" for cause in exploration.causes]
    assert [] == found, f"seed {exploration.seed}"
    assert exploration.played > 0.9 * STORIES_OF_A_PART


def test_a_standing_rejection_covers_calls_that_the_policy_lets_through():
    """What was rejected for good does not run below the limit of the tool's condition."""
    variant, text = STORIES["a tool is rejected for good, and a call below its limit follows"]

    assert [] == play(text, variant).executions
