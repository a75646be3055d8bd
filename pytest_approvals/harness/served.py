"""
The model of a run, reached over a provider's protocol.

Every agent object of a run has a world, and every world an address on the loopback, which a framework's own client is
pointed at: in this process and in any other. Behind all addresses of a run stands one provider, so that what it keeps
of a conversation survives the agent.
"""

from __future__ import annotations

import asyncio
import atexit
import socket
from asyncio import AbstractEventLoop
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future
from contextvars import ContextVar
from functools import cache
from itertools import count
from threading import Thread

from pytest_approvals.agent_side.failures import ModelDown
from pytest_approvals.agent_side.neutral import Item, ModelAddress, Reply
from pytest_approvals.loopback.http import Listener
from pytest_approvals.protocols.asked import Asked
from pytest_approvals.protocols.endpoint import Answer, Endpoint, Model
from pytest_approvals.protocols.format import format_named

_MODEL: ContextVar[Model] = ContextVar("who answers a request")


class ServedModel:
    """
    The scripted model of one run.

    Arguments:
        protocol: How its clients speak.
    """

    def __init__(self, protocol: str) -> None:
        self._protocol = protocol
        self._endpoint = Endpoint(format_named(protocol), _asked)
        self._addresses: dict[str, tuple[Model, AbstractEventLoop]] = {}
        self._waiting: set[Future[Answer]] = set()

    def address(self, model: Model) -> ModelAddress:
        """Gives an address at which *model* answers, in the event loop that runs."""
        house = _house()
        name = house.take_in(self)
        self._addresses[name] = (model, asyncio.get_running_loop())
        # Clients of Anthropic put the version into the path themselves.
        version = "" if self._protocol == "messages" else "/v1"
        return ModelAddress(protocol=self._protocol, url=f"{house.url}/{name}{version}")

    def close(self) -> None:
        """Gives the addresses back; a request that still waits for its answer loses the connection."""
        for name in self._addresses:
            _house().let_go(name)
        for answer in self._waiting.copy():
            answer.cancel()

    def serve(self, name: str, method: str, path: str, raw: bytes) -> Answer:
        """
        Answers one request, from any thread.

        Errors:
            ModelDown: The connection breaks before there is an answer.
        """
        model, loop = self._addresses[name]
        answer = asyncio.run_coroutine_threadsafe(self._served(model, method, path, raw), loop)
        self._waiting.add(answer)
        try:
            return answer.result()
        except CancelledError:
            raise ModelDown(0) from None
        finally:
            self._waiting.discard(answer)

    async def _served(self, model: Model, method: str, path: str, raw: bytes) -> Answer:
        _MODEL.set(model)
        return await self._endpoint.serve(method, path, raw)


async def _asked(items: Sequence[Item], asked: Asked) -> Reply:
    return await _MODEL.get()(items, asked)


class House:
    """Where the models of this process are served: one port, a path for each address."""

    def __init__(self) -> None:
        self._models: dict[str, ServedModel] = {}
        self._numbers = count(1)
        self._listener = Listener(socket.AF_INET, "127.0.0.1", 0, self._serve, self._too_large, lasting=False)
        self.url = f"http://127.0.0.1:{self._listener.server_port}"
        Thread(target=self._listener.serve_forever, name="served-models", daemon=True).start()
        atexit.register(self._listener.socket.close)

    def take_in(self, model: ServedModel) -> str:
        """Gives a new path for *model*."""
        name = f"m{next(self._numbers)}"
        self._models[name] = model
        return name

    def let_go(self, name: str) -> None:
        """Forgets a path."""
        self._models.pop(name, None)

    def _serve(self, method: str, path: str, raw: bytes) -> Answer:
        name, _, rest = path.strip("/").partition("/")
        model = self._models.get(name)
        if model is None:
            return Answer.of({"error": {"message": f"no run is served at {path}; it may be over"}}, 404)
        try:
            return model.serve(name, method, f"/{rest}", raw)
        except ModelDown:
            raise
        except Exception as error:
            return Answer.of({"error": {"message": f"the server failed: {type(error).__name__}: {error}"}}, 500)

    def _too_large(self, path: str) -> Answer:
        return Answer.of({"error": {"message": f"the request to {path} is too large, or says no length"}}, 413)


_house = cache(House)
