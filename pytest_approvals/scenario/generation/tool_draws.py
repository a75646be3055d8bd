"""Tools of a drawn story."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pytest_approvals.agent_side.contract import MAIN, Parameter
from pytest_approvals.agent_side.contract.types import Approval, Condition
from pytest_approvals.scenario.generation.choices import NEEDS_REQUESTS, chance, pick
from pytest_approvals.scenario.generation.draft import BANK, EDGE_TYPES, POLICY, StoryDraft, is_called_plainly
from pytest_approvals.scenario.model import ScriptedElicitation, Tool, ToolBehaviour, decide_by, parse_parameter

_GATED = (
    ("pay", {"amount": "integer"}, "paid {amount}"),
    ("refund", {"order": "integer"}, "refunded {order}"),
    ("delete_file", {"path": "string"}, "deleted {path}"),
    ("send_mail", {"to": "string", "body": "string"}, "sent to {to}"),
    ("book", {"seat": "integer", "price": "number"}, "booked {seat}"),
    ("book_up_to", {"limit": "integer", "strict": "boolean"}, "booked up to {limit}"),
    ("write_row", {"row": "integer", "fields": "object"}, "wrote {row}"),
    ("tag", {"name": "string", "labels": "array"}, "tagged {name}"),
)
"""Tools: name, parameters, result. The first parameter tells the calls of a tool apart.

The name of one begins with that of another, so that what applies to one tool can be seen to reach the other.
"""

_FREE = (
    ("look", {"what": "string"}, "saw {what}"),
    ("list_files", {"folder": "string"}, "a file in {folder}"),
    ("count", {"since": "integer"}, "counted since {since}"),
)

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

WAITING_ANNOTATIONS: tuple[dict[str, bool], ...] = (
    {"destructiveHint": True},
    {"readOnlyHint": False},
    {"readOnlyHint": False, "destructiveHint": True},
    {"readOnlyHint": False, "idempotentHint": True, "openWorldHint": False},
)

UNSAID_ANNOTATIONS: tuple[dict[str, bool], ...] = (
    {},
    {"openWorldHint": False},
    {"idempotentHint": True},
    {"idempotentHint": True, "openWorldHint": False},
)

HARMLESS_ANNOTATIONS: tuple[dict[str, bool], ...] = (
    {"readOnlyHint": True},
    {"destructiveHint": False},
    {"readOnlyHint": False, "destructiveHint": False},
    {"readOnlyHint": True, "destructiveHint": True},
    {"readOnlyHint": True, "openWorldHint": True},
)
"""What a server says about a tool whose calls then wait, wait because nothing is said, or run at once."""


def draw_tools(draft: StoryDraft) -> None:
    """Add to a draft the tools that its features need, at least one."""
    behaviours = [name for name in _BEHAVIOURS if name in draft.features]
    gates = [name for name in _GATES if name in draft.features]
    # A call that waits for a signal is gated in any case, so that its approval can come together with it.
    waiting = "waits_for_signal" in behaviours
    # Beside gates that nobody can foresee there is one whose request the caller can count on.
    unforeseen = len(gates) if not {"condition", "slow_conditions"} & draft.features else 0
    count = max(1, len(behaviours), len(gates) + waiting)
    if unforeseen and draft.features & NEEDS_REQUESTS:
        count = max(count, unforeseen + waiting + 1)
    if {"several_tools", "edit_tool", "tampered_tool"} & draft.features:
        count = max(count, 2)
    first = pick(draft.choices, range(4)) if not draft.edges else _template_for_edges(draft)
    if "arguments_as_text" in draft.features and not draft.edges:
        first = _TEMPLATE_OF_TYPE["boolean"]
    if waiting:
        behaviours.remove("waits_for_signal")
    for number in range(count):
        name, parameters, result = _GATED[(first + number) % len(_GATED)]
        behaviour = behaviours[number] if number < len(behaviours) else ""
        gate = gates[number] if number < len(gates) else ""
        if waiting and number == count - 1:
            behaviour, gate = "waits_for_signal", ""
        _add_tool(draft, name, parameters, result, _draw_gate(draft, gate, parameters), behaviour)
    _add_tools_for_edges(draft)
    if {"free_tool", "unasked_decision", "waits_for_call"} & draft.features:
        draft.due.pop("free_tool", None)
        name, parameters, result = pick(draft.choices, _FREE)
        _add_tool(draft, name, parameters, result, "never", "")
    for kind in _KINDS:
        if kind in draft.features:
            _add_served_tool(draft, kind)
    if {"elicitation", "equal_questions"} & draft.features:
        _add_asking_tool(draft, "open_account", "owner")
    if "elicitation_url" in draft.features:
        _add_asking_tool(draft, "sign_contract", "partner", by_address=True)
    if {"annotations", "annotations_unread"} & draft.features:
        _add_annotated_tools(draft)
    if "same_tool_name" in draft.features:
        free = pick(draft.choices, ("", "web", "wiki"))
        for server in ("web", "wiki"):
            _add_tool(draft,
                f"find_on_{server}", {"page": "string"}, "found {page}", "never" if server == free else "always",
                "", called="find", kind="hosted_mcp", server=server,
            )  # fmt: skip
    if "empty_arguments" in draft.features:
        _add_tool(draft, "restart_server", {}, "restarted", "always", "")
    if "held_back" in draft.features:
        _add_tool(draft, "report", {"number": "integer"}, "reported {number}", "always", "")
    if {"nested", "nested_gate", "nested_parallel", "nested_deep"} & draft.features:
        _add_helper(draft)
    if {"hand_offs", "gated_hand_off"} & draft.features:
        hand_over = Tool(name="to_clerk", hands_over_to="clerk")
        draft.tools["to_clerk"] = (
            replace(hand_over, approval="always") if "gated_hand_off" in draft.features else hand_over
        )
        _add_tool(draft, "settle", {"bill": "integer"}, "settled {bill}", "always", "", agent="clerk")


def _add_tools_for_edges(draft: StoryDraft) -> None:
    """Add a tool for each type of value that no tool takes yet."""
    for edge in draft.edges:
        kind = EDGE_TYPES.get(edge, "string")
        if not any(parameter.type == kind for tool in draft.tools.values() for parameter in tool.parameters.values()):
            name, parameters, result = _GATED[_TEMPLATE_OF_TYPE.get(kind, 0)]
            _add_tool(draft, name, parameters, result, "always", "")


def _template_for_edges(draft: StoryDraft) -> int:
    for name in draft.edges:
        kind = EDGE_TYPES.get(name, "string")
        if kind in _TEMPLATE_OF_TYPE:
            return _TEMPLATE_OF_TYPE[kind]
    return 0


def _add_tool(
    draft: StoryDraft, name: str, types: Mapping[str, str], result: str, approval: Approval, behaviour: str, **more: Any
) -> Tool:
    parameters = {key: parse_parameter(kind) for key, kind in types.items()}
    if behaviour != "" or more.get("kind", "function") == "function":
        if draft.takes("optional_parameter", 20):
            parameters["note"] = parse_parameter("string?")
        if draft.takes("default_parameter", 20):
            parameters["currency"] = Parameter(type="string", required=False, default="EUR")
    tool = Tool(
        name=name,
        parameters=parameters,
        approval=approval,
        behaviours=_draw_behaviours(draft, behaviour, result),
        **more,
    )
    draft.tools[tool.key] = tool
    return tool


def _draw_behaviours(draft: StoryDraft, behaviour: str, result: str) -> tuple[ToolBehaviour, ...]:
    plain = ToolBehaviour(returns=result)
    match behaviour:
        case "tool_errors":
            return (ToolBehaviour(raises="the service is down"),)
        case "non_text_results":
            return (ToolBehaviour(returns=pick(draft.choices, _RESULTS)),)
        case "empty_result":
            return (ToolBehaviour(returns=""),)
        case "successive_results":
            return (plain, ToolBehaviour(returns=f"{result} again"))
        case "asks_again":
            return (ToolBehaviour(asks_again="Really?"), plain)
        case "waits_for_signal":
            return (ToolBehaviour(waits_for=BANK, returns=result),)
    return (plain,)


def _draw_gate(draft: StoryDraft, gate: str, parameters: Mapping[str, str]) -> Approval:
    first = next(iter(parameters))
    match gate:
        case "condition":
            return _draw_comparison(draft, first, parameters[first])
        case "changing_condition":
            return Condition(argument=None, answers=pick(draft.choices, ((True, False), (False, True), (True,))))
        case "raising_conditions":
            return Condition(raises="the policy is down")
        case "slow_conditions":
            return replace(_draw_comparison(draft, first, parameters[first]), waits_for=POLICY)
    return "always"


def _draw_comparison(draft: StoryDraft, argument: str, kind: str) -> Condition:
    if kind == "integer":
        return pick(
            draft.choices,
            (
                Condition(argument=argument, greater_than=0),
                Condition(argument=argument, less_than=100),
                Condition(argument=argument, greater_than=1),
                Condition(argument=argument, equals=1),
                Condition(argument=argument, one_of=(1, 2)),
            ),
        )
    return pick(
        draft.choices,
        (
            Condition(argument=argument, starts_with="a"),
            Condition(argument=argument, equals="bob"),
            Condition(argument=argument, one_of=("ann", "bob", "carol")),
        ),
    )


def _add_served_tool(draft: StoryDraft, kind: str) -> None:
    approval: Approval = "never" if chance(draft.choices, 25) else "always"
    # How far a standing decision goes shows at a second tool of the server.
    if {"always", "never"} & draft.features and chance(draft.choices, 50):
        name, server = _SECOND_TOOLS[kind]
        real = "hosted_mcp" if kind == "hosted_mcp" else "mcp"
        _add_tool(draft, name, {"about": "string"}, "noted {about}", "always", "", kind=real, server=server)
    if kind == "hosted_mcp":
        search = _add_tool(draft, "search", {"query": "string"}, "found {query}", approval, "", kind=kind, server="web")
        if draft.allows("tool_errors") and chance(draft.choices, 50 if "tool_errors" in draft.features else 15):
            draft.tools[search.key] = replace(search, behaviours=_draw_behaviours(draft, "tool_errors", ""))
    elif kind == "mcp":
        if "condition" in draft.features and chance(draft.choices, 50):
            approval = _draw_comparison(draft, "page", "string")
        _add_tool(draft, "read_page", {"page": "string"}, "text of {page}", approval, "", kind=kind, server="wiki")
    else:
        _add_tool(draft, "read_file", {"path": "string"}, "text of {path}", approval, "", kind="mcp", server="disk")


def _add_asking_tool(
    draft: StoryDraft, name: str, parameter: str, *, by_address: bool = False, agent: str = MAIN
) -> None:
    """Add a tool of a server that asks the caller in the middle of a call, gated or not."""
    gate: Approval = "never" if chance(draft.choices, 35) else "always"
    if gate == "always" and "condition" in draft.features and chance(draft.choices, 30):
        gate = _draw_comparison(draft, parameter, "string")
    server = "disk" if "mcp_stdio" in draft.features and chance(draft.choices, 50) else "bank"
    waits_for = BANK if gate == "always" and "waits_for_signal" in draft.features and agent == MAIN else None
    if waits_for is not None and not chance(draft.choices, 30):
        waits_for = None
    is_blunt = "equal_questions" in draft.features or chance(draft.choices, 20)
    message = "May it go on?" if is_blunt else f"May it go on for {{{parameter}}}?"
    form, url, result = _draw_form(draft), None, "done"
    if by_address:
        form, url = {}, "https://bank.invalid/confirm"
    required = next((field for field, kind in form.items() if kind.required), None)
    if required is not None:
        result = f"done for {{{parameter}}} with {{{required}}}"
    asking = ToolBehaviour(
        returns=result,
        raises="the service is down" if "tool_errors" in draft.features and chance(draft.choices, 40) else None,
        waits_for=waits_for,
        elicits=ScriptedElicitation(message=message, form=form, url=url),
    )
    tool = _add_tool(draft, name, {parameter: "string"}, result, gate, "", kind="mcp", server=server, agent=agent)
    behaviours: tuple[ToolBehaviour, ...] = (asking,)
    if "successive_results" in draft.features and chance(draft.choices, 50):
        plain = ToolBehaviour(returns="done without a question")
        behaviours = (asking, plain) if chance(draft.choices, 50) else (plain, asking)
    draft.tools[tool.key] = replace(tool, behaviours=behaviours)


def _add_annotated_tools(draft: StoryDraft) -> None:
    """Add tools of a server that says something about them; the application decides by it, or does not read it."""
    server = "disk" if "mcp_stdio" in draft.features and chance(draft.choices, 50) else "house"
    said = UNSAID_ANNOTATIONS if "annotations_unsaid" in draft.features else WAITING_ANNOTATIONS
    if "annotations" in draft.features:
        _add_annotated_tool(draft, "sweep", "room", pick(draft.choices, said), server)
        if "annotations_changed" in draft.features or chance(draft.choices, 60):
            _add_annotated_tool(draft, "look_into", "drawer", pick(draft.choices, HARMLESS_ANNOTATIONS), server)
    if "annotations_unread" in draft.features:
        # A server that lies changes nothing where the gate is declared.
        gated = chance(draft.choices, 60)
        said = HARMLESS_ANNOTATIONS if gated else WAITING_ANNOTATIONS
        tool = _add_tool(draft,
            "lock", {"door": "string"}, "locked {door}", "always" if gated else "never", "",
            kind="mcp", server=server, annotations=pick(draft.choices, said),
        )  # fmt: skip
        if gated and "condition" in draft.features and chance(draft.choices, 30):
            draft.tools[tool.key] = replace(tool, approval=_draw_comparison(draft, "door", "string"))


def _add_annotated_tool(
    draft: StoryDraft, name: str, parameter: str, said: Mapping[str, bool], server: str, agent: str = MAIN
) -> None:
    """Add a tool whose gate is what the application decides by what its server says about it."""
    tool = _add_tool(draft,
        name, {parameter: "string"}, f"went through {{{parameter}}}", decide_by(said), "",
        kind="mcp", server=server, agent=agent, by_annotations=True, annotations=said,
    )  # fmt: skip
    if "tool_errors" in draft.features and chance(draft.choices, 20):
        draft.tools[tool.key] = replace(tool, behaviours=_draw_behaviours(draft, "tool_errors", ""))


def _draw_form(draft: StoryDraft) -> dict[str, Parameter]:
    kinds = {kind for name in draft.edges for kind in [EDGE_TYPES.get(name, "string")]}
    fitting = [name for name, kind in _FIELDS.items() if kind in kinds]
    names = {pick(draft.choices, [*_FIELDS]) for _ in range(1 + draft.choices.below(3))} | {*fitting[:1]}
    return {
        name: Parameter(type=_FIELDS[name], required=not chance(draft.choices, 20)) for name in _FIELDS if name in names
    }


def _add_helper(draft: StoryDraft) -> None:
    gate: Approval = "always" if "nested_gate" in draft.features else "never"
    draft.tools["ask_helper"] = Tool(name="ask_helper", runs="helper", approval=gate, parameters={"input": Parameter()})
    if "same_tool_in_agents" in draft.features:
        draft.inner = next(tool.name for tool in draft.tools.values() if is_called_plainly(tool))
    _add_tool(draft, draft.inner, {"sum": "integer"}, "wired {sum}", "always", "", agent="helper")
    if "elicitation_in_agent" in draft.features:
        _add_asking_tool(draft, "ask_bank", "question", agent="helper")
    if "annotations_in_agent" in draft.features:
        # Where both agents have a tool of this name, their servers need not agree about it.
        kinds = (WAITING_ANNOTATIONS, HARMLESS_ANNOTATIONS, UNSAID_ANNOTATIONS)
        said = pick(draft.choices, pick(draft.choices, kinds))
        name, parameter = ("sweep", "room") if chance(draft.choices, 50) else ("check", "seal")
        _add_annotated_tool(draft, name, parameter, said, "safe", agent="helper")
    if "nested_deep" in draft.features:
        ask = Tool(name="ask_expert", agent="helper", runs="expert", parameters={"input": Parameter()})
        draft.tools[ask.key] = ask
        _add_tool(draft, "sign", {"page": "integer"}, "signed {page}", "always", "", agent="expert")
