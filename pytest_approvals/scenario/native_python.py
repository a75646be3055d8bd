"""Native scripts in Python, which `uv run` takes as they are."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping, Sequence
from string import Template
from typing import Any

from pytest_approvals.scenario.model import Tool
from pytest_approvals.scenario.native_plan import Plan

LINE_LENGTH = 100

_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
}
"""Python's types of the types of parameters."""

_TAKEN = frozenset(
    {
        "agent",
        "answers",
        "asked",
        "asyncio",
        "call",
        "ctx",
        "json",
        "main",
        "model",
        "problems",
        "ran",
        "replies",
        "result",
        "results",
        "say",
        "state",
        "sys",
        "told",
    }
)
"""The names that the scripts have a use for."""


class Python:
    """See `NativeLanguage`."""

    indent = "    "

    def is_tool_name(self, name: str) -> bool:
        """See `Names.is_tool_name`."""
        return self.is_parameter_name(name)

    def is_parameter_name(self, name: str) -> bool:
        """See `Names.is_parameter_name`."""
        return name.isidentifier() and not keyword.iskeyword(name) and name not in _TAKEN and name.isascii()

    def quote(self, text: str) -> str:
        """See `NativeLanguage.quote`."""
        return _quote(text)

    def write_value(self, value: Any) -> str:
        """See `NativeLanguage.write_value`."""
        return _write_value(value)

    def write_head(self, title: str, requirements: Sequence[str]) -> list[str]:
        """See `NativeLanguage.write_head`."""
        return [
            "# /// script",
            '# requires-python = ">=3.10"',
            f"# dependencies = [{', '.join(_quote(text) for text in requirements)}]",
            "# ///",
            f'"""{_escape(title)}."""',
        ]

    def write_replies(self, replies: Sequence[str]) -> Iterator[str]:
        """See `NativeLanguage.write_replies`."""
        return _write_list("replies", replies)

    def write_answers(self, answers: Sequence[str]) -> Iterator[str]:
        """See `NativeLanguage.write_answers`."""
        return _write_list("answers", answers, "{}", indent=self.indent)

    def write_tool(self, tool: Tool, form: Mapping[str, str]) -> Iterator[str]:
        """See `NativeLanguage.write_tool`."""
        call = Template(form["call"]).substitute(name=_quote(tool.name))
        return _write_tool(tool, _choose_decorator(form, tool), form["context"], call)

    def write_end(self, plan: Plan, main: str, *, by_name: bool) -> Iterator[str]:
        """See `NativeLanguage.write_end`."""
        return _write_end(plan, main, by_name=by_name)

    def tidy(self, source: str) -> Iterator[str]:
        """See `NativeLanguage.tidy`."""
        return _drop_unused_imports(re.sub(r"\n{4,}", "\n\n\n", source).strip("\n"))


def _quote(text: str) -> str:
    return '"' + _escape(text) + '"'


def _escape(text: str) -> str:
    """Return text as it stands between double quotes."""
    return "".join(
        {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}.get(letter, letter)
        if letter.isprintable() or letter in "\n\t"
        else letter.encode("unicode_escape").decode()
        for letter in text
    )


def _write_value(value: Any) -> str:
    """Return the source of a JSON value."""
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_quote(key)}: {_write_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_write_value, value)) + "]"
    return repr(value)


def _write_list(name: str, items: Sequence[str], brackets: str = "[]", indent: str = "") -> Iterator[str]:
    """Yield an assignment: in one line if it fits, else with a line for each item."""
    line = f"{indent}{name} = {brackets[0]}{', '.join(items)}{brackets[1]}"
    if len(line) <= LINE_LENGTH:
        yield line
        return
    yield f"{indent}{name} = {brackets[0]}"
    yield from (f"{indent}    {item}," for item in items)
    yield f"{indent}{brackets[1]}"


def _choose_decorator(function: Mapping[str, str], tool: Tool) -> str:
    kind = "gated" if tool.approval == "always" else "free"
    is_loose = any(parameter.type in ("object", "array") for parameter in tool.parameters.values())
    return function.get(f"{kind}_loose", function[kind]) if is_loose else function[kind]


def _write_tool(tool: Tool, decorator: str, context: str, call: str) -> Iterator[str]:
    """Yield a function that notes that it ran.

    Args:
        tool: The tool.
        decorator: The line above the function; none if it is empty.
        context: Its first parameter, with which the framework tells the id of the call; none if it is empty.
        call: How the function names its call.
    """
    ordered = sorted(tool.parameters.items(), key=lambda item: not item[1].required)
    parameters = [
        f"{name}: {_TYPES.get(parameter.type, 'object')}"
        if parameter.required
        else f"{name}: {_TYPES.get(parameter.type, 'object')} | None = {_write_value(parameter.default)}"
        for name, parameter in ordered
    ]
    names = list(tool.parameters)
    arguments = "{" + ", ".join(f'"{name}": {name}' for name in names) + "}"
    text = str(tool.behaviours[0].returns)
    filled = [name for name in names if f"{{{name}}}" in text]
    yield ""
    yield ""
    if decorator:
        yield decorator
    yield f"def {tool.name}({', '.join([context, *parameters] if context else parameters)}) -> str:"
    if tool.description:
        yield f'    """{_escape(tool.description)}"""'
    yield f"    ran.append(({call}, {arguments}))"
    yield f"    return {_write_template(text, filled)}"


def _write_template(text: str, filled: Sequence[str]) -> str:
    if not filled:
        return _quote(text)
    parts = re.split("(" + "|".join(re.escape(f"{{{name}}}") for name in filled) + ")", text)
    return 'f"' + "".join(part if part[1:-1] in filled and part else _double(part) for part in parts) + '"'


def _double(text: str) -> str:
    return _escape(text).replace("{", "{{").replace("}", "}}")


def _write_end(plan: Plan, main: str, *, by_name: bool = False) -> Iterator[str]:
    """Yield the call of *main*, and the comparison of what happened with what has to happen.

    Args:
        plan: What has to happen.
        main: The call.
        by_name: A function names its call by its tool, not by the id.
    """
    runs = [
        f"({_quote(call.tool if by_name else str(call.id))}, {_write_value(arguments)})" for call, arguments in plan.ran
    ]
    words = [f"{_quote(call_id)}: {_quote(text)}" for call_id, text in plan.told.items()]
    yield from ("", "", "problems = []", "try:", f"    {main}", "except Exception as error:")
    yield '    problems.append(f"the run failed: {error!r}")'
    yield from ('print("ran:", ran)', 'print("asked:", asked)', 'print("told:", told)')
    yield from _write_list("must_run", runs)
    yield from _write_list("must_ask", [_quote(call_id) for call_id in plan.asked])
    yield from _write_list("must_tell", words, "{}")
    yield "if sorted(ran, key=str) != sorted(must_run, key=str):"
    yield '    problems.append(f"ran {ran}, expected {must_run}")'
    yield "if sorted(asked) != sorted(must_ask):"
    yield '    problems.append(f"asked {asked}, expected {must_ask}")'
    yield "if any(text not in str(told.get(call)) for call, text in must_tell.items()):"
    yield '    problems.append(f"told {told}, expected {must_tell}")'
    yield 'print("BUG: " + "; ".join(problems) if problems else "OK: asked, run and told as it should be")'
    yield "sys.exit(bool(problems))"


def _drop_unused_imports(source: str) -> Iterator[str]:
    """Yield the lines of a script without the names that it imports and does not use."""
    lines = source.split("\n")
    imports = [line for line in lines if line.startswith(("import ", "from "))]
    rest = "\n".join(line for line in lines if line not in imports)
    for line in lines:
        if line not in imports:
            yield line
            continue
        head, _, names = line.rpartition("import ")
        used = [name for name in names.split(", ") if re.search(rf"\b{name}\b", rest)]
        if used:
            yield f"{head}import {', '.join(used)}"
