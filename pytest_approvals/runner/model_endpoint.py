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

from pytest_approvals.agent_side.contract.exceptions import ModelDown
from pytest_approvals.agent_side.contract.types import Item, ModelAddress, Reply
from pytest_approvals.protocols.codec import ParsedRequest, create_codec
from pytest_approvals.protocols.endpoint import Endpoint, HttpResponse, ModelHandler
from pytest_approvals.protocols.http.server import HttpServer

_CURRENT_MODEL: ContextVar[ModelHandler] = ContextVar("who answers a request")


class ModelEndpoint:
    """
    The scripted model of one run.

    Arguments:
        protocol: How its clients speak.
    """

    def __init__(self, protocol: str) -> None:
        self._protocol = protocol
        self._endpoint = Endpoint(create_codec(protocol), _ask_current_model)
        self._addresses: dict[str, tuple[ModelHandler, AbstractEventLoop]] = {}
        self._waiting: set[Future[HttpResponse]] = set()

    def address(self, model: ModelHandler) -> ModelAddress:
        """Gives an address at which *model* answers, in the event loop that runs."""
        house = _get_endpoint_server()
        name = house.take_in(self)
        self._addresses[name] = (model, asyncio.get_running_loop())
        # Clients of Anthropic put the version into the path themselves.
        version = "" if self._protocol == "messages" else "/v1"
        return ModelAddress(protocol=self._protocol, url=f"{house.url}/{name}{version}")

    def close(self) -> None:
        """Gives the addresses back; a request that still waits for its answer loses the connection."""
        for name in self._addresses:
            _get_endpoint_server().let_go(name)
        for answer in self._waiting.copy():
            answer.cancel()

    def serve(self, name: str, method: str, path: str, raw: bytes) -> HttpResponse:
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

    async def _served(self, model: ModelHandler, method: str, path: str, raw: bytes) -> HttpResponse:
        _CURRENT_MODEL.set(model)
        return await self._endpoint.serve(method, path, raw)


async def _ask_current_model(items: Sequence[Item], asked: ParsedRequest) -> Reply:
    return await _CURRENT_MODEL.get()(items, asked)


class ModelEndpointServer:
    """Where the models of this process are served: one port, a path for each address."""

    def __init__(self) -> None:
        self._models: dict[str, ModelEndpoint] = {}
        self._numbers = count(1)
        self._listener = HttpServer(socket.AF_INET, "127.0.0.1", 0, self._serve, self._too_large, lasting=False)
        self.url = f"http://127.0.0.1:{self._listener.server_port}"
        Thread(target=self._listener.serve_forever, name="served-models", daemon=True).start()
        atexit.register(self._listener.socket.close)

    def take_in(self, model: ModelEndpoint) -> str:
        """Gives a new path for *model*."""
        name = f"m{next(self._numbers)}"
        self._models[name] = model
        return name

    def let_go(self, name: str) -> None:
        """Forgets a path."""
        self._models.pop(name, None)

    def _serve(self, method: str, path: str, raw: bytes) -> HttpResponse:
        name, _, rest = path.strip("/").partition("/")
        model = self._models.get(name)
        if model is None:
            return HttpResponse.of({"error": {"message": f"no run is served at {path}; it may be over"}}, 404)
        try:
            return model.serve(name, method, f"/{rest}", raw)
        except ModelDown:
            raise
        except Exception as error:
            return HttpResponse.of({"error": {"message": f"the server failed: {type(error).__name__}: {error}"}}, 500)

    def _too_large(self, path: str) -> HttpResponse:
        return HttpResponse.of({"error": {"message": f"the request to {path} is too large, or says no length"}}, 413)


_get_endpoint_server = cache(ModelEndpointServer)
