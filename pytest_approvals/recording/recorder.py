"""What passes, put together by conversation, and written down as it comes."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from pytest_approvals.agent_side.neutral import Item
from pytest_approvals.errors import ScenarioError
from pytest_approvals.protocols.asked import Asked
from pytest_approvals.protocols.format import PATHS, Format, format_named
from pytest_approvals.protocols.responses import Responses
from pytest_approvals.protocols.responses.request import request_of
from pytest_approvals.protocols.text import mappings
from pytest_approvals.reproduce.yaml_text import yaml_text
from pytest_approvals.scenario.load import scenario_from_text

from .answers import answer_in, items_in
from .secrets import without_secrets
from .story import Conversation, opening_of

ENDING = ".approval.yaml"
"""What the name of a scenario file ends with."""

ABOUT = (
    "Recorded on the wire, which does not show what needs approval and who gave it: say `approval` at the tools, and "
    "what the caller decides. A result that says that a call was rejected is one that its tool returns here."
)


class Recorder:
    """
    Makes a scenario file of every conversation that passes.

    Arguments:
        path: The file of the first conversation; further ones are numbered.
        gated: The tools whose calls need approval.

    Attributes:
        written: The files.
        passed_over: Why an exchange is in none of them.
    """

    def __init__(self, path: Path, gated: Collection[str] = ()) -> None:
        self.written: list[Path] = []
        self.passed_over: list[str] = []
        self._path = path
        self._gated = gated
        self._conversations: list[Conversation] = []
        self._formats: dict[str, Format] = {}
        self._secrets: set[str] = set()
        self._lock = Lock()

    def took(self, path: str, sent: bytes, got: bytes, *, streamed: bool, secrets: Collection[str]) -> None:
        """Takes in an exchange; one that is none of a model's is passed over."""
        protocol = next((name for ending, name in PATHS.items() if path.endswith(f"/{ending}")), None)
        if protocol is None:
            return
        with self._lock:
            self._secrets.update(secrets)
            try:
                self._note(protocol, json.loads(sent), answer_in(protocol, got, streamed=streamed))
            except ValueError as error:
                self.passed_over.append(f"{path}: {error}")

    def _note(self, protocol: str, sent: Any, got: dict[str, Any]) -> None:
        spoken = self._formats.setdefault(protocol, format_named(protocol))
        asked = spoken.read(sent)
        if not asked.readable:
            raise ValueError(asked.complaints[0].text)
        answer = items_in(protocol, got)
        if isinstance(spoken, Responses):
            _keep(spoken, sent, got)
        conversation = self._conversation(asked)
        conversation.took(asked.items, answer, dict(_schemas(asked.body)))
        self._write(conversation)

    def _conversation(self, asked: Asked) -> Conversation:
        items: tuple[Item, ...] = asked.items
        found = next((one for one in reversed(self._conversations) if one.goes_on_with(asked.model, items)), None)
        if found is None:
            found = Conversation(asked.model, opening_of(items))
            self._conversations.append(found)
        return found

    def _write(self, conversation: Conversation) -> None:
        number = self._conversations.index(conversation) + 1
        name = self._path.name.removesuffix(ENDING)
        path = self._path.with_name(f"{name if number == 1 else f'{name}-{number}'}{ENDING}")
        document = without_secrets(conversation.document(self._gated, ABOUT), self._secrets)
        text = yaml_text(document)
        try:
            scenario_from_text(text, name=name, path=path.name)
        except ScenarioError as error:
            self.passed_over.append(f"{path.name} needs a hand: {error}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if path not in self.written:
            self.written.append(path)


def _keep(spoken: Responses, sent: Mapping[str, Any], got: Mapping[str, Any]) -> None:
    """Keeps a response as its provider does, so that a request may go on from it."""
    request = request_of(sent, spoken.kept)
    output = list(mappings(got.get("output")))
    spoken.kept.gave(output)
    spoken.kept.keep(str(got.get("id")), request.previous, request.conversation, [*request.new, *output])


def _schemas(body: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Gives the schemas of the functions that a request offers, in whichever protocol."""
    for tool in mappings(body.get("tools")):
        function = tool.get("function")
        told: Mapping[str, Any] = function if isinstance(function, Mapping) else tool
        schema = told.get("parameters", told.get("input_schema"))
        if isinstance(told.get("name"), str) and isinstance(schema, Mapping):
            yield told["name"], schema
