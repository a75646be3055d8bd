"""Mutants of the checks' own code."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_approvals.checks import CHECKS
from pytest_approvals.devtools.check_mutants import (
    EXCUSES,
    MODULES,
    SHARED,
    CodeMutant,
    CodeSurvey,
    compare_reasons,
    find_excuse,
    find_function,
    format_check_mutants_page,
    generate_code_mutants,
    import_checked_modules,
    list_functions,
    main,
    read_reasons,
)

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "check-mutants.md"

TOY = '''
def keep(values, limit=3):
    """Not > mutated."""
    for value in values:
        if value is None or not value > limit:
            continue
        yield value
    return [value for value in values if value]


class Holder:
    @property
    def first(self):
        return any(value in ("a", "b") for value in self.values) and len(self.values) == 1
'''


@pytest.fixture
def toy(tmp_path):
    """A module on disk."""
    path = tmp_path / "toy.py"
    path.write_text(TOY, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("toy", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def texts(module, function):
    return [f"{each.operator}: {each.after}" for each in generate_code_mutants(module) if each.function == function]


class TestMutants:
    def test_every_clause_is_changed(self, toy):
        """In the order of the text."""
        assert [
            "condition: if True",
            "condition: if False",
            "condition: if not (value is None or not value > limit)",
            "operand: not value > limit",
            "operand: value is None",
            "and/or: value is None and (not value > limit)",
            "comparison: value is not None",
            "negation: value > limit",
            "comparison: value >= limit",
            "comparison: value <= limit",
            "yield: pass",
            "return: return None",
            "filter: [value for value in values]",
        ] == texts(toy, "keep")

    def test_methods_are_changed_too(self, toy):
        """In the property of a class."""
        found = texts(toy, "Holder.first")

        assert {
            "call: all((value in ('a', 'b') for value in self.values))",
            "element: value in ('b',)",
            "constant: 2",
        } <= {*found}

    def test_a_mutant_takes_the_place_of_the_code(self, toy):
        """The function that is imported already behaves differently, and as before when its code is put back."""
        mutant = next(each for each in generate_code_mutants(toy) if each.after == "value >= limit")
        function = find_function(toy, mutant.function)
        original, before = function.__code__, list(toy.keep([2, 3, 4]))
        function.__code__ = mutant.code
        changed = list(toy.keep([2, 3, 4]))
        function.__code__ = original

        assert ([4], [3, 4], [4]) == (before, changed, list(toy.keep([2, 3, 4])))

    def test_a_generator_stays_one(self, toy):
        """Also without its only `yield`."""
        mutant = next(each for each in generate_code_mutants(toy) if each.operator == "yield")
        find_function(toy, "keep").__code__ = mutant.code

        assert [] == list(toy.keep([4]))

    def test_every_check_is_changed(self):
        """No family is left out."""
        functions = {(CHECKS[slug].function or CHECKS[slug].group).__name__ for slug in CHECKS}
        modules = import_checked_modules().values()

        assert set() == functions - {name for module in modules for name, _ in list_functions(module)}


def changed(operator, before, after):
    return CodeMutant(module="m", function="f", operator=operator, before=before, after=after, lines=(1, 1), code=None)


@pytest.mark.parametrize(
    ("mutant", "name"),
    [
        (changed("operand", "a.b is None or a.b.n > 1", "a.b.n > 1"), "guards for the type checker"),
        (changed("condition", "if turn is None", "if False"), "guards for the type checker"),
        (changed("operand", "call.ended or 0", "call.ended"), "defaults for the type checker"),
        (changed("constant", "0", "1"), "defaults for the type checker"),
        (
            changed("comparison", "delivery.n > execution.n", "delivery.n >= execution.n"),
            "positions of different events",
        ),
        (changed("comparison", "delivery.n > execution.n", "delivery.n <= execution.n"), None),
        (changed("comparison", "delivery.n > exchange.n", "delivery.n >= exchange.n"), None),
        (changed("comparison", "len(calls) > 1", "len(calls) >= 1"), None),
        (changed("operand", "call.ended or 0", "0"), None),
        (changed("operand", "call.requests or call.is_gated", "call.is_gated"), None),
        (changed("condition", "if turn is None", "if True"), None),
        (changed("constant", "1", "2"), None),
    ],
    ids=str,
)
def test_what_counts_as_equivalent(mutant, name):
    """Only guards and defaults that the type checker asks for, and positions that cannot be equal."""
    excuse = find_excuse(mutant)

    assert name == (excuse.name if excuse is not None else None)


def test_the_page_of_a_survey():
    """It has a row for each module, the classes of equivalent mutants, and every survivor."""
    survey = CodeSurvey()
    survey.add(changed("operand", "a or b", "a"), "a test")
    survey.add(changed("operand", "c or d", "c"), "")
    survey.add(changed("constant", "0", "1"), "")
    page = format_check_mutants_page(survey, {"m.f": "Nothing is both."})

    assert "| `m` | 3 | 1 | 1 | 50.0 % |" in page
    assert "`m.f` (1): Nothing is both.\n\n- `c or d` => `c`\n" in page
    assert 0.5 == survey.share_noticed()


def test_each_unnoticed_mutant_has_a_reason():
    """A function without one is named, and so is a reason that nothing needs any more."""
    survey = CodeSurvey()
    survey.add(changed("operand", "c or d", "c"), "")

    assert [] == compare_reasons(survey, {"m.f": "Nothing is both."})
    assert ["Missing reason for the unnoticed mutants of m.f", "Stale reason: all mutants of m.g are noticed"] == (
        compare_reasons(survey, {"m.g": "Nothing is both."})
    )


def run_command(*words):
    command = [sys.executable, "-m", "pytest_approvals.devtools.check_mutants", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


def test_a_clause_that_no_test_reaches_is_printed():
    """With the passing examples of a check alone its clauses can be cut out unnoticed, and the command fails."""
    done = run_command("--function", "reason_told", "--tests", "its_example and reason-told-pass")

    assert (1, "") == (done.returncode, done.stderr)
    assert re.search(r"^telling:\d+ reason_told: not reason => reason$", done.stdout, re.MULTILINE) is None
    assert re.search(r"^telling:\d+ reason_told: yield failure => pass$", done.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--function", "reason_tld"], "Unknown function 'reason_tld'; did you mean 'reason_told'?"),
    ],
    ids=["function"],
)
def test_a_wrong_option_is_an_error(capsys, monkeypatch, words, message):
    """In one line, without a traceback."""
    monkeypatch.chdir(ROOT)

    assert 2 == main(words)
    assert message in capsys.readouterr().err


def test_it_needs_a_checkout(capsys, monkeypatch, tmp_path):
    """The tests are not in the wheel."""
    monkeypatch.chdir(tmp_path)

    assert 2 == main([])
    assert "Missing folder tests/checks: run this in the root of a checkout" in capsys.readouterr().err


def test_the_page_is_of_these_checks():
    """`docs/check-mutants.md` has a row for each module, and the classes that count as equivalent."""
    page = PAGE.read_text(encoding="utf-8")

    assert [*MODULES, *SHARED] == re.findall(r"^\| `(\w+)` ", page, re.MULTILINE)
    assert [] == [excuse.name for excuse in EXCUSES if f"**{excuse.name}**" not in page]
    assert read_reasons() == dict(re.findall(r"^`(\w+\.[\w.]+)` \(\d+\): (.+)$", page, re.MULTILINE))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_share_on_the_page_is_reached():
    """The tests of the checks notice at least as many mutants as the page says, less half a point."""
    written = float(
        re.findall(r"^\| \*\*all\*\* .*\*\*([\d.]+) %\*\* \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)[0]
    )
    names = [word for name in (*MODULES, *SHARED) for word in ("--function", name)]
    share = float(run_command(*names).stdout.splitlines()[-1].split(" %")[0])

    assert written - 0.5 <= share
