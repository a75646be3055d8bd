"""Mutants of the checks' own code: each clause is changed, and the tests of the checks must notice.

`python -m pytest_approvals.devtools.check_mutants`, in a checkout, collects `tests/checks` once, records which lines of
the checks each test reaches, and then runs, for one mutant after the other, the tests that reach the changed lines: the
examples of the checks first, until one fails. It writes `docs/check-mutants.md`. With `--function NAME` it tries the
mutants of some functions only and prints those that no test notices, without writing. `unnoticed_mutants.json` beside
this module says of each function why its mutants are not noticed.

A mutant replaces the code object of a function that is already imported, so nothing is reloaded and no file is changed.
`--renew` writes the verdicts in `tests/checks/judged_journals.jsonl` anew, after a check has changed on purpose.
"""

from __future__ import annotations
import __future__

import argparse
import ast
import contextlib
import copy
import importlib
import io
import json
import re
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, TypeVar

import pytest
from _pytest.runner import runtestprotocol

from pytest_approvals.checks import CHECKS, SHOWN_STATUSES, Check, Verdict, judge
from pytest_approvals.errors import ApprovalsError, UnknownName, UsageError
from pytest_approvals.journal.events import Event, event_from_dict
from pytest_approvals.journal.history import History
from pytest_approvals.journal.history_builder import read_history

PAGE = Path("docs/check-mutants.md")
"""The page, from the root of a checkout."""

TESTS = Path("tests/checks")
"""The tests that must notice."""

JOURNALS = Path("tests/checks/judged_journals.jsonl")
"""Journals with their verdicts, one a line, chosen so that each tells some clauses apart."""

MODULES = (
    *(
        "execution",
        "execution_arguments",
        "asking",
        "asking_elicitations",
        "telling",
        "telling_results",
        "telling_inputs",
        "telling_offers",
        "telling_reasoning",
        "state",
        "state_outcome",
    ),
    *("decisions", "ending", "ending_limits", "harness"),
)
"""The families of checks."""

SHARED = ("_queries", "_sayings", "_told_texts")
"""What they share, which is mutated too."""

REASONS = Path(__file__).with_name("unnoticed_mutants.json")
"""Why no test notices the mutants of a function that are left, by module and function."""

GOAL = 0.97
"""The share of the mutants that are not equivalent that the tests must notice."""

_SECONDS = 10.0
"""How much CPU time a test may take on a mutant that does not end."""

_MOMENT = 1.0
"""Tests that take more CPU time than this while their lines are recorded are not run on mutants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeMutant:
    """One change of one function.

    Attributes:
        module: The module of the function, without its package.
        function: The function that is changed, with the class for a method.
        operator: What kind of change it is: `condition`, `operand`, `comparison`, ...
        before: The changed expression or statement.
        after: What it is replaced by.
        lines: The first and the last line of the statement that holds it.
        code: The code of the changed function.
    """

    module: str
    function: str
    operator: str
    before: str
    after: str
    lines: tuple[int, int]
    code: CodeType

    def __str__(self) -> str:
        return f"{self.function}: {self.before} => {self.after}"


# --- the changes ------------------------------------------------------------------------------------------------------

_COMPARISONS: Mapping[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_CALLS = {"any": "all", "all": "any", "min": "max", "max": "min"}
_TOLD_BY_FAILURE = ("level", "status")


def _change_expression(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield what an expression may be replaced by, with the name of the operator."""
    if isinstance(node, ast.BoolOp):
        for index in range(len(node.values)):
            rest = [value for at, value in enumerate(node.values) if at != index]
            yield "operand", rest[0] if len(rest) == 1 else ast.BoolOp(op=node.op, values=rest)
        yield "and/or", ast.BoolOp(op=ast.Or() if isinstance(node.op, ast.And) else ast.And(), values=node.values)
    elif isinstance(node, ast.Compare):
        for index, operator in enumerate(node.ops):
            for other in _COMPARISONS[type(operator)]:
                operators = [*node.ops[:index], other(), *node.ops[index + 1 :]]
                yield "comparison", ast.Compare(left=node.left, ops=operators, comparators=node.comparators)
            if isinstance(operator, ast.In | ast.NotIn) and isinstance(node.comparators[index], ast.Tuple):
                yield from _drop_elements(node, index)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "negation", node.operand
    elif isinstance(node, ast.IfExp):
        yield "condition", node.body
        yield "condition", node.orelse
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield "constant", ast.Constant(value=not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield "constant", ast.Constant(value=node.value + 1)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        if not isinstance(node.left, ast.Constant | ast.JoinedStr):
            yield "arithmetic", node.left
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        yield from _change_call(node, node.func.id)
    elif isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp):
        for at, generator in enumerate(node.generators):
            for index in range(len(generator.ifs)):
                changed = copy.deepcopy(node)
                del changed.generators[at].ifs[index]
                yield "filter", changed


def _drop_elements(node: ast.Compare, index: int) -> Iterator[tuple[str, ast.expr]]:
    values = node.comparators[index]
    assert isinstance(values, ast.Tuple)
    for at in range(len(values.elts)):
        rest = ast.Tuple(elts=[value for place, value in enumerate(values.elts) if place != at], ctx=ast.Load())
        comparators = [*node.comparators[:index], rest, *node.comparators[index + 1 :]]
        yield "element", ast.Compare(left=node.left, ops=node.ops, comparators=comparators)


def _change_call(node: ast.Call, name: str) -> Iterator[tuple[str, ast.expr]]:
    if name in _CALLS:
        yield "call", ast.Call(func=ast.Name(id=_CALLS[name], ctx=ast.Load()), args=node.args, keywords=node.keywords)
    if name == "Failure":
        for keyword in node.keywords:
            if keyword.arg in _TOLD_BY_FAILURE:
                rest = [other for other in node.keywords if other is not keyword]
                yield "failure", ast.Call(func=node.func, args=node.args, keywords=rest)


def _change_statement(node: ast.stmt, is_alone: bool) -> Iterator[tuple[str, ast.stmt]]:
    """Yield what a statement may be replaced by; one that is alone below a condition is dropped with that."""
    if isinstance(node, ast.If | ast.While):
        for value in (True, False):
            if isinstance(node, ast.While) and value:
                continue
            test = ast.Constant(value=value)
            yield "condition", _with_test(node, test)
        yield "condition", _with_test(node, ast.UnaryOp(op=ast.Not(), operand=node.test))
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield | ast.YieldFrom):
        yield "yield", ast.Pass()
    elif isinstance(node, ast.Expr | ast.AugAssign | ast.Delete | ast.Continue | ast.Break) and not is_alone:
        yield "statement", ast.Pass()
    elif isinstance(node, ast.Return) and node.value is not None and _is_object(node.value):
        yield "return", ast.Return(value=ast.Constant(value=None))


def _is_object(node: ast.expr) -> bool:
    """Return whether an expression has a value other than a truth value, of which parts are changed."""
    if isinstance(node, ast.BoolOp | ast.Compare | ast.UnaryOp | ast.Constant):
        return False
    return not (isinstance(node, ast.Name) and node.id == "OK")


def _with_test(node: ast.If | ast.While, test: ast.expr) -> ast.stmt:
    if isinstance(node, ast.If):
        return ast.If(test=test, body=node.body, orelse=node.orelse)
    return ast.While(test=test, body=node.body, orelse=node.orelse)


# --- the mutants of a module ------------------------------------------------------------------------------------------


def generate_code_mutants(module: ModuleType) -> Iterator[CodeMutant]:
    """Yield the mutants of all functions of a module, in the order of its text."""
    for name, function in list_functions(module):
        yield from _mutate_function(function, module.__name__.rpartition(".")[2], name, str(module.__file__))


def list_functions(module: ModuleType) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield the functions and methods of a module by name."""
    for node in ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, ast.FunctionDef):
                    yield f"{node.name}.{member.name}", member


def _mutate_function(function: ast.FunctionDef, module: str, name: str, path: str) -> Iterator[CodeMutant]:
    function = copy.deepcopy(function)
    function.decorator_list = []
    if ast.get_docstring(function, clean=False) is not None:
        del function.body[0]
    is_generator = any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(function))
    for statement in _list_statements(function.body):
        lines = _header_lines(statement)
        for operator, old, new, put in _list_edits(statement, function):
            put(new)
            before, after = _describe(old, statement), _describe(new, statement)
            code = _compile(function, path, is_generator)
            put(old)
            if code is not None:
                yield CodeMutant(
                    module=module, function=name, operator=operator, before=before, after=after, lines=lines, code=code
                )


def _list_statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        for name in ("body", "orelse", "finalbody"):
            yield from _list_statements(getattr(statement, name, ()))


def _header_lines(statement: ast.stmt) -> tuple[int, int]:
    """Return the lines of a statement; of a compound one, those of its header."""
    body = getattr(statement, "body", None)
    last = body[0].lineno - 1 if body else statement.end_lineno or statement.lineno
    return statement.lineno, max(last, statement.lineno)


Edit = tuple[str, ast.AST, ast.AST, Callable[[ast.AST], None]]


def _list_edits(statement: ast.stmt, function: ast.FunctionDef) -> Iterator[Edit]:
    """Yield the changes of a statement, and of the expressions that it holds itself."""
    body, index, is_alone = _find_place(statement, function)
    for operator, changed in _change_statement(statement, is_alone):
        yield operator, statement, changed, lambda node: body.__setitem__(index, node)
    for parent, name, at, node in _list_expressions(statement):
        for operator, new in _change_expression(node):
            yield operator, node, new, _make_setter(parent, name, at)


def _find_place(statement: ast.stmt, function: ast.FunctionDef) -> tuple[list[Any], int, bool]:
    for parent in ast.walk(function):
        for name in ("body", "orelse", "finalbody"):
            body = getattr(parent, name, None)
            if isinstance(body, list) and any(member is statement for member in body):
                index = next(at for at, member in enumerate(body) if member is statement)
                return body, index, len(body) == 1 and isinstance(parent, ast.If)
    raise AssertionError(f"a statement without a place: {ast.dump(statement)}")


def _list_expressions(parent: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.expr]]:
    """Yield the expressions below a node with the field that holds each, without those of nested statements."""
    for name, value in ast.iter_fields(parent):
        if name in ("annotation", "returns") or (name == "test" and isinstance(parent, ast.Assert)):
            continue
        members = value if isinstance(value, list) else [value]
        for at, member in enumerate(members):
            if isinstance(member, ast.stmt) or not isinstance(member, ast.AST):
                continue
            if isinstance(member, ast.expr):
                yield parent, name, at if isinstance(value, list) else None, member
            # What a failure says is for people to read.
            if not (isinstance(member, ast.keyword) and member.arg in ("expected", "actual", "witness")):
                yield from _list_expressions(member)


def _make_setter(parent: ast.AST, name: str, at: int | None) -> Callable[[ast.AST], None]:
    if at is None:
        return lambda node: setattr(parent, name, node)
    return lambda node: getattr(parent, name).__setitem__(at, node)


def _describe(node: ast.AST, statement: ast.stmt) -> str:
    """Return a node as text; of a compound statement its header."""
    if isinstance(node, ast.If | ast.While):
        word = "if" if isinstance(node, ast.If) else "while"
        return f"{word} {ast.unparse(node.test)}"
    return ast.unparse(node)


def _compile(function: ast.FunctionDef, path: str, is_generator: bool) -> CodeType | None:
    whole = copy.deepcopy(function)
    if is_generator:
        # A generator without a yield would be another kind of function.
        never = ast.If(test=ast.Constant(value=False), body=[ast.Expr(value=ast.Yield())], orelse=[])
        whole.body.append(never)
    module = ast.fix_missing_locations(ast.Module(body=[whole], type_ignores=[]))
    try:
        compiled = compile(module, path, "exec", flags=__future__.annotations.compiler_flag, dont_inherit=True)
    except SyntaxError:
        return None
    return next(each for each in compiled.co_consts if isinstance(each, CodeType))


def find_function(module: ModuleType, name: str) -> FunctionType:
    """Return the function of that name in a module: of a check, the one that judges."""
    holder, _, member = name.rpartition(".")
    found: Any = vars(getattr(module, holder))[member] if holder else getattr(module, member)
    if isinstance(found, Check):
        found = found.function or found.group
    if isinstance(found, property):
        found = found.fget
    assert isinstance(found, FunctionType)
    return found


def import_checked_modules() -> dict[str, ModuleType]:
    """Return the modules whose code is mutated, by name."""
    families = {name: importlib.import_module(f"pytest_approvals.checks._families.{name}") for name in MODULES}
    return families | {name: importlib.import_module(f"pytest_approvals.checks.{name}") for name in SHARED}


# --- the tests --------------------------------------------------------------------------------------------------------


class _TookTooLong(BaseException):
    """A test ran out of its CPU time: the mutant does not end."""


class JudgedJournals:
    """The stored journals, judged by one check at a time: what `test_judged_journals.py` compares, only faster."""

    def __init__(self, paths: set[str]) -> None:
        lines = JOURNALS.read_text(encoding="utf-8").splitlines() if JOURNALS.exists() else []
        self._histories = [
            read_history([event_from_dict(event) for event in json.loads(line)["events"]]) for line in lines
        ]
        self._verdicts: dict[tuple[int, str], list[Verdict]] = {}
        self._reached: dict[tuple[str, int], set[tuple[int, str]]] = defaultdict(set)
        for index, history in enumerate(self._histories):
            is_explained = any(verdict.status in SHOWN_STATUSES for verdict in judge(history))
            for check in CHECKS.values():
                if check.function is not None and not (check.guards and is_explained):
                    self._record(check, history, (index, check.slug), paths)

    def _record(self, check: Check, history: History, key: tuple[int, str], paths: set[str]) -> None:
        tracing = sys.gettrace()
        sys.settrace(_trace(paths, self._reached, key))
        try:
            self._verdicts[key] = check.judge(history)
        finally:
            sys.settrace(tracing)

    def notice(self, path: str, lines: tuple[int, int]) -> str:
        """Return the first journal on which a check that reaches these lines says something else; empty if none."""
        reached = {key for line in range(lines[0], lines[1] + 1) for key in self._reached.get((path, line), ())}
        for index, slug in sorted(reached):
            with _limited_time():
                verdicts = CHECKS[slug].judge(self._histories[index])
            if verdicts != self._verdicts[index, slug]:
                return f"journal {index}: {slug}"
        return ""


class MutantTests:
    """The collected tests, run again and again: once plainly, and then on mutants.

    It is a pytest plugin: its loop takes the place of pytest's own. Tests that take longer than a moment are left out.
    """

    def __init__(self, select: Callable[[CodeMutant], bool], report: Callable[[CodeMutant, str], None]) -> None:
        self.select, self.report = select, report
        self.broken: list[str] = []
        self.has_run = False
        self._reached: dict[tuple[str, int], set[int]] = defaultdict(set)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests on every mutant."""
        # Drawn stories take more than a moment, and those of a fresh seed are for the tests themselves.
        left_out = ("test_judged_journals", "drawn_stories")
        items = [item for item in session.items if not any(name in item.nodeid for name in left_out)]
        self.has_run = bool(session.items)
        modules = import_checked_modules()
        paths = {str(module.__file__) for module in modules.values()}
        signal.signal(signal.SIGVTALRM, _stop_test)
        for index, item in enumerate(items):
            reached: dict[tuple[str, int], set[int]] = defaultdict(set)
            began = time.thread_time()
            if _fails(item, _trace(paths, reached, index)):
                self.broken.append(item.nodeid)
            if time.thread_time() - began < _MOMENT:
                for place in reached:
                    self._reached[place].add(index)
        has_journals = any("test_judged_journals" in item.nodeid for item in session.items)
        journals = JudgedJournals(paths) if has_journals else None
        for module in modules.values():
            for mutant in generate_code_mutants(module):
                if self.select(mutant) and not self.broken:
                    self.report(mutant, self._find_noticing_test(mutant, module, items, journals))
        return True

    def _find_noticing_test(
        self, mutant: CodeMutant, module: ModuleType, items: Sequence[pytest.Item], journals: JudgedJournals | None
    ) -> str:
        """Return what notices a mutant: a test that fails, or a stored journal; an empty text if nothing does."""
        path = str(module.__file__)
        reached: set[int] = set()
        for line in range(mutant.lines[0], mutant.lines[1] + 1):
            reached |= self._reached.get((path, line), set())
        ordered = sorted(reached, key=lambda index: (not _is_example(items[index]), index))
        function = find_function(module, mutant.function)
        original = function.__code__
        function.__code__ = mutant.code
        try:
            examples = [index for index in ordered if _is_example(items[index])]
            for index in examples:
                if _fails(items[index], None):
                    return items[index].nodeid
            found = journals.notice(path, mutant.lines) if journals is not None else ""
            if found:
                return found
            for index in ordered[len(examples) :]:
                if _fails(items[index], None):
                    return items[index].nodeid
        finally:
            function.__code__ = original
        return ""


def _is_example(item: pytest.Item) -> bool:
    return item.name.startswith("test_check_says_so_about_its_example")


@contextlib.contextmanager
def _limited_time() -> Iterator[None]:
    signal.setitimer(signal.ITIMER_VIRTUAL, _SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)


def _fails(item: pytest.Item, trace: Callable[..., Any] | None) -> bool:
    """Run a test, under a trace function if there is one."""
    initialize = getattr(item, "_initrequest", None)
    if initialize is not None:
        initialize()
    tracing = sys.gettrace()
    try:
        with _limited_time() if trace is None else contextlib.nullcontext():
            sys.settrace(trace or tracing)
            reports = runtestprotocol(item, log=False, nextitem=None)
    except _TookTooLong:
        return True
    finally:
        sys.settrace(tracing)
    return any(report.failed for report in reports)


def _stop_test(number: int, frame: FrameType | None) -> None:
    raise _TookTooLong


_Key = TypeVar("_Key")


def _trace(paths: set[str], reached: dict[tuple[str, int], set[_Key]], index: _Key) -> Callable[..., Any]:
    def trace_line(frame: FrameType, event: str, argument: object) -> Any:
        reached[frame.f_code.co_filename, frame.f_lineno].add(index)
        return trace_line

    def trace_call(frame: FrameType, event: str, argument: object) -> Any:
        return trace_line if frame.f_code.co_filename in paths else None

    return trace_call


# --- what may live ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Excuse:
    """A class of mutants that no test can notice, or need not.

    Attributes:
        name: Its name on the page.
        why: Why they mean the same.
        holds: Returns whether a mutant belongs to the class.
    """

    name: str
    why: str
    holds: Callable[[CodeMutant], bool]


_PLACE = r"(?:\w|\.|\[-?\d+\])+"
_NONE = rf"{_PLACE} is (?:not )?None"
_POSITIONS = {
    r"call\.n": "model.answer",
    r"(?:delivery|exchange|before|after)\.n": "model.request",
    r"decision\.n": "caller.decide",
    r"(?:\w+\.)?(?:handed_in_at|start\.n)|taken": "turn.start",
    r"(?:turn\.)?(?:ended|end\.n)": "turn.end",
    r"(?:execution|run|second)\.n": "tool.start",
    r"(?:execution|run|first)\.ended": "tool.end",
    r"save\.event\.n": "store.save",
    r"restore\.event\.n": "store.restore",
    r"gate\.n": "policy.asked",
    r"(?:\w+\.)?cut_off_at": "caller.hang_up",
}
"""The expressions of positions, with the kind of the event that is there."""
_NAMED_POSITIONS: Mapping[str, Mapping[str, str]] = {
    "following_exchanges": {"n": "the end of a tool or of a turn, or the start of a turn"},
    "rejection_told": {"n": "model.request"},
    "judge_delivery": {"ended[-1].ended": "tool.end"},
    "find_foreign_saying": {"saying.n": "tool.end or caller.decide"},
    "_lacks_request_after_failure": {"failed[0].n": "turn.end", "skipped[-1]": "caller.skip"},
    "_waits": {
        "n": "turn.end",
        "each.ended": "tool.end",
        "max(asked, default=0": "tool.end",
        "max(decided": "turn.start",
    },
    "_is_work_behind_hang_up": {"n": "model.request or model.answer"},
    "_list_calls_cut_off": {"each.n": "tool.start", "each.ended": "tool.end", "at": "caller.hang_up"},
    "approval_before_execution": {"request": "tool.end"},
    "_decisions_after": {"n": "tool.end"},
    "only_gated_asked": {"request.n": "turn.end or store.restore"},
    "_is_of_running_turn": {"request.n": "turn.end or store.restore"},
    "_find_second_listing": {
        "n": "turn.start or caller.cancel",
        "request": "tool.end",
        "listing": "turn.end or store.restore",
        "end": "turn.end",
    },
    "_find_cancelled_listing": {
        "request.n": "turn.end or store.restore",
        "event.n": "caller.cancel",
        "restore.save.event.n": "store.save",
        "restore.event.n": "store.restore",
        "again": "turn.end",
    },
    "_find_question": {"n": "turn.end or store.restore", "last.n": "tool.start", "decision.n": "caller.decide"},
    "_find_stale_requests": {"request.n": "turn.end or store.restore", "turn.start.n": "turn.start"},
    "_compare_with_call": {"n": "turn.end or store.restore", "edited": "caller.decide"},
    "_approved_call": {"n": "turn.end or store.restore"},
    "_is_sent_as_shown": {"each.reply.n": "model.answer"},
    "runs_in_broken_reply": {"exchange.reply.n": "model.failure"},
    "_runs_as_changed": {"event.n": "store.rewrite"},
    "_was_decided_before": {"n": "store.rewrite", "each.n": "caller.decide", "shown": "turn.end or store.restore"},
    "_is_left_out": {"start.n": "agent.start with the tool", "build.n": "agent.start without the tool"},
    "_was_never_stored": {"n": "store.restore, or turn.end of a turn that was not cut off"},
    "_is_not_shown_yet": {"each.n": "model.request"},
    "_is_summed_up": {"each.n": "model.request of the inner agent"},
    "_is_rejection_told_in_words": {"each.n": "model.answer"},
    "_next_decision_after": {"n": "turn.start of another turn, or caller.stage"},
    "_check_unanswered": {"request": "turn.end", "end": "turn.end", "ran": "tool.start"},
    "_check_skipped_steps": {"restore.n": "store.restore", "event.n": "caller.skip"},
    "_saves_nothing_readable": {"each.n": "model.request", "event.n": "caller.skip"},
    "_is_change_of": {"saved.event.n": "store.save", "change.n": "store.rewrite", "event.n": "store.restore"},
    "_is_rejected_later": {"each.n": "caller.decide"},
    "_has_failed_behind_siblings": {"told": "model.request or model.answer"},
    "_was_told_by_message": {"n": "model.request or model.answer"},
    "elicitation_shown": {"answered.n": "elicitation.answered", "shown[0].n": "elicitation.shown"},
    "elicitation_answered_as_given": {"each.n": "elicitation.shown", "answered.n": "elicitation.answered"},
    "_was_asked_before": {"n": "turn.end or store.restore"},
    "_find_made_up_decision": {"event.n": "caller.cancel"},
    "_was_rejected_since": {"execution.turn.ended": "turn.end"},
    "_find_invented_or_repeated_message": {"each.n": "caller.decide"},
    "decision_survives": {"until": "turn.start"},
    "_is_of_other_future": {"told.n": "model.request or model.answer", "end": "turn.end"},
    "_is_broken": {"each.n": "model.request", "n": "stream.shown"},
    "_find_effect": {"end": "turn.start"},
    "_find_unasked_model": {"since": "turn.start, tool.end or model.answer"},
    "usable_after_hang_up": {"event.n": "store.rolled_back"},
    "was_forgotten": {"earlier.n": "tool.start or model.request", "line.n": "store.restore"},
    "_stuck_callers": {"event.n": "caller.stuck"},
    "_is_right_step": {"asked.n": "turn.end or store.restore", "other.n": "turn.end or store.restore"},
    "_is_of_lost_future": {"n": "caller.decide", "restore.save.event.n": "store.save", "asked": "store.restore"},
    "_is_tool_missing": {"build.n": "agent.start"},
    "is_tool_missing": {"each.n": "model.request", "build.n": "agent.start"},
    "dropping_positions": {"event.n": "caller.cancel"},
    "_was_dropped_later": {
        "n": "caller.cancel or turn.start",
        "decided.ended": "turn.end",
        "taken.ended": "turn.end",
    },
    "cancelled_position": {"event.n": "caller.cancel", "request": "turn.end or store.restore"},
    "_happened_between": {"event.n": "caller.trim or store.rewrite", "start": "another event", "end": "another event"},
    "_find_lost_report": {"report.n": "model.answer"},
    "_rejected_calls": {"request.n": "turn.end or store.restore"},
    "_forms_of_message": {"event.n": "store.rewrite", "n": "model.request"},
    "_find_earlier_text": {"exchange.n": "model.request of the inner agent"},
    "was_closed_before": {"at": "turn.end or store.restore", "n": "caller.decide"},
    "was_closed_around": {"n": "turn.start"},
    "_was_released_before": {"rejection.n": "caller.decide", "earlier.n": "caller.decide"},
    "ungated_runs_once": {"change.n": "store.rewrite"},
    "has_moved_approval": {"change.n": "store.rewrite", "n": "tool.start or turn.end"},
    "list_moved_decisions": {"change.n": "store.rewrite"},
    "_is_left_undone": {"request.n": "turn.end or store.restore"},
    "_has_run_elsewhere": {"n": "model.request"},
    "_is_lost_in_crash": {
        "ended": "tool.end",
        "n": "model.request or stream.shown",
        "end": "turn.end or caller.hang_up",
    },
    "_waits_for_answer": {"event.n": "caller.cancel"},
    "was_approved_before_limit": {"decision.turn.ended": "turn.end", "n": "tool.start"},
    "last_trimmed_size": {"event.n": "caller.trim", "end": "model.request"},
    "settled_position": {"place": "model.request or turn.end"},
    "turns_on_branch": {"before": "store.save"},
    "pending_after": {"event.n": "caller.cancel", "n": "turn.start, store.save or store.restore"},
    "_staged_decisions": {"event.n": "store.restore", "start": "turn.start"},
    "_was_settled": {"n": "store.save or store.restore"},
    "_find_hidden_requests": {
        "request.n": "store.restore or run.end",
        "end": "turn.end",
        "until": "turn.start",
        "later.start.n": "turn.start",
        "each.save.event.n": "store.save",
    },
    "_find_problem": dict.fromkeys(("index", "other"), "an item of a call")
    | dict.fromkeys(("at", "each"), "an item of reasoning"),
    "_tells_rewritten_result": {"event.n": "store.rewrite"},
    "repeats_rewritten_text": {"event.n": "store.rewrite", "before[-1][0]": "model.request"},
}
"""The same of names that mean something else in another function."""
_DEFAULT = re.compile(r"(?P<value>.+) or (?:0|''|\(\)|\{\}|END_POSITION)")


def _drops_guard(mutant: CodeMutant) -> bool:
    """Return whether only a comparison with None was dropped, and the value is used as if it had been made."""
    if mutant.operator == "condition" and not mutant.before.startswith(("if ", "while ")):
        choice = ast.parse(mutant.before, mode="eval").body
        is_guarded = isinstance(choice, ast.IfExp) and re.fullmatch(
            rf"{_NONE}(?: and {_NONE})*", ast.unparse(choice.test)
        )
        return isinstance(choice, ast.IfExp) and bool(is_guarded) and mutant.after == ast.unparse(choice.body)
    if mutant.operator == "condition":
        guard = mutant.before.removeprefix("if ")
        words, guarded = ("is not", "if True") if " is not None" in guard else ("is", "if False")
        one = rf"{_PLACE} {words} None"
        return mutant.after == guarded and re.fullmatch(rf"{one}(?: or {one})*", guard) is not None
    if mutant.operator == "filter":
        dropped = mutant.before[:-1].replace(mutant.after[:-1], "")
        return re.fullmatch(rf" if {_NONE}", dropped) is not None
    if mutant.operator != "operand":
        return False
    before, after = (ast.parse(text, mode="eval").body for text in (mutant.before, mutant.after))
    if not isinstance(before, ast.BoolOp):
        return False
    parts = after.values if isinstance(after, ast.BoolOp) and type(after.op) is type(before.op) else [after]
    rest = [ast.unparse(each) for each in parts]
    lost = [each for each in map(ast.unparse, before.values) if each not in rest]
    return len(lost) == 1 and re.fullmatch(_NONE, lost[0]) is not None


def _drops_default(mutant: CodeMutant) -> bool:
    if mutant.operator == "constant":
        return (mutant.before, mutant.after) == ("0", "1")
    match = _DEFAULT.fullmatch(mutant.before)
    return mutant.operator == "operand" and match is not None and mutant.after == match["value"]


def _compares_positions(mutant: CodeMutant) -> bool:
    """Return whether only the strictness of a comparison of positions is another."""
    if mutant.operator != "comparison":
        return False
    strictly = [re.sub(r" ([<>])= ", r" \1 ", text) for text in (mutant.before, mutant.after)]
    if strictly[0] != strictly[1]:
        return False
    signs, changed = (re.findall(r" ([<>]=?) ", text) for text in (mutant.before, mutant.after))
    sides = [side.split(" if ")[0].strip("()").removesuffix(" or 0") for side in re.split(r" [<>]=? ", mutant.before)]
    named = _NAMED_POSITIONS.get(mutant.function, {})
    kinds = [
        {named[side]} if side in named else {kind for known, kind in _POSITIONS.items() if re.fullmatch(known, side)}
        for side in sides
    ]
    pairs = [pair for pair, sign, other in zip(pairwise(kinds), signs, changed, strict=True) if sign != other]
    return all(first and second and first.isdisjoint(second) for first, second in pairs)


def _saves_time(mutant: CodeMutant) -> bool:
    return (mutant.function, mutant.before, mutant.after) in _SHORTCUTS


_SHORTCUTS = frozenset(
    {
        ("_decode_text", "if not text.strip().startswith(('{', '[', '\"'))", "if False"),
        (
            "_is_told",
            "written in told and re.search(before + re.escape(written) + after, told)",
            "re.search(before + re.escape(written) + after, told)",
        ),
        ("_violations", "last.pop(id(exchange.previous), None) if exchange.repeats_previous else None", "None"),
        ("_find_invented_or_repeated_message", "len(before.items) if before is not None and is_known else 0", "0"),
        ("_find_invented_or_repeated_message", "before is not None", "before is None"),
        ("_find_invented_or_repeated_message", "if not new", "if False"),
        ("_find_difference", "if exchange.repeats_previous", "if False"),
        ("stream_shows_everything", "list_sayings(history) if results else {}", "list_sayings(history)"),
        ("stream_shows_everything", "if late", "if True"),
        (
            "stream_shows_everything",
            "[request for request in history.requests if request.n not in ends]",
            "[request for request in history.requests]",
        ),
        ("stream_shows_everything", "if results", "if True"),
        ("stream_shows_everything", "if kinds", "if True"),
        ("same_outcome_in_every_mode", "if with_ids not in outcomes", "if True"),
        (
            "find_foreign_saying",
            "saying.n > delivery.n or is_twin or _are_related(saying.label, call.label)",
            "saying.n > delivery.n or is_twin",
        ),
        (
            "_unapproved_repetitions",
            "first.how == 'returned' and outlives_its_turn(call, first)",
            "outlives_its_turn(call, first)",
        ),
        ("reasoning_kept", "if call.answer.thoughts", "if True"),
        ("reasoning_kept", "replies and (not _was_changed(history, exchange))", "not _was_changed(history, exchange)"),
        ("_staged_decisions", "history.calls if restores else ()", "history.calls"),
    }
)
"""Function, before and after of changes that only make a check look at more than it has to."""


EXCUSES = (
    Excuse(
        name="guards for the type checker",
        why="A comparison with None is dropped, and the value is used right behind it: a journal with None would make "
        "the check raise. None was found in 25,000 journals; the journal's types allow it, so the guard stays.",
        holds=_drops_guard,
    ),
    Excuse(
        name="defaults for the type checker",
        why="`or 0` and the like is dropped from a value that is never None there: the comparison would raise. A "
        "default of 1 in place of 0 is the same, because position 1 is the start of the run.",
        holds=_drops_default,
    ),
    Excuse(
        name="shortcuts",
        why="What the condition leaves out would come to the same: it was judged before, or there is nothing to judge.",
        holds=_saves_time,
    ),
    Excuse(
        name="positions of different events",
        why="`<` and `<=` differ only if both sides are the position of one event, and these are positions of events "
        "of different kinds.",
        holds=_compares_positions,
    ),
)
"""The classes of mutants that count as equivalent if no test notices them."""


def find_excuse(mutant: CodeMutant) -> Excuse | None:
    """Return the first class to which a mutant belongs; None if it should be noticed."""
    return next((excuse for excuse in EXCUSES if excuse.holds(mutant)), None)


# --- the survey and its page ------------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class CodeSurvey:
    """Counts of mutants by module.

    Attributes:
        made: All mutants.
        excused: Those that no test noticed and that count as equivalent, by module and by class.
        survivors: The others that no test noticed.
    """

    made: Counter[str] = field(default_factory=Counter)
    excused: Counter[tuple[str, str]] = field(default_factory=Counter)
    survivors: list[CodeMutant] = field(default_factory=list)

    def add(self, mutant: CodeMutant, noticed_by: str) -> None:
        """Count one mutant."""
        self.made[mutant.module] += 1
        if noticed_by:
            return
        excuse = find_excuse(mutant)
        if excuse is None:
            self.survivors.append(mutant)
        else:
            self.excused[mutant.module, excuse.name] += 1

    @property
    def functions(self) -> dict[str, list[CodeMutant]]:
        """The mutants that no test noticed, by module and function."""
        found: dict[str, list[CodeMutant]] = {}
        for mutant in self.survivors:
            found.setdefault(f"{mutant.module}.{mutant.function}", []).append(mutant)
        return found

    def share_noticed(self, module: str | None = None) -> float:
        """Return the share of noticed mutants among those that are not equivalent, from 0 to 1."""
        made = self.made.total() if module is None else self.made[module]
        counted = made - sum(count for (name, _), count in self.excused.items() if module in (None, name))
        alive = sum(module in (None, mutant.module) for mutant in self.survivors)
        return 1 - alive / counted if counted else 1.0


def survey_checks(select: Callable[[CodeMutant], bool], tests: str = "") -> CodeSurvey:
    """Run the tests on the mutants of the checks.

    Args:
        select: Returns whether a mutant is tried.
        tests: Which of the tests to run, as an expression for `pytest -k`; all by default.

    Raises:
        UsageError: A test fails without a mutant.
    """
    survey = CodeSurvey()
    runner = MutantTests(select, survey.add)
    options = ["-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts=--import-mode=importlib -p pytester"]
    # What the tests import is imported already, so that asserts cannot be rewritten.
    options += ["--assert=plain", "-W", "ignore::pytest.PytestAssertRewriteWarning", "--tb=no", "-q", "-k", tests]
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        pytest.main([*options, str(TESTS)], plugins=[runner])
    if not runner.has_run:
        raise UsageError(f"No tests were run: {output.getvalue().strip()[-500:] or 'none are selected'}")
    if runner.broken:
        raise UsageError(f"Tests fail without any mutant: {', '.join(runner.broken[:5])}")
    return survey


def read_reasons() -> dict[str, str]:
    """Return why the mutants that are left in a function are not noticed, by module and function."""
    reasons: dict[str, str] = json.loads(REASONS.read_text(encoding="utf-8"))
    return reasons


def compare_reasons(survey: CodeSurvey, reasons: Mapping[str, str]) -> list[str]:
    """Return what is wrong with the reasons: those that are missing, and those of functions without such mutants."""
    missing = [
        f"Missing reason for the unnoticed mutants of {name}" for name in survey.functions if name not in reasons
    ]
    stale = [f"Stale reason: all mutants of {name} are noticed" for name in reasons if name not in survey.functions]
    return missing + stale


def format_check_mutants_page(survey: CodeSurvey, reasons: Mapping[str, str]) -> str:
    """Return the text of `docs/check-mutants.md`."""
    lines = [_INTRODUCTION, "| code | mutants | equivalent | unnoticed | of those not equivalent, noticed |"]
    lines.append("|---|---:|---:|---:|---:|")
    alive = Counter(mutant.module for mutant in survey.survivors)
    for module in survey.made:
        excused = sum(count for (name, _), count in survey.excused.items() if name == module)
        share = f"{100 * survey.share_noticed(module):.1f} %"
        lines.append(f"| `{module}` | {survey.made[module]:,} | {excused} | {alive[module]} | {share} |")
    made, excused = survey.made.total(), survey.excused.total()
    share = f"**{100 * survey.share_noticed():.1f} %**"
    lines += [f"| **all** | **{made:,}** | **{excused}** | **{len(survey.survivors)}** | {share} |", ""]
    lines += ["## Equivalent mutants", ""]
    for excuse in EXCUSES:
        count = sum(number for (_, name), number in survey.excused.items() if name == excuse.name)
        lines.append(f"- **{excuse.name}** ({count}). {excuse.why}")
    lines += ["", "## Unnoticed mutants", "", _UNNOTICED]
    for name, mutants in survey.functions.items():
        reason = f": {reasons[name]}" if name in reasons else ", a reason is missing"
        lines += [f"`{name}` ({len(mutants)}){reason}", ""]
        lines += [f"- `{mutant.before}` => `{mutant.after}`" for mutant in mutants]
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


# --- the judged journals ----------------------------------------------------------------------------------------------


def describe_verdicts(events: Sequence[Event]) -> dict[str, Any]:
    """Return what the checks say about a journal, as it is stored: what holds, and each verdict that does not."""
    verdicts = judge(events)
    told = [
        [each.check, each.status, each.label, each.session, each.expected, each.actual, [*each.witness]]
        for each in verdicts
        if each.status not in ("pass", "not-applicable")
    ]
    return {"holds": [verdict.check for verdict in verdicts if verdict.status == "pass"], "told": told}


def renew_journals(text: str) -> str:
    """Return the stored journals with the verdicts that the checks give now."""
    lines = []
    for line in text.splitlines():
        stored = json.loads(line)
        events = [event_from_dict(event) for event in stored["events"]]
        lines.append(json.dumps(stored | {"verdicts": describe_verdicts(events)}, ensure_ascii=True))
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page, or print what survives in some functions.

    Returns 1 if too few mutants are noticed, or if the reasons are not those of the functions with unnoticed mutants.
    """
    parser = argparse.ArgumentParser(prog="python -m pytest_approvals.devtools.check_mutants")
    parser.add_argument("--function", action="append", metavar="NAME", help="a function or module, without the page")
    parser.add_argument("--tests", default="", metavar="EXPRESSION", help="the tests to run, as for pytest -k")
    parser.add_argument("--renew", action="store_true", help="write the verdicts of the judged journals anew")
    args = parser.parse_args(arguments)
    try:
        if not TESTS.is_dir():
            raise UsageError(f"Missing folder {TESTS}: run this in the root of a checkout")
        if args.renew:
            JOURNALS.write_text(renew_journals(JOURNALS.read_text(encoding="utf-8")), encoding="utf-8")
            return 0
        chosen = args.function or []
        known = {name for module in import_checked_modules().values() for name in _list_names(module)}
        for name in chosen:
            if name not in known:
                raise UnknownName("function", name, known)
        survey = survey_checks(
            lambda mutant: not chosen or mutant.function in chosen or mutant.module in chosen, args.tests
        )
    except ApprovalsError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    share, made = survey.share_noticed(), survey.made.total()
    for mutant in survey.survivors if chosen else ():
        print(f"{mutant.module}:{mutant.lines[0]} {mutant}")
    print(f"{100 * share:.1f} % of {made - survey.excused.total()} mutants noticed, {len(survey.survivors)} not")
    if chosen or args.tests:
        return int(share < GOAL)
    reasons = read_reasons()
    PAGE.write_text(format_check_mutants_page(survey, reasons), encoding="utf-8")
    problems = compare_reasons(survey, reasons)
    for problem in problems:
        print(f"{parser.prog}: {problem}", file=sys.stderr)
    return int(share < GOAL or bool(problems))


def _list_names(module: ModuleType) -> Iterator[str]:
    yield module.__name__.rpartition(".")[2]
    yield from (name for name, _ in list_functions(module))


_INTRODUCTION = """\
# Mutants of the checks

A clause of a check that can be cut out without any test noticing protects nobody. So each function of the checks is
changed in one place at a time: an operand of `and` or `or` is dropped, a condition is always or never true, a
comparison is another one, a filter, an element, a `yield` or a statement is left out. The goal is that `tests/checks`
notices 97 % of the mutants that are not equivalent: by the examples of each check, its other tests, and the
journals of `tests/checks/judged_journals.jsonl`. Those were chosen by machine, from runs of [seeded faults](faults.md)
and [legitimate designs](designs.md) and from [mutants of journals](mutants.md), because they tell a clause from its
mutant. Their verdicts are what the checks say: they notice a change, and do not prove a verdict right.

It is a tool of its own, because each check is a decorated function, which `mutmut` leaves alone, and because a process
or a file for each of some thousand mutants would take hours. This takes minutes.

`python -m pytest_approvals.devtools.check_mutants` regenerates this page in a checkout; `--function NAME` prints what
lives in one function or module, and `--renew` writes the verdicts of the judged journals anew after a check has changed
on purpose.
"""

_UNNOTICED = """\
No test notices these, and no class above explains them. Before them stands the circumstance that would show them and
that no journal has, by function, from `pytest_approvals/devtools/unnoticed_mutants.json`. A function that is missing
there, or has no such mutant any more, is an error of the command.
"""


if __name__ == "__main__":
    raise SystemExit(main())
