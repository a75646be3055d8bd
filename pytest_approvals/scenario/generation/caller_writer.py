"""Steps of the caller in a drawn story."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_approvals.agent_side.contract import MAIN, Parameter
from pytest_approvals.scenario.dry_run import DryRun
from pytest_approvals.scenario.generation.choices import NEEDS_OPEN, NEEDS_REQUESTS, chance, pick
from pytest_approvals.scenario.generation.draft import BANK, FIRST_MESSAGES, MESSAGES, POLICY, StoryDraft, can_run
from pytest_approvals.scenario.generation.features import available_features
from pytest_approvals.scenario.generation.tool_draws import (
    HARMLESS_ANNOTATIONS,
    UNSAID_ANNOTATIONS,
    WAITING_ANNOTATIONS,
)
from pytest_approvals.scenario.model import (
    Call,
    CancelStep,
    LeaveStep,
    LetOracleStep,
    RestartStep,
    RestoreStep,
    RewriteStep,
    SaveStep,
    Scenario,
    ScriptedDecision,
    SignalStep,
    StageStep,
    Step,
    TogetherStep,
    Tool,
    TrimStep,
    TurnStep,
    can_stop_at,
    is_cut_write,
    plain_turn,
)
from pytest_approvals.scenario.vocabulary import AT_MODEL, AT_OUTCOME, AT_STREAM

_MAX_STEPS = 16

_ACTIONS = (
    "message_with_answers",
    "partial_answers",
    "oracle_step",
    "stage",
    "save",
    "rewind",
    "restart",
    "fresh",
    "held_back",
    "tool_removed",
    "parameters_changed",
    "annotations_changed",
    "main_renamed",
    "sub_agent_renamed",
    "hand_off_renamed",
    "cancel",
    "trim",
    "rewrite",
    "go_on_without_answer",
    "message_while_pending",
    "hangs_up_at_model",
    "hangs_up_in_tool",
    "crashes",
    "malformed_verdict",
    "malformed_address",
    "unknown_request",
    "unasked_decision",
    "contradiction",
    "repeated_decision",
    "late_decision",
    "sessions_together",
    "simultaneous",
    "leave",
)
"""Features that are a step of their own, or change one."""

_LETS_WAIT = frozenset(
    {
        "partial_answers", "message_with_answers", "oracle_step", "cancel", "message_while_pending", "leave",
        "go_on_without_answer",
    }
)  # fmt: skip
"""Actions that execute no call before the signal that it waits for."""

_REASONS = ("not today", "over the limit", "ask me again tomorrow")

_MALFORMED_DECISIONS: tuple[Any, ...] = ("approve", None, True, {}, {"approved": "yes"}, 1, [], "Reject", "no")

_MALFORMED_ADDRESSES: tuple[Any, ...] = (None, "", 7, {}, [], {"id": None})


class CallerWriter:
    """Writer of the caller's steps.

    What it writes it plays in a dry run at once, so it knows which requests are open.
    """

    def __init__(self, draft: StoryDraft, scenario: Scenario) -> None:
        self.draft = draft
        self.choices = draft.choices
        self.scenario = scenario
        self.dry = DryRun(scenario)
        self.steps: list[Step] = []
        self.sessions = [""]
        if {"sessions", "sessions_together"} & draft.features:
            self.sessions.append("bob")
        self.begun: set[str] = set()
        self.saves: dict[str, list[str]] = {}
        self.texts = 0
        self.signals: set[str] = set()
        self.is_over = False

    def write(self) -> tuple[Step, ...]:
        """Draw the steps."""
        turns = 1 + (1 + self.choices.below(2) if "several_turns" in self.draft.features else 0)
        self._begin("")
        while len(self.steps) < _MAX_STEPS and not self.is_over:
            session = pick(self.choices, self.sessions)
            actions = [name for name in _ACTIONS if name in self.draft.due and self._applies(name, session)]
            # Nothing follows a caller who leaves.
            others = (set(_ACTIONS) | NEEDS_REQUESTS) & set(self.draft.due) - {"leave"}
            if others and self._has_more_calls(session):
                actions = [name for name in actions if name != "leave"]
            actions = [name for name in actions if name != "leave"] or actions
            # An action is twice as likely as ordinary progress, which may close the request that it needs.
            chosen = self.choices.below(2 * len(actions) + 1) if actions else 0
            if actions and not chosen and NEEDS_OPEN & set(actions) and not self._has_more_calls(session):
                chosen = 1
            if chosen:
                name = actions[(chosen - 1) % len(actions)]
                del self.draft.due[name]
                self._act(name, session)
                if name == "leave":
                    break
            elif not self._progress(session, turns) and not actions:
                break
        return tuple(self.steps)

    def _has_more_calls(self, session: str) -> bool:
        """Return whether the script of a session has calls that were not made yet."""
        script = self.scenario.agents[MAIN]
        replies = script.by_prompt.get(FIRST_MESSAGES[session], script.replies)
        return any(reply.calls for reply in replies[self.dry.position(session) :])

    def replies_needed(self) -> int:
        """Return how many replies of the main script the steps may play."""
        texts = sum(isinstance(step, TurnStep) and step.text is not None for step in self._all_turns())
        return self.dry.replies_played() + (1 if texts else 0)

    def _all_turns(self) -> list[Step]:
        return [part for step in self.steps for part in (step.steps if isinstance(step, TogetherStep) else (step,))]

    def _add(self, step: Step) -> None:
        for _ in self.dry.step(step):
            pass  # what it needs was asked before
        self.steps.append(step)

    # --- ordinary progress ---

    def _begin(self, session: str) -> None:
        self.begun.add(session)
        turn = TurnStep(text=FIRST_MESSAGES[session], session=session)
        if "slow_conditions" in self.draft.features and POLICY not in self.signals:
            self.signals.add(POLICY)
            self._add(TogetherStep(steps=(turn, SignalStep(name=POLICY))))
        else:
            self._add(turn)

    def _next_text(self) -> str:
        self.texts += 1
        return MESSAGES[(self.texts - 1) % len(MESSAGES)]

    def _progress(self, session: str, turns: int) -> bool:
        """Take the next ordinary step; return False if nothing is left to do in any session."""
        for name in dict.fromkeys((session, *self.sessions)):
            if name not in self.begun:
                self._begin(name)
                return True
            labels = self.dry.open_labels(name)
            wanted = NEEDS_REQUESTS & set(self.draft.due)
            if labels and self.dry.is_unsure(name) and chance(self.choices, 40 if wanted else 75):
                # Nobody knows what is open: whoever writes such a story lets the oracle answer what is.
                self._let_oracle(pick(self.choices, (None, 1)), name)
                return True
            if labels:
                self._decide(name, labels)
                return True
        sent = sum(isinstance(step, TurnStep) and step.text is not None for step in self._all_turns())
        if sent < turns * len(self.sessions) or self.dry.position(session) < self._core(session):
            if sent >= len(self.sessions) * 5:
                return False
            self._add(TurnStep(text=self._next_text(), session=session))
            return True
        return False

    def _let_oracle(self, rounds: int | None, session: str) -> None:
        # The oracle may approve a call that waits, so what it waits for is given before.
        if "waits_for_signal" in self.draft.features and BANK not in self.signals:
            self.signals.add(BANK)
            self._add(SignalStep(name=BANK))
        self._add(LetOracleStep(rounds=rounds, session=session))

    def _core(self, session: str) -> int:
        """Return the number of replies that a session has to play for the whole draft."""
        own = self.scenario.agents[MAIN].by_prompt.get(FIRST_MESSAGES[session], ())
        return len(own) if session and own else self.draft.core

    def _decide(self, session: str, labels: Sequence[str], *, text: str | None = None) -> None:
        answers = self._draw_decisions(labels, session)
        turn = TurnStep(text=text, answers=answers, session=session)
        if self._waits(labels, session) and BANK not in self.signals:
            self.signals.add(BANK)
            self._add(TogetherStep(steps=(turn, SignalStep(name=BANK))))
        else:
            self._add(turn)

    def _waits(self, labels: Sequence[str], session: str) -> bool:
        """Return whether one of the calls would wait for a signal."""
        return any(
            behaviour.waits_for == BANK
            for label in labels
            for tool in [self.dry.tool_of(label, session)]
            if tool is not None
            for behaviour in tool.all_behaviours
        )

    def _draw_decisions(self, labels: Sequence[str], session: str) -> tuple[ScriptedDecision, ...]:
        # What is wanted comes with the first decision that is drawn. A rejection may stand before a standing approval,
        # too, and decisions may be handed in in another order than that of the calls.
        is_reversed = len(labels) > 1 and chance(self.choices, 30)
        drawn = [self._draw_decision(label, session) for label in (labels[::-1] if is_reversed else labels)]
        goes_on = self.draft.allows("goes_on_after_rejection")
        if drawn and not goes_on and all(one.verdict in ("reject", "never") for one in drawn):
            # A turn that only rejects may be the last one, if the model had nothing more to ask for.
            self.is_over = not self._has_more_calls(session) and chance(self.choices, 50)
            drawn = drawn if self.is_over else [ScriptedDecision(label=drawn[0].label), *drawn[1:]]
        return tuple(drawn[::-1] if is_reversed and chance(self.choices, 60) else drawn)

    def _draw_decision(self, label: str, session: str) -> ScriptedDecision:
        decision = self._draw_verdict(label, session)
        draft = self.draft
        if draft.takes("decision_source"):
            decision = replace(decision, source=pick(self.choices, self._sources()))
        tool = self.dry.tool_of(label, session)
        if tool is not None and tool.parameters and tool.runs is None and draft.takes("tampered_arguments"):
            decision = replace(decision, shows=draft.draw_arguments(tool))
        if draft.takes("tampered_tool"):
            decision = replace(decision, shows_tool=pick(self.choices, self._other_tools(tool)))
        return decision

    def _sources(self) -> list[Any]:
        sources = ["rebuilt", "restored"] if self.draft.allows("answer.restored") else ["rebuilt"]
        return sources if self._saves_state() else ["rebuilt"]

    def _saves_state(self) -> bool:
        return any(isinstance(step, (SaveStep, RestoreStep, RestartStep)) for step in self.steps)

    def _other_tools(self, own: Tool | None) -> list[str]:
        names = [tool.visible_name for tool in self.scenario.tools if tool is not own and tool.runs is None]
        return names or ["delete_everything"]

    def _draw_verdict(self, label: str, session: str) -> ScriptedDecision:
        draft, tool = self.draft, self.dry.tool_of(label, session)
        is_plain = tool is not None and bool(tool.parameters) and tool.runs is None and tool.hands_over_to is None
        if tool is not None and is_plain:
            if draft.takes("edit_tool") and (others := self._editable_tools(tool)):
                other = pick(self.choices, others)
                return _edit(label, draft.draw_arguments(other), tool=other.visible_name)
            if draft.takes("unknown_edit_tool"):
                return replace(_edit(label, draft.draw_arguments(tool), tool="no_such_tool"), unknown_tool=True)
            if draft.takes("invalid_edit"):
                arguments = {**draft.draw_arguments(tool), "surplus": draft.next_number()}
                return replace(_edit(label, arguments), invalid=True)
            if draft.takes("edit"):
                return _edit(label, draft.draw_arguments(tool))
        if draft.takes("always"):
            return ScriptedDecision(label=label, verdict="always")
        if draft.takes("never"):
            reason = pick(self.choices, _REASONS) if draft.allows("reject_reason") else None
            return ScriptedDecision(label=label, verdict="never", reason=reason)
        if draft.takes("reject_reason"):
            return ScriptedDecision(label=label, verdict="reject", reason=pick(self.choices, _REASONS))
        return ScriptedDecision(label=label, verdict="reject" if chance(self.choices, 25) else "approve")

    def _editable_tools(self, own: Tool) -> list[Tool]:
        return [
            tool
            for tool in self.scenario.tools
            if tool is not own and tool.agent == own.agent and tool.kind == own.kind and tool.parameters
            and tool.runs is None and tool.called is None and tool.name != "report"
            and not any(behaviour.waits_for for behaviour in tool.all_behaviours)
        ]  # fmt: skip

    # --- actions ---

    def _applies(self, name: str, session: str) -> bool:
        """Return whether an action makes sense now in a session."""
        if name == "sessions_together":
            return True
        if session not in self.begun:
            return False
        labels = self.dry.open_labels(session)
        # A call that waits for a signal is decided together with it.
        waits = self._waits(labels, session) and BANK not in self.signals
        if name in NEEDS_OPEN and (not labels or (waits and name not in _LETS_WAIT)):
            return False
        match name:
            case "partial_answers":
                return len(labels) > 1
            case "repeated_decision":
                return bool(self.dry.settled_labels(session) and labels) or (
                    len(labels) > 1 and self.draft.allows("partial_answers") and not self._waits(labels, session)
                )
            case "late_decision":
                return bool(self.dry.settled_labels(session)) and not labels
            case "unasked_decision":
                return bool(self.dry.ungated_labels(session))
            case "hangs_up_at_model" | "crashes":
                return not labels or not self._waits(labels, session) or BANK in self.signals
        return True

    def _act(self, name: str, session: str) -> None:
        labels = self.dry.open_labels(session)
        match name:
            case "message_with_answers":
                self._decide(session, labels, text=self._next_text())
            case "partial_answers":
                first = self.choices.below(len(labels))
                count = 1 + self.choices.below(len(labels) - 1)
                chosen = {(first + k) % len(labels) for k in range(count)}
                self._decide(session, [label for k, label in enumerate(labels) if k in chosen])
            case "oracle_step":
                rounds = pick(self.choices, (None, 1, 2))
                self._let_oracle(rounds, session)
            case "stage":
                staged = self._draw_decisions(labels, session)
                self._add(StageStep(answers=staged, session=session))
                if self.draft.takes("stage_again", 0):
                    self._add(StageStep(answers=tuple(map(_reverse, staged)), session=session))
                if chance(self.choices, 20):
                    self._add(RestartStep(session=session)) if self._may_save() else None
                self._add(TurnStep(session=session))
            case "save":
                self._save(session)
            case "rewind":
                self._rewind(session)
            case "restart" | "fresh" | "held_back" | "tool_removed" | "parameters_changed" | "annotations_changed":
                self._restart(name, session)
            case "main_renamed" | "sub_agent_renamed" | "hand_off_renamed":
                self._restart(name, session)
            case "cancel":
                self._add(CancelStep(session=session))
            case "trim":
                self._add(TrimStep(keep=1 + self.choices.below(4), session=session))
            case "rewrite":
                self._rewrite(session, labels)
            case "go_on_without_answer":
                self._add(TurnStep(session=session))
            case "message_while_pending":
                self._add(TurnStep(text=self._next_text(), session=session))
            case "hangs_up_at_model" | "hangs_up_in_tool":
                self._hang_up(name, session, labels)
            case "crashes":
                self._crash(session, labels)
            case "sessions_together" | "simultaneous":
                self._together(name, session, labels)
            case "leave":
                self._add(LeaveStep())
            case _:
                self._misbehave(name, session, labels)

    def _may_save(self) -> bool:
        return "restart" in available_features(self.draft.capabilities, "realistic")

    def _save(self, session: str) -> str:
        names = self.saves.setdefault(session, [])
        names.append(f"save{len(names) + 1}" if session == "" else f"{session}{len(names) + 1}")
        self._add(SaveStep(name=names[-1], session=session))
        return names[-1]

    def _rewind(self, session: str) -> None:
        """Save, do one or two things, and restore the save."""
        name = self._save(session)
        for _ in range(1 + self.choices.below(2)):
            self._progress(session, 1)
        self._add(RestoreStep(name=name, session=session))

    def _restart(self, name: str, session: str) -> None:
        without: tuple[str, ...] = ()
        with_tools: tuple[str, ...] = ()
        parameters: dict[str, Mapping[str, Parameter]] = {}
        annotations: dict[str, Mapping[str, bool]] = {}
        plain = [
            tool
            for tool in self.scenario.tools
            if tool.agent == MAIN and tool.runs is None and tool.hands_over_to is None and tool.name != "report"
        ]
        changeable = [tool for tool in plain if tool.parameters]
        match name:
            case "held_back":
                with_tools = ("report",)
            case "tool_removed":
                without = (pick(self.choices, plain).key,)
            case "parameters_changed":
                tool = pick(self.choices, changeable)
                first = next(iter(tool.parameters))
                kind = "string" if tool.parameters[first].type != "string" else "integer"
                changed = {**tool.parameters, first: Parameter(type=kind)}
                if chance(self.choices, 50) or self._may_wait_for_ever(tool):
                    changed = {**tool.parameters, "approver": Parameter()}
                parameters = {tool.key: changed}
            case "annotations_changed":
                annotations = self._draw_new_annotations()
        renamed = {agent: f"new_{agent}" for agent in self._list_renamed_agents(name)}
        fresh = name == "fresh" or ("fresh" in self.draft.features and chance(self.choices, 20))
        self._add(
            RestartStep(
                fresh=fresh,
                without=without,
                with_tools=with_tools,
                parameters=parameters,
                renamed=renamed,
                annotations=annotations,
                session=session,
            )
        )

    def _draw_new_annotations(self) -> dict[str, Mapping[str, bool]]:
        """Return what servers say from now on about one or more tools: mostly the contrary."""
        tools = [tool for tool in self.scenario.tools if tool.by_annotations]
        chosen = tools if chance(self.choices, 30) else [pick(self.choices, tools)]
        waiting = WAITING_ANNOTATIONS + UNSAID_ANNOTATIONS
        kinds = {
            tool.key: HARMLESS_ANNOTATIONS if (tool.approval != "never") is chance(self.choices, 80) else waiting
            for tool in chosen
        }
        return {key: pick(self.choices, said) for key, said in kinds.items()}

    def _list_renamed_agents(self, action: str) -> list[str]:
        """Return the agent that an action renames, or all that tools run; none if it is about something else."""
        tools = self.scenario.tools
        match action:
            case "main_renamed":
                return [MAIN]
            case "sub_agent_renamed":
                sub_agents = list(dict.fromkeys(tool.runs for tool in tools if tool.runs is not None))
                return sub_agents if chance(self.choices, 20) else [pick(self.choices, sub_agents)]
            case "hand_off_renamed":
                return [next(tool.hands_over_to for tool in tools if tool.hands_over_to not in (None, MAIN))]
        return []

    def _may_wait_for_ever(self, tool: Tool) -> bool:
        """Return whether a call of a tool waits for one that may not run if a parameter has another type.

        Of another type, what does not fit may fit, and of two texts only the one that reads as a number.
        """
        waits = {id_: one.waits_for for id_, behaviours in tool.per_call.items() for one in behaviours if one.waits_for}
        replies = self.scenario.agents[MAIN].all_replies if waits else ()
        calls = {call.id: call for reply in replies for call in reply.calls}
        return any(
            waiting in calls and not _fit_alike(calls[waiting], calls.get(signal.partition(" ")[2]))
            for waiting, signal in waits.items()
        )

    def _rewrite(self, session: str, labels: Sequence[str]) -> None:
        tool = self.dry.tool_of(labels[0], session)
        word = tool.visible_name if tool is not None else "pay"
        others = [other.visible_name for other in self.scenario.tools if other.visible_name != word]
        names = tuple(tool.parameters) if tool is not None else ()
        swaps = [(word, others[0] if others else "steal"), *((name, f"{name}_too") for name in names), (word, "steal")]
        old, new = pick(self.choices, swaps)
        where = pick(self.choices, ("every", "shown", "hidden"))
        self._add(RewriteStep(old=old, new=new, where=where, session=session))  # type: ignore[arg-type]

    def _hang_up(self, name: str, session: str, labels: Sequence[str]) -> None:
        place = "model" if name == "hangs_up_at_model" else f"started {pick(self.choices, labels)}"
        if not labels:
            self._add(TurnStep(text=self._next_text(), session=session, hangs_up=place))
            return
        if name == "hangs_up_in_tool":
            label = place.partition(" ")[2]
            answers = tuple(
                ScriptedDecision(label=other) if other == label else self._draw_decision(other, session)
                for other in labels
            )
        else:
            answers = self._draw_decisions(labels, session)
        self._add(TurnStep(answers=answers, session=session, hangs_up=place))

    def _crash(self, session: str, labels: Sequence[str]) -> None:
        """Kill the process in a turn, and go on as a caller does who saw no end of it; or stop it over another turn."""
        if labels and self.draft.has_store and self.draft.allows("simultaneous") and chance(self.choices, 20):
            self._stop_over_another_turn(session, labels)
            labels = self.dry.open_labels(session)
            self._open_bank_for(labels, session)
        if chance(self.choices, 30):
            self._fail_store(session, labels)
            return
        turn = self._draw_killed_turn(session, labels)
        place = pick(self.choices, self._crash_places(turn))
        if is_cut_write(place) and chance(self.choices, 40):
            self._add(replace(turn, disk_full=place))
        elif is_cut_write(place) and chance(self.choices, 30):
            self._add(replace(turn, fails_once=place))
        else:
            self._add(replace(turn, crashes=place))
        resumes = [turn] if turn.answers else []
        if self.draft.allows("go_on_without_answer"):
            resumes.append(TurnStep(session=session))
        match self.choices.below(4):
            case 0:
                self._let_oracle(pick(self.choices, (None, 1)), session)
                return
            case 1:
                again = TurnStep(text=self._next_text(), session=session)
            case _:
                again = pick(self.choices, resumes or [turn])
        # Its successor may die, too, but nobody knows how far it comes.
        if chance(self.choices, 25):
            again = replace(again, crashes=pick(self.choices, (AT_OUTCOME, AT_MODEL)))
        self._add(again)

    def _open_bank_for(self, labels: Sequence[str], session: str) -> None:
        """Give the signal if one of the calls would wait for it: a turn that waits would come no further."""
        if self._waits(labels, session) and BANK not in self.signals:
            self.signals.add(BANK)
            self._add(SignalStep(name=BANK))

    def _fail_store(self, session: str, labels: Sequence[str]) -> None:
        """Let the store lose a turn, or show what it held before one, and go on as a caller who does not know."""
        turn = self._draw_killed_turn(session, labels)
        is_lost = chance(self.choices, 50)
        self._add(replace(turn, loses="write") if is_lost else turn)
        steps = [plain_turn(turn)] if turn.answers else []
        after = self.dry.open_labels(session)
        self._open_bank_for(after, session)
        if (after and self.draft.allows("message_while_pending")) or not after:
            steps.append(TurnStep(text=self._next_text(), session=session))
        if after:
            steps.append(TurnStep(answers=self._draw_decisions(after, session), session=session))
        if self.draft.allows("go_on_without_answer"):
            steps.append(TurnStep(session=session))
        again = pick(self.choices, steps or [turn])
        if not is_lost:
            self._add(replace(again, reads="stale"))
        elif chance(self.choices, 25):
            self._let_oracle(pick(self.choices, (None, 1)), session)
        else:
            self._add(replace(again, loses="write") if chance(self.choices, 15) else again)

    def _stop_over_another_turn(self, session: str, labels: Sequence[str]) -> None:
        """Let a worker be stopped, and another one that has taken up the session answer, resume or send a message."""
        turn = TurnStep(answers=self._draw_decisions(labels, session), session=session)
        places = [place for place in self.dry.crash_places(turn) if can_stop_at(place)]
        if not places:
            return
        others = [TurnStep(answers=self._draw_decisions(labels, session), session=session)]
        if self.draft.allows("message_while_pending"):
            others.append(TurnStep(text=self._next_text(), session=session))
        if self.draft.allows("go_on_without_answer"):
            others.append(TurnStep(session=session))
        self._add(TogetherStep(steps=(replace(turn, stops=pick(self.choices, places)), pick(self.choices, others))))

    def _draw_killed_turn(self, session: str, labels: Sequence[str]) -> TurnStep:
        if not labels:
            return TurnStep(text=self._next_text(), session=session)
        is_partial = len(labels) > 1 and self.draft.allows("partial_answers") and chance(self.choices, 40)
        if not is_partial and self.draft.allows("message_while_pending") and chance(self.choices, 15):
            return TurnStep(text=self._next_text(), session=session)
        decided = [pick(self.choices, labels)] if is_partial else labels
        answers = self._draw_decisions(decided, session)
        # What is lost of a change shows only where its call has not ended.
        if self.draft.allows("edit") and chance(self.choices, 20):
            first = answers[0].label or ""
            tool = self.dry.tool_of(first, session)
            if tool is not None and tool.parameters and tool.runs is None and tool.hands_over_to is None:
                answers = (_edit(first, self.draft.draw_arguments(tool)), *answers[1:])
        return TurnStep(answers=answers, session=session)

    def _crash_places(self, turn: TurnStep) -> list[str]:
        places = self.dry.crash_places(turn)
        if not self.draft.allows("streaming"):
            places.remove(AT_STREAM)
        return places if self.draft.has_store else [place for place in places if not is_cut_write(place)]

    def _together(self, name: str, session: str, labels: Sequence[str]) -> None:
        if name == "sessions_together":
            self._add(TogetherStep(steps=tuple(map(self._next_turn, self.sessions))))
            return
        one = TurnStep(answers=self._draw_decisions(labels, session), session=session)
        if self.draft.allows("message_while_pending") and chance(self.choices, 40):
            other = TurnStep(text=self._next_text(), session=session)
        else:
            other = TurnStep(answers=self._draw_decisions(labels, session), session=session)
        self._add(TogetherStep(steps=(one, other)))

    def _next_turn(self, session: str) -> TurnStep:
        """Return the next ordinary turn of a session, which waits for no signal."""
        if session not in self.begun:
            self.begun.add(session)
            return TurnStep(text=FIRST_MESSAGES[session], session=session)
        labels = self.dry.open_labels(session)
        if labels and self._waits(labels, session) and BANK not in self.signals:
            answers = tuple(ScriptedDecision(label=label, verdict="reject") for label in labels)
            return TurnStep(answers=answers, session=session)
        if labels:
            return TurnStep(answers=self._draw_decisions(labels, session), session=session)
        return TurnStep(text=self._next_text(), session=session)

    def _misbehave(self, name: str, session: str, labels: Sequence[str]) -> None:
        match name:
            case "malformed_verdict":
                label = pick(self.choices, labels)
                value = pick(self.choices, _MALFORMED_DECISIONS)
                rest = () if self.draft.allows("partial_answers") else tuple(x for x in labels if x != label)
                answers = [
                    ScriptedDecision(label=label, verdict="raw", raw=value),
                    *self._draw_decisions(rest, session),
                ]
            case "malformed_address":
                value = pick(self.choices, _MALFORMED_ADDRESSES)
                answers = [ScriptedDecision(malformed_address=True, address=value)]
            case "unknown_request":
                answers = [ScriptedDecision(unknown_id="req-unknown", verdict=self._approve_or_reject())]
            case "unasked_decision":
                answers = [ScriptedDecision(label=pick(self.choices, self.dry.ungated_labels(session)))]
            case "contradiction":
                label = pick(self.choices, labels)
                pair = [ScriptedDecision(label=label), ScriptedDecision(label=label, verdict="reject")]
                answers = pair if chance(self.choices, 50) else pair[::-1]
                if not self.draft.allows("partial_answers"):
                    answers += self._draw_decisions([other for other in labels if other != label], session)
            case _:
                if not self.dry.settled_labels(session):
                    self._decide(session, labels[:1])
                label = pick(self.choices, self.dry.settled_labels(session) or labels[:1])
                answers = [ScriptedDecision(label=label, verdict=self._approve_or_reject())]
        self._add(TurnStep(answers=tuple(answers), session=session))

    def _approve_or_reject(self) -> Any:
        return pick(self.choices, ("approve", "reject"))


def _fit_alike(call: Call, awaited: Call | None) -> bool:
    """Return whether two calls of a tool that both can run fit alike, whatever types its parameters have."""
    if awaited is None or not (can_run(call) and can_run(awaited)):
        return False
    return _get_kinds(call.arguments) == _get_kinds(awaited.arguments)


def _get_kinds(arguments: Mapping[str, Any] | str) -> Mapping[str, tuple[type, bool]]:
    """Return for each argument its type, and whether it is a text that reads as a number."""
    if isinstance(arguments, str):
        return {}
    return {
        name: (type(value), isinstance(value, str) and value.strip().lstrip("+-").isdecimal())
        for name, value in arguments.items()
    }


def _reverse(decision: ScriptedDecision) -> ScriptedDecision:
    """Return the decision of somebody who thinks better of it."""
    verdict: Any = "approve" if decision.verdict in ("reject", "never") else "reject"
    return ScriptedDecision(label=decision.label, verdict=verdict)


def _edit(label: str, arguments: Mapping[str, Any], *, tool: str | None = None) -> ScriptedDecision:
    return ScriptedDecision(label=label, verdict="edit", arguments=arguments, tool=tool)
