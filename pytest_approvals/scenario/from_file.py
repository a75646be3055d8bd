"""The parts of a scenario out of the border models of its file; shorthands are written out here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pytest_approvals.agent_side.conditions import Approval, Condition
from pytest_approvals.agent_side.contract import MAIN, Limits, Parameter
from pytest_approvals.scenario import parts
from pytest_approvals.scenario.schema import ScenarioFile
from pytest_approvals.scenario.schema_caller import AnswerFile, SimultaneousStepFile, StepFile, StrayAnswerFile
from pytest_approvals.scenario.schema_model import CallFile, ReplyFile
from pytest_approvals.scenario.schema_tools import BehaviourFile, ConditionFile, ParameterFile, ToolFile

OTHERWISE = "otherwise"
"""In a model script keyed by first user message: what every other conversation plays."""


def scenario_from_file(file: ScenarioFile, *, name: str) -> parts.Scenario:
    """Gives the scenario that *file* describes; neither its labels nor its made-up values are there yet."""
    agents = {MAIN: script(file.model)} | {agent: script(one.model) for agent, one in file.agents.items()}
    return parts.Scenario(
        id=name,
        title=file.title,
        about=file.about,
        sources=tuple(file.sources),
        requires=frozenset(file.requires),
        tools=tuple(_tool(key, one) for key, one in file.tools.items()),
        answer=_parameters(file.answer),
        agents=agents,
        caller=None if file.caller is None else tuple(map(_step, file.caller)),
        prompt=file.prompt or parts.PROMPT,
        reaches=file.reaches,
        expect=parts.Expect(runs=_tuple(file.expect.runs), output=file.expect.output),
        limits=Limits(model_replies=file.limits.model_replies, tool_calls=file.limits.tool_calls),
        only={dimension: tuple(_listed(values)) for dimension, values in file.only.items()},
        vary=frozenset(file.vary),
        oracles=tuple(file.oracles),
        held_back=tuple(file.held_back),
        servers=plain(file.servers),
        options=plain(file.options),
        equal_arguments=file.equal_arguments,
    )


def plain(value: Any) -> Any:
    """Gives a JSON value made of the plain types only."""
    match value:
        case str():
            return str(value)
        case Mapping():
            return {str(key): plain(inner) for key, inner in value.items()}
        case list():
            return [plain(inner) for inner in value]
    return value


def _tuple(values: list[str] | None) -> tuple[str, ...] | None:
    return None if values is None else tuple(values)


def _listed(values: Any) -> list[Any]:
    return values if isinstance(values, list) else [values]


# --- tools ------------------------------------------------------------------------------------------------------------


def _tool(key: str, file: ToolFile) -> parts.Tool:
    agent, _, name = key.rpartition("/")
    return parts.Tool(
        name=name,
        called=file.called,
        description=file.description,
        parameters=_parameters(file.parameters),
        approval=_approval(file.approval),
        kind=file.kind,
        server=file.server,
        agent=file.agent or agent or MAIN,
        runs=file.runs,
        hands_over_to=file.hands_over_to,
        behaviours=_behaviours(file),
        per_call={label: _per_call(one) for label, one in file.calls.items()},
    )


def _parameters(file: Mapping[str, str | ParameterFile]) -> dict[str, Parameter]:
    return {name: _parameter(one) for name, one in file.items()}


def _parameter(file: str | ParameterFile) -> Parameter:
    if isinstance(file, str):
        return Parameter(type=file.removesuffix("?"), required=not file.endswith("?"))
    required = file.required if file.required is not None else not file.given("default")
    return Parameter(type=file.type, required=required, default=plain(file.default))


def _approval(file: str | ConditionFile) -> Approval:
    if not isinstance(file, ConditionFile):
        return "always" if file == "always" else "never"
    return Condition(
        argument=file.argument,
        greater_than=file.greater_than,
        less_than=file.less_than,
        equals=plain(file.equals),
        starts_with=file.starts_with,
        one_of=tuple(map(plain, file.one_of_values)),
        answers=tuple(file.answers),
        raises=file.raises,
        waits_for=file.waits_for,
    )


def _behaviours(file: ToolFile) -> tuple[parts.Behaviour, ...]:
    return _in_turn(file.does) if file.does else parts.behaviours(**plain(file.behaviour_keys()))


def _per_call(files: BehaviourFile | list[BehaviourFile]) -> tuple[parts.Behaviour, ...]:
    return _in_turn(files) if isinstance(files, list) else parts.behaviours(**plain(files.behaviour_keys()))


def _in_turn(files: Iterable[BehaviourFile]) -> tuple[parts.Behaviour, ...]:
    return tuple(behaviour for file in files for behaviour in _entry_of_list(plain(file.behaviour_keys())))


def _entry_of_list(given: Mapping[str, Any]) -> tuple[parts.Behaviour, ...]:
    follows = "raises" in given or "returns" in given
    return parts.behaviours(**given) if follows else (parts.Behaviour(**given),)


# --- the model --------------------------------------------------------------------------------------------------------


def script(file: list[ReplyFile] | Mapping[str, list[ReplyFile]]) -> parts.Script:
    """Gives the script that a model plays."""
    if isinstance(file, Mapping):
        by_prompt = {str(prompt): _replies(replies) for prompt, replies in file.items() if prompt != OTHERWISE}
        return parts.Script(replies=_replies(file.get(OTHERWISE, ())), by_prompt=by_prompt)
    return parts.Script(replies=_replies(file))


def _replies(files: Iterable[ReplyFile]) -> tuple[parts.Reply, ...]:
    return tuple(map(_reply, files))


def _reply(file: ReplyFile) -> parts.Reply:
    return parts.Reply(
        say=None if file.say is None else str(file.say),
        calls=tuple(map(_call, file.calls)),
        answer=None if file.answer is None else plain(file.answer),
        invalid=file.invalid,
        failure=_failure(file),
        takes=file.takes,
    )


def _failure(file: ReplyFile) -> parts.Failure | None:
    if file.fails is None and file.breaks_after is None and file.retry_after is None:
        return None
    status = file.fails if isinstance(file.fails, int) else 0
    how = file.fails if isinstance(file.fails, str) else "disconnect"
    return parts.Failure(status=status, after_chunks=file.breaks_after, how=how, retry_after=file.retry_after)


def _call(file: CallFile) -> parts.Call:
    return parts.Call(
        label=file.label or "",
        id=file.id,
        tool=file.tool,
        arguments=plain(file.arguments),
        repeats=file.repeats,
        unknown_tool=file.unknown_tool,
        invalid=file.invalid,
    )


# --- the caller -------------------------------------------------------------------------------------------------------


def _step(file: StepFile) -> parts.Step:
    session = file.session or ""
    if file.given("oracle"):
        return parts.LetOracle(rounds=None if file.oracle is True else file.oracle, session=session)
    if file.stage is not None:
        return parts.Stage(answers=_answers(file.stage), session=session)
    if file.save is not None:
        return parts.Save(name=file.save, session=session)
    if file.restore is not None:
        return parts.Restore(name=file.restore, session=session)
    if file.given("restart"):
        return _restart(file, session)
    if file.cancel:
        return parts.Cancel(session=session)
    if file.trim is not None:
        return parts.Trim(keep=file.trim, session=session)
    if file.rewrite is not None:
        how = file.rewrite
        return parts.Rewrite(old=how.old, new=how.new, where=how.where, session=session)
    if file.together is not None:
        return parts.Together(steps=tuple(map(_turn_or_signal, file.together)))
    return parts.Leave() if file.leave else _turn_or_signal(file)


def _restart(file: StepFile, session: str) -> parts.Restart:
    if file.restart is True:
        return parts.Restart(session=session)
    how = file.restart
    return parts.Restart(
        fresh=how.fresh,
        without=tuple(how.without),
        with_tools=tuple(how.with_tools),
        parameters={tool: _parameters(one) for tool, one in how.parameters.items()},
        session=session,
    )


def _turn_or_signal(file: SimultaneousStepFile) -> parts.Turn | parts.Signal:
    if file.signal is not None:
        return parts.Signal(name=file.signal)
    text = None if file.send is None else str(file.send)
    hangs_up = file.hangs_up if isinstance(file, StepFile) else None
    return parts.Turn(text=text, answers=_answers(file.decide), session=file.session or "", hangs_up=hangs_up)


def _answers(decisions: Any) -> tuple[parts.Answer, ...]:
    if decisions is None:
        return ()
    return tuple(answer for entry in _listed(decisions) for answer in _entry(entry))


def _entry(entry: StrayAnswerFile | Mapping[str, AnswerFile | str]) -> Iterable[parts.Answer]:
    if isinstance(entry, StrayAnswerFile):
        malformed = entry.given("malformed")
        where = {"malformed_address": True, "address": plain(entry.malformed)} if malformed else {}
        yield parts.Answer(unknown_id=entry.unknown, **where, **_answer(entry))
        return
    for label, answer in entry.items():
        yield parts.Answer(label=str(label), **_answer(answer))


_BESIDE = ("tool", "shows", "shows_tool", "source", "invalid", "unknown_tool")


def _answer(file: AnswerFile | str) -> dict[str, Any]:
    if isinstance(file, str):
        return {"verdict": file}
    facts: dict[str, Any] = {key: plain(getattr(file, key)) for key in _BESIDE if file.given(key)}
    if file.verdict is not None:
        return {"verdict": file.verdict, **facts}
    if file.reject is not None:
        return {"verdict": "reject", "reason": str(file.reject), **facts}
    if file.never is not None:
        return {"verdict": "never", "reason": str(file.never), **facts}
    if file.edit is not None:
        return {"verdict": "edit", "arguments": plain(file.edit), **facts}
    return {"verdict": "raw", "raw": plain(file.raw), **facts}
