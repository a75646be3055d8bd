"""The caller's lines: turns, decisions, and the store."""

from __future__ import annotations

import copy
from typing import Any

from pytest_approvals.journal import events as ev

from .scribe import Scribe
from .words import arguments_of, tool_of, value_of


class CallerLines(Scribe):
    """Writes what the caller does, and what becomes of the state."""

    # --- turns ---

    def on_send(self, rest: str) -> None:
        self.state.message += 1
        self.item("main", {"kind": "user", "text": rest})
        self._turn(rest)

    def on_go(self, rest: str) -> None:
        self._turn(None)

    def _turn(self, text: str | None) -> None:
        number = self.count("turn")
        self.add(ev.TurnStart(turn=number, text=text, decisions=self.deciding, stream=self.stream))
        self.turns.append(number)
        self.deciding = []

    def _turn_end(self, outcome: str, **facts: Any) -> None:
        turn = self.ending if self.ending is not None else self.turns[-1]
        self.ending = None
        self.turns.remove(turn)
        self.add(ev.TurnEnd(turn=turn, outcome=outcome, **facts))

    def on_pause(self, rest: str) -> None:
        self._turn_end("paused", requests=self._requests(rest))

    def on_shows(self, rest: str) -> None:
        entry = self._request(rest)
        del entry["label"]
        self._turn_end("paused", requests=[entry])

    def on_finish(self, rest: str) -> None:
        self.state.open = []
        self._turn_end("finished", output=rest)

    def on_outputs(self, rest: str) -> None:
        self.state.open = []
        self._turn_end("finished", output=arguments_of(rest))

    def on_fail(self, rest: str) -> None:
        self._turn_end("failed", error=rest.split(": ", 1))

    def on_timeout(self, rest: str) -> None:
        self._turn_end("timeout", error=["TimeoutError", ""])

    # --- decisions ---

    def _decide(self, verdict: str, rest: str) -> None:
        label, _, more = rest.partition(" ")
        facts: dict[str, Any] = {}
        if verdict == "edit":
            tool, _, arguments = more.rstrip(")").partition("(")
            facts = {"arguments": arguments_of(arguments), "tool": tool or None}
        elif verdict == "raw":
            facts = {"raw": {"verdict": value_of(more)}}
        elif more:
            facts = {"reason": more}
        if label.startswith("?"):
            decide = ev.Decide(verdict=verdict, id=label[1:], **facts)
        else:
            q = self.requests.get((self.session, label))
            decide = ev.Decide(verdict=verdict, q=q, id=self._call(label).id, label=label, **facts)
        self.deciding.append(self.add(decide).n)

    def on_approve(self, rest: str) -> None:
        self._decide("approve", rest)

    def on_reject(self, rest: str) -> None:
        self._decide("reject", rest)

    def on_edit(self, rest: str) -> None:
        self._decide("edit", rest)

    def on_always(self, rest: str) -> None:
        self._decide("always", rest)

    def on_never(self, rest: str) -> None:
        self._decide("never", rest)

    def on_raw(self, rest: str) -> None:
        self._decide("raw", rest)

    def on_stage(self, rest: str) -> None:
        self.add(ev.Staged(decisions=self.deciding, error=rest.split(": ", 1) if rest else None))
        self.deciding = []

    def on_cancel(self, rest: str) -> None:
        self.add(ev.Cancelled(error=rest.split(": ", 1) if rest else None))
        if not rest:
            self.state.open = []

    def on_signal(self, rest: str) -> None:
        self.add(ev.Signalled(name=rest))

    def on_show(self, rest: str) -> None:
        what, _, more = rest.partition(" ")
        known = self.state.calls.get(more)
        facts = {"text": more} if what == "text" else {"id": known.id if known else more or None}
        self.add(ev.Shown(turn=self.turns[-1], what=what, **facts))

    def on_skip(self, rest: str) -> None:
        self.add(ev.Skipped(step="decide", why=rest))

    def on_stuck(self, rest: str) -> None:
        self.add(ev.Stuck(rounds=3, requests=[self.requests[self.session, label] for label in self.state.open]))

    # --- the store and the frame ---

    def on_save(self, rest: str) -> None:
        name = rest or f"save-{self.count('save')}"
        self.saves[name] = copy.deepcopy(self.state)
        self.add(ev.Saved(name=name, mode=self._mode()))

    def on_unsaved(self, rest: str) -> None:
        self.add(ev.Saved(name="lost", mode=self._mode(), error=rest.split(": ", 1)))

    def on_restore(self, rest: str) -> None:
        name, colon, pending = rest.partition(":")
        name = name.strip() or list(self.saves)[-1]
        self.states[self.session] = copy.deepcopy(self.saves[name])
        labels = pending if colon else ", ".join(self.state.open)
        self.add(ev.AgentStart(tools=list(self.available), how=self.how, parameters=dict(self.parameters) or None))
        self.add(ev.Restored(name=name, mode=self._mode(), pending=self._requests(labels)))

    def on_digest(self, rest: str) -> None:
        saved = self.events[-1]
        assert isinstance(saved, ev.Saved)
        saved.digest = rest

    def on_again(self, rest: str) -> None:
        restored = self.events[-1]
        assert isinstance(restored, ev.Restored)
        restored.again = rest

    def on_mode(self, rest: str) -> None:
        self.header.variant["serialize"] = rest

    def _mode(self) -> str:
        return str(self.header.variant.setdefault("serialize", "json"))

    def on_without(self, rest: str) -> None:
        self.available.remove(rest)

    def on_takes(self, rest: str) -> None:
        name, declared = tool_of(f"{rest} never")
        self.parameters[name] = declared["parameters"]

    def on_trim(self, rest: str) -> None:
        for items in self.state.items.values():
            del items[: -int(rest)]
        self.add(ev.Trimmed(keep=int(rest)))

    def on_rewrite(self, rest: str) -> None:
        old, new = rest.split()
        self.add(ev.Rewritten(name=list(self.saves)[-1], old=old, new=new, where="every", places=1))

    def on_session(self, rest: str) -> None:
        self.session = rest

    def on_lost(self, rest: str) -> None:
        self.add(ev.AgentLost(what=rest))

    def on_end(self, rest: str) -> None:
        how, _, pending = rest.partition(":")
        self.session = ""
        labels = pending if pending.strip() else ", ".join(self.state.open)
        self.add(ev.RunEnd(how=how.strip() or "completed", pending=self._requests(labels)))
        self.ended = True
