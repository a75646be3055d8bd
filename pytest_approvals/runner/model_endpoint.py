"""Model endpoint of a run: the scripted model, reached over a provider's protocol.

Every agent object of a run has a world, and every world has an address on the loopback interface, which a framework's
own client is pointed at, in this process and in any other. All addresses of a run share one provider, so that what it
stores of a conversation survives the agent.
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
from pytest_approvals.protocols import create_codec
from pytest_approvals.protocols.codec import ParsedRequest
from pytest_approvals.protocols.endpoint import Endpoint, HttpResponse, ModelHandler
from pytest_approvals.protocols.http.server import HttpServer

_CURRENT_MODEL: ContextVar[ModelHandler] = ContextVar("model that answers the request")


class ModelEndpoint:
    """The scripted model of one run.

    Args:
        protocol: The protocol of its clients.
    """

    def __init__(self, protocol: str) -> None:
        self._protocol = protocol
        self._endpoint = Endpoint(create_codec(protocol), _ask_current_model)
        self._addresses: dict[str, tuple[ModelHandler, AbstractEventLoop]] = {}
        self._waiting: set[Future[HttpResponse]] = set()

    def open_address(self, model: ModelHandler) -> ModelAddress:
        """Return a new address at which *model* answers, in the running event loop."""
        server = _get_endpoint_server()
        name = server.add(self)
        self._addresses[name] = (model, asyncio.get_running_loop())
        # Clients of OpenAI leave the version to the address.
        version = "/v1" if self._protocol in ("chat", "responses") else ""
        return ModelAddress(protocol=self._protocol, url=f"{server.url}/{name}{version}")

    def close(self) -> None:
        """Close all addresses; a request that still waits for its answer loses the connection."""
        for name in self._addresses:
            _get_endpoint_server().remove(name)
        for answer in self._waiting.copy():
            answer.cancel()

    def serve(self, name: str, method: str, path: str, raw: bytes) -> HttpResponse:
        """Answer one request, from any thread.

        Raises:
            ModelDown: The connection breaks before there is an answer.
        """
        model, loop = self._addresses[name]
        answer = asyncio.run_coroutine_threadsafe(self._serve_with(model, method, path, raw), loop)
        self._waiting.add(answer)
        try:
            return answer.result()
        except CancelledError:
            raise ModelDown(0) from None
        finally:
            self._waiting.discard(answer)

    async def _serve_with(self, model: ModelHandler, method: str, path: str, raw: bytes) -> HttpResponse:
        # The endpoint is shared by all addresses; the context tells its requests apart.
        _CURRENT_MODEL.set(model)
        return await self._endpoint.serve(method, path, raw)


async def _ask_current_model(items: Sequence[Item], request: ParsedRequest) -> Reply:
    return await _CURRENT_MODEL.get()(items, request)


class ModelEndpointServer:
    """The HTTP server of all model endpoints of this process: one port, a path for each address."""

    def __init__(self) -> None:
        self._endpoints: dict[str, ModelEndpoint] = {}
        self._numbers = count(1)
        # Connections are not kept alive, so that frameworks need not close their clients.
        self._server = HttpServer(socket.AF_INET, "127.0.0.1", 0, self._serve, self._refuse_too_large, keep_alive=False)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, name="served-models", daemon=True).start()
        atexit.register(self._server.socket.close)

    def add(self, endpoint: ModelEndpoint) -> str:
        """Return a new path for *endpoint*."""
        name = f"m{next(self._numbers)}"
        self._endpoints[name] = endpoint
        return name

    def remove(self, name: str) -> None:
        """Remove a path."""
        self._endpoints.pop(name, None)

    def _serve(self, method: str, path: str, raw: bytes) -> HttpResponse:
        name, _, rest = path.lstrip("/").partition("/")
        endpoint = self._endpoints.get(name)
        if endpoint is None:
            return HttpResponse.from_json({"error": {"message": f"no run is served at {path}; it may be over"}}, 404)
        try:
            return endpoint.serve(name, method, f"/{rest}", raw)
        except ModelDown:
            raise
        except Exception as error:
            return HttpResponse.from_json(
                {"error": {"message": f"the server failed: {type(error).__name__}: {error}"}}, 500
            )

    def _refuse_too_large(self, path: str) -> HttpResponse:
        return HttpResponse.from_json(
            {"error": {"message": f"the request to {path} is too large, or has no length"}}, 413
        )


_get_endpoint_server = cache(ModelEndpointServer)
