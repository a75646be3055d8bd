"""The shapes of bugs that were reported in public: each is found, and the finding names the requirement."""

from __future__ import annotations

import pytest

from pytest_approvals.checks import judge, root_findings
from pytest_approvals.journal.notation import parse_notation

FOUND = {
    "a call id is used again with other arguments, and runs unasked": (
        "approval-before-execution",
        """
        send Pay
        model c1 pay(amount=1)
        pause c1
        approve c1
        go
        run c1 -> paid 1
        model c1#2 pay(amount=2)
        run c1#2 -> paid 2
        done
        """,
    ),
    "the stored arguments are not those that were shown": (
        "arguments-as-approved",
        """
        send Pay 1
        model c1 pay(amount=1)
        pause c1
        save
        restore
        approve c1
        go
        run c1 pay(amount=999) -> paid 999
        done
        """,
    ),
    "an approved nested call is asked about forever": (
        "approved-runs",
        """
        tool ask(input) never runs helper
        tool pay(amount: integer) always of helper
        send Go
        model o1 ask(input=first)
        model @o1/helper o1/c1 pay(amount=5)
        pause o1/c1
        save
        restore
        approve o1/c1
        go
        pause o1/c1
        save
        restore
        approve o1/c1
        go
        pause o1/c1
        stuck
        end completed: o1/c1
        """,
    ),
    "a standing approval releases another agent's call of the same name": (
        "approval-before-execution",
        """
        tool ask(input) never runs helper
        tool pay(amount: integer) always
        tool helper_pay(amount: integer) always of helper
        send Go
        model c1 pay(amount=5); o1 ask(input=first)
        pause c1
        always c1
        go
        run c1 -> paid 5
        model @o1/helper o1/c2 helper_pay(amount=6)
        run o1/c2 -> paid 6
        model @o1/helper Done.
        tell o1 Done.
        done
        """,
    ),
    "reject, then always in one batch": (
        "rejected-never-runs",
        """
        send Pay
        model c1 pay(amount=1); c2 pay(amount=2)
        pause c1, c2
        reject c1
        always c2
        go
        run c1 -> paid 1
        run c2 -> paid 2
        done
        """,
    ),
    "the caller writes on, and the call stays open in the history": (
        "result-delivered-once",
        """
        send Pay 1
        model c1 pay(amount=1)
        pause c1
        send Never mind
        refusal call-without-result
        fail ModelRefused: 400
        end left
        """,
    ),
    "a denied tool runs": (
        "rejected-never-runs",
        """
        send Pay 1
        model c1 pay(amount=1)
        pause c1
        reject c1
        go
        run c1 -> paid 1
        done
        """,
    ),
    "a double click runs the tool twice": (
        "runs-at-most-once",
        """
        mode none
        send Pay 1
        model c1 pay(amount=1)
        pause c1
        approve c1
        go
        start c1
        approve c1
        go
        run c1 -> paid 1
        returns c1 paid 1
        untell c1
        tell c1 paid 1
        3: finish Done.
        2: finish Done.
        end left
        """,
    ),
    "a pending request is abandoned on a plain resume because a sibling had run": (
        "unanswered-stays-pending",
        """
        send Go
        model c1 pay(amount=5); c2 read(path=a)
        run c2 -> text
        pause c1
        go
        tell c1 interrupted
        done
        """,
    ),
    "no decision executes the tool": (
        "invalid-decision-refused",
        """
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        raw c1 null
        go
        run c1 -> paid 5
        done
        """,
    ),
    "a request is lost in the stored form": (
        "pending-survives",
        """
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save
        restore save-1:
        end left
        """,
    ),
    "a request is not in the stream": (
        "stream-shows-everything",
        """
        streaming
        send Pay 5
        model c1 pay(amount=5)
        show call c1
        finish
        save
        restore save-1: c1
        end left
        """,
    ),
    "the results of what ran are lost when the caller writes something else": (
        "result-delivered-once",
        """
        send Go
        model c1 read(path=a); c2 pay(amount=5)
        run c1 -> text
        pause c2
        forget c1
        forget c2
        send Never mind
        done
        """,
    ),
    "steps before the gate run again": (
        "ungated-runs-once",
        """
        send Go
        model c1 read(path=a)
        run c1 -> text
        model c2 pay(amount=5)
        pause c2
        approve c2
        go
        start c1
        gives c1 "text"
        run c2 -> paid 5
        done
        """,
    ),
    "the answer runs another tool than was asked about": (
        "arguments-as-approved",
        """
        tool pay(amount: integer) always
        tool wipe(what) always
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 wipe(what=everything) -> gone
        done
        """,
    ),
    "one request id belongs to two calls": (
        "request-ids-unique",
        """
        send Pay
        model c1 pay(amount=5); c1#2 pay(amount=5000)
        rename c1#2 c1
        pause c1, c1#2
        end left
        """,
    ),
    "a forged approval executes": (
        "invalid-decision-refused",
        """
        send Hello
        model Hello.
        finish Hello.
        approve ?forged
        go
        run forged pay(amount=5) -> paid 5
        done
        """,
    ),
    "a run hangs after a refusal inside": (
        "run-ends",
        """
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        go
        timeout
        end timeout
        """,
    ),
    "the reason is lost": (
        "reason-told",
        """
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1 over the limit
        go
        tell c1 Error:
        done
        """,
    ),
    "two sessions share a nested request": (
        "sessions-isolated",
        """
        send Pay 1
        model c1 pay(amount=1)
        pause c1
        session b
        send Pay 2
        shows c1 pay(amount=1)
        end left: c1
        """,
    ),
    "a complete answer is refused forever": (
        "usable-after-refusal",
        """
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        fail UserError: expected c1, got c1 and out1
        approve c1
        go
        fail UserError: expected c1, got c1 and out1
        end left: c1
        """,
    ),
    "a state that pauses cannot be saved": (
        "pending-survives",
        """
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        unsaved TypeError: not serializable
        end left: c1
        """,
    ),
    "the calls of one reply are split into two messages": (
        "model-input-well-formed",
        """
        send Go
        model c1 read(path=a); c2 read(path=b)
        split c2
        run c1 -> text of a
        run c2 -> text of b
        done
        """,
    ),
}


@pytest.mark.parametrize(("check", "lines"), FOUND.values(), ids=FOUND)
def test_it_is_found(check, lines):
    """The root finding is the requirement that is violated."""
    findings = root_findings(judge(parse_notation(lines)))

    assert [check] == list(dict.fromkeys(finding.verdict.check for finding in findings))
