"""Conversion of the border models of a scenario file to the data model; shorthands are expanded here only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pytest_approvals.agent_side.contract import MAIN, ElicitationAnswer, Limits, Parameter
from pytest_approvals.agent_side.contract.types import Approval, Condition
from pytest_approvals.scenario import model
from pytest_approvals.scenario.schema import (
    Annotation,
    AnswerFile,
    BehaviourFile,
    CallFile,
    ConditionFile,
    ElicitationAnswerFile,
    ElicitationFile,
    ParameterFile,
    ReplyFile,
    ScenarioFile,
    SimultaneousStepFile,
    StepFile,
    StrayAnswerFile,
    ToolFile,
)

OTHERWISE = "otherwise"
"""Key of the default replies in a script keyed by first user message."""


def scenario_from_file(file: ScenarioFile, *, name: str) -> model.Scenario:
    """Return the scenario that *file* describes, still without labels."""
    agents = {MAIN: convert_script(file.model)} | {
        name: convert_script(agent.model) for name, agent in file.agents.items()
    }
    return model.Scenario(
        id=name,
        title=file.title,
        about=file.about,
        sources=tuple(file.sources),
        requires=frozenset(file.requires),
        tools=tuple(_convert_tool(key, tool) for key, tool in file.tools.items()),
        answer=_convert_parameters(file.answer),
        agents=agents,
        caller=None if file.caller is None else tuple(map(_convert_step, file.caller)),
        prompt=file.prompt or model.DEFAULT_PROMPT,
        reaches=file.reaches,
        expect=model.Expect(runs=_optional_tuple(file.expect.runs), output=file.expect.output),
        limits=Limits(model_replies=file.limits.model_replies, tool_calls=file.limits.tool_calls),
        only={dimension: tuple(_as_list(values)) for dimension, values in file.only.items()},
        vary=frozenset(file.vary),
        oracles=tuple(file.oracles),
        held_back=tuple(file.held_back),
        servers=to_plain(file.servers),
        options=to_plain(file.options),
        equal_arguments=file.equal_arguments,
    )


def to_plain(value: Any) -> Any:
    """Return a JSON value of plain types only; subclasses of str become str."""
    match value:
        case str():
            return str(value)
        case Mapping():
            return {str(key): to_plain(inner) for key, inner in value.items()}
        case list():
            return [to_plain(inner) for inner in value]
    return value


def _optional_tuple(values: list[str] | None) -> tuple[str, ...] | None:
    return None if values is None else tuple(values)


def _as_list(values: Any) -> list[Any]:
    return values if isinstance(values, list) else [values]


# --- tools ------------------------------------------------------------------------------------------------------------


def _convert_tool(key: str, file: ToolFile) -> model.Tool:
    agent, _, name = key.rpartition("/")
    annotations = _convert_annotations(file.annotations)
    by_annotations = file.approval == model.BY_ANNOTATIONS
    return model.Tool(
        name=name,
        called=file.called,
        description=file.description,
        parameters=_convert_parameters(file.parameters),
        approval=model.decide_by(annotations) if by_annotations else _convert_approval(file.approval),
        by_annotations=by_annotations,
        kind=file.kind,
        server=file.server,
        annotations=annotations,
        structured_only=file.structured_only,
        misfits_are_errors=file.misfits_are_errors,
        agent=file.agent or agent or MAIN,
        runs=file.runs,
        hands_over_to=file.hands_over_to,
        behaviours=_convert_behaviours(file),
        per_call={label: _convert_per_call(behaviours) for label, behaviours in file.calls.items()},
    )


def _convert_parameters(file: Mapping[str, str | ParameterFile]) -> dict[str, Parameter]:
    return {name: _convert_parameter(parameter) for name, parameter in file.items()}


def _convert_parameter(file: str | ParameterFile) -> Parameter:
    if isinstance(file, str):
        return model.parse_parameter(file)
    required = file.required if file.required is not None else not file.has_key("default")
    return Parameter(type=file.type, required=required, default=to_plain(file.default))


def _convert_annotations(file: Mapping[Annotation, bool]) -> dict[str, bool]:
    return {str(name): value for name, value in file.items()}


def _convert_approval(file: str | ConditionFile) -> Approval:
    if not isinstance(file, ConditionFile):
        return "always" if file == "always" else "never"
    return Condition(
        argument=file.argument,
        greater_than=file.greater_than,
        less_than=file.less_than,
        equals=to_plain(file.equals),
        starts_with=file.starts_with,
        one_of=tuple(map(to_plain, file.one_of_values)),
        answers=tuple(file.answers),
        raises=file.raises,
        waits_for=file.waits_for,
    )


def _convert_behaviours(file: ToolFile) -> tuple[model.ToolBehaviour, ...]:
    return _convert_sequence(file.does) if file.does else model.build_behaviours(**_behaviour_fields(file))


def _convert_per_call(files: BehaviourFile | list[BehaviourFile]) -> tuple[model.ToolBehaviour, ...]:
    return _convert_sequence(files) if isinstance(files, list) else model.build_behaviours(**_behaviour_fields(files))


def _convert_sequence(files: Iterable[BehaviourFile]) -> tuple[model.ToolBehaviour, ...]:
    return tuple(behaviour for file in files for behaviour in _convert_list_entry(_behaviour_fields(file)))


def _behaviour_fields(file: BehaviourFile) -> dict[str, Any]:
    fields: dict[str, Any] = to_plain(file.behaviour_keys())
    return fields | ({} if file.elicits is None else {"elicits": _convert_elicitation(file.elicits)})


def _convert_elicitation(file: ElicitationFile) -> model.ScriptedElicitation:
    url = None if file.url is None else str(file.url)
    return model.ScriptedElicitation(message=str(file.message), form=_convert_parameters(file.form), url=url)


def _convert_list_entry(keys: Mapping[str, Any]) -> tuple[model.ToolBehaviour, ...]:
    # An entry that only asks is followed by the next entry; one that also says what follows is two behaviours.
    follows = "raises" in keys or "returns" in keys
    return model.build_behaviours(**keys) if follows else (model.ToolBehaviour(**keys),)


# --- the model --------------------------------------------------------------------------------------------------------


def convert_script(file: list[ReplyFile] | Mapping[str, list[ReplyFile]]) -> model.Script:
    """Return the script of a model."""
    if isinstance(file, Mapping):
        by_prompt = {str(prompt): _convert_replies(replies) for prompt, replies in file.items() if prompt != OTHERWISE}
        return model.Script(replies=_convert_replies(file.get(OTHERWISE, ())), by_prompt=by_prompt)
    return model.Script(replies=_convert_replies(file))


def _convert_replies(files: Iterable[ReplyFile]) -> tuple[model.ScriptedReply, ...]:
    return tuple(map(_convert_reply, files))


def _convert_reply(file: ReplyFile) -> model.ScriptedReply:
    return model.ScriptedReply(
        thinks=None if file.thinks is None else str(file.thinks),
        redacted=file.redacted,
        say=None if file.say is None else str(file.say),
        calls=tuple(map(_convert_call, file.calls)),
        answer=None if file.answer is None else to_plain(file.answer),
        invalid=file.invalid,
        failure=_convert_failure(file),
        takes=file.takes,
    )


def _convert_failure(file: ReplyFile) -> model.ScriptedFailure | None:
    if file.fails is None and file.breaks_after is None and file.retry_after is None:
        return None
    status = file.fails if isinstance(file.fails, int) else 0
    how = file.fails if isinstance(file.fails, str) else "disconnect"
    return model.ScriptedFailure(status=status, after_chunks=file.breaks_after, how=how, retry_after=file.retry_after)


def _convert_call(file: CallFile) -> model.Call:
    return model.Call(
        label=file.label or "",
        id=file.id,
        tool=file.tool,
        arguments=to_plain(file.arguments),
        thinks=None if file.thinks is None else str(file.thinks),
        repeats=file.repeats,
        unknown_tool=file.unknown_tool,
        invalid=file.invalid,
    )


# --- the caller -------------------------------------------------------------------------------------------------------


def _convert_step(file: StepFile) -> model.Step:
    session = file.session or ""
    if file.has_key("oracle"):
        return model.LetOracleStep(rounds=None if file.oracle is True else file.oracle, session=session)
    if file.stage is not None:
        return model.StageStep(answers=_convert_decisions(file.stage), session=session)
    if file.save is not None:
        return model.SaveStep(name=file.save, session=session)
    if file.restore is not None:
        return model.RestoreStep(name=file.restore, session=session)
    if file.has_key("restart"):
        return _convert_restart(file, session)
    if file.cancel:
        return model.CancelStep(session=session)
    if file.trim is not None:
        return model.TrimStep(keep=file.trim, session=session)
    if file.rewrite is not None:
        how = file.rewrite
        return model.RewriteStep(old=how.old, new=how.new, where=how.where, session=session)
    if file.together is not None:
        return model.TogetherStep(steps=tuple(map(_convert_turn_or_signal, file.together)))
    return model.LeaveStep() if file.leave else _convert_turn_or_signal(file)


def _convert_restart(file: StepFile, session: str) -> model.RestartStep:
    if file.restart is True:
        return model.RestartStep(session=session)
    how = file.restart
    return model.RestartStep(
        fresh=how.fresh,
        without=tuple(how.without),
        with_tools=tuple(how.with_tools),
        parameters={tool: _convert_parameters(types) for tool, types in how.parameters.items()},
        renamed=dict(how.renamed),
        annotations={tool: _convert_annotations(said) for tool, said in how.annotations.items()},
        session=session,
    )


def _convert_turn_or_signal(file: SimultaneousStepFile) -> model.TurnStep | model.SignalStep:
    if file.signal is not None:
        return model.SignalStep(name=file.signal)
    text = None if file.send is None else str(file.send)
    alone = file if isinstance(file, StepFile) else None
    return model.TurnStep(
        text=text,
        answers=_convert_decisions(file.decide),
        session=file.session or "",
        hangs_up=alone.hangs_up if alone else None,
        crashes=alone.crashes if alone else None,
        stops=file.stops,
        disk_full=alone.disk_full if alone else None,
        elicitations={str(label): _convert_elicitation_answer(answer) for label, answer in file.elicitations.items()},
        fails_once=alone.fails_once if alone else None,
        loses=alone.loses if alone else None,
        reads=alone.reads if alone else None,
    )


def _convert_elicitation_answer(file: str | ElicitationAnswerFile) -> ElicitationAnswer:
    if isinstance(file, ElicitationAnswerFile):
        return ElicitationAnswer(action="accept", content=to_plain(file.accept))
    return ElicitationAnswer(action=to_plain(file))


def _convert_decisions(decisions: Any) -> tuple[model.ScriptedDecision, ...]:
    if decisions is None:
        return ()
    return tuple(answer for entry in _as_list(decisions) for answer in _convert_decision_entry(entry))


def _convert_decision_entry(
    entry: StrayAnswerFile | Mapping[str, AnswerFile | str],
) -> Iterable[model.ScriptedDecision]:
    if isinstance(entry, StrayAnswerFile):
        malformed = entry.has_key("malformed")
        address = {"malformed_address": True, "address": to_plain(entry.malformed)} if malformed else {}
        yield model.ScriptedDecision(unknown_id=entry.unknown, **address, **_decision_fields(entry))
        return
    for label, answer in entry.items():
        yield model.ScriptedDecision(label=str(label), **_decision_fields(answer))


_EXTRA_KEYS = ("tool", "shows", "shows_tool", "source", "invalid", "unknown_tool")


def _decision_fields(file: AnswerFile | str) -> dict[str, Any]:
    if isinstance(file, str):
        return {"verdict": file}
    facts: dict[str, Any] = {key: to_plain(getattr(file, key)) for key in _EXTRA_KEYS if file.has_key(key)}
    if file.verdict is not None:
        return {"verdict": file.verdict, **facts}
    if file.reject is not None:
        return {"verdict": "reject", "reason": str(file.reject), **facts}
    if file.never is not None:
        return {"verdict": "never", "reason": str(file.never), **facts}
    if file.edit is not None:
        return {"verdict": "edit", "arguments": to_plain(file.edit), **facts}
    return {"verdict": "raw", "raw": to_plain(file.raw), **facts}
