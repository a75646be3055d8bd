"""Grammar of drawn stories: what a story is made of, choice by choice.

A story is drawn from a sequence of choices, each an integer below a bound. The choice 0 is always the plainest, so
that whoever makes smaller choices draws a smaller story. Nothing here knows who chooses: Hypothesis, or a seed.

Which features a story has is drawn first. The script of the model is drawn with these features in mind, then the
caller's steps, along a dry run that knows which requests are open.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any, Literal, Protocol, TypeVar

from pytest_approvals.agent_side.contract import MAIN, ElicitationAnswer, Parameter
from pytest_approvals.agent_side.contract.types import Approval, Condition, Limits
from pytest_approvals.scenario.dry_run import DryRun
from pytest_approvals.scenario.generation.features import (
    FEATURES,
    available_features,
    can_stand_together,
    is_playable,
)
from pytest_approvals.scenario.labels import assign_labels, find_tool, list_occurrences
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
    Script,
    ScriptedDecision,
    ScriptedElicitation,
    ScriptedFailure,
    ScriptedReply,
    SignalStep,
    StageStep,
    Step,
    TogetherStep,
    Tool,
    ToolBehaviour,
    TrimStep,
    TurnStep,
    all_steps,
    can_stop_at,
    decide_by,
    is_cut_write,
    parse_parameter,
    plain_turn,
)
from pytest_approvals.scenario.vocabulary import ANY_STORE, AT_MODEL, AT_OUTCOME, AT_STREAM, DIMENSIONS

_T = TypeVar("_T")

MAX_FEATURES = 20
"""Most features that are drawn for one story; what they imply may add others."""

_USUAL_FEATURES = 6
_MAX_STEPS = 16
_SPARE_REPLIES = 8
_FIRST_MESSAGES = {"": "Go ahead.", "bob": "Hello."}
"""First message of each session."""

_MESSAGES = ("Thank you.", "And now?", "One more thing.", "Is it done?", "What is next?", "Go on.")


_OFTEN_MISSED = (
    "leave", "never", "always", "partial_answers", "repeated_decision", "late_decision", "reject_reason", "stage",
    "unasked_decision", "raising_conditions", "message_while_pending", "invalid_edit", "hangs_up_in_tool", "held_back",
    "decision_source", "stage_again", "edited_object", "arguments_as_text", "go_on_without_answer",
    "contradiction", "hangs_up_at_model",
)  # fmt: skip
"""Features that are drawn twice as often, because a story often ends before it has them."""


_IMPLIED = {
    "edited_object": ("edit", "nested_object"),
    "equal_ids_in_agents": ("nested_parallel",),
    "same_tool_in_agents": ("nested", "always"),
    "call_beside_hand_off": ("hand_offs",),
    "answer_beside_calls": ("invalid_answer",),
    "stage_again": ("stage",),
    "sub_agent_renamed": ("nested",),
    "hand_off_renamed": ("hand_offs",),
    "equal_questions": ("elicitation",),
    "elicitation_in_agent": ("nested",),
    "elicitation_declined": ("elicitation",),
    "elicitation_cancelled": ("elicitation",),
    "elicitation_answer_changes": ("elicitation", "several_turns"),
    "annotations_unsaid": ("annotations",),
    "annotations_in_agent": ("nested",),
    "annotations_changed": ("annotations",),
}
"""Features without which another one cannot be there; an agent that can play the one can play these."""


REASONING_FEATURES = ("reasoning", "reasoning_between_calls", "redacted_reasoning")
"""Features that are added to a story when it is written, and change nothing else of it."""


ELICITATION_FEATURES = (
    "elicitation",
    "elicitation_url",
    "equal_questions",
    "elicitation_in_agent",
    "elicitation_declined",
    "elicitation_cancelled",
    "elicitation_answer_changes",
)
"""Features that are drawn together: each needs a server that asks."""


ANNOTATION_FEATURES = (
    "annotations",
    "annotations_unsaid",
    "annotations_in_agent",
    "annotations_unread",
    "annotations_changed",
)
"""Features that are drawn together: each needs a server that says something about a tool."""


class Choices(Protocol):
    """Whoever makes the choices of a story."""

    def below(self, bound: int) -> int:
        """Return an integer from 0 to *bound* - 1; 0 is the plainest."""
        ...


def pick(choices: Choices, values: Sequence[_T]) -> _T:
    """Return one of *values*, the plainest first."""
    return values[choices.below(len(values))] if len(values) > 1 else values[0]


def chance(choices: Choices, percent: int) -> bool:
    """Return True in about so many of 100 choices."""
    return choices.below(100) >= 100 - percent


def draw_features(
    choices: Choices, capabilities: frozenset[str] | None, profile: str, certain: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the features of a story, each once, in the order of the table; those of reasoning come later.

    Args:
        choices: Who makes the choices.
        capabilities: What the agent claims; None for everything.
        profile: A name in `PROFILES`.
        certain: Those that it has in any case, if the agent can play them; what cannot stand beside them is left out.
    """
    known = [name for name in available_features(capabilities, profile) if name not in REASONING_FEATURES]
    groups = [[name for name in known if name in group] for group in (ELICITATION_FEATURES, ANNOTATION_FEATURES)]
    grouped = {name for group in groups for name in group}
    drawn = [*(name for name in known if name not in grouped), *(name for name in _OFTEN_MISSED if name in known)]
    # Most stories are small and quick; a third has many features, so that rare ones meet.
    most = MAX_FEATURES if chance(choices, 35) else _USUAL_FEATURES
    wanted = {pick(choices, drawn) for _ in range(choices.below(most + 1))}
    for group in groups:
        if group and chance(choices, 15):
            wanted |= {pick(choices, group) for _ in range(1 + choices.below(3))}
    certain = {*certain} & {*known}
    wanted = {name for name in wanted if all(can_stand_together(name, other) for other in certain)} | certain
    return tuple(name for name in known if name in wanted)


def draw_story(
    choices: Choices, capabilities: frozenset[str] | None, profile: str, certain: Collection[str] = ()
) -> Scenario:
    """Return a story that an agent with *capabilities*, None for everything, can play.

    Args:
        choices: Who makes the choices.
        capabilities: What the agent claims.
        profile: A name in `PROFILES`.
        certain: Features that it has in any case, if the agent can play them.
    """
    features = draw_features(choices, capabilities, profile, certain)
    return _StoryWriter(choices, features, capabilities).write()


# --- values -----------------------------------------------------------------------------------------------------------

_WORDS = ("ann", "bob", "carol", "dave", "erin", "frank", "grace", "heidi", "ivan", "judy")

_EDGES: dict[str, tuple[Any, ...]] = {
    "beyond_2_53": (2**53 + 1, 2**53 + 3, -(2**53) - 1),
    "beyond_2_63": (2**63, 2**64 + 1, -(2**63) - 1, 10**30),
    "negative_number": (-1, -7),
    "fraction": (0.1, 1e-7, 2.5),
    "decomposed_letters": ("Zoe\u0308", "e\u0301te\u0301"),
    "right_to_left": ("\u05e9\u05dc\u05d5\u05dd", "\u0645\u0631\u062d\u0628\u0627"),
    "astral_letters": ("\U0001f642", "\U0001d54f"),
    "control_characters": ("a\tb", "a\x00b", "a\u2028b"),
    "quotes_and_braces": ('say "hi"', "a\\b", '{"a": 1}', "it's </tool>"),
    "long_text": ("long " * 1000,),
    "empty_text": ("",),
    "text_like_a_value": ("false", "1e5", "null", "[1]", "no"),
    "true_beside_1": (True,),
    "nested_object": ({"deep": {"deeper": {"deepest": [1, {"x": "y"}]}}},),
    "null": ({"note": None},),
    "array": ([1, "two", [3]], []),
}
"""Values by feature, the plainest first."""

_EDGE_TYPES: dict[str, str] = {
    "beyond_2_53": "integer",
    "beyond_2_63": "integer",
    "negative_number": "integer",
    "fraction": "number",
    "true_beside_1": "boolean",
    "nested_object": "object",
    "null": "object",
    "array": "array",
}
"""Types of the parameters that take a feature's values; all others are texts."""

_GATED = (
    ("pay", {"amount": "integer"}, "paid {amount}"),
    ("refund", {"order": "integer"}, "refunded {order}"),
    ("delete_file", {"path": "string"}, "deleted {path}"),
    ("send_mail", {"to": "string", "body": "string"}, "sent to {to}"),
    ("book", {"seat": "integer", "price": "number"}, "booked {seat}"),
    ("cap", {"limit": "integer", "strict": "boolean"}, "capped at {limit}"),
    ("write_row", {"row": "integer", "fields": "object"}, "wrote {row}"),
    ("tag", {"name": "string", "labels": "array"}, "tagged {name}"),
)
"""Tools: name, parameters, result. The first parameter tells the calls of a tool apart."""

_FREE = (
    ("look", {"what": "string"}, "saw {what}"),
    ("list_files", {"folder": "string"}, "a file in {folder}"),
    ("count", {"since": "integer"}, "counted since {since}"),
)

_SCALARS = ("boolean", "integer", "number")

_TEMPLATE_OF_TYPE = {"number": 4, "boolean": 5, "object": 6, "array": 7, "string": 2}

_RESULTS: tuple[Any, ...] = ({"status": "ok", "id": 7}, ["a", "b"], 0, False, None, {}, 2.5, [], 2**53 + 1)

# A tool does one of these things; a story that wants several has a tool for each.
_BEHAVIOURS = (
    "tool_errors",
    "non_text_results",
    "empty_result",
    "successive_results",
    "result_per_call",
    "asks_again",
    "waits_for_signal",
)
_GATES = ("condition", "changing_condition", "raising_conditions", "slow_conditions")
_KINDS = ("mcp", "mcp_stdio", "hosted_mcp")
_FIELDS: dict[str, str] = {"account": "string", "count": "integer", "share": "number", "rush": "boolean"}
"""The fields of forms, with their types; no parameter has such a name."""

_SECOND_TOOLS = {
    "mcp": ("write_page", "wiki"),
    "mcp_stdio": ("write_file", "disk"),
    "hosted_mcp": ("post_online", "web"),
}
"""A second tool of each server, by kind."""

_WAITING_ANNOTATIONS: tuple[dict[str, bool], ...] = (
    {"destructiveHint": True},
    {"readOnlyHint": False},
    {"readOnlyHint": False, "destructiveHint": True},
    {"readOnlyHint": False, "idempotentHint": True, "openWorldHint": False},
)
_UNSAID_ANNOTATIONS: tuple[dict[str, bool], ...] = (
    {},
    {"openWorldHint": False},
    {"idempotentHint": True},
    {"idempotentHint": True, "openWorldHint": False},
)
_HARMLESS_ANNOTATIONS: tuple[dict[str, bool], ...] = (
    {"readOnlyHint": True},
    {"destructiveHint": False},
    {"readOnlyHint": False, "destructiveHint": False},
    {"readOnlyHint": True, "destructiveHint": True},
    {"readOnlyHint": True, "openWorldHint": True},
)
"""What a server says about a tool whose calls then wait, wait because nothing is said, or run at once."""

_BANK, _POLICY = "the bank opens", "the policy"


class _StoryWriter:
    """Writer of one story.

    Attributes:
        due: Features that the story does not have yet.
        core: How many replies of the main agent the whole story needs.
        inner: The name of the gated tool of the agent that a tool runs.
    """

    def __init__(self, choices: Choices, features: Sequence[str], capabilities: frozenset[str] | None) -> None:
        self.choices = choices
        # Where a limit keeps the second call from being made, the first one would wait for ever.
        limited = {"limit_model_replies", "limit_tool_calls"} & set(features)
        features = [name for name in features if not (limited and name == "waits_for_call")]
        if "crashes" in features:
            features = [name for name in features if can_stand_together(name, "crashes")]
        features = list(dict.fromkeys(name for one in features for name in (one, *_IMPLIED.get(one, ()))))
        self.features = frozenset(features)
        self.due = dict.fromkeys(features)
        self.capabilities = capabilities
        self.tools: dict[str, Tool] = {}
        self.agents: dict[str, Script] = {}
        self.numbers = 0
        self.identities: set[Any] = set()
        self.broken_texts = ['{"amount": ', "not json", "[1, 2]", "", "null"]
        self.ids = 0
        self.edges = [name for name in features if name in _EDGES]
        self.core = 0
        self.inner = "wire"

    def write(self) -> Scenario:
        """Draw the story."""
        self._draw_tools()
        replies = self._draw_replies()
        self.core = len(replies)
        spare = (self._last_word(_MESSAGES[k % len(_MESSAGES)]) for k in range(_SPARE_REPLIES))
        scenario = Scenario(
            id="drawn/story",
            title="A drawn story",
            tools=tuple(self.tools.values()),
            answer={"total": Parameter(type="integer")} if self._has_answer else {},
            agents={MAIN: self._draw_script((*replies, *spare)), **self.agents},
            equal_arguments="equal_arguments" in self.features,
            limits=self._draw_limits(),
            held_back=("report",) if "held_back" in self.features else (),
        )
        scenario = assign_labels(scenario)
        if "oracle_only" in self.features:
            scenario = replace(scenario, agents=_shorten(scenario.agents, self.core, [_FIRST_MESSAGES[""]]))
            tools = tuple(_forget_signals(tool, frozenset()) for tool in scenario.tools)
            return self._add_reasoning(self._draw_frame(replace(scenario, tools=tools)))
        caller = _CallerWriter(self, scenario)
        steps = caller.write()
        messages = [_FIRST_MESSAGES[session] for session in caller.begun]
        scripts = _shorten(scenario.agents, max(self.core, caller.replies_needed()), messages)
        tools = tuple(_forget_signals(tool, caller.signals) for tool in scenario.tools)
        scenario = replace(scenario, caller=steps, agents=scripts, tools=tools)
        return self._add_reasoning(self._draw_frame(self._add_answers(scenario)))

    def _add_answers(self, scenario: Scenario) -> Scenario:
        """Let the caller answer most of what servers ask; what is not answered is cancelled."""
        asked = _list_questions(scenario)
        turns = [step for step in all_steps(scenario) if isinstance(step, TurnStep)]
        given: dict[int, dict[str, ElicitationAnswer]] = {}
        for session in dict.fromkeys(turn.session for turn in turns) if asked else ():
            own = [k for k, turn in enumerate(turns) if turn.session == session]
            for label, question in asked.items():
                if chance(self.choices, 12):
                    continue
                # An answer holds from its turn on.
                first = own[0] if chance(self.choices, 70) else pick(self.choices, own)
                answer = given.setdefault(first, {})[label] = self._draw_answer(question)
                later = [k for k in own if k > first]
                if later and self.takes("elicitation_answer_changes", 10):
                    word: Literal["decline", "cancel"] = "cancel" if answer.action == "decline" else "decline"
                    changed = (
                        self._draw_answer(question) if chance(self.choices, 30) else ElicitationAnswer(action=word)
                    )
                    given.setdefault(pick(self.choices, later), {})[label] = changed
        numbers = count()

        def change(step: Step) -> Step:
            if isinstance(step, TogetherStep):
                parts = [change(part) for part in step.steps]
                return TogetherStep(steps=tuple(part for part in parts if isinstance(part, TurnStep | SignalStep)))
            return replace(step, elicitations=given.get(next(numbers), {})) if isinstance(step, TurnStep) else step

        return replace(scenario, caller=tuple(map(change, scenario.caller or ()))) if given else scenario

    def _draw_answer(self, question: ScriptedElicitation) -> ElicitationAnswer:
        if self.takes("elicitation_declined"):
            return ElicitationAnswer(action="decline")
        if self.takes("elicitation_cancelled"):
            return ElicitationAnswer(action="cancel")
        if question.url is not None:
            return ElicitationAnswer(action="accept")
        fields = {name: field for name, field in question.form.items() if field.required or chance(self.choices, 60)}
        content = {name: self._draw_field(field.type) for name, field in fields.items()}
        return ElicitationAnswer(action="accept", content=content)

    def _draw_field(self, kind: str) -> Any:
        fitting = [name for name in self.edges if _EDGE_TYPES.get(name, "string") == kind]
        if fitting and chance(self.choices, 60):
            return pick(self.choices, _EDGES[pick(self.choices, fitting)])
        # What is zero, false or empty is an answer, too.
        empty = {"string": "", "integer": 0, "number": 0, "boolean": False}
        return empty[kind] if chance(self.choices, 25) else self._draw_value(kind, identifies=False)

    def _add_reasoning(self, scenario: Scenario) -> Scenario:
        """Let the model reason before some of its replies, in one story of four."""
        usable = {name for name in REASONING_FEATURES if is_playable(FEATURES[name], self.capabilities)}
        if "reasoning" not in usable or not chance(self.choices, 25):
            return scenario
        redacted = "redacted_reasoning" in usable and chance(self.choices, 40)
        between = "reasoning_between_calls" in usable and chance(self.choices, 70)
        thoughts = count(1)

        def think(reply: ScriptedReply) -> ScriptedReply:
            has_content = reply.say is not None or bool(reply.calls) or reply.answer is not None
            number = next(thoughts)
            if not has_content or (number > 1 and chance(self.choices, 40)):
                return reply
            calls = reply.calls
            if between:
                later = (replace(call, thinks=f"Then I do what comes after {number}.") for call in calls[1:])
                calls = (*calls[:1], *later)
            return replace(reply, thinks=f"I come to step {number}.", redacted=redacted, calls=calls)

        return replace(scenario, agents={name: _map_replies(script, think) for name, script in scenario.agents.items()})

    def _draw_script(self, replies: tuple[ScriptedReply, ...]) -> Script:
        if "script_by_message" not in self.features:
            return Script(replies=replies)
        scripts = {_FIRST_MESSAGES[""]: replies}
        if {"sessions", "sessions_together"} & self.features:
            tool = next(tool for tool in self.tools.values() if self._is_called_plainly(tool))
            other = (ScriptedReply(calls=(self.draw_call(tool),)), *(self._last_word(text) for text in _MESSAGES))
            scripts[_FIRST_MESSAGES["bob"]] = other
        return Script(by_prompt=scripts)

    def allows(self, capability: str) -> bool:
        """Return whether the agent has a capability."""
        return self.capabilities is None or capability in self.capabilities

    @property
    def has_store(self) -> bool:
        """Whether the agent has a durable store, and the story does not keep its state elsewhere."""
        if {"pinned_store", "rewrite"} & {*self.features}:
            return False
        return self.capabilities is None or any(name.startswith(f"{ANY_STORE}.") for name in self.capabilities)

    def takes(self, feature: str, percent: int = 30) -> bool:
        """Return whether to use a feature here: the first time if it is wanted, then by chance."""
        if feature not in self.features:
            return False
        if feature in self.due:
            del self.due[feature]
            return True
        return chance(self.choices, percent)

    # --- tools ---

    def _draw_tools(self) -> None:
        behaviours = [name for name in _BEHAVIOURS if name in self.features]
        gates = [name for name in _GATES if name in self.features]
        # A call that waits for a signal is gated in any case, so that its approval can come together with it.
        waiting = "waits_for_signal" in behaviours
        # Beside gates that nobody can foresee there is one whose request the caller can count on.
        unforeseen = len(gates) if not {"condition", "slow_conditions"} & self.features else 0
        count = max(1, len(behaviours), len(gates) + waiting)
        if unforeseen and self.features & _NEEDS_REQUESTS:
            count = max(count, unforeseen + waiting + 1)
        if {"several_tools", "edit_tool", "tampered_tool"} & self.features:
            count = max(count, 2)
        first = pick(self.choices, range(4)) if not self.edges else self._template_for_edges()
        if "arguments_as_text" in self.features and not self.edges:
            first = _TEMPLATE_OF_TYPE["boolean"]
        if waiting:
            behaviours.remove("waits_for_signal")
        for number in range(count):
            name, parameters, result = _GATED[(first + number) % len(_GATED)]
            behaviour = behaviours[number] if number < len(behaviours) else ""
            gate = gates[number] if number < len(gates) else ""
            if waiting and number == count - 1:
                behaviour, gate = "waits_for_signal", ""
            self._add_tool(name, parameters, result, self._draw_gate(gate, parameters), behaviour)
        self._add_tools_for_edges()
        if {"free_tool", "unasked_decision", "waits_for_call"} & self.features:
            self.due.pop("free_tool", None)
            name, parameters, result = pick(self.choices, _FREE)
            self._add_tool(name, parameters, result, "never", "")
        for kind in _KINDS:
            if kind in self.features:
                self._add_served_tool(kind)
        if {"elicitation", "equal_questions"} & self.features:
            self._add_asking_tool("open_account", "owner")
        if "elicitation_url" in self.features:
            self._add_asking_tool("sign_contract", "partner", by_address=True)
        if {"annotations", "annotations_unread"} & self.features:
            self._add_annotated_tools()
        if "same_tool_name" in self.features:
            free = pick(self.choices, ("", "web", "wiki"))
            for server in ("web", "wiki"):
                self._add_tool(
                    f"find_on_{server}", {"page": "string"}, "found {page}", "never" if server == free else "always",
                    "", called="find", kind="hosted_mcp", server=server,
                )  # fmt: skip
        if "empty_arguments" in self.features:
            self._add_tool("restart_server", {}, "restarted", "always", "")
        if "held_back" in self.features:
            self._add_tool("report", {"number": "integer"}, "reported {number}", "always", "")
        if {"nested", "nested_gate", "nested_parallel", "nested_deep"} & self.features:
            self._add_helper()
        if {"hand_offs", "gated_hand_off"} & self.features:
            hand_over = Tool(name="to_clerk", hands_over_to="clerk")
            self.tools["to_clerk"] = (
                replace(hand_over, approval="always") if "gated_hand_off" in self.features else hand_over
            )
            self._add_tool("settle", {"bill": "integer"}, "settled {bill}", "always", "", agent="clerk")

    def _add_tools_for_edges(self) -> None:
        """Add a tool for each type of value that no tool takes yet."""
        for edge in self.edges:
            kind = _EDGE_TYPES.get(edge, "string")
            if not any(
                parameter.type == kind for tool in self.tools.values() for parameter in tool.parameters.values()
            ):
                name, parameters, result = _GATED[_TEMPLATE_OF_TYPE.get(kind, 0)]
                self._add_tool(name, parameters, result, "always", "")

    def _template_for_edges(self) -> int:
        for name in self.edges:
            kind = _EDGE_TYPES.get(name, "string")
            if kind in _TEMPLATE_OF_TYPE:
                return _TEMPLATE_OF_TYPE[kind]
        return 0

    def _add_tool(
        self, name: str, types: Mapping[str, str], result: str, approval: Approval, behaviour: str, **more: Any
    ) -> Tool:
        parameters = {key: parse_parameter(kind) for key, kind in types.items()}
        if behaviour != "" or more.get("kind", "function") == "function":
            if self.takes("optional_parameter", 20):
                parameters["note"] = parse_parameter("string?")
            if self.takes("default_parameter", 20):
                parameters["currency"] = Parameter(type="string", required=False, default="EUR")
        tool = Tool(
            name=name,
            parameters=parameters,
            approval=approval,
            behaviours=self._draw_behaviours(behaviour, result),
            **more,
        )
        self.tools[tool.key] = tool
        return tool

    def _draw_behaviours(self, behaviour: str, result: str) -> tuple[ToolBehaviour, ...]:
        plain = ToolBehaviour(returns=result)
        match behaviour:
            case "tool_errors":
                return (ToolBehaviour(raises="the service is down"),)
            case "non_text_results":
                return (ToolBehaviour(returns=pick(self.choices, _RESULTS)),)
            case "empty_result":
                return (ToolBehaviour(returns=""),)
            case "successive_results":
                return (plain, ToolBehaviour(returns=f"{result} again"))
            case "asks_again":
                return (ToolBehaviour(asks_again="Really?"), plain)
            case "waits_for_signal":
                return (ToolBehaviour(waits_for=_BANK, returns=result),)
        return (plain,)

    def _draw_gate(self, gate: str, parameters: Mapping[str, str]) -> Approval:
        first = next(iter(parameters))
        match gate:
            case "condition":
                return self._draw_comparison(first, parameters[first])
            case "changing_condition":
                return Condition(argument=None, answers=pick(self.choices, ((True, False), (False, True), (True,))))
            case "raising_conditions":
                return Condition(raises="the policy is down")
            case "slow_conditions":
                return replace(self._draw_comparison(first, parameters[first]), waits_for=_POLICY)
        return "always"

    def _draw_comparison(self, argument: str, kind: str) -> Condition:
        if kind == "integer":
            return pick(
                self.choices,
                (
                    Condition(argument=argument, greater_than=0),
                    Condition(argument=argument, less_than=100),
                    Condition(argument=argument, greater_than=1),
                    Condition(argument=argument, equals=1),
                    Condition(argument=argument, one_of=(1, 2)),
                ),
            )
        return pick(
            self.choices,
            (
                Condition(argument=argument, starts_with="a"),
                Condition(argument=argument, equals="bob"),
                Condition(argument=argument, one_of=("ann", "bob", "carol")),
            ),
        )

    def _add_served_tool(self, kind: str) -> None:
        approval: Approval = "never" if chance(self.choices, 25) else "always"
        # How far a standing decision goes shows at a second tool of the server.
        if {"always", "never"} & self.features and chance(self.choices, 50):
            name, server = _SECOND_TOOLS[kind]
            real = "hosted_mcp" if kind == "hosted_mcp" else "mcp"
            self._add_tool(name, {"about": "string"}, "noted {about}", "always", "", kind=real, server=server)
        if kind == "hosted_mcp":
            search = self._add_tool(
                "search", {"query": "string"}, "found {query}", approval, "", kind=kind, server="web"
            )
            if self.allows("tool_errors") and chance(self.choices, 50 if "tool_errors" in self.features else 15):
                self.tools[search.key] = replace(search, behaviours=self._draw_behaviours("tool_errors", ""))
        elif kind == "mcp":
            if "condition" in self.features and chance(self.choices, 50):
                approval = self._draw_comparison("page", "string")
            self._add_tool("read_page", {"page": "string"}, "text of {page}", approval, "", kind=kind, server="wiki")
        else:
            self._add_tool("read_file", {"path": "string"}, "text of {path}", approval, "", kind="mcp", server="disk")

    def _add_asking_tool(self, name: str, parameter: str, *, by_address: bool = False, agent: str = MAIN) -> None:
        """Add a tool of a server that asks the caller in the middle of a call, gated or not."""
        gate: Approval = "never" if chance(self.choices, 35) else "always"
        if gate == "always" and "condition" in self.features and chance(self.choices, 30):
            gate = self._draw_comparison(parameter, "string")
        server = "disk" if "mcp_stdio" in self.features and chance(self.choices, 50) else "bank"
        waits_for = _BANK if gate == "always" and "waits_for_signal" in self.features and agent == MAIN else None
        if waits_for is not None and not chance(self.choices, 30):
            waits_for = None
        is_blunt = "equal_questions" in self.features or chance(self.choices, 20)
        message = "May it go on?" if is_blunt else f"May it go on for {{{parameter}}}?"
        form, url, result = self._draw_form(), None, "done"
        if by_address:
            form, url = {}, "https://bank.invalid/confirm"
        required = next((field for field, kind in form.items() if kind.required), None)
        if required is not None:
            result = f"done for {{{parameter}}} with {{{required}}}"
        asking = ToolBehaviour(
            returns=result,
            raises="the service is down" if "tool_errors" in self.features and chance(self.choices, 40) else None,
            waits_for=waits_for,
            elicits=ScriptedElicitation(message=message, form=form, url=url),
        )
        tool = self._add_tool(name, {parameter: "string"}, result, gate, "", kind="mcp", server=server, agent=agent)
        behaviours: tuple[ToolBehaviour, ...] = (asking,)
        if "successive_results" in self.features and chance(self.choices, 50):
            plain = ToolBehaviour(returns="done without a question")
            behaviours = (asking, plain) if chance(self.choices, 50) else (plain, asking)
        self.tools[tool.key] = replace(tool, behaviours=behaviours)

    def _add_annotated_tools(self) -> None:
        """Add tools of a server that says something about them; the application decides by it, or does not read it."""
        server = "disk" if "mcp_stdio" in self.features and chance(self.choices, 50) else "house"
        said = _UNSAID_ANNOTATIONS if "annotations_unsaid" in self.features else _WAITING_ANNOTATIONS
        if "annotations" in self.features:
            self._add_annotated_tool("sweep", "room", pick(self.choices, said), server)
            if "annotations_changed" in self.features or chance(self.choices, 60):
                self._add_annotated_tool("look_into", "drawer", pick(self.choices, _HARMLESS_ANNOTATIONS), server)
        if "annotations_unread" in self.features:
            # A server that lies changes nothing where the gate is declared.
            gated = chance(self.choices, 60)
            said = _HARMLESS_ANNOTATIONS if gated else _WAITING_ANNOTATIONS
            tool = self._add_tool(
                "lock", {"door": "string"}, "locked {door}", "always" if gated else "never", "",
                kind="mcp", server=server, annotations=pick(self.choices, said),
            )  # fmt: skip
            if gated and "condition" in self.features and chance(self.choices, 30):
                self.tools[tool.key] = replace(tool, approval=self._draw_comparison("door", "string"))

    def _add_annotated_tool(
        self, name: str, parameter: str, said: Mapping[str, bool], server: str, agent: str = MAIN
    ) -> None:
        """Add a tool whose gate is what the application decides by what its server says about it."""
        tool = self._add_tool(
            name, {parameter: "string"}, f"went through {{{parameter}}}", decide_by(said), "",
            kind="mcp", server=server, agent=agent, by_annotations=True, annotations=said,
        )  # fmt: skip
        if "tool_errors" in self.features and chance(self.choices, 20):
            self.tools[tool.key] = replace(tool, behaviours=self._draw_behaviours("tool_errors", ""))

    def _draw_form(self) -> dict[str, Parameter]:
        kinds = {kind for name in self.edges for kind in [_EDGE_TYPES.get(name, "string")]}
        fitting = [name for name, kind in _FIELDS.items() if kind in kinds]
        names = {pick(self.choices, [*_FIELDS]) for _ in range(1 + self.choices.below(3))} | {*fitting[:1]}
        return {
            name: Parameter(type=_FIELDS[name], required=not chance(self.choices, 20))
            for name in _FIELDS
            if name in names
        }

    def _add_helper(self) -> None:
        gate: Approval = "always" if "nested_gate" in self.features else "never"
        self.tools["ask_helper"] = Tool(
            name="ask_helper", runs="helper", approval=gate, parameters={"input": Parameter()}
        )
        if "same_tool_in_agents" in self.features:
            self.inner = next(tool.name for tool in self.tools.values() if self._is_called_plainly(tool))
        self._add_tool(self.inner, {"sum": "integer"}, "wired {sum}", "always", "", agent="helper")
        if "elicitation_in_agent" in self.features:
            self._add_asking_tool("ask_bank", "question", agent="helper")
        if "annotations_in_agent" in self.features:
            # Where both agents have a tool of this name, their servers need not agree about it.
            kinds = (_WAITING_ANNOTATIONS, _HARMLESS_ANNOTATIONS, _UNSAID_ANNOTATIONS)
            said = pick(self.choices, pick(self.choices, kinds))
            name, parameter = ("sweep", "room") if chance(self.choices, 50) else ("check", "seal")
            self._add_annotated_tool(name, parameter, said, "safe", agent="helper")
        if "nested_deep" in self.features:
            ask = Tool(name="ask_expert", agent="helper", runs="expert", parameters={"input": Parameter()})
            self.tools[ask.key] = ask
            self._add_tool("sign", {"page": "integer"}, "signed {page}", "always", "", agent="expert")

    # --- calls ---

    def next_number(self) -> int:
        """Return a number that no argument has yet."""
        self.numbers += 1
        return self.numbers

    def draw_arguments(self, tool: Tool) -> dict[str, Any]:
        """Return arguments that fit a tool and that no other call has."""
        arguments: dict[str, Any] = {}
        for position, (name, parameter) in enumerate(tool.parameters.items()):
            if not parameter.required and not chance(self.choices, 40):
                continue
            value = self._draw_value(parameter.type, identifies=position == 0)
            if position == 0:
                # Edge values with a number may meet others, and an edit may take what no call has.
                while value in self.identities:
                    number = self.next_number()
                    value = value + number if isinstance(value, (int, float)) else f"{value}{number}"
                self.identities.add(value)
            arguments[name] = value
        return arguments

    def _draw_value(self, kind: str, *, identifies: bool) -> Any:
        edge = next((name for name in self.edges if _EDGE_TYPES.get(name, "string") == kind and name in self.due), None)
        fitting = [name for name in self.edges if _EDGE_TYPES.get(name, "string") == kind]
        if edge is None and fitting and chance(self.choices, 40):
            edge = pick(self.choices, fitting)
        # One empty text tells a call apart, a second one does not.
        if edge is not None and not (identifies and edge == "empty_text" and edge not in self.due):
            self.due.pop(edge, None)
            value = pick(self.choices, _EDGES[edge])
            if not identifies:
                return value
            number = self.next_number()
            if edge == "text_like_a_value":
                return f"00{number}"
            if kind == "integer":
                return value + number if value > 0 else value - number
            return f"{value}{number}" if value else value
        if kind == "integer" and "true_beside_1" in self.features and 1 not in self.identities:
            return 1
        number = self.next_number()
        match kind:
            case "integer":
                return number
            case "number":
                return number
            case "boolean":
                return chance(self.choices, 50)
            case "object":
                return {"name": _WORDS[number % len(_WORDS)]}
            case "array":
                return [_WORDS[number % len(_WORDS)]]
        round_, place = divmod(number - 1, len(_WORDS))
        return f"{_WORDS[place]}{round_ + 1 if round_ else ''}"

    def draw_call(self, tool: Tool, *, prefix: str = "c") -> Call:
        """Return a call of a tool with the next id."""
        self.ids += 1
        prefix = "mcpr_" if tool.kind == "hosted_mcp" else prefix
        name = tool.name if tool.agent in (MAIN, "helper") else tool.key
        fitting = self.draw_arguments(tool)
        arguments: Mapping[str, Any] | str = fitting
        invalid = False
        if tool.name == "restart_server":
            arguments = ""
        elif tool.kind == "function" and tool.parameters:
            # The request about the first call can be counted on.
            is_spoilt = self.ids > 1 or not self.features & _NEEDS_REQUESTS
            if is_spoilt and self.broken_texts and self.takes("broken_arguments", 20):
                arguments = pick(self.choices, self.broken_texts)
                self.broken_texts.remove(arguments)
            elif is_spoilt and self.takes("invalid_arguments", 20):
                arguments, invalid = self._spoil(tool, fitting), True
            elif (scalars := [name for name in _scalars_of(tool) if name in fitting]) and self.takes(
                "arguments_as_text", 20
            ):
                written = pick(self.choices, scalars)
                arguments, invalid = {**fitting, written: json.dumps(fitting[written])}, True
        return Call(label="", id=f"{prefix}{self.ids}", tool=name, arguments=arguments, invalid=invalid)

    def _spoil(self, tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return arguments that do not fit: of another type, one missing, or one too many."""
        first = next(iter(tool.parameters))
        match self.choices.below(3):
            case 0:
                number = self.next_number()
                arguments[first] = f"no number {number}" if tool.parameters[first].type == "integer" else number
            case 1:
                arguments["surplus"] = self.next_number()
            case _:
                del arguments[first]
                arguments["surplus"] = self.next_number()
        return arguments

    # --- replies ---

    @property
    def _has_answer(self) -> bool:
        return bool({"structured_answer", "invalid_answer"} & self.features)

    def _last_word(self, text: str) -> ScriptedReply:
        if self._has_answer:
            return ScriptedReply(answer={"total": 0 if chance(self.choices, 20) else self.next_number()})
        return ScriptedReply(say=text)

    def _draw_replies(self) -> list[ScriptedReply]:
        groups = self._group(self._draw_calls())
        if "nested_parallel" in self.features:
            groups.append(self._draw_delegations(2))
        elif {"nested", "nested_gate", "nested_deep"} & self.features:
            groups.append(self._draw_delegations(1))
        if "waits_for_call" in self.features:
            groups.append(self._draw_waiting_calls())
        if "to_clerk" in self.tools:
            groups.append([*self._draw_companion(), self.draw_call(self.tools["to_clerk"], prefix="t")])
            groups.append([self.draw_call(self.tools["clerk/settle"])])
        if "result_per_call" in self.features:
            self._draw_result_per_call(groups)
        replies: list[ScriptedReply] = []
        for number, group in enumerate(groups):
            text = "Let me see." if self.takes("text_with_calls") else None
            replies.append(ScriptedReply(say=text, calls=tuple(group)))
            handed_over = any(call.tool == "to_clerk" for call in group)
            if number < len(groups) - 1 and not handed_over and chance(self.choices, 30):
                replies.append(self._last_word("Anything else?"))
        if "answer_beside_calls" in self.features:
            beside = next((k for k, reply in enumerate(replies) if reply.calls and reply.say is None), 0)
            replies[beside] = replace(replies[beside], answer={"total": "much"}, invalid=True)
        elif "invalid_answer" in self.features:
            replies.append(ScriptedReply(answer={"total": "much"}, invalid=True))
        replies.append(self._last_word("Done."))
        if "slow_reply" in self.features:
            place = self.choices.below(len(replies))
            replies[place] = replace(replies[place], takes=0.01)
        return self._add_failures(replies)

    def _draw_companion(self) -> list[Call]:
        """Return a gated call to stand beside a hand-over, if the story has one there."""
        if "call_beside_hand_off" not in self.features:
            return []
        usable = [tool for tool in self.tools.values() if self._is_called_plainly(tool) and tool.parameters]
        gated = [tool for tool in usable if tool.approval == "always"]
        return [self.draw_call(pick(self.choices, gated))] if gated else []

    def _draw_result_per_call(self, groups: list[list[Call]]) -> None:
        ids = [call.id for group in groups for call in group]
        own = [
            call
            for group in groups
            for call in group
            if call.id is not None and ids.count(call.id) == 1 and self._is_called_plainly_by(call)
        ]
        if own:
            call = pick(self.choices, own)
            tool = self.tools[call.tool]
            behaviours = (replace(tool.behaviours[-1], waits_for=None, raises=None, returns="a result of its own"),)
            self.tools[tool.key] = replace(tool, per_call={**tool.per_call, str(call.id): behaviours})

    def _is_called_plainly_by(self, call: Call) -> bool:
        tool = self.tools.get(call.tool)
        return tool is not None and self._is_called_plainly(tool) and call.id not in tool.per_call

    def _draw_calls(self) -> list[Call]:
        usable = [tool for tool in self.tools.values() if self._is_called_plainly(tool)]
        rest = 1 + self.choices.below(2) if "several_replies" in self.features else self.choices.below(2)
        if "parallel" in self.features or "partial_answers" in self.features or "repeated_decision" in self.features:
            rest = max(rest, 2 - len(usable))
        calls = [self.draw_call(tool) for tool in usable]
        gated = [tool for tool in usable if tool.approval != "never"]
        rest = max(rest, (len(self.features & _NEEDS_REQUESTS) + 1) // 2 - len(gated))
        # Two calls without arguments would be equal.
        distinct = [tool for tool in gated if tool.parameters]
        certain = [tool for tool in distinct if tool.approval == "always"] or distinct or gated
        calls += [self.draw_call(pick(self.choices, certain)) for _ in range(rest)]
        for edge in [name for name in self.edges if name in self.due]:
            kind = _EDGE_TYPES.get(edge, "string")
            fitting = [tool for tool in usable if any(parameter.type == kind for parameter in tool.parameters.values())]
            if edge in self.due and fitting:
                calls.append(self.draw_call(fitting[0]))
        if "equal_questions" in self.features:
            calls.append(self.draw_call(self.tools["open_account"]))
        if "annotations_changed" in self.features:
            calls += [self.draw_call(tool) for tool in usable if tool.by_annotations]
        if {"broken_arguments", "invalid_arguments"} & set(self.due):
            calls.append(self.draw_call(next(tool for tool in gated if tool.kind == "function" and tool.parameters)))
        if "equal_arguments" in self.features:
            # Calls without arguments are equal, too.
            bare = [call for call in calls if call.tool == "restart_server"]
            twin = pick(self.choices, bare or calls)
            self.ids += 1
            number = f"mcpr_{self.ids}" if (twin.id or "").startswith("mcpr_") else f"c{self.ids}"
            calls.append(replace(twin, id=number))
        if "unknown_tools" in self.features:
            self.ids += 1
            arguments = {"it": self.next_number()}
            calls.append(Call(label="", id=f"c{self.ids}", tool="no_such_tool", arguments=arguments, unknown_tool=True))
        if "repeated_ids" in self.features:
            again = pick(self.choices, [call for call in calls if call.id is not None])
            tool = self.tools.get(again.tool)
            if tool is not None:
                calls.append(replace(again, arguments=self.draw_arguments(tool), repeats=True, invalid=False))
        if "missing_ids" in self.features:
            place = self.choices.below(len(calls))
            others = [call.id for k, call in enumerate(calls) if k != place]
            tool = self.tools.get(calls[place].tool)
            # A provider knows the calls that it executes by their ids.
            is_hosted = tool is not None and tool.kind == "hosted_mcp"
            if calls[place].id not in others and not calls[place].repeats and not is_hosted:
                calls[place] = replace(calls[place], id=None, label=f"x{place + 1}")
        return calls

    @staticmethod
    def _is_called_plainly(tool: Tool) -> bool:
        return tool.agent == MAIN and tool.runs is None and tool.hands_over_to is None

    def _group(self, calls: list[Call]) -> list[list[Call]]:
        """Return the calls of each reply."""
        # The first two calls are gated, so that two requests can be open at once.
        calls = sorted(calls, key=self._uncertainty)
        groups: list[list[Call]] = [[calls[0]]]
        several = bool({"parallel", "partial_answers", "repeated_decision"} & self.features)
        several = several and self.allows("parallel")
        for call in calls[1:]:
            twins = [group for group in groups if any(call.id == other.id for other in group)] if call.repeats else []
            joins = several and (len(groups[0]) < 2 or chance(self.choices, 50))
            if twins and self.allows("parallel") and chance(self.choices, 50):
                twins[-1].append(call)
            elif joins and len(groups[-1]) < 4:
                groups[-1].append(call)
            else:
                groups.append([call])
        return groups

    def _uncertainty(self, call: Call) -> int:
        """Return 0 for a call that surely needs approval, 1 for one that may, 2 for one that does not."""
        tool = self.tools.get(call.tool)
        if tool is None or tool.approval == "never":
            return 2
        is_odd = call.invalid or call.repeats or isinstance(call.arguments, str)
        return 1 if is_odd or isinstance(tool.approval, Condition) else 0

    def _draw_delegations(self, count: int) -> list[Call]:
        self.ids += 1
        first = self.ids
        self.ids += count - 1
        scripts: dict[str, tuple[ScriptedReply, ...]] = {}
        calls = []
        tool = self.tools[f"helper/{self.inner}"]
        for number in range(count):
            prompt = f"Wire for {_WORDS[(self.next_number() - 1) % len(_WORDS)]}"
            own = 1 if "equal_ids_in_agents" in self.features else number + 1
            inner = Call(label="", id=f"h{own}", tool=tool.name, arguments=self.draw_arguments(tool))
            replies = [ScriptedReply(calls=(inner,)), ScriptedReply(say="Wired.")]
            if chance(self.choices, 20):
                more = Call(label="", id=f"k{own}", tool=tool.name, arguments=self.draw_arguments(tool))
                replies.insert(1, ScriptedReply(calls=(more,)))
            if "elicitation_in_agent" in self.features and (number == 0 or chance(self.choices, 60)):
                asking = self.tools["helper/ask_bank"]
                ask = Call(label="", id=f"b{own}", tool=asking.name, arguments=self.draw_arguments(asking))
                if self.allows("parallel") and chance(self.choices, 40):
                    replies[0] = ScriptedReply(calls=(inner, ask))
                else:
                    replies.insert(self.choices.below(2), ScriptedReply(calls=(ask,)))
            annotated = [each for each in self.tools.values() if each.agent == "helper" and each.by_annotations]
            if annotated and (number == 0 or chance(self.choices, 60)):
                arguments = self.draw_arguments(annotated[0])
                read = Call(label="", id=f"a{own}", tool=annotated[0].name, arguments=arguments)
                replies.insert(self.choices.below(2), ScriptedReply(calls=(read,)))
            if number == 0 and "nested_deep" in self.features:
                replies.insert(self.choices.below(2), ScriptedReply(calls=(self._draw_inner_delegation(),)))
            if number == 0 and "model_failure" in self.features and chance(self.choices, 50):
                failure = ScriptedFailure(status=pick(self.choices, (500, 429, 503, 529)))
                replies.insert(self.choices.below(len(replies)), ScriptedReply(failure=failure))
            scripts[prompt] = tuple(replies)
            calls.append(Call(label="", id=f"o{first + number}", tool="ask_helper", arguments={"input": prompt}))
        if count == 1:
            self.agents["helper"] = Script(replies=next(iter(scripts.values())))
        else:
            self.agents["helper"] = Script(by_prompt=scripts)
        return calls

    def _draw_inner_delegation(self) -> Call:
        """Return a call by which the agent that a tool runs asks another one."""
        sign = Call(label="", id="s1", tool="sign", arguments=self.draw_arguments(self.tools["expert/sign"]))
        self.agents["expert"] = Script(replies=(ScriptedReply(calls=(sign,)), ScriptedReply(say="Signed.")))
        return Call(label="", id="e1", tool="ask_expert", arguments={"input": "Sign it"})

    def _draw_waiting_calls(self) -> list[Call]:
        """Return two calls of a free tool, one of which waits for the other one."""
        tool = next(tool for tool in self.tools.values() if tool.agent == MAIN and tool.approval == "never")
        first, second = self.draw_call(tool), self.draw_call(tool)
        waiting, awaited = (second, first) if chance(self.choices, 50) else (first, second)
        # A call that does not fit never runs, so that the other one would wait for ever.
        if not _can_run(awaited) and _can_run(waiting):
            waiting, awaited = awaited, waiting
        elif not _can_run(awaited):
            fitting = replace(awaited, arguments=self.draw_arguments(tool), invalid=False)
            first, second = (fitting, waiting) if awaited is first else (waiting, fitting)
            awaited = fitting
        word = pick(self.choices, ("started", "ended"))
        behaviour = replace(tool.behaviours[0], waits_for=f"{word} {awaited.id}")
        per_call = {**tool.per_call, str(waiting.id): (behaviour,)}
        self.tools[tool.key] = replace(tool, per_call=per_call)
        return [first, second]

    def _add_failures(self, replies: list[ScriptedReply]) -> list[ScriptedReply]:
        failures = []
        if "model_failure" in self.features:
            failures.append(ScriptedFailure(status=pick(self.choices, (500, 429, 503, 529))))
        if "retry_after" in self.features:
            failures.append(ScriptedFailure(status=429, retry_after=pick(self.choices, (0.0, 0.01))))
        if "connection_failure" in self.features:
            how = pick(self.choices, ("disconnect", "timeout", "truncated", "garbled"))
            failures.append(ScriptedFailure(status=0, how=how))
        for failure in failures:
            replies.insert(self.choices.below(len(replies) + 1), ScriptedReply(failure=failure))
        if "broken_stream" in self.features:
            whole = [k for k, reply in enumerate(replies) if reply.failure is None]
            place = pick(self.choices, whole)
            how = pick(self.choices, ("disconnect", "truncated", "garbled"))
            status = pick(self.choices, (0, 0, 529)) if how == "disconnect" else 0
            broken = ScriptedFailure(status=status, how=how, after_chunks=self.choices.below(4))
            replies[place] = replace(replies[place], failure=broken)
        return replies

    # --- the frame ---

    def _draw_limits(self) -> Limits:
        return Limits(
            model_replies=1 + self.choices.below(3) if "limit_model_replies" in self.features else None,
            tool_calls=1 + self.choices.below(3) if "limit_tool_calls" in self.features else None,
        )

    def _draw_frame(self, scenario: Scenario) -> Scenario:
        only: dict[str, tuple[Any, ...]] = {}
        vary: list[str] = []
        if "pinned_stream" in self.features or "pinned_chunking" in self.features:
            only["stream"] = (True,)
        if "pinned_chunking" in self.features:
            only["chunking"] = (pick(self.choices, DIMENSIONS["chunking"][1:]),)
        if "pinned_store" in self.features or _rewrites(scenario):
            only["serialize"] = ("json",)
            if self.allows("history.append") and chance(self.choices, 50):
                only["history"] = ("append",)
        if "varied" in self.features:
            vary = [word for word in ("history", "resume", "chunking", "source", "protocol") if word not in only]
            vary = [pick(self.choices, vary)]
        oracles: tuple[str, ...] = ()
        if "oracles" in self.features:
            goes_on = self.allows("goes_on_after_rejection")
            oracles = (pick(self.choices, ("approve_all", *(_REJECTING_ORACLES if goes_on else ()))),)
        held_back = ("report",) if _adds_tool(scenario, "report") else ()
        servers = {"disk": "stdio"} if "mcp_stdio" in self.features else {}
        return replace(scenario, only=only, vary=frozenset(vary), oracles=oracles, held_back=held_back, servers=servers)


def _list_questions(scenario: Scenario) -> dict[str, ScriptedElicitation]:
    """Return what servers ask in calls, by their labels."""
    asked: dict[str, ScriptedElicitation] = {}
    for occurrence in list_occurrences(scenario):
        tool = find_tool(scenario, occurrence.agent, occurrence.call.tool)
        behaviours = () if tool is None else tool.per_call.get(occurrence.label) or tool.behaviours
        questions = [behaviour.elicits for behaviour in behaviours if behaviour.elicits is not None]
        if questions:
            asked[occurrence.label] = questions[0]
    return asked


def _scalars_of(tool: Tool) -> list[str]:
    return [name for name, parameter in tool.parameters.items() if parameter.type in _SCALARS]


def _can_run(call: Call) -> bool:
    return not call.invalid and not isinstance(call.arguments, str)


def _fit_alike(call: Call, awaited: Call | None) -> bool:
    """Return whether two calls of a tool that both can run fit alike, whatever types its parameters have."""
    if awaited is None or not (_can_run(call) and _can_run(awaited)):
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


def _rewrites(scenario: Scenario) -> bool:
    """Return whether the caller changes the text of a save, which only one serialize mode has."""
    return any(isinstance(step, RewriteStep) for step in scenario.caller or ())


def _adds_tool(scenario: Scenario, name: str) -> bool:
    return any(isinstance(step, RestartStep) and name in step.with_tools for step in scenario.caller or ())


def _forget_signals(tool: Tool, given: Collection[str]) -> Tool:
    """Return the tool without waiting for signals that no step gives."""
    missing = {_BANK, _POLICY} - set(given)
    approval = tool.approval
    if isinstance(approval, Condition) and approval.waits_for in missing:
        approval = replace(approval, waits_for=None)
    behaviours = tuple(
        replace(behaviour, waits_for=None) if behaviour.waits_for in missing else behaviour
        for behaviour in tool.behaviours
    )
    return replace(tool, approval=approval, behaviours=behaviours)


def _map_replies(script: Script, change: Callable[[ScriptedReply], ScriptedReply]) -> Script:
    by_prompt = {prompt: tuple(map(change, replies)) for prompt, replies in script.by_prompt.items()}
    return Script(replies=tuple(map(change, script.replies)), by_prompt=by_prompt)


def _shorten(agents: Mapping[str, Script], count: int, messages: Collection[str]) -> dict[str, Script]:
    """Return the scripts with the first *count* replies of the main agent, and those for *messages* only."""
    main = agents[MAIN]
    by_prompt = {text: replies[:count] for text, replies in main.by_prompt.items() if text in messages}
    return {**agents, MAIN: replace(main, replies=main.replies[:count], by_prompt=by_prompt)}


# --- the caller -------------------------------------------------------------------------------------------------------

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

_NEEDS_OPEN = frozenset(
    {
        "message_with_answers", "partial_answers", "oracle_step", "stage", "rewrite", "go_on_without_answer",
        "message_while_pending", "hangs_up_in_tool", "malformed_verdict", "contradiction", "simultaneous", "leave",
        "cancel",
    }
)  # fmt: skip
"""Actions that make sense only while a request is open."""

_LETS_WAIT = frozenset(
    {
        "partial_answers", "message_with_answers", "oracle_step", "cancel", "message_while_pending", "leave",
        "go_on_without_answer",
    }
)  # fmt: skip
"""Actions that execute no call before the signal that it waits for."""

_NEEDS_REQUESTS = _NEEDS_OPEN | {
    "repeated_decision", "late_decision", "edit", "edit_tool", "invalid_edit", "unknown_edit_tool", "always", "never",
    "reject_reason", "decision_source", "tampered_arguments", "tampered_tool",
}  # fmt: skip
"""Features for which a request is answered, or stays open."""

_REASONS = ("not today", "over the limit", "ask me again tomorrow")
_MALFORMED_DECISIONS: tuple[Any, ...] = ("approve", None, True, {}, {"approved": "yes"}, 1, [])
_REJECTING_ORACLES = ("reject_all", "random:7", "allowlist:pay,refund")
_MALFORMED_ADDRESSES: tuple[Any, ...] = (None, "", 7, {}, [], {"id": None})


class _CallerWriter:
    """Writer of the caller's steps.

    What it writes it plays in a dry run at once, so it knows which requests are open.
    """

    def __init__(self, story: _StoryWriter, scenario: Scenario) -> None:
        self.story = story
        self.choices = story.choices
        self.scenario = scenario
        self.dry = DryRun(scenario)
        self.steps: list[Step] = []
        self.sessions = [""]
        if {"sessions", "sessions_together"} & story.features:
            self.sessions.append("bob")
        self.begun: set[str] = set()
        self.saves: dict[str, list[str]] = {}
        self.texts = 0
        self.signals: set[str] = set()
        self.is_over = False

    def write(self) -> tuple[Step, ...]:
        """Draw the steps."""
        turns = 1 + (1 + self.choices.below(2) if "several_turns" in self.story.features else 0)
        self._begin("")
        while len(self.steps) < _MAX_STEPS and not self.is_over:
            session = pick(self.choices, self.sessions)
            actions = [name for name in _ACTIONS if name in self.story.due and self._applies(name, session)]
            # Nothing follows a caller who leaves.
            others = (set(_ACTIONS) | _NEEDS_REQUESTS) & set(self.story.due) - {"leave"}
            if others and self._has_more_calls(session):
                actions = [name for name in actions if name != "leave"]
            actions = [name for name in actions if name != "leave"] or actions
            # An action is twice as likely as ordinary progress, which may close the request that it needs.
            chosen = self.choices.below(2 * len(actions) + 1) if actions else 0
            if actions and not chosen and _NEEDS_OPEN & set(actions) and not self._has_more_calls(session):
                chosen = 1
            if chosen:
                name = actions[(chosen - 1) % len(actions)]
                del self.story.due[name]
                self._act(name, session)
                if name == "leave":
                    break
            elif not self._progress(session, turns) and not actions:
                break
        return tuple(self.steps)

    def _has_more_calls(self, session: str) -> bool:
        """Return whether the script of a session has calls that were not made yet."""
        script = self.scenario.agents[MAIN]
        replies = script.by_prompt.get(_FIRST_MESSAGES[session], script.replies)
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
        turn = TurnStep(text=_FIRST_MESSAGES[session], session=session)
        if "slow_conditions" in self.story.features and _POLICY not in self.signals:
            self.signals.add(_POLICY)
            self._add(TogetherStep(steps=(turn, SignalStep(name=_POLICY))))
        else:
            self._add(turn)

    def _next_text(self) -> str:
        self.texts += 1
        return _MESSAGES[(self.texts - 1) % len(_MESSAGES)]

    def _progress(self, session: str, turns: int) -> bool:
        """Take the next ordinary step; return False if nothing is left to do in any session."""
        for name in dict.fromkeys((session, *self.sessions)):
            if name not in self.begun:
                self._begin(name)
                return True
            labels = self.dry.open_labels(name)
            wanted = _NEEDS_REQUESTS & set(self.story.due)
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
        if "waits_for_signal" in self.story.features and _BANK not in self.signals:
            self.signals.add(_BANK)
            self._add(SignalStep(name=_BANK))
        self._add(LetOracleStep(rounds=rounds, session=session))

    def _core(self, session: str) -> int:
        """Return the number of replies that a session has to play for the whole story."""
        own = self.scenario.agents[MAIN].by_prompt.get(_FIRST_MESSAGES[session], ())
        return len(own) if session and own else self.story.core

    def _decide(self, session: str, labels: Sequence[str], *, text: str | None = None) -> None:
        answers = self._draw_decisions(labels, session)
        turn = TurnStep(text=text, answers=answers, session=session)
        if self._waits(labels, session) and _BANK not in self.signals:
            self.signals.add(_BANK)
            self._add(TogetherStep(steps=(turn, SignalStep(name=_BANK))))
        else:
            self._add(turn)

    def _waits(self, labels: Sequence[str], session: str) -> bool:
        """Return whether one of the calls would wait for a signal."""
        return any(
            behaviour.waits_for == _BANK
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
        goes_on = self.story.allows("goes_on_after_rejection")
        if drawn and not goes_on and all(one.verdict in ("reject", "never") for one in drawn):
            # A turn that only rejects may be the last one, if the model had nothing more to ask for.
            self.is_over = not self._has_more_calls(session) and chance(self.choices, 50)
            drawn = drawn if self.is_over else [ScriptedDecision(label=drawn[0].label), *drawn[1:]]
        return tuple(drawn[::-1] if is_reversed and chance(self.choices, 60) else drawn)

    def _draw_decision(self, label: str, session: str) -> ScriptedDecision:
        decision = self._draw_verdict(label, session)
        story = self.story
        if story.takes("decision_source"):
            decision = replace(decision, source=pick(self.choices, self._sources()))
        tool = self.dry.tool_of(label, session)
        if tool is not None and tool.parameters and tool.runs is None and story.takes("tampered_arguments"):
            decision = replace(decision, shows=story.draw_arguments(tool))
        if story.takes("tampered_tool"):
            decision = replace(decision, shows_tool=pick(self.choices, self._other_tools(tool)))
        return decision

    def _sources(self) -> list[Any]:
        sources = ["rebuilt", "restored"] if self.story.allows("answer.restored") else ["rebuilt"]
        return sources if self._saves_state() else ["rebuilt"]

    def _saves_state(self) -> bool:
        return any(isinstance(step, (SaveStep, RestoreStep, RestartStep)) for step in self.steps)

    def _other_tools(self, own: Tool | None) -> list[str]:
        names = [tool.visible_name for tool in self.scenario.tools if tool is not own and tool.runs is None]
        return names or ["delete_everything"]

    def _draw_verdict(self, label: str, session: str) -> ScriptedDecision:
        story, tool = self.story, self.dry.tool_of(label, session)
        is_plain = tool is not None and bool(tool.parameters) and tool.runs is None and tool.hands_over_to is None
        if tool is not None and is_plain:
            if story.takes("edit_tool") and (others := self._editable_tools(tool)):
                other = pick(self.choices, others)
                return _edit(label, story.draw_arguments(other), tool=other.visible_name)
            if story.takes("unknown_edit_tool"):
                return replace(_edit(label, story.draw_arguments(tool), tool="no_such_tool"), unknown_tool=True)
            if story.takes("invalid_edit"):
                arguments = {**story.draw_arguments(tool), "surplus": story.next_number()}
                return replace(_edit(label, arguments), invalid=True)
            if story.takes("edit"):
                return _edit(label, story.draw_arguments(tool))
        if story.takes("always"):
            return ScriptedDecision(label=label, verdict="always")
        if story.takes("never"):
            reason = pick(self.choices, _REASONS) if story.allows("reject_reason") else None
            return ScriptedDecision(label=label, verdict="never", reason=reason)
        if story.takes("reject_reason"):
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
        waits = self._waits(labels, session) and _BANK not in self.signals
        if name in _NEEDS_OPEN and (not labels or (waits and name not in _LETS_WAIT)):
            return False
        match name:
            case "partial_answers":
                return len(labels) > 1
            case "repeated_decision":
                return bool(self.dry.settled_labels(session) and labels) or (
                    len(labels) > 1 and self.story.allows("partial_answers") and not self._waits(labels, session)
                )
            case "late_decision":
                return bool(self.dry.settled_labels(session)) and not labels
            case "unasked_decision":
                return bool(self.dry.ungated_labels(session))
            case "hangs_up_at_model" | "crashes":
                return not labels or not self._waits(labels, session) or _BANK in self.signals
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
                if self.story.takes("stage_again", 0):
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
        return "restart" in available_features(self.story.capabilities, "realistic")

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
        fresh = name == "fresh" or ("fresh" in self.story.features and chance(self.choices, 20))
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
        waiting = _WAITING_ANNOTATIONS + _UNSAID_ANNOTATIONS
        kinds = {
            tool.key: _HARMLESS_ANNOTATIONS if (tool.approval != "never") is chance(self.choices, 80) else waiting
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
        if labels and self.story.has_store and self.story.allows("simultaneous") and chance(self.choices, 20):
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
        if self.story.allows("go_on_without_answer"):
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
        if self._waits(labels, session) and _BANK not in self.signals:
            self.signals.add(_BANK)
            self._add(SignalStep(name=_BANK))

    def _fail_store(self, session: str, labels: Sequence[str]) -> None:
        """Let the store lose a turn, or show what it held before one, and go on as a caller who does not know."""
        turn = self._draw_killed_turn(session, labels)
        is_lost = chance(self.choices, 50)
        self._add(replace(turn, loses="write") if is_lost else turn)
        steps = [plain_turn(turn)] if turn.answers else []
        after = self.dry.open_labels(session)
        self._open_bank_for(after, session)
        if (after and self.story.allows("message_while_pending")) or not after:
            steps.append(TurnStep(text=self._next_text(), session=session))
        if after:
            steps.append(TurnStep(answers=self._draw_decisions(after, session), session=session))
        if self.story.allows("go_on_without_answer"):
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
        if self.story.allows("message_while_pending"):
            others.append(TurnStep(text=self._next_text(), session=session))
        if self.story.allows("go_on_without_answer"):
            others.append(TurnStep(session=session))
        self._add(TogetherStep(steps=(replace(turn, stops=pick(self.choices, places)), pick(self.choices, others))))

    def _draw_killed_turn(self, session: str, labels: Sequence[str]) -> TurnStep:
        if not labels:
            return TurnStep(text=self._next_text(), session=session)
        is_partial = len(labels) > 1 and self.story.allows("partial_answers") and chance(self.choices, 40)
        if not is_partial and self.story.allows("message_while_pending") and chance(self.choices, 15):
            return TurnStep(text=self._next_text(), session=session)
        decided = [pick(self.choices, labels)] if is_partial else labels
        answers = self._draw_decisions(decided, session)
        # What is lost of a change shows only where its call has not ended.
        if self.story.allows("edit") and chance(self.choices, 20):
            first = answers[0].label or ""
            tool = self.dry.tool_of(first, session)
            if tool is not None and tool.parameters and tool.runs is None and tool.hands_over_to is None:
                answers = (_edit(first, self.story.draw_arguments(tool)), *answers[1:])
        return TurnStep(answers=answers, session=session)

    def _crash_places(self, turn: TurnStep) -> list[str]:
        places = self.dry.crash_places(turn)
        if not self.story.allows("streaming"):
            places.remove(AT_STREAM)
        return places if self.story.has_store else [place for place in places if not is_cut_write(place)]

    def _together(self, name: str, session: str, labels: Sequence[str]) -> None:
        if name == "sessions_together":
            self._add(TogetherStep(steps=tuple(map(self._next_turn, self.sessions))))
            return
        one = TurnStep(answers=self._draw_decisions(labels, session), session=session)
        if self.story.allows("message_while_pending") and chance(self.choices, 40):
            other = TurnStep(text=self._next_text(), session=session)
        else:
            other = TurnStep(answers=self._draw_decisions(labels, session), session=session)
        self._add(TogetherStep(steps=(one, other)))

    def _next_turn(self, session: str) -> TurnStep:
        """Return the next ordinary turn of a session, which waits for no signal."""
        if session not in self.begun:
            self.begun.add(session)
            return TurnStep(text=_FIRST_MESSAGES[session], session=session)
        labels = self.dry.open_labels(session)
        if labels and self._waits(labels, session) and _BANK not in self.signals:
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
                rest = () if self.story.allows("partial_answers") else tuple(x for x in labels if x != label)
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
                if not self.story.allows("partial_answers"):
                    answers += self._draw_decisions([other for other in labels if other != label], session)
            case _:
                if not self.dry.settled_labels(session):
                    self._decide(session, labels[:1])
                label = pick(self.choices, self.dry.settled_labels(session) or labels[:1])
                answers = [ScriptedDecision(label=label, verdict=self._approve_or_reject())]
        self._add(TurnStep(answers=tuple(answers), session=session))

    def _approve_or_reject(self) -> Any:
        return pick(self.choices, ("approve", "reject"))


def _reverse(decision: ScriptedDecision) -> ScriptedDecision:
    """Return the decision of somebody who thinks better of it."""
    verdict: Any = "approve" if decision.verdict in ("reject", "never") else "reject"
    return ScriptedDecision(label=decision.label, verdict=verdict)


def _edit(label: str, arguments: Mapping[str, Any], *, tool: str | None = None) -> ScriptedDecision:
    return ScriptedDecision(label=label, verdict="edit", arguments=arguments, tool=tool)
