"""What a history knows of each call, from being asked for to being told."""

from __future__ import annotations

from pytest_approvals.journal.events import Header, ModelAnswer, ModelRequest, ToolEnd, ToolStart, TurnEnd, TurnStart
from pytest_approvals.journal.history import ToolDeclaration
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.notation import parse_notation


def read(lines):
    return read_history(parse_notation(lines))


def numbered(*events):
    for n, event in enumerate(events, 1):
        event.n = n
    return list(events)


class TestOneCall:
    def test_everything_that_happened_to_it(self):
        """A call knows its request, its decision, its run and what the model was told."""
        (call,) = read("""
            send Pay 5
            model c1 pay(amount=5)
            pause c1
            approve c1
            go
            run c1 -> paid 5
            done
        """).calls

        assert ("c1", "main", 1, "pay", {"amount": 5}) == (
            call.label,
            call.conversation,
            call.occurrence,
            call.tool,
            call.arguments,
        )
        assert ["q1"] == [asked.q for asked in call.requests]
        assert [("approve", True, False)] == [(each.verdict, each.approves, each.refused) for each in call.decisions]
        assert [("returned", "paid 5", {"amount": 5})] == [
            (run.how, run.result, run.arguments) for run in call.executions
        ]
        assert ["paid 5"] == [told.text for told in call.deliveries]
        assert call.is_gated

    def test_uses_of_one_id_are_told_apart(self):
        """The second use of an id is a call of its own, with its own run and result."""
        first, second = read("""
            send Go
            model c1 read(path=a)
            run c1 -> text of a
            model c1#2 read(path=b)
            run c1#2 -> text of b
            done
        """).calls

        assert [1, 2] == [first.occurrence, second.occurrence]
        assert (["text of a"], ["text of b"]) == tuple(
            [told.text for told in each.deliveries] for each in (first, second)
        )
        assert ([{"path": "a"}], [{"path": "b"}]) == tuple(
            [run.arguments for run in c.executions] for c in (first, second)
        )

    def test_a_call_of_a_reply_that_was_lost_with_the_process(self):
        """When the model makes it again, the second one is the one that runs."""
        lost, made = read("""
            mode native.sqlite
            save a
            send Go
            model c1 read(path=a)
            crash shown
            restore a:
            forget c1
            go
            model c1#2 read(path=a)
            run c1#2 -> text of a
            done
        """).calls

        assert ([], ["text of a"]) == (lost.executions, [run.result for run in made.executions])

    def test_a_hand_over_of_a_reply_that_was_lost_with_the_process(self):
        """When the model makes it again, the second one is the one that the other agent has."""
        lost, made = read("""
            tool to_clerk() never to clerk
            mode native.sqlite
            save a
            send Go
            model c1 to_clerk()
            crash shown
            restore a:
            forget c1
            go
            model c1#2 to_clerk()
            tell c1#2 handed over
            agent clerk
            done
        """).calls

        assert ([], ["returned"]) == (lost.executions, [run.how for run in made.executions])

    def test_an_id_that_the_agent_changed(self):
        """A call that the agent gave another id is recognised by tool and arguments."""
        first, second = read("""
            send Go
            model c1 read(path=a); c1#2 read(path=b)
            rename c1#2 c1-2
            run c1 -> text of a
            run c1#2 -> text of b
            done
        """).calls

        assert (["text of a"], ["text of b"]) == tuple(
            [told.text for told in each.deliveries] for each in (first, second)
        )
        assert (1, 1) == (len(first.executions), len(second.executions))

    def test_an_id_that_the_agent_changed_beside_values_that_the_save_changed(self):
        """Of two calls with one id, that which was asked about with the new value is told of with it."""
        first, second = read("""
            send Go
            model c1 read(path=x1); c1#2 read(path=x2)
            pause c1
            save
            rewrite x y
            restore save-1: c1 read(path=y1)
            reject c1
            go
            rename c1#2 c1-2
            change c1 path=y1
            tell c1 rejected
            tell c1#2 text of x2
            done
        """).calls

        assert (["rejected"], ["text of x2"]) == tuple(
            [told.text for told in each.deliveries] for each in (first, second)
        )

    def test_an_id_that_the_agent_changed_and_a_tool_that_the_save_changed(self):
        """A call that nobody was asked about is known by what a changed save makes of its tool."""
        first, second = read("""
            send Go
            model c1 read(path=a); c2 read(path=b)
            pause c1
            save
            rewrite read write
            restore save-1: c1 write(path=a)
            reject c1
            go
            rename c2 c2-2
            change c1 write(path=a)
            change c2 write(path=b)
            tell c1 rejected
            tell c2 unknown tool
            done
        """).calls

        assert (["rejected"], ["unknown tool"]) == tuple(
            [told.text for told in each.deliveries] for each in (first, second)
        )

    def test_an_id_that_the_agent_changed_and_a_number_that_the_save_changed(self):
        """A call that nobody was asked about is known by what a changed save makes of its arguments."""
        first, second = read("""
            send Go
            model c1 read(page=1); c2 read(page=52)
            pause c1
            save
            rewrite 52 70
            restore save-1: c1
            reject c1
            go
            rename c2 c2-2
            change c2 page=70
            tell c1 rejected
            tell c2 page 70
            done
        """).calls

        assert (["rejected"], ["page 70"]) == tuple([told.text for told in each.deliveries] for each in (first, second))

    def test_an_id_that_the_agent_changed_and_arguments_that_are_no_json(self):
        """A call whose arguments are no JSON is known by an object that holds their text."""
        (call,) = read("""
            send Go
            model c1 read(no json)
            rename c1 c1-2
            change c1 read(invalid=no json)
            tell c1 no JSON
            done
        """).calls

        assert ["no JSON"] == [told.text for told in call.deliveries]

    def test_an_id_of_the_agent_that_comes_again_in_another_conversation(self):
        """A run under an id that the agent counts in each conversation belongs to the call of its agent and tool."""
        outer, _, inner = read("""
            tool pay(amount: integer) always
            tool delegate(input: string) never runs helper
            tool wire(sum: integer) never of helper
            send Go
            model c1 pay(amount=5)
            rename c1 own1
            pause c1
            approve c1
            go
            run c1 -> paid 5
            model o1 delegate(input=Wire 3)
            rename o1 own2
            model @o1/helper o1/h1 wire(sum=3)
            rename o1/h1 own1
            run o1/h1 -> wired 3
            model @o1/helper Wired.
            tell o1 Wired.
            done
        """).calls

        assert (["paid 5"], ["wired 3"]) == tuple([run.result for run in each.executions] for each in (outer, inner))

    def test_an_id_of_the_agent_that_comes_again_in_two_runs_of_one_agent(self):
        """A run under an id that the agent counts in each conversation belongs to the call with its arguments."""
        _, first, _, second = read("""
            tool delegate(input: string) never runs helper
            tool wire(sum: integer) never of helper
            send Go
            model o1 delegate(input=Wire 3)
            model @o1/helper o1/h1 wire(sum=3)
            rename o1/h1 own1
            run o1/h1 -> wired 3
            model @o1/helper Wired.
            tell o1 Wired.
            model o2 delegate(input=Wire 4)
            model @o2/helper o2/h1 wire(sum=4)
            rename o2/h1 own1
            run o2/h1 -> wired 4
            model @o2/helper Wired.
            tell o2 Wired.
            done
        """).calls

        assert (["wired 3"], ["wired 4"]) == tuple([run.result for run in each.executions] for each in (first, second))

    def test_an_id_of_the_agent_with_arguments_of_another_call_of_the_reply(self):
        """In one conversation an id is one call, also if another one has the arguments with which it runs."""
        first, second = read("""
            send Go
            model c1 read(path=a); c2 read(path=b)
            rename c1 own1
            run c1 -> text of a
            rename c2 own2
            start c2@own1 read(path=b)
            gives c2 "text of b"
            fail X: y
        """).calls

        assert (["a", "b"], []) == tuple([run.arguments["path"] for run in each.executions] for each in (first, second))

    def test_a_body_that_is_told_no_id(self):
        """A run without an id belongs to the call with its tool and arguments."""
        first, second = read("""
            send Go
            model c1 read(path=a); c2 read(path=b)
            start c2@- read(path=b)
            gives c2 "b"
            start c1@- read(path=a)
            gives c1 "a"
            fail X: y
        """).calls

        assert (["a"], ["b"]) == tuple([run.result for run in each.executions] for each in (first, second))

    def test_a_run_that_belongs_to_no_call(self):
        """What the model did not ask for has no call."""
        history = read("""
            send Hello
            run x9 pay(amount=5) -> paid 5
            done
        """)

        assert [None] == [run.call for run in history.executions]

    def test_a_run_with_other_arguments(self):
        """An execution with the id of a call belongs to it, even with other arguments."""
        (call,) = read("""
            send Go
            model c1 read(path=a)
            run c1 read(path=b) -> text
            done
        """).calls

        assert [{"path": "b"}] == [run.arguments for run in call.executions]

    def test_a_second_result(self):
        """A result that comes after another one of the same call is marked."""
        (call,) = read("""
            send Go
            model c1 read(path=a)
            run c1 -> text
            tell c1 text again
            done
        """).calls

        assert [("text", False), ("text again", True)] == [(told.text, told.second) for told in call.deliveries]

    def test_what_is_repeated_is_told_once(self):
        """A result that later inputs repeat was told once."""
        (call,) = read("""
            send Go
            model c1 read(path=a)
            run c1 -> text
            done
            send More
            done
        """).calls

        assert 1 == len(call.deliveries)

    def test_an_agent_that_a_call_runs(self):
        """A call that runs an agent begins with that agent's first question and ends with its last answer."""
        history = read("""
            tool ask(input) never runs helper
            tool read(path) never of helper
            send Go
            model o1 ask(input=first)
            model @o1/helper o1/c1 read(path=a)
            run o1/c1 -> text
            model @o1/helper Read.
            tell o1 Read.
            done
        """)
        outer, inner = history.find_call("o1"), history.find_call("o1/c1")

        assert [(0, {"input": "first"}, "returned")] == [(run.x, run.arguments, run.how) for run in outer.executions]
        assert ("o1/helper", "helper", 1) == (inner.conversation, inner.agent, len(inner.executions))

    def test_a_hosted_call(self):
        """A call that the provider runs is answered by an approval response and told in a reply."""
        (call,) = read("""
            tool search(query) always hosted web
            rules responses
            send Search
            model c1 search(query=cats)
            pause c1
            approve c1
            go
            respond c1 yes
            hosted c1 -> nine cats
            done
        """).calls

        assert ([True], ["provider"], ["nine cats"]) == (
            [approved for _, approved in call.approval_responses],
            [run.by for run in call.executions],
            [told.text for told in call.deliveries],
        )


class TestPolicies:
    def test_the_declaration_counts_if_the_policy_was_not_asked(self):
        """A condition is answered for the call's arguments."""
        low, high = read("""
            tool pay(amount: integer) when amount > 100
            send Go
            model c1 pay(amount=5); c2 pay(amount=500)
            fail X: y
        """).calls

        assert (False, True) == (low.is_gated, high.is_gated)

    def test_the_last_answer_counts(self):
        """What the policy said last before a position counts there."""
        (call,) = read("""
            tool pay(amount: integer) when amount > 100
            send Go
            model c1 pay(amount=5)
            gate c1 yes
            gate c1 no
            fail X: y
        """).calls
        _, second = call.gates

        assert (True, False) == (call.is_gated_at(second.n), call.is_gated)

    def test_a_policy_that_raised(self):
        """A policy that raised keeps the gate closed."""
        (call,) = read("""
            tool pay(amount: integer) raises
            send Go
            model c1 pay(amount=5)
            gate c1 raises
            fail X: y
        """).calls

        assert call.is_gated

    def test_a_tool_that_nobody_declared(self):
        """A tool that is not declared has no gate."""
        (call,) = read("send Go\nmodel c1 fly(to=moon)\nfail X: y").calls

        assert (None, False) == (call.declaration, call.is_gated)

    def test_names_of_tools(self):
        """A tool of another agent, or one that is called otherwise, is known by the name that the model uses."""
        assert ["pay", "pay", "delete"] == [
            ToolDeclaration.of("pay", {}).name,
            ToolDeclaration.of("helper/pay", {"agent": "helper"}).name,
            ToolDeclaration.of("delete_here", {"called": "delete"}).name,
        ]

    def test_two_tools_of_one_name(self):
        """A call belongs to the tool of its own agent."""
        events = parse_notation("""
            tool pay(amount: integer) always
            tool ask(input) never runs helper
            send Go
            model o1 ask(input=first)
            model @o1/helper o1/c1 pay(amount=5)
            fail X: y
        """)
        events[0].tools["helper/pay"] = {"approval": "never", "agent": "helper"}

        assert not read_history(events).find_call("o1/c1").is_gated


class TestDecisions:
    def test_the_last_of_two_staged_ones(self):
        """Of decisions that were put into the state one after the other the last one counts."""
        (call,) = read("""
            send Go
            model c1 pay(amount=5)
            pause c1
            approve c1
            stage
            reject c1
            stage
            go
            tell c1 no
            done
        """).calls

        assert "reject" == call.decision.verdict

    def test_the_rejection_of_a_contradiction(self):
        """Of two in one submission the rejection counts, in either order."""
        lines = "send Go\nmodel c1 pay(amount=5)\npause c1\n{}\n{}\ngo\ntell c1 no\ndone"

        assert ["reject", "reject"] == [
            read(lines.format("approve c1", "reject c1")).find_call("c1").decision.verdict,
            read(lines.format("reject c1", "approve c1")).find_call("c1").decision.verdict,
        ]

    def test_a_refused_one(self):
        """A decision that came with a refused turn is not in force."""
        (call,) = read("send Go\nmodel c1 pay(amount=5)\npause c1\napprove c1\ngo\nfail X: y\nend left: c1").calls

        assert (True, None) == (call.decisions[0].refused, call.decision)

    def test_one_about_a_settled_call(self):
        """A decision that came after the call was settled changes nothing."""
        (call,) = read("""
            send Go
            model c1 pay(amount=5)
            pause c1
            reject c1
            go
            tell c1 no
            done
            approve c1
            go
            finish Done.
        """).calls

        assert "reject" == call.decision.verdict

    def test_one_after_it_was_asked_about_again(self):
        """A decision about a call that was asked about again replaces the one before."""
        (call,) = read("""
            send Go
            model c1 pay(amount=5)
            pause c1
            approve c1
            go
            run c1 ??
            pause c1
            reject c1
            go
            tell c1 no
            done
        """).calls

        assert "reject" == call.decision.verdict

    def test_a_standing_one(self):
        """A standing decision counts for later calls of the tool, unless there is an explicit one."""
        history = read("""
            send Go
            model c1 pay(amount=5); c2 pay(amount=6)
            pause c1, c2
            always c1
            reject c2
            go
            run c1 -> paid 5
            tell c2 no
            model c3 pay(amount=7)
            run c3 -> paid 7
            done
        """)

        assert ["always", "reject", "always"] == [call.decision.verdict for call in history.calls]

    def test_a_value_in_place_of_one(self):
        """Only a plain true may approve in place of a decision."""
        lines = "send Go\nmodel c1 pay(amount=5)\npause c1\nraw c1 {}\ngo\npause c1\nend left"

        assert [True, False, False] == [
            read(lines.format(value)).decisions[0].approves for value in ("true", '"yes"', "1")
        ]

    def test_an_edit(self):
        """What is wanted after an edit is what it says."""
        (call,) = read("""
            send Go
            model c1 pay(amount=5)
            pause c1
            edit c1 quote(amount=3)
            go
            run c1 quote(amount=3) -> 3
            done
        """).calls

        assert ("quote", {"amount": 3}) == call.effective_call_at(call.executions[0].n)
        assert ("pay", {"amount": 5}) == call.effective_call_at(call.decisions[0].n)


class TestTurns:
    def test_outcomes(self):
        """A turn that failed before it reached a model or a tool was refused."""
        turns = read("""
            send Go
            model c1 pay(amount=5)
            pause c1
            approve ?x
            go
            fail KeyError: x
            approve c1
            go
            run c1 !! no
            fail ToolRaised: no
        """).turns

        assert [("paused", False), ("failed", True), ("failed", False)] == [
            (turn.outcome, turn.refused) for turn in turns
        ]

    def test_a_turn_without_an_end(self):
        """A journal that was cut off has a turn that is open."""
        events = parse_notation("send Go\ndone")[:4]

        assert ["open"] == [turn.outcome for turn in read_history(events).turns]

    def test_turns_at_the_same_time(self):
        """Of two turns at the same time each has what belongs to it."""
        first, second, third = read("""
            mode none
            send Go
            model c1 pay(amount=5)
            pause c1
            approve c1
            go
            start c1
            approve c1
            go
            3: fail UserError: it runs already
            returns c1 paid 5
            done
        """).turns

        assert (False, True, True) == (first.overlaps, second.overlaps, third.overlaps)
        assert (1, 1, 0, 0) == (
            len(second.executions),
            len(second.exchanges),
            len(third.executions),
            len(third.exchanges),
        )

    def test_a_turn_whose_process_is_stopped(self):
        """It does nothing meanwhile, though the input and the call of another turn would fit it as well."""
        _, stopped, other = read("""
            mode native.sqlite
            send Go
            model c1 pay(amount=5)
            pause c1
            save a
            approve c1
            go
            stop before c1
            restore a: c1
            reject c1
            go
            run c1 -> paid 5
            model Done.
            3: finish Done.
            wake 2
            run c1 -> paid 5
            model Done.
            2: finish Done.
        """).turns

        assert ([1, 1], [1, 1]) == (
            [len(stopped.executions), len(other.executions)],
            [len(stopped.exchanges), len(other.exchanges)],
        )
        assert stopped.executions[0].n > other.executions[0].n


class TestInputs:
    def test_a_call_without_a_result(self):
        """An input knows which calls stand in it without a result."""
        history = read("send Go\nmodel c1 read(path=a)\nuser Well?\ndone")

        assert [[], ["c1"]] == [[call.label for call in each.unanswered] for each in history.exchanges]

    def test_a_result_without_a_call(self):
        """A result whose call does not stand before it is an orphan."""
        history = read("send Go\nmodel c1 read(path=a)\nrun c1 -> text\nforget c1\ntell c1 text\ndone")

        assert [[], [1]] == [each.orphans for each in history.exchanges]

    def test_a_call_twice(self):
        """A call that is in the input more often than the model made it is unknown there."""
        history = read("send Go\nmodel c1 read(path=a)\ntwice c1\nrun c1 -> text\ntell c1 text\ndone")

        assert 1 == len(history.exchanges[1].unknown_calls)

    def test_where_an_input_differs(self):
        """An input that does not repeat the one before says from where."""
        history = read("send Go\nmodel c1 read(path=a)\nrun c1 -> text\nmodel Well.\nuntell c1\ntell c1 other\ndone")
        *_, last = history.exchanges

        assert (False, 2) == (last.repeats_previous, last.first_difference)

    def test_a_trimmed_history(self):
        """Ids that come again are aligned from the end, since histories are trimmed at the front."""
        first, second = read("""
            send Go
            model c1 read(path=a)
            run c1 -> text of a
            model c1#2 read(path=a)
            run c1#2 -> text again
            trim 2
            done
        """).calls

        assert (["text of a"], ["text again"]) == tuple(
            [told.text for told in each.deliveries] for each in (first, second)
        )


class TestForeignJournals:
    def test_labels_are_made_up(self):
        """Calls without a label get one of their id and its use."""
        calls = [
            {"id": "c1", "tool": "read", "arguments": {}},
            {"id": "c1", "tool": "read", "arguments": {"path": "a"}},
        ]
        nested = [{"id": "c1", "tool": "read", "arguments": {}}, {"id": None, "tool": "read", "arguments": {}}]
        history = read_history(
            numbered(
                TurnStart(turn=1, text="Go"),
                ModelRequest(m=1, conversation="main", agent="main", items=[]),
                ModelAnswer(m=1, conversation="main", calls=calls),
                ModelRequest(m=2, conversation="o1/helper", agent="helper", items=[]),
                ModelAnswer(m=2, conversation="o1/helper", calls=nested),
            )
        )

        assert ["c1", "c1#2", "o1/c1", "o1/read"] == [call.label for call in history.calls]

    def test_requests_are_matched(self):
        """Requests without label and number are matched with calls by id, tool and arguments, each once."""
        calls = [{"id": "c1", "tool": "pay", "arguments": {"amount": n}} for n in (5, 6)]
        requests = [{"id": f"r{n}", "call_id": "c1", "tool": "pay", "arguments": {"amount": n}} for n in (6, 5)]
        history = read_history(
            numbered(
                Header(scenario="x", agent="y", tools={"pay": {"approval": "always"}}),
                TurnStart(turn=1, text="Go"),
                ModelRequest(m=1, conversation="main", agent="main", items=[]),
                ModelAnswer(m=1, conversation="main", calls=calls),
                TurnEnd(turn=1, outcome="paused", requests=requests),
            )
        )

        assert ["c1#2", "c1"] == [asked.call.label for asked in history.requests]

    def test_half_a_journal(self):
        """A journal that begins in the middle is read as far as it goes."""
        history = read_history(
            numbered(ToolStart(x=1, tool="pay", arguments={}), ToolEnd(x=1), TurnEnd(turn=3, outcome="x"))
        )

        assert ([("returned", None)], []) == ([(run.how, run.call) for run in history.executions], history.turns)


class TestWhatAPolicyWasAskedAbout:
    LINES = """
        tool pay(amount: integer) when amount > 100
        send Pay
        model c1 pay(amount=5); c2 pay(amount="500")
        run c1 pay(amount=500) -> paid 500
        pause c2
    """

    def test_a_run_with_arguments_that_need_approval_is_gated(self):
        """A call that was let through is gated if it ran with arguments that need approval."""
        low, _ = read(self.LINES).calls

        assert (False, True) == (low.is_gated, low.needed_approval_for(low.executions[0]))

    def test_a_call_may_be_gated_as_its_tool_reads_it(self):
        """Arguments are read as they are written, or as they are coerced."""
        low, high = read(self.LINES).calls

        assert (False, True) == (low.may_be_gated, high.may_be_gated)
