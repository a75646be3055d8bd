"""Native scripts: a scenario as a program that uses a framework's public API only.

Such a script shows what happens without this package: it has the framework's own scripted model, the tools, and the
caller's turns. It prints what ran, what was asked and what the model was told, and ends with `OK`, or with `BUG` and
exit code 1.

The parts of a script that are the same for all scenarios are in `native.toml` in the folder of the framework's adapter.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Any, Protocol

from pytest_approvals import agent_side
from pytest_approvals.agents.adapters import get_adapter
from pytest_approvals.agents.package_registries import NPM
from pytest_approvals.agents.pins import get_pin, get_pinned_release
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.errors import UnknownName, UsageError
from pytest_approvals.scenario.model import Scenario, ScriptedDecision, ScriptedReply, Tool
from pytest_approvals.scenario.native_javascript import JavaScript
from pytest_approvals.scenario.native_plan import (
    Answers,
    GoOn,
    Inexpressible,
    Message,
    Names,
    Plan,
    Turn,
    plan_script,
)
from pytest_approvals.scenario.native_python import LINE_LENGTH, Python


class NativeLanguage(Names, Protocol):
    """A language of scripts."""

    @property
    def indent(self) -> str:
        """One step of indentation."""

    def quote(self, text: str) -> str:
        """Return the source of a text."""

    def write_value(self, value: Any) -> str:
        """Return the source of a JSON value."""

    def write_head(self, title: str, requirements: Sequence[str]) -> list[str]:
        """Return the lines that say what the script is and needs."""

    def write_replies(self, replies: Sequence[str]) -> Iterator[str]:
        """Yield the replies of the model, as a list."""

    def write_answers(self, answers: Sequence[str]) -> Iterator[str]:
        """Yield the answers of a turn, by the ids of calls."""

    def write_tool(self, tool: Tool, form: Mapping[str, str]) -> Iterator[str]:
        """Yield a tool that notes that it ran, in the form of a framework."""

    def write_end(self, plan: Plan, main: str, *, by_name: bool) -> Iterator[str]:
        """Yield the call of *main*, and the comparison of what happened with what has to happen.

        Args:
            plan: What has to happen.
            main: The call.
            by_name: A function names its call by its tool, not by the id.
        """

    def tidy(self, source: str) -> Iterator[str]:
        """Yield the lines of a script without what it imports and does not use."""


def write_native_script(scenario: Scenario, spec: AgentSpec) -> str:
    """Return the source of a script that plays *scenario* on the framework of *spec*.

    Args:
        scenario: The scenario.
        spec: The agent; without a version, the script is for the pinned release.

    Raises:
        UsageError: No script can be written for the agent, or for what the scenario has.
    """
    adapter = get_adapter(spec)
    known = list_native_agents()
    if spec.flavour or spec.checkout or spec.name not in known or adapter.framework is None:
        if not spec.flavour and not spec.checkout and spec.name not in known:
            raise UnknownName("agent", spec.name, known, "native")
        raise UsageError(f"{spec}: native scripts are for the default flavours of releases: --agent NAME[==VERSION]")
    registry, framework = adapter.registry, adapter.framework
    language: NativeLanguage = JavaScript() if registry == NPM.name else Python()
    release = spec.version or get_pinned_release(framework, registry) or ""
    parts = _read_parts(spec.name)
    parts = {**parts, **parts["streamed" if scenario.only.get("stream") == (True,) else "plain"]}
    try:
        plan = plan_script(scenario, language, parts.get("rejection"))
        body = "\n".join(_write_from_parts(language, parts, scenario, plan))
    except Inexpressible as feature:
        raise UsageError(f"{scenario.id}: a native script of {spec.name} cannot express {feature}") from None
    requirements = _list_requirements(get_pin(framework, registry).requirements(release), parts.get("needs", []))
    head = language.write_head(f"{scenario.title} ({scenario.id})", requirements)
    return "\n".join(head) + "\n" + body + "\n"


def format_command(script: str, path: str) -> str:
    """Return the command that runs a script.

    Args:
        script: Its source.
        path: The file that it is in.

    >>> format_command("// npm install ai@7.0.0", "story.mjs")
    'npm install ai@7.0.0 && node story.mjs'
    """
    first = script.partition("\n")[0]
    return f"{first.removeprefix('// ')} && node {path}" if first.startswith("// npm ") else f"uv run {path}"


def list_native_agents() -> tuple[str, ...]:
    """Return the names of the agents that scripts can be written for."""
    return tuple(sorted(path.parent.name for path in _ADAPTERS.glob("*/native.toml")))


def _list_requirements(requirements: Sequence[str], needed: Sequence[str]) -> list[str]:
    """Return a release and what its scripts need of what its pin names, without extras."""
    first, *others = (re.sub(r"\[.*?\]", "", text) for text in requirements)
    return [first, *(text for text in others if re.split(r"[<>=!~]|(?<!^)@", text)[0] in needed)]


# --- the parts of a framework -----------------------------------------------------------------------------------------

_ADAPTERS = Path(agent_side.__file__).parent / "adapters"

_Parts = Mapping[str, Any]
"""Parts of the scripts of a framework: source with `$name` where something of the scenario is put.

* `script`: the whole, with `$replies`, `$tools`, `$names` and `$gated` (names of functions and of those that need
  approval) and `$turns` in it; `main` is the call that runs it.
* `text` and `call`: parts of a reply, from `$text`, or from `$id`, `$tool` and `$arguments`; `reply` is made of
  `$parts`, or of `$text` and `$calls`, and `reply_without_calls` of `$text`.
* `plain` and `streamed`: parts of scripts that stream nothing, and of those that stream; `script` has them, too.
* `message` and `answer`: turns of the caller, with `$text`, or with `$answers` by call id; `go_on` is one without
  either, while requests are open, if the framework has that.
* `approve`, `edit`, `reject` and `reject_without_reason`: answers, with `$tool`, `$arguments` and `$reason`.
* `answers_first`: the answers to all requests of a run come before the message that begins it, which waits for them.
* `function`: of a tool in Python, `free` and `gated` (decorators; `free_loose` and `gated_loose` if it takes objects or
  arrays), `context` (a parameter) and `call` (how it names its call: by `$name` if it is not told the id); of one in
  JavaScript `form` and `form_loose`, with `$name`, `$description`, `$schema` (Zod's), `$json_schema`, `$gated` (true or
  false) and `$returns`.
* `rejection`: words that the model is told of every rejected call, if the framework does not tell the reason.
* `needs`: distributions that its pin names and scripts use, too.
* `inexpressible`: for each kind of decision that the framework does not have, the reason.
"""


def _read_parts(name: str) -> _Parts:
    return tomllib.loads((_ADAPTERS / name / "native.toml").read_text(encoding="utf-8"))


def _write_from_parts(language: NativeLanguage, parts: _Parts, scenario: Scenario, plan: Plan) -> Iterator[str]:
    function = parts["function"]
    by_name = "$name" in function.get("call", "")
    tools = [
        line
        for tool in scenario.tools
        for line in language.write_tool(replace(tool, description=tool.description or tool.name), function)
    ]
    words = set(re.findall(r"\w+", parts["script"]))
    if taken := next((tool.name for tool in scenario.tools if tool.name in words), None):
        raise Inexpressible(f"the name {taken!r} of a tool")
    if "go_on" not in parts and any(isinstance(turn, GoOn) for turn in plan.turns):
        raise Inexpressible("an answer to none of the open requests")
    order = _put_answers_first(plan) if parts.get("answers_first") else plan.turns
    turns = [line for turn in order for line in _write_turn(language, parts, turn, plan)]
    gated = [tool.name for tool in scenario.tools if tool.approval == "always"]
    text = Template(parts["script"]).substitute(
        {name: value.strip("\n") for name, value in parts.items() if isinstance(value, str)},
        replies="\n".join(language.write_replies([_write_reply(language, parts, reply) for reply in plan.replies])),
        tools="\n".join(tools).strip("\n"),
        names=", ".join(tool.name for tool in scenario.tools),
        gated=", ".join(map(language.quote, gated)),
        turns="\n".join(turns).lstrip(),
    )
    end = "\n".join(language.write_end(plan, parts["main"], by_name=by_name))
    yield from language.tidy(text + "\n" + end)


def _write_reply(language: NativeLanguage, parts: _Parts, reply: ScriptedReply) -> str:
    text = "" if reply.say is None else Template(parts["text"]).substitute(text=language.quote(reply.say))
    calls = [
        Template(parts["call"]).substitute(
            id=language.quote(str(call.id)),
            tool=language.quote(call.tool),
            arguments=language.write_value(call.arguments),
        )
        for call in reply.calls
    ]
    pieces = [text, *calls] if text else calls
    form = Template(parts["reply" if reply.calls or "reply_without_calls" not in parts else "reply_without_calls"])
    line = form.substitute(text=text or '""', calls=", ".join(calls), parts=", ".join(pieces))
    if len(line) + 5 <= LINE_LENGTH:
        return line
    indent = language.indent
    return form.substitute(text=text or '""', calls=_split(calls, indent), parts=_split(pieces, indent))


def _split(items: Sequence[str], indent: str) -> str:
    """Return the items of a list, each in a line of its own."""
    return "".join(f"\n{indent * 2}{item}," for item in items) + f"\n{indent}"


def _write_turn(language: NativeLanguage, parts: _Parts, turn: Turn, plan: Plan) -> Iterator[str]:
    if isinstance(turn, GoOn):
        lines = parts["go_on"]
    elif isinstance(turn, Message):
        lines = Template(parts["message"]).substitute(text=language.quote(turn.text))
    else:
        tools = {call.label: call.tool for reply in plan.replies for call in reply.calls}
        yield from language.write_answers(
            [
                f"{language.quote(call_id)}: {_write_answer(language, parts, decision, tools[str(decision.label)])}"
                for call_id, decision in turn.decisions.items()
            ]
        )
        lines = parts["answer"]
    yield from (f"{language.indent}{line}" for line in lines.strip("\n").split("\n"))


def _put_answers_first(plan: Plan) -> list[Turn]:
    """Return the turns with the answers to all requests of a run before the message that begins it.

    Raises:
        Inexpressible: A request is left open, or two have one id.
    """
    ordered: list[Turn] = []
    decisions: dict[str, ScriptedDecision] = {}
    answered = 0
    for turn in reversed(plan.turns):
        if isinstance(turn, Answers):
            if set(decisions) & set(turn.decisions):
                raise Inexpressible("two requests of a run about calls with one id")
            decisions = {**turn.decisions, **decisions}
            answered += len(turn.decisions)
        else:
            ordered = [*([Answers(decisions=decisions)] if decisions else []), turn, *ordered]
            decisions = {}
    if answered < len(plan.asked):
        raise Inexpressible("a request that nobody answers: the run waits for the answer")
    return ordered


def _write_answer(language: NativeLanguage, parts: _Parts, decision: ScriptedDecision, tool: str) -> str:
    kind: str = decision.verdict
    if kind in parts.get("inexpressible", {}):
        raise Inexpressible(f"{_ARTICLES[kind]} {kind}: {parts['inexpressible'][kind]}")
    if kind == "reject" and decision.reason is None:
        kind = "reject_without_reason"
    return Template(parts[kind]).substitute(
        tool=language.quote(decision.tool or tool),
        arguments=language.write_value(decision.arguments),
        reason=language.quote(decision.reason or ""),
    )


_ARTICLES = {"approve": "an", "edit": "an", "reject": "a"}
