"""Legitimate designs: what is kept and saved."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from pytest_approvals.agent_side.contract.agent import Agent
from pytest_approvals.simulation.reference.agent import ReferenceAgent
from pytest_approvals.simulation.reference.designs.registry import design
from pytest_approvals.simulation.reference.persistence import Refused, StatefulAgent
from pytest_approvals.simulation.reference.state import (
    ConversationState,
    SessionState,
    state_fields,
    state_to_json,
    waiting_calls,
)


@design
class SavedKeysAreSorted(ReferenceAgent):
    """What is saved is indented, with its keys in alphabetical order."""

    def encode(self, state: SessionState) -> str:
        return json.dumps(state, default=state_fields, sort_keys=True, indent=1)

    def encode_addition(self) -> str:
        return json.dumps(json.loads(super().encode_addition()), sort_keys=True, indent=1)


@design
class NothingIsTrimmedWhilePending(ReferenceAgent):
    """Trimming leaves the history alone while a request is open."""

    def count_trimmable_items(self, conversation: ConversationState, keep: int) -> int:
        return 0 if any(waiting_calls(conversation)) else super().count_trimmable_items(conversation, keep)


@design
class SavesAreCompressed(ReferenceAgent):
    """What is saved is compressed, so that nothing can be read in it."""

    def encode(self, state: SessionState) -> str:
        return _compress(super().encode(state))

    def decode(self, written: str) -> SessionState:
        return super().decode(_decompress(written))

    def encode_addition(self) -> str:
        return _compress(super().encode_addition())

    async def load(self, parts: Sequence[str]) -> None:
        appends = self.blueprint.history == "append" and not self.is_durable
        await super().load([_decompress(part) for part in parts] if appends else parts)


def _compress(text: str) -> str:
    return base64.b64encode(zlib.compress(text.encode())).decode()


def _decompress(text: str) -> str:
    return zlib.decompress(base64.b64decode(text)).decode()


@design
class SavesAreEncrypted(SavesAreCompressed):
    """What is saved is encrypted, and another text each time."""

    def encode(self, state: SessionState) -> str:
        return _encrypt(super().encode(state))

    def decode(self, written: str) -> SessionState:
        return super().decode(_decrypt(written))

    def encode_addition(self) -> str:
        return _encrypt(super().encode_addition())

    async def load(self, parts: Sequence[str]) -> None:
        appends = self.blueprint.history == "append" and not self.is_durable
        await super().load([_decrypt(part) for part in parts] if appends else parts)


def _encrypt(text: str) -> str:
    nonce = secrets.token_hex(8)
    return nonce + _cross(text.encode(), nonce).hex()


def _decrypt(text: str) -> str:
    return _cross(bytes.fromhex(text[16:]), text[:16]).decode()


def _cross(data: bytes, nonce: str) -> bytes:
    stream = hashlib.shake_256(nonce.encode()).digest(len(data))
    return bytes(one ^ other for one, other in zip(data, stream, strict=True))


class _KnowsAgentsByName(ReferenceAgent):
    """Saves the names that its agents have, and refuses a state of which one has another name by now."""

    def encode(self, state: SessionState) -> str:
        return state_to_json({**state_fields(state), "names": dict(self.blueprint.names)})

    async def copy_from(self, other: Agent) -> None:
        assert isinstance(other, StatefulAgent)
        self.state = self.decode(other.encode(other.state))

    def _find_renamed_agent(self, names: Mapping[str, str]) -> str | None:
        """Return the old name of an agent that had another one when the names were saved; None if there is none."""
        present = self.blueprint.names
        agents = {*names, *present}
        return next((names.get(one, one) for one in agents if names.get(one, one) != present.get(one, one)), None)


@design
class RenamedAgentsAreNotRestored(_KnowsAgentsByName):
    """A state that names an agent which has another name by now is refused when it is loaded."""

    def decode(self, written: str) -> SessionState:
        old = self._find_renamed_agent(json.loads(written)["names"])
        if old is not None:
            raise Refused(f"the state is of an agent called {old!r}, which this agent does not have")
        return super().decode(written)


@design
class RenamedAgentsTakeNoTurn(_KnowsAgentsByName):
    """A state that names an agent which has another name by now is loaded, but each turn on it is refused."""

    _saved_names: Mapping[str, str] | None = None

    def encode(self, state: SessionState) -> str:
        if self._saved_names is None:
            return super().encode(state)
        return state_to_json({**state_fields(state), "names": dict(self._saved_names)})

    def decode(self, written: str) -> SessionState:
        self._saved_names = json.loads(written)["names"]
        return super().decode(written)

    @contextmanager
    def exclusive_input(self) -> Iterator[None]:
        with super().exclusive_input():
            old = self._find_renamed_agent(self._saved_names) if self._saved_names is not None else None
            if old is not None:
                raise Refused(f"the state is of an agent called {old!r}, which this agent does not have")
            yield


@design
class SavesAreVersioned(ReferenceAgent):
    """What is saved names its version and stands under a key; a save without a version is read, too."""

    def encode(self, state: SessionState) -> str:
        return json.dumps({"$version": "1.4", "session": json.loads(super().encode(state))})

    def decode(self, written: str) -> SessionState:
        saved = json.loads(written)
        version = str(saved.get("$version", "1.0"))
        if version.partition(".")[0] != "1":
            raise Refused(f"the state has the version {version}, which is newer than this agent")
        return super().decode(json.dumps(saved.get("session", saved)))
