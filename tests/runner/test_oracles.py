from __future__ import annotations

import pytest

from pytest_approvals.agent_side.contract.types import Request
from pytest_approvals.errors import UnknownName, UsageError
from pytest_approvals.runner import oracles
from pytest_approvals.runner.oracles import (
    allowlist,
    always,
    approve_all,
    create_oracle,
    edit,
    first_of,
    never,
    on,
    policy,
    reject_all,
    scripted,
)
from pytest_approvals.scenario.model import ScriptedDecision

DELETE = Request(id="r1", call_id="c1", tool="delete_file", arguments={"path": "/etc/passwd"})
READ = Request(id="r2", call_id="c2", tool="read_file", arguments={"path": "a.txt"})
BROKEN = Request(id="r3", call_id="c3", tool="delete_file", arguments="{not json")


def only_small(request: Request) -> bool:
    return request.tool == "read_file"


class TestAnswers:
    @pytest.mark.parametrize(
        ("oracle", "verdict"),
        [
            pytest.param(approve_all(), "approve", id="approve_all"),
            pytest.param(reject_all("no"), "reject", id="reject_all"),
            pytest.param(edit(path="b.txt"), "edit", id="edit"),
            pytest.param(always(), "always", id="always"),
            pytest.param(never(), "never", id="never"),
            pytest.param(allowlist("read_*"), "reject", id="not on the allowlist"),
            pytest.param(allowlist("delete_*"), "approve", id="on the allowlist"),
            pytest.param(scripted({"c1": "approve"}), "approve", id="scripted by label"),
            pytest.param(scripted({"delete_file": False}), "reject", id="scripted by tool"),
            pytest.param(policy(only_small), "reject", id="policy"),
            pytest.param(first_of(on("read_*", approve_all()), reject_all()), "reject", id="first_of"),
            pytest.param(on("delete_*", never(), path="/etc/*"), "never", id="on arguments"),
        ],
    )
    def test_an_oracle_answers_by_its_rule(self, oracle: oracles.Oracle, verdict: str) -> None:
        """Each oracle gives the verdict that its name promises."""
        answer = oracle.answer(DELETE, "c1")

        assert answer is not None
        assert verdict == answer.verdict

    @pytest.mark.parametrize(
        "oracle",
        [
            pytest.param(scripted({"c9": "approve"}), id="nothing scripted for the call"),
            pytest.param(on("read_*", approve_all()), id="another tool"),
            pytest.param(on("delete_*", approve_all(), path="/home/*"), id="other arguments"),
            pytest.param(on("delete_*", approve_all(), mode="rw"), id="an argument that is missing"),
            pytest.param(policy(lambda _: None), id="a policy without an answer"),
            pytest.param(first_of(), id="no oracle at all"),
        ],
    )
    def test_an_oracle_may_have_no_answer(self, oracle: oracles.Oracle) -> None:
        """Where its rule says nothing, an oracle says nothing, and does not guess."""
        assert oracle.answer(DELETE, "c1") is None

    def test_a_label_goes_before_its_tool(self) -> None:
        """A scripted oracle prefers what is said of the call to what is said of its tool."""
        oracle = scripted({"delete_file": "reject", "c1": "approve"})

        assert oracle.answer(DELETE, "c1") == ScriptedDecision()

    def test_broken_arguments_match_no_pattern(self) -> None:
        """Arguments that are not an object match no argument pattern, so that nothing is approved by them."""
        assert on("delete_*", approve_all(), path="*").answer(BROKEN, "c3") is None

    def test_chance_decides_one_call_alike(self) -> None:
        """The random oracle depends on the seed and the call, not on the order of requests."""
        first, second = oracles.random(3), oracles.random(3)
        second.answer(READ, "c2")

        assert first.answer(DELETE, "c1") == second.answer(DELETE, "c1")

    def test_chance_gives_both_verdicts(self) -> None:
        """Over several seeds, the random oracle approves and rejects."""
        verdicts = {answer.verdict for seed in range(20) if (answer := oracles.random(seed).answer(DELETE, "c1"))}

        assert {"approve", "reject"} == verdicts


class TestRepr:
    @pytest.mark.parametrize(
        ("text", "oracle"),
        [
            ("approve_all()", approve_all()),
            ("reject_all('no')", reject_all("no")),
            ("edit(amount=3)", edit(amount=3)),
            ("allowlist('read_*', otherwise=never())", allowlist("read_*", otherwise=never())),
            ("scripted({'c1': 'approve'})", scripted({"c1": "approve"})),
            ("policy(only_small)", policy(only_small)),
            ("random(7)", oracles.random(7)),
            ("first_of(on('rm', reject_all()), approve_all())", first_of(on("rm", reject_all()), approve_all())),
        ],
    )
    def test_an_oracle_prints_as_the_call_that_makes_it(self, text: str, oracle: oracles.Oracle) -> None:
        """The repr of an oracle is Python that makes it again."""
        assert text == repr(oracle) == oracle.name

    def test_equal_oracles_are_equal(self) -> None:
        """Oracles are values."""
        assert allowlist("a", "b") == allowlist("a", "b")


class TestMistakes:
    def test_a_policy_must_give_something_that_is_a_decision(self) -> None:
        """A policy that returns an invalid answer is a usage error that names what is valid."""
        with pytest.raises(UsageError, match=r"Invalid answer 'perhaps' of policy\(.*\): expected an Answer, approve"):
            policy(lambda _: "perhaps").answer(DELETE, "c1")

    def test_a_script_must_hold_decisions(self) -> None:
        """An entry without a decision is refused when the oracle is made."""
        with pytest.raises(UsageError, match="leave the entry out"):
            scripted({"c1": None})  # type: ignore[dict-item]


class TestOracleNamed:
    @pytest.mark.parametrize(
        ("name", "oracle"),
        [
            ("approve_all", approve_all()),
            ("reject_all", reject_all("not allowed")),
            ("random:7", oracles.random(7)),
            ("allowlist:a,b", allowlist("a", "b")),
        ],
    )
    def test_a_name_gives_an_oracle(self, name: str, oracle: oracles.Oracle) -> None:
        """The names that variants and the command line use."""
        assert oracle == create_oracle(name)

    def test_an_unknown_name_names_the_nearest(self) -> None:
        """A misspelt oracle is refused with the nearest valid name."""
        with pytest.raises(UnknownName, match="Unknown oracle 'aprove_all'; did you mean 'approve_all'?"):
            create_oracle("aprove_all")

    def test_a_seed_is_a_number(self) -> None:
        """The random oracle says what its seed must be."""
        with pytest.raises(UsageError, match="Invalid seed .* of the oracle random: expected a number"):
            create_oracle("random:x")
