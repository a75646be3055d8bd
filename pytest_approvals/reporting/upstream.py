"""Issues for the trackers of frameworks, made from the records of causes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from pytest_approvals.agents.adapters import get_adapter, list_adapter_names
from pytest_approvals.agents.causes import Cause, Documentation, get_cause_folder, load_causes
from pytest_approvals.agents.package_registries import NPM
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.agents.waivers import get_waiver_file
from pytest_approvals.checks import CHECKS, SEVERITIES
from pytest_approvals.errors import CauseError, ScenarioError, UsageError
from pytest_approvals.scenario.load import parse_scenario
from pytest_approvals.scenario.model import Scenario
from pytest_approvals.scenario.native_scripts import write_native_script
from pytest_approvals.scenario.vocabulary import DIMENSIONS

_GENERAL = (
    ("Description", "what"),
    ("Steps to reproduce", "script"),
    ("Expected behavior", "expected"),
    ("Actual behavior", "actual"),
    ("Versions", "versions"),
)
_TEMPLATES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "agno": (
        ("Description", "what"),
        ("Steps to Reproduce", "script"),
        ("Expected Behavior", "expected"),
        ("Actual Behavior", "actual"),
        ("Environment", "versions"),
    ),
    "openai_agents": (
        ("Describe the bug", "what"),
        ("Debug information", "versions"),
        ("Repro steps", "script"),
        ("Expected behavior", "expected"),
        ("Actual behavior", "actual"),
    ),
    "strands": (
        ("Strands Version", "versions"),
        ("Steps to Reproduce", "script"),
        ("Expected Behavior", "expected"),
        ("Actual Behavior", "actual"),
        ("Additional Context", "what"),
    ),
}
"""The headings that the trackers' templates ask for, and what belongs below each; others have the general ones."""

_NOT_REPORTED = {
    "by-design": "the framework's authors mean it",
    "documented-limit": "the framework's documentation says so",
    "ours": "it comes from the adapter or the harness",
    "provider-only": "no known provider shows it",
}


@cache
def load_every_cause() -> Mapping[str, Cause]:
    """Load the causes of all adapters, by their ids.

    Raises:
        CauseError: A record is invalid.
    """
    folders = (get_cause_folder(get_waiver_file(name)) for name in list_adapter_names())
    causes = (cause for folder in folders for cause in load_causes(folder, CHECKS, SEVERITIES, DIMENSIONS))
    return {cause.id: cause for cause in causes}


def parse_story(cause: Cause) -> Scenario:
    """Return the scenario of a cause.

    Raises:
        CauseError: It is invalid; the line is that in the record.
    """
    try:
        return parse_scenario(cause.story, name=f"findings/{cause.id}", path=cause.path)
    except ScenarioError as error:
        line = cause.story_line + error.line - 1 if error.line else cause.story_line
        raise CauseError(cause.path, line, error.what) from None


def write_cause_script(cause: Cause) -> str:
    """Return the native script of a cause.

    Raises:
        UsageError: It has none.
    """
    if cause.native is None:
        raise UsageError(f"{cause.id} has no script in the framework's own API yet: `native:` in {cause.path}")
    if cause.native.source:
        return cause.native.source
    return write_native_script(parse_story(cause), AgentSpec.parse(f"{cause.agent}=={cause.releases.seen}"))


@dataclass(frozen=True, slots=True)
class ScriptLanguage:
    """The language of native scripts of a framework.

    Attributes:
        fence: Its name in Markdown.
        suffix: The end of a file's name.
        command: How a script is run.
    """

    fence: str
    suffix: str
    command: str


_PYTHON = ScriptLanguage("python", ".py", "`uv run script.py`")
_JAVASCRIPT = ScriptLanguage("js", ".mjs", "The `npm install` of its first line, then `node script.mjs`")


def get_script_language(cause: Cause) -> ScriptLanguage:
    """Return the language of the native script of a cause."""
    is_npm = get_adapter(AgentSpec.parse(cause.agent)).registry == NPM.name
    return _JAVASCRIPT if is_npm else _PYTHON


def format_upstream_issue(cause: Cause) -> str:
    """Return the issue about a cause, with its title in the first line, as the tracker's template asks for it.

    Raises:
        UsageError: Its class says that there is nothing to report, or it has no native script.
    """
    if cause.cause_class in _NOT_REPORTED:
        reason = _NOT_REPORTED[cause.cause_class]
        raise UsageError(f"{cause.id} is of class {cause.cause_class!r}, which is not reported: {reason}")
    parts = {name: "\n".join(lines) for name, lines in _list_parts(cause).items()}
    headings = _TEMPLATES.get(cause.name, _GENERAL)
    return "\n\n".join([f"# {cause.title}", *(f"### {heading}\n\n{parts[part]}" for heading, part in headings)]) + "\n"


def _list_parts(cause: Cause) -> dict[str, list[str]]:
    language = get_script_language(cause)
    script = write_cause_script(cause).strip("\n")
    return {
        "what": [" ".join(cause.condition.split()), *_list_threads(cause)],
        "script": [f"{language.command} exits with 1:", "", f"```{language.fence}", script, "```"],
        "expected": [*_quote_documentation(cause), " ".join(cause.should.split())],
        "actual": [cause.happens],
        "versions": list(_list_versions(cause)),
    }


def _list_versions(cause: Cause) -> Iterator[str]:
    yield f"{get_adapter(AgentSpec.parse(cause.agent)).framework} {cause.releases.seen}"
    if cause.releases.first_bad:
        yield f"First release that shows it: {cause.releases.first_bad}"
    if good := cause.releases.last_good or (cause.native.good if cause.native is not None else ""):
        yield f"Last release that does not show it: {good}"


def _quote_documentation(cause: Cause) -> list[str]:
    if not isinstance(cause.documentation, Documentation):
        return []
    return [f"> {' '.join(cause.documentation.says.split())}", f"({cause.documentation.source})", ""]


def _list_threads(cause: Cause) -> list[str]:
    found = [*cause.reported, *(cause.searched.found if cause.searched is not None else ())]
    return ["", f"Related: {', '.join(dict.fromkeys(found))}"] if found else []
