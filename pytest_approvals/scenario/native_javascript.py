"""Native scripts in JavaScript, which node takes as modules (`.mjs`)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from string import Template
from typing import Any

from pytest_approvals.scenario.model import Tool
from pytest_approvals.scenario.native_plan import Inexpressible, Plan

_LINE_LENGTH = 120

_SCHEMAS = {
    "string": "z.string()",
    "integer": "z.number().int()",
    "number": "z.number()",
    "boolean": "z.boolean()",
    "array": "z.array(z.any())",
    "object": "z.record(z.string(), z.any())",
}
"""Zod's schemas of the types of parameters."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_RESERVED = frozenset(
    word
    for line in (
        "await break case catch class const continue debugger default delete do else enum export extends false finally",
        "for function if implements import in instanceof interface let new null package private protected public",
        "return static super switch this throw true try typeof var void while with yield",
        "__proto__ arguments constructor eval undefined",
    )
    for word in line.split()
)
"""Words of JavaScript, and names that every object has (ECMA-262, section 12.7.2)."""

_TAKEN = frozenset(
    word
    for line in (
        "agent answers asked call error fine id inOrder input isSame main messages model mustAsk mustRun mustTell",
        "one other problems process ran replies requests result run say text told z",
    )
    for word in line.split()
)
"""The names that the scripts have a use for."""


class JavaScript:
    """See `NativeLanguage`."""

    indent = "  "

    def is_parameter_name(self, name: str) -> bool:
        """See `Names.is_parameter_name`: it is the name of a field."""
        return _NAME.fullmatch(name) is not None and name != "__proto__"

    def is_tool_name(self, name: str) -> bool:
        """See `Names.is_tool_name`."""
        return _NAME.fullmatch(name) is not None and name not in _RESERVED | _TAKEN

    def quote(self, text: str) -> str:
        """See `NativeLanguage.quote`."""
        return json.dumps(text)

    def write_value(self, value: Any) -> str:
        """See `NativeLanguage.write_value`."""
        if isinstance(value, Mapping):
            items = (f"{_write_key(key)}: {self.write_value(item)}" for key, item in value.items())
            return "{ " + ", ".join(items) + " }" if value else "{}"
        if isinstance(value, list | tuple):
            return "[" + ", ".join(map(self.write_value, value)) + "]"
        if isinstance(value, int) and abs(value) >= 2**53:
            raise Inexpressible("an integer beyond 2**53, which JavaScript rounds")
        return json.dumps(value)

    def write_head(self, title: str, requirements: Sequence[str]) -> list[str]:
        """See `NativeLanguage.write_head`."""
        return [f"// npm install {' '.join(requirements)}", f"// {json.dumps(title)[1:-1]}"]

    def write_replies(self, replies: Sequence[str]) -> Iterator[str]:
        """See `NativeLanguage.write_replies`."""
        return _write_list("const replies", replies)

    def write_answers(self, answers: Sequence[str]) -> Iterator[str]:
        """See `NativeLanguage.write_answers`."""
        return _write_list("answers", answers, "{}", indent=self.indent)

    def write_tool(self, tool: Tool, form: Mapping[str, str]) -> Iterator[str]:
        """See `NativeLanguage.write_tool`."""
        fields = [
            f"{name}: {_SCHEMAS[parameter.type]}"
            + ("" if parameter.required else f".default({self.write_value(parameter.default)})")
            for name, parameter in tool.parameters.items()
        ]
        is_loose = any(parameter.type in ("object", "array") for parameter in tool.parameters.values())
        source = Template(form.get("form_loose", form["form"]) if is_loose else form["form"]).substitute(
            name=tool.name,
            description=self.quote(tool.description),
            schema="z.object({ " + ", ".join(fields) + " })" if fields else "z.object({})",
            json_schema=self.write_value(_write_json_schema(tool)),
            gated=json.dumps(tool.approval == "always"),
            returns=_write_template(str(tool.behaviours[0].returns), list(tool.parameters)),
        )
        yield from ("", *source.strip("\n").split("\n"))

    def write_end(self, plan: Plan, main: str, *, by_name: bool) -> Iterator[str]:
        """See `NativeLanguage.write_end`."""
        runs = [
            f"[{self.quote(call.tool if by_name else str(call.id))}, {self.write_value(arguments)}]"
            for call, arguments in plan.ran
        ]
        words = [f"{self.quote(call_id)}: {self.quote(text)}" for call_id, text in plan.told.items()]
        yield from ("", "const problems = [];", "try {", f"  {main};", "} catch (error) {")
        yield from ("  problems.push(`the run failed: ${error}`);", "}")
        yield from (f'console.log("{name}:", JSON.stringify({name}));' for name in ("ran", "asked", "told"))
        yield from _write_list("const mustRun", runs)
        yield from _write_list("const mustAsk", [self.quote(call_id) for call_id in plan.asked])
        yield from _write_list("const mustTell", words, "{}")
        yield "const inOrder = (one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1);"
        yield "const isSame = (one, other) => isDeepStrictEqual([...one].sort(inOrder), [...other].sort(inOrder));"
        yield "if (!isSame(ran, mustRun))"
        yield "  problems.push(`ran ${JSON.stringify(ran)}, expected ${JSON.stringify(mustRun)}`);"
        yield "if (!isSame(asked, mustAsk)) problems.push(`asked ${asked}, expected ${mustAsk}`);"
        yield "if (Object.entries(mustTell).some(([id, text]) => !String(told[id]).includes(text)))"
        yield "  problems.push(`told ${JSON.stringify(told)}, expected ${JSON.stringify(mustTell)}`);"
        yield 'const fine = "OK: asked, run and told as it should be";'
        yield 'console.log(problems.length ? `BUG: ${problems.join("; ")}` : fine);'
        yield "process.exit(problems.length ? 1 : 0);"

    def tidy(self, source: str) -> Iterator[str]:
        """See `NativeLanguage.tidy`."""
        lines = re.sub(r"\n{3,}", "\n\n", source).strip("\n").split("\n")
        rest = "\n".join(line for line in lines if not line.startswith("import "))
        for line in lines:
            if not line.startswith("import {"):
                yield line
                continue
            names, _, package = line.removeprefix("import { ").partition(" } from ")
            used = [name for name in names.split(", ") if re.search(rf"\b{name}\b", rest)]
            if used:
                yield f"import {{ {', '.join(used)} }} from {package}"


def _write_key(key: str) -> str:
    # In brackets, the name of what every object has is a name like any other.
    if key == "__proto__":
        return '["__proto__"]'
    return key if _NAME.fullmatch(key) else json.dumps(key)


def _write_json_schema(tool: Tool) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": parameter.type} for name, parameter in tool.parameters.items()},
        "required": [name for name, parameter in tool.parameters.items() if parameter.required],
        "additionalProperties": True,
    }


def _write_list(name: str, items: Sequence[str], brackets: str = "[]", indent: str = "") -> Iterator[str]:
    """Yield an assignment: in one line if it fits, else with a line for each item."""
    space = " " if items and brackets == "{}" else ""
    line = f"{indent}{name} = {brackets[0]}{space}{', '.join(items)}{space}{brackets[1]};"
    if len(line) <= _LINE_LENGTH:
        yield line
        return
    yield f"{indent}{name} = {brackets[0]}"
    yield from (f"{indent}  {item}," for item in items)
    yield f"{indent}{brackets[1]};"


def _write_template(text: str, names: Sequence[str]) -> str:
    """Return a text with the values of parameters in it, which stand in braces there."""
    filled = [name for name in names if f"{{{name}}}" in text]
    if not filled:
        return json.dumps(text)
    parts = re.split("(" + "|".join(re.escape(f"{{{name}}}") for name in filled) + ")", text)
    # Every second part is what the expression has matched.
    pieces = (f"${{input.{part[1:-1]}}}" if at % 2 else _escape(part) for at, part in enumerate(parts))
    return f"`{''.join(pieces)}`"


def _escape(text: str) -> str:
    """Return text as it stands in a template literal."""
    return json.dumps(text)[1:-1].replace('\\"', '"').replace("`", "\\`").replace("${", "\\${")
