"""Rules about the other parameters of a body of Messages, and about what is to be cached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from pytest_approvals.protocols.messages.bodies import blocks_of, wants_json
from pytest_approvals.protocols.provider_errors import BodyRules, ProviderError
from pytest_approvals.protocols.text import list_objects, object_or_empty

PARAMETER_RULES: BodyRules[Mapping[str, Any]] = BodyRules()
"""The rules about other parameters."""

_MAX_CACHE_BREAKPOINTS = 4
_GEOGRAPHIES = ("global", "us")


@PARAMETER_RULES.implied_by_types
def field_missing(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require `model` and `max_tokens` (API reference): "Field required"."""
    for name in ("model", "max_tokens"):
        if body.get(name) is None:
            yield ProviderError(text=f"{name}: Field required")


@PARAMETER_RULES
def too_many_cache_breakpoints(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Allow four blocks with `cache_control`: "A maximum of 4 blocks with cache_control may be provided".

    Quoted in tghamm/Anthropic.SDK#50 and continuedev/continue#6937 (2026-11-22). None can be of an empty text block
    (askalf/dario#1066, 2026-11-22).
    """
    marked = list(_iter_marked(body))
    if len(marked) > _MAX_CACHE_BREAKPOINTS:
        text = f"A maximum of {_MAX_CACHE_BREAKPOINTS} blocks with cache_control may be provided. Found {len(marked)}."
        yield ProviderError(text=text)
    if any(block.get("type") == "text" and not block.get("text") for block in marked):
        yield ProviderError(text="messages: cache_control cannot be set for empty text blocks")


def _iter_cacheable(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for name in ("tools", "system"):
        if name in body:
            yield from list_objects(body[name])
    for message in body["messages"]:
        for block in list_objects(message.get("content")):
            yield block
            if block.get("type") == "tool_result":
                yield from list_objects(block.get("content"))


@PARAMETER_RULES
def cache_lifetimes_out_of_order(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse a block that is cached for an hour behind one that is cached for five minutes.

    Quoted in headroomlabs-ai/headroom#2939 and vellum-ai/vellum-assistant#22191 (2026-11-25).
    """
    lifetimes = [object_or_empty(block.get("cache_control")).get("ttl") or "5m" for block in _iter_marked(body)]
    if any(early == "5m" and late == "1h" for early, late in pairwise(lifetimes)):
        text = (
            "cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. "
            "Note that blocks are processed in the following order: `tools`, `system`, `messages`."
        )
        yield ProviderError(text=text)


@PARAMETER_RULES.about("cache_control", reads_messages=True)
def cache_lifetime_of_the_request(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse five minutes for the whole request if its last block is cached for an hour.

    "Top-level cache_control has ttl='5m' but the target block already has cache_control with ttl='1h'", quoted in
    vellum-ai/vellum-assistant#23414 (2026-11-29).
    """
    ttl = object_or_empty(body.get("cache_control")).get("ttl") or "5m"
    blocks = blocks_of(body["messages"][-1]) if body["messages"] else []
    held = object_or_empty(blocks[-1].get("cache_control")).get("ttl") if blocks else None
    if body.get("cache_control") and (ttl, held) == ("5m", "1h"):
        text = "Top-level cache_control has ttl='5m' but the target block already has cache_control with ttl='1h'"
        yield ProviderError(text=text)


def _iter_marked(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (block for block in _iter_cacheable(body) if block.get("cache_control"))


def has_breakpoints(body: Mapping[str, Any]) -> bool:
    """Return whether any block of an accepted body is to be cached."""
    return any(True for _ in _iter_marked(body))


@PARAMETER_RULES.about("max_tokens")
def cache_filled_with_an_answer(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse what only an answer has of a request for none, whose `max_tokens` is 0.

    It fills the cache; a stream, a schema of the answer and a forced tool are refused (a public summary of what the
    guide of prompt caching says about pre-warming, 2026-11-29). Thinking needs a budget below `max_tokens`.
    """
    if body.get("max_tokens") != 0:
        return
    refused = {
        "stream": body.get("stream") is True,
        "output_config.format": wants_json(body),
        "tool_choice": object_or_empty(body.get("tool_choice")).get("type") in ("any", "tool"),
    }
    for name in (name for name, is_set in refused.items() if is_set):
        yield ProviderError(text=f"{name}: cannot be used when `max_tokens` is 0")


@PARAMETER_RULES.about("stop_sequences")
def blank_stop_sequence(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require text in stop sequences.

    "each stop sequence must contain non-whitespace", quoted in BerriAI/litellm#3286 (2026-11-22).
    """
    sequences = body.get("stop_sequences")
    if isinstance(sequences, list) and any(isinstance(text, str) and not text.strip() for text in sequences):
        yield ProviderError(text="stop_sequences: each stop sequence must contain non-whitespace")


@PARAMETER_RULES.about("inference_geo")
def geography_unknown(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Allow the two regions: "must be one of ['global', 'us']".

    Measured in kangminlee-maker/local-OAuth-CLI-API-adapter (2026-11-29).
    """
    geography = body.get("inference_geo")
    if isinstance(geography, str) and geography not in _GEOGRAPHIES:
        yield ProviderError(text=f"inference_geo: must be one of {list(_GEOGRAPHIES)}")


@PARAMETER_RULES.about("stream")
def stream_not_boolean(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse null as `stream`, which earlier types of the client allow: "Input should be a valid boolean".

    Measured in kangminlee-maker/local-OAuth-CLI-API-adapter (2026-11-29).
    """
    if body.get("stream", False) is None:
        yield ProviderError(text="stream: Input should be a valid boolean")
