"""User's agent: detection of its framework, checks of its factory, and the errors of its code."""

from __future__ import annotations

import inspect
import os
import site
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dis import get_instructions
from functools import cache, partial
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType, TracebackType
from typing import Any

from pytest_approvals.agent_side.contract.agent import Agent
from pytest_approvals.agent_side.contract.exceptions import ContractError
from pytest_approvals.agent_side.rpc.remote_errors import RemoteError
from pytest_approvals.agents.adapters import LocalAgent, list_adapter_names, load_flavours, resolve_local_agent
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.errors import AgentFailed, ApprovalsError, UsageError
from pytest_approvals.runner.journal_values import describe_error
from pytest_approvals.runner.run_context import RunErrors, list_causes


def resolve_user_agent(subject: object, named: str | None = None) -> LocalAgent:
    """Return the agent that drives *subject*.

    That is the agent that is *named*, or the one whose framework *subject* is an object of. For a factory it is the one
    whose framework the factory's module uses, or its own code if the module uses several, or else the modules of the
    functions that it names; if none does, the one that is imported at all.

    Raises:
        UsageError: Several agents fit, or none.
    """
    __tracebackhide__ = True
    if named is not None:
        local = resolve_local_agent(AgentSpec.parse(named))
        if not callable(subject) and not may_be_agent(subject, local):
            raise UsageError(f"{_describe_subject(subject)} is neither an agent of {named} nor a factory of one")
        return local
    adapters = list(_framework_adapters())
    owners = [name for name, adapter in adapters if adapter.owns(subject)]
    if len(owners) == 1:
        return resolve_local_agent(AgentSpec(name=owners[0]))
    if not callable(subject):
        raise UsageError(f"{_describe_subject(subject)} is neither an agent of a known framework nor a factory of one")
    used = _find_used(adapters, subject)
    candidates = used or [name for name, adapter in adapters if _is_imported(adapter)]
    if len(candidates) != 1:
        raise UsageError(_ambiguity_message(subject, candidates))
    return resolve_local_agent(AgentSpec(name=candidates[0]))


def may_be_agent(subject: object, local: LocalAgent) -> bool:
    """Return whether *subject* is an object of the framework of an agent, as far as that is known."""
    return not local.adapter.packages or local.adapter.owns(subject)


def require_synchronous(local: LocalAgent) -> None:
    """Refuse an agent that has no synchronous methods of its own.

    Raises:
        UsageError: The framework's methods are asynchronous, or wait for those that are.
    """
    __tracebackhide__ = True
    if not local.adapter.synchronous:
        able = [name for name, adapter in _framework_adapters() if adapter.synchronous]
        raise UsageError(
            f"sync=True has no effect for {local.spec.name}, which has no synchronous methods, or such as wait for the "
            f"asynchronous ones; leave it out (it is for {', '.join(able)})"
        )


def check_run_options(options: Mapping[str, Any], local: LocalAgent) -> None:
    """Refuse arguments of the framework's run call that the run gives itself.

    Raises:
        UsageError: Some are among *options*.
    """
    __tracebackhide__ = True
    for name in options:
        if name in local.adapter.given_options:
            raise UsageError(
                f"Invalid run_options: {name!r} is given by the run itself, from the prompt, the script of the caller "
                f"and the state; leave it out, and write earlier turns with caller=[send(...), ...]"
            )


def _framework_adapters() -> Iterator[tuple[str, type[Agent]]]:
    for name in list_adapter_names():
        adapter = load_flavours(name)[""]
        if adapter.packages:
            yield name, adapter


def _is_imported(adapter: type[Agent]) -> bool:
    return any(package in sys.modules for package in adapter.packages)


def _list_used(adapters: Iterable[tuple[str, type[Agent]]], values: Sequence[object]) -> list[str]:
    """Return the adapters of the frameworks that values come from."""
    packages = {_package_of(value) for value in values}
    return [name for name, adapter in adapters if not packages.isdisjoint(adapter.packages)]


def _find_used(adapters: Sequence[tuple[str, type[Agent]]], factory: object) -> list[str]:
    """Return the adapters of the frameworks that a factory uses, or else the functions and modules that it names."""
    waiting, seen = [factory], {id(factory)}
    while waiting:
        first = waiting.pop(0)
        used = _list_used(adapters, _list_module_values(first))
        if len(used) > 1:
            used = _list_used(adapters, _list_code_values(first)) or used
        if used:
            return used
        named = [one for one in _list_code_values(first) if callable(one) or isinstance(one, ModuleType)]
        waiting += [one for one in named if id(one) not in seen and not _is_installed(one)]
        seen |= set(map(id, named))
    return []


def _is_installed(value: object) -> bool:
    """Return whether a value comes with Python or from a package beside it, and not from the user's own code."""
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    file = getattr(sys.modules.get(name or ""), "__file__", None)
    return file is None or "site-packages" in file


def _list_module_values(factory: object) -> list[object]:
    """Return what the module of a factory has names for."""
    return list(_list_module_names(_unwrap_partial(factory)).values())


def _list_code_values(factory: object) -> list[object]:
    """Return what the code of a factory, and of the functions in it, names of its module."""
    factory = _unwrap_partial(factory)
    names = _list_module_names(factory)
    codes = [code for code in [getattr(factory, "__code__", None)] if isinstance(code, CodeType)]
    for code in codes:
        codes.extend(constant for constant in code.co_consts if isinstance(constant, CodeType))
    # `co_names` would hold the names of attributes, too.
    used = {step.argval for code in codes for step in get_instructions(code) if step.opname == "LOAD_GLOBAL"}
    return [value for name, value in names.items() if name in used]


def _unwrap_partial(factory: object) -> object:
    while isinstance(factory, partial):
        factory = factory.func
    return factory


def _list_module_names(factory: object) -> dict[str, object]:
    if isinstance(factory, ModuleType):
        return vars(factory)
    return getattr(sys.modules.get(getattr(factory, "__module__", None) or ""), "__dict__", {})


def _package_of(value: object) -> str:
    module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return module.partition(".")[0] if isinstance(module, str) else ""


def _ambiguity_message(subject: object, found: list[str]) -> str:
    if found:
        return f"{_describe_subject(subject)} may make an agent of {' or '.join(found)}; say which: agent={found[0]!r}"
    known = ", ".join(name for name, _ in _framework_adapters())
    return (
        f"no framework of the agents {known} is imported; say which one {_describe_subject(subject)} makes: agent=..."
    )


def _describe_subject(subject: object) -> str:
    return str(
        getattr(subject, "__qualname__", None)
        or f"an object of {type(subject).__module__}.{type(subject).__qualname__}"
    )


# --- errors of the user's code ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """A line of a traceback; *is_ours* if it is one of this package."""

    file: str
    line: int
    function: str
    code: object = None

    @property
    def is_ours(self) -> bool:
        return self.file.startswith(_PACKAGE)

    @property
    def is_users(self) -> bool:
        return not self.is_ours and not self.file.startswith(("<", *_library_folders()))


_PACKAGE = str(Path(__file__).parents[1]) + os.sep


def find_user_error(agent: str, errors: RunErrors, subject: object, root: Path) -> AgentFailed | None:
    """Return the error to raise if a run failed in the user's own code; its cause is the exception of that code.

    Args:
        agent: The agent as reports name it.
        errors: What the run raised.
        subject: The agent or its factory.
        root: The folder that paths are shown relative to.
    """
    error = errors.broken or errors.turn
    if error is None:
        return None
    causes = list_causes(error)
    # Ours are told by findings, with the journal.
    if any(isinstance(cause, (ApprovalsError, ContractError)) for cause in causes):
        return None
    of_tools = ((tool, cause) for cause in causes for tool, raised in errors.tools if _is_same(cause, raised))
    of_tool = next(of_tools, None)
    raised = of_tool[1] if of_tool is not None else next((cause for cause in causes if _find_place(cause)), None)
    if raised is None:
        return None
    lines = _read_lines(raised)
    place = next((line for line in reversed(lines) if line.is_users), lines[-1] if lines else None)
    kind, message = describe_error(raised)
    failure = AgentFailed(
        agent,
        kind,
        message,
        code=f"tool `{of_tool[0]}`" if of_tool is not None else _name_code(lines, subject),
        where=_show_place(place, root) if place is not None else "",
    )
    for cause in list_causes(raised):
        _show_user_lines(cause, root)
        _hide_foreign_context(cause)
    failure.__cause__ = raised
    return failure


def _is_same(error: BaseException, of_tool: BaseException) -> bool:
    if error is of_tool:
        return True
    # The exception of a tool in another process crosses twice: as that of the tool, and as that of the turn.
    return isinstance(error, RemoteError) and describe_error(error) == describe_error(of_tool)


def _read_lines(error: BaseException) -> list[_Line]:
    if isinstance(error, RemoteError):
        return [_Line(file=line.file, line=line.line, function=line.function) for line in error.trace]
    return [
        _Line(
            file=entry.tb_frame.f_code.co_filename,
            line=entry.tb_lineno,
            function=entry.tb_frame.f_code.co_name,
            code=entry.tb_frame.f_code,
        )
        for entry in _list_entries(error.__traceback__)
    ]


def _list_entries(entry: TracebackType | None) -> list[TracebackType]:
    entries = []
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    return entries


def _find_place(error: BaseException) -> _Line | None:
    """Return the innermost line of the user's code; None if none led to the error, or if ours raised it."""
    lines = _read_lines(error)
    if not lines or lines[-1].is_ours:
        return None
    return next((line for line in reversed(lines) if line.is_users), None)


def _name_code(lines: Sequence[_Line], subject: object) -> str:
    """Return what the outermost line of the user's code belongs to, judged by the line that called it."""
    number, first = next((number, line) for number, line in enumerate(lines) if line.is_users)
    while isinstance(subject, partial):
        subject = subject.func
    if first.code is not None and first.code is getattr(subject, "__code__", None):
        return f"factory `{first.function}`"
    caller = Path(lines[number - 1].file) if number else None
    if caller is not None and caller.is_relative_to(_PACKAGE) and caller.name in ("oracles.py", "caller.py"):
        return f"oracle `{first.function}`"
    return f"function `{first.function}`"


def _show_place(place: _Line, root: Path) -> str:
    path = Path(place.file)
    return f"{path.relative_to(root) if path.is_relative_to(root) else path}:{place.line}"


def _show_user_lines(error: BaseException, root: Path) -> None:
    """Leave in the traceback what begins with the user's code, without the lines of this package and of frameworks.

    What was raised below the user's last line, in a library that it calls, stays.
    """
    lines = _read_lines(error)
    users = [number for number, line in enumerate(lines) if line.is_users]
    if not users:
        return
    if isinstance(error, RemoteError):
        shown = [f"  {_show_place(lines[number], root)}, in {lines[number].function}" for number in users]
        error.add_note("\n".join(["raised in another process:", *shown]))
        # The lines here are those of the connection.
        error.__traceback__ = None
        return
    kept: TracebackType | None = None
    for number, entry in reversed(list(enumerate(_list_entries(error.__traceback__)))):
        if lines[number].is_users or (number > users[-1] and not lines[number].is_ours):
            kept = TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    error.__traceback__ = kept


def _hide_foreign_context(error: BaseException) -> None:
    """Do not show what a framework was handling at the time, in which the user's code has no part."""
    context = error.__context__
    if error.__cause__ is None and context is not None and not any(line.is_users for line in _read_lines(context)):
        error.__suppress_context__ = True


@cache
def _library_folders() -> tuple[str, ...]:
    """Return the folders of the standard library and of installed packages."""
    paths = sysconfig.get_paths()
    folders = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders |= {*site.getsitepackages(), site.getusersitepackages()}
    folders |= {path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")}
    return tuple(sorted(folder + os.sep for folder in folders | {os.path.realpath(folder) for folder in folders}))


# --- checks of factories ----------------------------------------------------------------------------------------------


def is_factory(subject: object, local: LocalAgent) -> bool:
    """Return whether *subject* is a function that makes an agent, rather than an agent that can be called."""
    kinds = (FunctionType, MethodType, partial)
    return isinstance(subject, kinds) and not local.adapter.owns(subject)


def check_factory(subject: object, local: LocalAgent) -> None:
    """Refuse a factory that cannot be called with the model alone.

    Raises:
        UsageError: It takes other arguments, or is a coroutine function.
    """
    __tracebackhide__ = True
    if not is_factory(subject, local) or not callable(subject):
        return
    name = _describe_subject(subject)
    if inspect.iscoroutinefunction(subject):
        raise UsageError(f"Invalid factory {name}: it is a coroutine function; return the agent from a plain function")
    try:
        signature = inspect.signature(subject)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(object())
    except TypeError as error:
        raise UsageError(
            f"Invalid factory {name}{signature}: it is called with the model as its only argument, and {error}; "
            "give the others with functools.partial or a lambda"
        ) from None


class CheckedFactory:
    """A user's factory that raises where it returns no agent; see `Attachment.subject`.

    Args:
        factory: The factory.
        agent: The agent that drives what it returns.

    Attributes:
        imported_as: The object whose name another process imports; see `make_importable`.
    """

    def __init__(self, factory: Callable[[Any], Any], agent: LocalAgent) -> None:
        self.imported_as = factory
        self._agent = agent

    def __call__(self, model: Any) -> Any:
        """Return what the factory makes with a model.

        Raises:
            UsageError: It is not an object of the framework.
        """
        made = self.imported_as(model)
        if may_be_agent(made, self._agent) and made is not model:
            return made
        if inspect.iscoroutine(made):
            made.close()
        value = "None" if made is None else "the model" if made is model else _describe_subject(made)
        name = _describe_subject(self.imported_as)
        raise UsageError(f"the factory {name} returned {value}; expected an agent of {self._agent.spec.name}")
