"""Scenario files become scenarios."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_approvals.agent_side.contract.types import Condition, Limits, Parameter
from pytest_approvals.errors import ScenarioError
from pytest_approvals.scenario.load import load_catalogue, load_scenario, parse_scenario
from pytest_approvals.scenario.model import (
    Call,
    CancelStep,
    Expect,
    LeaveStep,
    LetOracleStep,
    RestartStep,
    RestoreStep,
    RewriteStep,
    SaveStep,
    Scenario,
    Script,
    ScriptedDecision,
    ScriptedFailure,
    ScriptedReply,
    SignalStep,
    StageStep,
    TogetherStep,
    Tool,
    ToolBehaviour,
    TrimStep,
    TurnStep,
)

CATALOGUE = Path(__file__).parents[2] / "scenarios"
PLAIN = "title: Nothing is called\nmodel: [{say: Done.}]\n"


def loaded(text: str) -> Scenario:
    """Load a scenario from text, completed with the keys that every scenario needs."""
    return parse_scenario(text, name="family/story", path="story.approval.yaml")


def tool(written: str, *, more: str = "") -> Tool:
    """The one tool of a scenario that has it in this writing."""
    return loaded(f"{PLAIN}tools:\n  pay: {written}\n{more}").tools[0]


def paying(*, calls: str = "{id: c1, tool: pay, arguments: {amount: 5}}", more: str = "") -> Scenario:
    """A scenario in which the model pays; *more* are further keys."""
    return loaded(
        "title: A payment\n"
        "tools: {pay: {approval: always, parameters: {amount: integer}}, look: {}}\n"
        f"model: [{{calls: [{calls}]}}, {{say: Paid.}}]\n{more}"
    )


def answers(written: str) -> tuple[ScriptedDecision, ...]:
    """The answers of a step that decides so."""
    step = (paying(more=f"caller: [{{send: Pay}}, {{decide: {written}}}]").caller or ())[1]
    assert isinstance(step, TurnStep)
    return step.answers


def steps(written: str, **more: Any) -> tuple[Any, ...]:
    """The steps of a caller in this writing."""
    return paying(more=f"caller: {written}\n", **more).caller or ()


# --- tools ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "parameter"),
    [
        ("string", Parameter()),
        ("string?", Parameter(required=False)),
        ("{type: integer, default: 5}", Parameter(type="integer", required=False, default=5)),
        ("{type: boolean, required: false}", Parameter(type="boolean", required=False)),
        ("{}", Parameter()),
    ],
)
def test_parameters_are_types_or_mappings(written: str, parameter: Parameter) -> None:
    """A parameter is the name of its type, with a question mark if it may be left out, or a mapping."""
    assert {"amount": parameter} == tool(f"{{parameters: {{amount: {written}}}}}").parameters


@pytest.mark.parametrize(
    ("written", "approval"),
    [
        ("always", "always"),
        ("never", "never"),
        ("{argument: amount, greater_than: 100}", Condition(argument="amount", greater_than=100)),
        ("{argument: amount, less_than: 1.5}", Condition(argument="amount", less_than=1.5)),
        ("{argument: amount, equals: null}", Condition(argument="amount")),
        ("{argument: to, starts_with: no}", Condition(argument="to", starts_with="no")),
        ("{argument: to, one_of: [ada, eve]}", Condition(argument="to", one_of=("ada", "eve"))),
        ("{answers: [true, false]}", Condition(answers=(True, False))),
        ("{raises: the policy is down}", Condition(raises="the policy is down")),
    ],
)
def test_an_approval_is_a_word_or_a_condition(written: str, approval: object) -> None:
    """A tool's calls are gated always, never, or on a condition."""
    assert approval == tool(f"{{approval: {written}, parameters: {{amount: integer, to: string}}}}").approval


@pytest.mark.parametrize(
    ("written", "behaviours"),
    [
        ("{}", [ToolBehaviour()]),
        ("{returns: [1, null]}", [ToolBehaviour(returns=[1, None])]),
        ("{returns: null}", [ToolBehaviour(returns=None)]),
        ("{raises: no}", [ToolBehaviour(raises="no")]),
        ("{asks_again: Sure?}", [ToolBehaviour(asks_again="Sure?"), ToolBehaviour()]),
        ("{asks_again: Sure?, raises: 1e3}", [ToolBehaviour(asks_again="Sure?"), ToolBehaviour(raises="1e3")]),
        (
            "{does: [{raises: no}, {returns: yes it is}]}",
            [ToolBehaviour(raises="no"), ToolBehaviour(returns="yes it is")],
        ),
        (
            "{does: [{asks_again: Sure?}, {raises: no}]}",
            [ToolBehaviour(asks_again="Sure?"), ToolBehaviour(raises="no")],
        ),
        ("{does: [{asks_again: Sure?, returns: 5}]}", [ToolBehaviour(asks_again="Sure?"), ToolBehaviour(returns=5)]),
    ],
)
def test_a_tool_holds_one_behaviour_or_a_list(written: str, behaviours: list[ToolBehaviour]) -> None:
    """A tool holds one behaviour itself and successive ones in `does`; a question is followed by the next behaviour."""
    assert behaviours == list(tool(written).behaviours)


def test_single_calls_can_do_something_else() -> None:
    """`calls` says by label what single calls do, once or in turn."""
    story = loaded(
        "title: Two looks\n"
        "tools: {look: {parameters: {at: string}, "
        "calls: {c1: {waits_for: ended c2, raises: gone}, c2: [{raises: busy}, {}]}}}\n"
        "model: [{calls: [{id: c1, tool: look, arguments: {at: a}}, {id: c2, tool: look, arguments: {at: b}}]}]\n"
    )

    assert {
        "c1": (ToolBehaviour(waits_for="ended c2", raises="gone"),),
        "c2": (ToolBehaviour(raises="busy"), ToolBehaviour()),
    } == story.tools[0].per_call


def test_a_tool_can_belong_to_a_server_and_have_another_name_there() -> None:
    """Kind, server, description and the visible name are taken over."""
    expected = Tool(name="pay", called="transfer", kind="hosted_mcp", server="bank", description="Pays.")

    assert expected == tool("{kind: hosted_mcp, server: bank, called: transfer, description: Pays.}")


def test_a_tool_of_another_agent_is_named_with_it_or_says_it() -> None:
    """`AGENT/TOOL` and the key `agent` mean the same."""
    text = (
        "title: Helpers\nagents: {helper: {model: [{say: Done.}]}}\nmodel: [{say: Done.}]\n"
        "tools: {ask: {runs: helper}, helper/wipe: {}, scan: {agent: helper}}\n"
    )

    assert [("ask", "main"), ("wipe", "helper"), ("scan", "helper")] == [
        (one.name, one.agent) for one in loaded(text).tools
    ]


def test_a_tool_that_runs_an_agent_takes_an_input() -> None:
    """The parameter `input` need not be written."""
    text = f"{PLAIN}agents: {{helper: {{model: [{{say: Done.}}]}}}}\ntools: {{ask: {{runs: helper}}}}"

    assert {"input": Parameter()} == loaded(text).tools[0].parameters


# --- the model --------------------------------------------------------------------------------------------------------


def test_a_call_is_labelled_after_its_id() -> None:
    """A call has id, tool and arguments; its label is its id."""
    assert (Call(label="c1", id="c1", tool="pay", arguments={"amount": 5}),) == paying().agents["main"].replies[0].calls


@pytest.mark.parametrize(
    ("written", "call"),
    [
        ("{id: c1, tool: look, repeats: true}", Call(label="c1#2", id="c1", tool="look", repeats=True)),
        ("{id: c1, label: again, tool: look, repeats: true}", Call(label="again", id="c1", tool="look", repeats=True)),
        ("{id: null, label: x1, tool: look}", Call(label="x1", id=None, tool="look")),
        ("{id: c2, tool: lok, unknown_tool: true}", Call(label="c2", id="c2", tool="lok", unknown_tool=True)),
        ("{id: c2, tool: pay, arguments: '{\"am'}", Call(label="c2", id="c2", tool="pay", arguments='{"am')),
        (
            "{id: c2, tool: pay, arguments: {amount: no}, invalid: true}",
            Call(label="c2", id="c2", tool="pay", arguments={"amount": "no"}, invalid=True),
        ),
    ],
)
def test_what_looks_like_a_slip_is_meant_if_it_says_so(written: str, call: Call) -> None:
    """Repeated and missing ids, unknown tools and arguments that do not fit are written on purpose."""
    story = paying(calls=f"{{id: c1, tool: pay, arguments: {{amount: 5}}}}, {written}")

    assert call == story.agents["main"].replies[0].calls[1]


@pytest.mark.parametrize(
    ("written", "reply"),
    [
        ("{say: ''}", ScriptedReply(say="")),
        ("{fails: 500}", ScriptedReply(failure=ScriptedFailure(status=500))),
        ("{fails: 429}", ScriptedReply(failure=ScriptedFailure(status=429))),
        ("{fails: disconnect}", ScriptedReply(failure=ScriptedFailure(status=0))),
        (
            "{say: Half a, breaks_after: 2}",
            ScriptedReply(say="Half a", failure=ScriptedFailure(status=0, after_chunks=2)),
        ),
        ("{fails: 429, retry_after: 2}", ScriptedReply(failure=ScriptedFailure(status=429, retry_after=2))),
        ("{fails: timeout}", ScriptedReply(failure=ScriptedFailure(status=0, how="timeout"))),
        (
            "{say: x, fails: garbled, breaks_after: 1}",
            ScriptedReply(say="x", failure=ScriptedFailure(status=0, how="garbled", after_chunks=1)),
        ),
        ("{say: x, takes: 0.5}", ScriptedReply(say="x", takes=0.5)),
        (
            "{say: x, fails: 500, breaks_after: 0}",
            ScriptedReply(say="x", failure=ScriptedFailure(status=500, after_chunks=0)),
        ),
    ],
)
def test_a_reply_says_calls_or_fails(written: str, reply: ScriptedReply) -> None:
    """A reply is text or a failure, and a stream can break in it."""
    assert (reply,) == loaded(f"title: One reply\nmodel: [{written}]").agents["main"].replies


def test_a_script_can_be_keyed_by_the_first_user_message() -> None:
    """The lists of a mapping belong to conversations that begin so, `otherwise` to all others."""
    text = "title: Two openings\nprompt: Hello\nmodel: {Hello: [{say: Hi.}], otherwise: [{say: Bye.}]}"

    expected = Script(replies=(ScriptedReply(say="Bye."),), by_prompt={"Hello": (ScriptedReply(say="Hi."),)})
    assert expected == loaded(text).agents["main"]


# --- the caller -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{c1: approve}", [ScriptedDecision(label="c1")]),
        ("{c1: always}", [ScriptedDecision(label="c1", verdict="always")]),
        ("{c1: never}", [ScriptedDecision(label="c1", verdict="never")]),
        ("{c1: {reject: no}}", [ScriptedDecision(label="c1", verdict="reject", reason="no")]),
        ("{c1: {never: 1e3}}", [ScriptedDecision(label="c1", verdict="never", reason="1e3")]),
        ("{c1: {edit: {amount: 6}}}", [ScriptedDecision(label="c1", verdict="edit", arguments={"amount": 6})]),
        ("{c1: {edit: {}, tool: look}}", [ScriptedDecision(label="c1", verdict="edit", arguments={}, tool="look")]),
        ("{c1: {raw: null}}", [ScriptedDecision(label="c1", verdict="raw")]),
        ("{c1: {raw: [true]}}", [ScriptedDecision(label="c1", verdict="raw", raw=[True])]),
        ("{c1: {verdict: approve, source: rebuilt}}", [ScriptedDecision(label="c1", source="rebuilt")]),
        ("{c1: {verdict: approve, shows: {amount: 1}}}", [ScriptedDecision(label="c1", shows={"amount": 1})]),
        (
            "[{c1: approve}, {c1: reject}]",
            [ScriptedDecision(label="c1"), ScriptedDecision(label="c1", verdict="reject")],
        ),
        ("[{unknown: r9, verdict: approve}]", [ScriptedDecision(unknown_id="r9")]),
        (
            "[{malformed: [5], reject: bad}]",
            [ScriptedDecision(malformed_address=True, address=[5], verdict="reject", reason="bad")],
        ),
        ("[{malformed: null, verdict: approve}]", [ScriptedDecision(malformed_address=True)]),
    ],
)
def test_answers_are_words_or_mappings(written: str, expected: list[ScriptedDecision]) -> None:
    """A decision is a word or a mapping, by label or about nothing that was asked."""
    assert expected == list(answers(written))


def test_steps_are_what_they_say() -> None:
    """Each kind of step has its key."""
    written = """[
        {send: Pay, session: bob}, {send: Now, decide: {c1: approve}, hangs_up: started c1}, {go_on: true},
        {oracle: true}, {oracle: 2},
        {stage: {c1: reject}}, {save: here}, {restore: here}, {restart: true},
        {restart: {fresh: true, without: [look]}}, {cancel: true},
        {trim: 4}, {rewrite: {old: a, new: b}}, {rewrite: {old: a, new: b, where: shown}},
        {together: [{decide: {c1: approve}}, {go_on: true}]}, {leave: true}]"""

    assert (
        TurnStep(text="Pay", session="bob"),
        TurnStep(text="Now", answers=(ScriptedDecision(label="c1"),), hangs_up="started c1"),
        TurnStep(),
        LetOracleStep(),
        LetOracleStep(rounds=2),
        StageStep(answers=(ScriptedDecision(label="c1", verdict="reject"),)),
        SaveStep(name="here"),
        RestoreStep(name="here"),
        RestartStep(),
        RestartStep(fresh=True, without=("look",)),
        CancelStep(),
        TrimStep(keep=4),
        RewriteStep(old="a", new="b"),
        RewriteStep(old="a", new="b", where="shown"),
        TogetherStep(steps=(TurnStep(answers=(ScriptedDecision(label="c1"),)), TurnStep())),
        LeaveStep(),
    ) == steps(written)


def test_signals_are_given_by_steps() -> None:
    """A `signal` step gives what a tool waits for; in `together` it comes while the turns run."""
    story = loaded(
        "title: A held tool\ntools: {look: {waits_for: the door opens}}\n"
        "model: [{calls: [{id: c1, tool: look}]}]\n"
        "caller: [{together: [{send: Look}, {signal: the door opens}]}]"
    )

    assert (TogetherStep(steps=(TurnStep(text="Look"), SignalStep(name="the door opens"))),) == story.caller


# --- around the story -------------------------------------------------------------------------------------------------


def test_everything_around_the_story_is_taken_over() -> None:
    """The other keys of a file become the fields of the scenario."""
    story = paying(
        more="""
about: Why it matters.
sources: [owner/repository#5, "https://example.org/x"]
requires: [fresh, native.sqlite]
prompt: Pay 5
reaches: {paused: 1}
expect: {runs: [], output: Paid.}
limits: {model_replies: 3, tool_calls: 4}
only: {serialize: [json, native.sqlite], stream: true}
vary: [history, source]
oracles: [approve_all, 'random:7', 'allowlist:pay,look']
options: {store: false}
"""
    )

    expected = Scenario(
        id="family/story",
        title="A payment",
        tools=story.tools,
        agents=story.agents,
        lines=story.lines,
        path="story.approval.yaml",
        about="Why it matters.",
        sources=("owner/repository#5", "https://example.org/x"),
        requires=frozenset({"fresh", "native.sqlite"}),
        prompt="Pay 5",
        reaches={"paused": 1},
        expect=Expect(runs=(), output="Paid."),
        limits=Limits(model_replies=3, tool_calls=4),
        only={"serialize": ("json", "native.sqlite"), "stream": (True,)},
        vary=frozenset({"history", "source"}),
        oracles=("approve_all", "random:7", "allowlist:pay,look"),
        options={"store": False},
    )
    assert expected == story


def test_tools_can_be_held_back_until_a_restart() -> None:
    """`held_back` names tools that a restart `with` them brings."""
    story = paying(more="held_back: [look]\ncaller: [{send: Pay}, {restart: {with: [look]}}]")

    assert (("look",), RestartStep(with_tools=("look",))) == (story.held_back, (story.caller or ())[1])


def test_equal_arguments_can_be_meant() -> None:
    """Two equal calls are a mistake unless the scenario says that they are meant."""
    two = "{id: c1, tool: look}, {id: c2, tool: look}"

    assert paying(calls=two, more="equal_arguments: true").equal_arguments
    with pytest.raises(ScenarioError, match="equal arguments"):
        paying(calls=two)


def test_scripts_for_several_openings_may_have_equal_labels() -> None:
    """An edit has to fit a call of that label in one of them."""
    text = (
        "title: Two openings\ntools: {pay: {parameters: {amount: integer}}, look: {parameters: {at: string}}}\n"
        "model:\n  Pay: [{calls: [{id: c1, tool: pay, arguments: {amount: 5}}]}]\n"
        "  Look: [{calls: [{id: c1, tool: look, arguments: {at: a}}]}]\n"
        "caller: [{send: Pay}, {send: Look, session: bob}, {decide: {c1: {edit: {amount: 6}}}}]"
    )

    assert {"c1"} == {
        call.label for replies in loaded(text).agents["main"].by_prompt.values() for call in replies[0].calls
    }
    with pytest.raises(ScenarioError, match="unknown parameter 'amuont'"):
        loaded(text.replace("{amount: 6}", "{amuont: 6}"))


def test_an_edit_must_not_make_two_calls_look_alike() -> None:
    """An edit to the arguments of another call is a mistake unless it is meant; keeping its own is none."""
    calls = "{id: c1, tool: pay, arguments: {amount: 5}}, {id: c2, tool: pay, arguments: {amount: 7}}"
    edit = "caller: [{send: Pay}, {decide: {c1: {edit: {amount: AMOUNT}}}}]"

    assert paying(calls=calls, more=edit.replace("AMOUNT", "5"))
    assert paying(calls=calls, more=f"{edit.replace('AMOUNT', '7')}\nequal_arguments: true")
    with pytest.raises(ScenarioError, match="the edit makes c1 call pay with the arguments of c2"):
        paying(calls=calls, more=edit.replace("AMOUNT", "7"))


def test_defaults_count_as_arguments() -> None:
    """A call that leaves out an argument equals one that gives its default."""
    text = (
        "title: Two looks\ntools: {look: {parameters: {at: {type: string, default: a}}}}\n"
        "model: [{calls: [{id: c1, tool: look}, {id: c2, tool: look, arguments: {at: a}}]}]"
    )

    with pytest.raises(ScenarioError, match="c2 and c1 call look with equal arguments"):
        loaded(text)


def test_lines_are_known_by_dotted_path() -> None:
    """A loaded scenario knows the line of each of its keys."""
    assert {"": 1, "title": 1, "model": 2, "model.0": 2, "model.0.say": 2} == dict(loaded(PLAIN).lines)


# --- files ------------------------------------------------------------------------------------------------------------


def test_the_id_of_a_scenario_is_its_path(tmp_path: Path) -> None:
    """The id is the path below the root without the suffix; the family is its folder."""
    file = tmp_path / "decisions" / "edited-twice.approval.yaml"
    file.parent.mkdir()
    file.write_text(PLAIN, encoding="utf-8")

    story = load_scenario(file, root=tmp_path)

    assert ("decisions/edited-twice", "decisions", str(file)) == (story.id, story.family, story.path)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("a.yaml", "invalid file name: expected a name ending with .approval.yaml"),
        (
            "Not_Kebab.approval.yaml",
            "invalid id 'Not_Kebab': expected kebab-case (words of a-z and 0-9, joined by -)",
        ),
        ("missing.approval.yaml", "no such file"),
    ],
)
def test_a_file_with_a_wrong_name_is_refused(tmp_path: Path, name: str, what: str) -> None:
    """Only `*.approval.yaml` files with kebab-case names are scenarios."""
    file = tmp_path / name
    if "missing" not in name:
        file.write_text(PLAIN, encoding="utf-8")

    with pytest.raises(ScenarioError) as refused:
        load_scenario(file, root=tmp_path)

    assert f"{file}: {what}" == str(refused.value)


def test_a_file_outside_the_root_is_refused(tmp_path: Path) -> None:
    """A path that is not below the root gives no id."""
    file = tmp_path / "a.approval.yaml"
    file.write_text(PLAIN, encoding="utf-8")

    with pytest.raises(ScenarioError, match="the file is not below"):
        load_scenario(file, root=tmp_path / "elsewhere")


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 are named."""
    file = tmp_path / "a.approval.yaml"
    file.write_bytes(b"title: \xff")

    with pytest.raises(ScenarioError) as refused:
        load_scenario(file, root=tmp_path)

    assert f"{file}: invalid UTF-8: invalid start byte at byte 7" == str(refused.value)


def test_a_folder_that_is_called_like_a_file_is_refused(tmp_path: Path) -> None:
    """What cannot be read is named with the reason."""
    folder = tmp_path / "a.approval.yaml"
    folder.mkdir()

    with pytest.raises(ScenarioError) as refused:
        load_scenario(folder, root=tmp_path)

    assert f"{folder}: cannot read file: Is a directory" == str(refused.value)


def test_a_catalogue_is_loaded_in_the_order_of_ids(tmp_path: Path) -> None:
    """All scenario files below the folders are loaded, others are left alone."""
    for name in ("b.approval.yaml", "sub/a.approval.yaml", "a.approval.yaml", "notes.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(PLAIN, encoding="utf-8")

    assert ["a", "b", "sub/a"] == [story.id for story in load_catalogue([tmp_path])]


def test_two_folders_must_not_have_one_id(tmp_path: Path) -> None:
    """Scenarios of one id in two folders could not be told apart."""
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.approval.yaml").write_text(PLAIN, encoding="utf-8")

    with pytest.raises(ScenarioError) as refused:
        load_catalogue([tmp_path / "one", tmp_path / "two"])

    assert f"duplicate id 'a', first in {tmp_path / 'one' / 'a.approval.yaml'}" == refused.value.what.partition("\n")[0]


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    """A folder of scenarios that is not there is a mistake."""
    with pytest.raises(ScenarioError) as refused:
        load_catalogue([tmp_path / "gone"])

    assert f"{tmp_path / 'gone'}: no such folder" == str(refused.value)


def test_the_catalogue_of_this_project_is_loaded() -> None:
    """Every scenario of the catalogue is valid and has prose around it."""
    stories = load_catalogue([CATALOGUE])

    assert {"basics/approved", "basics/rejected-with-a-reason"} <= {story.id for story in stories}
    assert [] == [story.id for story in stories if not story.about]
