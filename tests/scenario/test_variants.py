"""The variants that a scenario is run in."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import pytest

from pytest_approvals.agent_side.contract import metadata
from pytest_approvals.agent_side.contract.capabilities import CAPABILITIES
from pytest_approvals.errors import UnknownName
from pytest_approvals.scenario.load import parse_scenario
from pytest_approvals.scenario.model import Scenario, Variant
from pytest_approvals.scenario.requirements import required_capabilities
from pytest_approvals.scenario.variants import allowed_variants, missing_capabilities, plan_variants
from pytest_approvals.scenario.vocabulary import DIMENSIONS

ALL = frozenset(CAPABILITIES)


@dataclass(frozen=True, kw_only=True)
class Facts(metadata.Facts):
    """What an agent says of itself that can do everything."""

    capabilities: frozenset[str] = ALL


ABLE = Facts(capabilities=ALL | {"native.sqlite", "native.redis"}, stores={"sqlite": "a file", "redis": "a server"})
NO_STREAM = Facts(capabilities=ALL - {"streaming"})
STATELESS = Facts(capabilities=frozenset({"streaming", "parallel", "reject_reason", "answer.rebuilt"}))
ONLY_JSON = Facts(capabilities=frozenset({"serialize.json", "answer.restored", "fresh", "history.append"}))
ABSENT = Facts(capabilities=frozenset())
WIRED = Facts(protocols={"chat": {"streaming": "no stream"}, "responses": {}})
WIRED_ALONE = Facts()
"""The same agent without its protocols."""
AGENTS = [ABLE, NO_STREAM, STATELESS, ONLY_JSON, ABSENT]


def story(more: str = "", *, caller: str = "[{send: Pay}, {decide: {c1: approve}}]") -> Scenario:
    """A scenario of one payment; without *caller*, the oracle decides."""
    steps = f"caller: {caller}\n" if caller else ""
    text = (
        "title: A payment\n"
        "tools: {pay: {approval: always, parameters: {amount: integer}}, look: {}}\n"
        f"model: [{{calls: [{{id: c1, tool: pay, arguments: {{amount: 5}}}}]}}, {{say: Paid.}}]\n{steps}{more}"
    )
    return parse_scenario(text, name="family/story", path="story.approval.yaml")


DECIDED = story()
LEFT_OPEN = story(caller="")
VARIED = story("vary: [resume, history, source]")
SAVING = story(caller="[{send: Pay}, {save: here}, {decide: {c1: approve}}, {restore: here}, {decide: {c1: approve}}]")
PINNED = story("only: {serialize: [json, native.sqlite], stream: true}")
STORIES = [DECIDED, LEFT_OPEN, VARIED, SAVING, PINNED]


def ids(found: tuple[Variant, ...]) -> list[str]:
    """The names of variants."""
    return [one.id for one in found]


def values_of(found: tuple[Variant, ...], dimension: str) -> set[Any]:
    """The values that a dimension takes."""
    return {getattr(one, dimension) for one in found}


def together(variant: Variant, size: int) -> set[tuple[tuple[str, Any], ...]]:
    """All combinations of so many values in a variant."""
    return set(combinations([(name, getattr(variant, name)) for name in DIMENSIONS], size))


# --- covering ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("facts", AGENTS)
@pytest.mark.parametrize("scenario", STORIES)
@pytest.mark.parametrize("strength", [1, 2, 3])
def test_every_combination_that_can_stand_together_is_covered(strength: int, scenario: Scenario, facts: Facts) -> None:
    """Each value, pair or triple that is in any allowed variant is in one that is run."""
    allowed = [one for one in allowed_variants(scenario, facts, {}) if one.resume != "cold"]
    wanted = set().union(*(together(one, strength) for one in allowed))
    covered = set().union(*(together(one, strength) for one in plan_variants(scenario, facts, strength=strength)))

    assert set() == wanted - covered


@pytest.mark.parametrize("facts", AGENTS)
@pytest.mark.parametrize("scenario", STORIES)
@pytest.mark.parametrize("strength", ["1", "2", "3", "full"])
def test_no_variant_is_forbidden(strength: str, scenario: Scenario, facts: Facts) -> None:
    """What is run can stand together, is claimed by the agent, and is run once."""
    found = plan_variants(scenario, facts, strength=strength)

    for one in found:
        saved, leaves = one.serialize != "none", one.serialize not in ("none", "copy")
        assert required_capabilities(scenario, one) <= facts.abilities
        assert leaves or one.resume == "same"
        assert one.serialize == "json" or one.history == "whole"
        assert one.stream or one.chunking == "whole"
        assert saved or one.source != "restored"
        assert one.resume == "same" or one.source != "held"
    assert len(found) == len(set(found)) == len(set(ids(found)))


def test_full_strength_runs_everything() -> None:
    """With `full`, every allowed variant is run."""
    assert set(allowed_variants(DECIDED, ABLE, {})) <= set(plan_variants(DECIDED, ABLE, strength="full"))


def test_pairs_are_far_fewer_than_everything() -> None:
    """The default strength runs less than half of all variants if there is much to combine."""
    assert 2 * len(plan_variants(VARIED, ABLE)) < len(plan_variants(VARIED, ABLE, strength="full"))


def test_the_same_question_has_the_same_answer() -> None:
    """Neither chance nor order decides which variants are run."""
    facts = Facts(
        capabilities=frozenset(sorted(ABLE.capabilities, reverse=True)), stores=dict(sorted(ABLE.stores.items()))
    )

    assert plan_variants(VARIED, ABLE) == plan_variants(VARIED, facts)
    assert [
        "none-held",
        "none-rebuilt",
        "copy-restored",
        "copy-rebuilt",
        "json-rebuilt",
        "json-fresh-restored",
    ] == ids(plan_variants(DECIDED, NO_STREAM))


def test_an_unknown_strength_is_refused() -> None:
    """A strength is 1, 2, 3 or full."""
    with pytest.raises(UnknownName) as refused:
        plan_variants(DECIDED, ABLE, strength="4")

    assert "Unknown strength '4'; valid: 1, 2, 3, full" == str(refused.value)


# --- the base variant -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scenario", "base"),
    [
        (DECIDED, Variant()),
        (LEFT_OPEN, Variant(oracle="approve_all")),
        (story("oracles: [random:7, reject_all]", caller=""), Variant(oracle="random:7")),
        (SAVING, Variant(serialize="copy", source="restored")),
        (PINNED, Variant(serialize="json", stream=True, source="restored")),
        (story("only: {source: rebuilt}"), Variant(source="rebuilt")),
        (
            story(caller="[{send: Pay}, {restart: {fresh: true}}, {decide: {c1: approve}}]"),
            Variant(serialize="json", source="restored"),
        ),
    ],
)
def test_the_plainest_variant_comes_first(scenario: Scenario, base: Variant) -> None:
    """The first variant is the plainest one that the scenario allows."""
    assert base == plan_variants(scenario, ABLE)[0]


def test_a_scenario_that_an_agent_cannot_play_has_no_variants() -> None:
    """What is missing is named instead."""
    scenario = story("requires: [edit]", caller="[{send: Pay}, {decide: {c1: {reject: no}}}]")

    assert () == plan_variants(scenario, ABSENT)
    assert {"edit", "reject_reason"} == missing_capabilities(scenario, ABSENT)


def test_what_is_missing_is_missing_in_the_best_variant() -> None:
    """A scenario that saves needs one serialize mode, not all of them."""
    facts = Facts(capabilities=ALL - {"serialize.copy", "answer.restored", "rewind"})

    assert {"rewind"} == missing_capabilities(SAVING, facts)


def test_nothing_is_missing_where_a_scenario_can_be_played() -> None:
    """An agent that claims everything lacks nothing."""
    assert frozenset() == missing_capabilities(VARIED, ABLE)


# --- agents whose requests are held by a process ----------------------------------------------------------------------

HOLDING = Facts(
    capabilities=ALL - {"serialize.copy", "serialize.json", "answer.restored", "answer.rebuilt"} | {"native.sqlite"},
    missing={"stores_requests": "a request is a running process"},
    stores={"sqlite": "a file"},
)
LATER = "{send: Pay}, {decide: {c1: approve}}, {send: Thanks}"


def test_a_request_that_is_held_is_answered_as_it_was_shown() -> None:
    """Nothing is restored while it waits, so that there is no other copy of it."""
    found = [one for one in plan_variants(story(caller=f"[{LATER}]"), HOLDING) if one.serialize == "native.sqlite"]

    assert {("held", "same"), ("held", "fresh")} == {(one.source, one.resume) for one in found}


def test_a_store_without_requests_needs_a_turn_that_begins_without_any() -> None:
    """In a story that ends with the answers, nothing is restored."""
    assert {"none"} == values_of(plan_variants(DECIDED, HOLDING), "serialize")


@pytest.mark.parametrize(
    ("caller", "missing"),
    [
        ("[{send: Pay}, {restart: true}, {decide: {c1: approve}}, {send: Thanks}]", {"stores_requests"}),
        ("[{send: Pay}, {save: here}, {decide: {c1: approve}}, {send: Thanks}]", {"stores_requests"}),
        (f"[{LATER}, {{restart: true}}, {{send: Bye}}]", set()),
    ],
)
def test_a_restart_while_a_request_waits_is_one_that_stores_it(caller: str, missing: set[str]) -> None:
    """An agent whose requests are held by a process cannot play it; after the answer, it can."""
    scenario = story("only: {serialize: native}", caller=caller)

    assert (missing, not missing) == (missing_capabilities(scenario, HOLDING), bool(plan_variants(scenario, HOLDING)))


# --- dimensions -------------------------------------------------------------------------------------------------------


def test_every_store_of_the_agent_is_a_serialize_mode() -> None:
    """`native.NAME` is run for each store."""
    assert {"none", "copy", "json", "native.redis", "native.sqlite"} == values_of(
        plan_variants(DECIDED, ABLE), "serialize"
    )


@pytest.mark.parametrize(
    "happens", ["crashes: write", "disk_full: write", "fails_once: write", "loses: write", "reads: stale"]
)
def test_no_story_reaches_into_what_a_server_stores(happens: str) -> None:
    """The server writes its files: the agent's process dies without cutting off a write, and nothing is put back."""
    caller = f"[{{send: Pay}}, {{decide: {{c1: approve}}, {happens}}}, {{oracle: true}}]"
    plain = "[{send: Pay}, {decide: {c1: approve}, crashes: outcome}, {oracle: true}]"
    facts = Facts(capabilities=ALL | {"native.postgres", "native.sqlite"}, stores={"postgres": "it", "sqlite": "file"})

    found = [values_of(plan_variants(story(caller=steps), facts), "serialize") for steps in (caller, plain)]

    assert [False, True] == ["native.postgres" in modes for modes in found]
    assert all("native.sqlite" in modes for modes in found)


def test_a_story_can_be_pinned_to_all_stores_of_an_agent() -> None:
    """`native` under `only` means all durable stores of the agent; an agent without any cannot run the story."""
    durable = story("only: {serialize: [none, native]}")
    alone = story("only: {serialize: native}")
    assert {"none", "native.redis", "native.sqlite"} == values_of(plan_variants(durable, ABLE), "serialize")
    assert {"none"} == values_of(plan_variants(durable, NO_STREAM), "serialize")
    assert () == plan_variants(alone, NO_STREAM)
    assert frozenset({"native"}) == missing_capabilities(alone, NO_STREAM)


def test_held_requests_do_not_outlive_a_save_by_default() -> None:
    """Decisions are made from the held object across a save only if the scenario varies the source."""
    across = {one.source for one in plan_variants(DECIDED, ABLE, strength="full") if one.serialize != "none"}
    varied = {one.source for one in plan_variants(VARIED, ABLE, strength="full") if one.serialize != "none"}

    assert ({"restored", "rebuilt"}, {"held", "restored", "rebuilt"}) == (across, varied)


def test_a_scenario_can_pin_the_held_object_across_a_save() -> None:
    """Pinning the source to `held` and the mode to `json` is the special case itself."""
    found = plan_variants(story("only: {source: held, serialize: json}"), ABLE)

    assert {("json", "held")} == {(one.serialize, one.source) for one in found}


def test_one_variant_goes_on_in_a_fresh_process() -> None:
    """By default, another process is started for one variant, from json and restored."""
    elsewhere = [one for one in plan_variants(DECIDED, ABLE) if one.resume != "same"]

    assert [Variant(serialize="json", resume="fresh", source="restored")] == elsewhere


def test_a_story_that_varies_where_it_goes_on_has_fresh_pairs_and_no_cold_start() -> None:
    """Fresh processes are combined with the rest; a cold one is started only if a scenario names it."""
    found = plan_variants(VARIED, ABLE)

    assert 0 == [one.resume for one in found].count("cold")
    assert {"json", "native.redis", "native.sqlite"} == {one.serialize for one in found if one.resume == "fresh"}


def test_a_pinned_cold_start_is_one_variant() -> None:
    """However much there is to combine, a cold process is started once."""
    assert ["json-cold-restored"] == ids(plan_variants(story("only: {resume: cold, serialize: json}"), ABLE))


def test_pieces_are_appended_only_where_the_scenario_varies_history() -> None:
    """`append` goes with json, and is no default."""
    assert {"whole"} == values_of(plan_variants(DECIDED, ABLE), "history")
    assert {"json"} == {one.serialize for one in plan_variants(VARIED, ABLE) if one.history == "append"}


@pytest.mark.parametrize(
    ("scenario", "oracles"),
    [
        (DECIDED, {"script"}),
        (LEFT_OPEN, {"approve_all", "reject_all"}),
        (story("oracles: [reject_all]", caller=""), {"reject_all"}),
        (story(caller="[{send: Pay}, {leave: true}]"), {"script"}),
        (story(caller="[{send: Pay}, {oracle: 1}, {leave: true}]"), {"approve_all", "reject_all"}),
    ],
)
def test_the_oracle_is_varied_where_it_decides(scenario: Scenario, oracles: set[str]) -> None:
    """A story that decides itself, or is left, has no oracle; others have their own, or both constant ones."""
    assert oracles == values_of(plan_variants(scenario, ABLE), "oracle")


def test_nothing_is_left_to_an_oracle_where_no_tool_asks() -> None:
    """Without any gated tool there is nobody to decide."""
    text = "title: x\ntools: {look: {}}\nmodel: [{say: y}]"
    scenario = parse_scenario(text, name="a", path="a")

    assert {"script"} == values_of(plan_variants(scenario, ABLE), "oracle")


# --- what a person asks for -------------------------------------------------------------------------------------------


def test_overrides_take_the_place_of_the_defaults() -> None:
    """A user can ask for values that are not defaults, and gets them if they are consistent."""
    asked = {"serialize": ("json", "none"), "stream": (True,), "source": ("held",), "chunking": ("whole",)}

    assert ["none-stream-held", "json-stream-held"] == sorted(
        ids(plan_variants(DECIDED, ABLE, overrides=asked)), reverse=True
    )


def test_overrides_do_not_free_what_a_scenario_pins() -> None:
    """A value that the scenario excludes gives no variant."""
    assert () == plan_variants(PINNED, ABLE, overrides={"serialize": ("none",)})
    assert () == plan_variants(PINNED, ABLE, overrides={"stream": (False,)})


def test_asking_for_a_process_gives_exactly_that() -> None:
    """`fresh` is combined like any value if a user asks for it, and nothing else is run."""
    found = plan_variants(DECIDED, ABLE, overrides={"resume": ("fresh",), "stream": (False,)})

    assert {"fresh"} == values_of(found, "resume")
    assert {"json", "native.redis", "native.sqlite"} == values_of(found, "serialize")


def test_the_extra_process_follows_what_a_person_asks_for() -> None:
    """If a user asks for streaming, or for no json, the fresh variant does so, too."""
    streamed = plan_variants(DECIDED, ABLE, overrides={"stream": (True,)})

    assert "json-fresh-stream-restored" == streamed[-1].id
    assert {"same"} == values_of(plan_variants(DECIDED, ABLE, overrides={"serialize": ("none",)}), "resume")


# --- protocols --------------------------------------------------------------------------------------------------------


def over(protocol: str, found: tuple[Variant, ...]) -> list[str]:
    """The names of the variants that reach the model over a protocol."""
    return [one.id for one in found if one.protocol == protocol]


PLAINEST_AND_FARTHEST = ["none-held-approve-all-responses", "json-stream-interleaved-rebuilt-reject-all-responses"]


@pytest.mark.parametrize("strength", [1, 3])
def test_a_protocol_is_met_in_the_plainest_variant_and_in_the_farthest(strength: int) -> None:
    """Two variants show a protocol with and without saves, streams and copies of requests."""
    found = plan_variants(LEFT_OPEN, WIRED, strength=strength)

    assert PLAINEST_AND_FARTHEST == over("responses", found)
    assert "none-held-approve-all" == found[0].id


def test_two_variants_that_save_native_ones_have_the_same_pairs_with_a_protocol() -> None:
    """They have exchanged values with each other, so that fewer native variants cover the other pairs."""
    found = plan_variants(LEFT_OPEN, WIRED)

    assert ["none-held-reject-all-responses", "json-stream-interleaved-rebuilt-approve-all-responses"] == over(
        "responses", found
    )
    assert "none-held-approve-all" == found[0].id


@pytest.mark.parametrize("scenario", [*STORIES, story("vary: [chunking, history]")])
def test_no_pair_with_a_protocol_is_lost_to_an_exchange(scenario: Scenario) -> None:
    """Every value that is met over a protocol at strength 1 is met over it at strength 2."""

    def met(found: tuple[Variant, ...]) -> set[object]:
        return {
            (one.protocol, name, getattr(one, name)) for one in found if one.protocol != "native" for name in DIMENSIONS
        }

    assert met(plan_variants(scenario, WIRED, strength=1)) == met(plan_variants(scenario, WIRED))


def test_few_variants_leave_the_process() -> None:
    """Where a story varies the process, as few variants leave it as the pairs with that need."""
    found = plan_variants(story("vary: [resume, history]"), ABLE)

    assert 3 == sum(one.resume == "fresh" for one in found)


@pytest.mark.parametrize("strength", [1, 2, 3])
@pytest.mark.parametrize("scenario", [*STORIES, story("vary: [chunking, history]")])
def test_variants_over_a_protocol_count_for_the_combinations_of_other_dimensions(
    strength: int, scenario: Scenario
) -> None:
    """No combination is lost to a protocol, and the native model needs no more variants than without any."""
    alone = plan_variants(scenario, WIRED_ALONE, strength=strength)
    found = plan_variants(scenario, WIRED, strength=strength)
    native = allowed_variants(scenario, WIRED_ALONE, {})
    wanted = set().union(*(together(one, strength) for one in native if one.resume != "cold"))

    assert set() == wanted - set().union(*(together(one, strength) for one in found))
    assert len(over("native", found)) <= len(alone)


def test_variants_over_protocols_save_native_ones() -> None:
    """A pair of a stream and a store that is met over a protocol needs no variant of its own."""
    assert len(over("native", plan_variants(LEFT_OPEN, WIRED))) < len(plan_variants(LEFT_OPEN, WIRED_ALONE))


def test_what_is_missing_over_a_protocol_is_left_out_there() -> None:
    """An agent without streams over a protocol has none there, and nothing that needs one."""
    found = plan_variants(DECIDED, WIRED)

    assert ["none-held-chat", "json-rebuilt-chat"] == over("chat", found)


def test_a_story_whose_content_a_protocol_lacks_is_not_played_over_it() -> None:
    """What the content needs has to be there over the protocol, too."""
    facts = Facts(protocols={"chat": {"reject_reason": "no place for it"}})
    reasoned = story(caller="[{send: Pay}, {decide: {c1: {reject: too much}}}]")

    assert [] == over("chat", plan_variants(reasoned, facts))
    assert over("chat", plan_variants(DECIDED, facts))


def test_protocols_stay_in_this_process() -> None:
    """A story that varies where it resumes does so with the native model only."""
    found = plan_variants(VARIED, WIRED)

    assert {"same"} == values_of(tuple(one for one in found if one.protocol != "native"), "resume")


def test_two_sessions_are_not_told_apart_over_a_protocol() -> None:
    """The client of a shared agent does not say which session asks."""
    two = story(caller="[{send: Pay, session: a}, {send: Pay, session: b}]")

    assert {"native"} == values_of(plan_variants(two, WIRED), "protocol")


def test_a_protocol_that_is_asked_for_is_covered_like_any_value() -> None:
    """A person gets all pairs over the protocols that they name, as far as the agent speaks them."""
    found = plan_variants(DECIDED, WIRED, overrides={"protocol": ("responses", "messages")})

    assert {"responses"} == values_of(found, "protocol")
    assert len(found) == len(plan_variants(DECIDED, Facts()))


def test_a_story_can_vary_the_protocol() -> None:
    """Where a story varies it, every pair with a protocol is covered."""
    found = plan_variants(story("vary: [protocol]"), WIRED)

    assert {"none", "copy", "json"} == {one.serialize for one in found if one.protocol == "responses"}


def test_a_story_can_be_kept_from_a_protocol() -> None:
    """`only` says which protocols may be, and adds no variants; one without the native model runs over the others."""
    kept = story("only: {protocol: [native, responses]}")

    assert [] == over("chat", plan_variants(kept, WIRED))
    assert over("responses", plan_variants(DECIDED, WIRED)) == over("responses", plan_variants(kept, WIRED))
    assert {"chat"} == values_of(plan_variants(story("only: {protocol: chat}"), WIRED), "protocol")


def test_what_no_model_can_do_over_a_protocol_is_not_played_over_it() -> None:
    """No protocol has calls without an id, even if an agent claims that it does."""
    nameless = parse_scenario(
        "title: A payment\ntools: {pay: {}}\n"
        "model: [{calls: [{id: null, tool: pay, label: c1, arguments: {}}]}, {say: Paid.}]\n",
        name="family/nameless",
        path="nameless.approval.yaml",
    )

    assert {"native"} == values_of(plan_variants(nameless, WIRED), "protocol")
