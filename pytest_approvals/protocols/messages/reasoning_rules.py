"""Rules about thinking in a body of Messages: its settings, its place, and what the provider has sent of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_approvals.protocols.messages.bodies import THINKING, blocks_of, is_continued, iter_blocks, path_of
from pytest_approvals.protocols.provider_errors import BodyRules, ProviderError
from pytest_approvals.protocols.reasoning import ReasoningRequest
from pytest_approvals.protocols.text import object_or_empty

THINKING_RULES: BodyRules[Mapping[str, Any]] = BodyRules()
"""The rules about thinking in a body alone."""

_LEAST_TOP_P_OF_THINKING = 0.95


@THINKING_RULES
def thinking_at_the_end(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse thinking as the last block of a last message of the model.

    Quoted in tailcallhq/forgecode#2107 and measured in router-for-me/CLIProxyAPI#5321 (2026-11-25), where an earlier
    message may end in it.
    """
    last = body["messages"][-1] if body["messages"] and not is_continued(body) else {}
    blocks = blocks_of(last) if last.get("role") == "assistant" else []
    if blocks and blocks[-1].get("type") in THINKING:
        number = len(body["messages"]) - 1
        yield ProviderError(text=f"messages.{number}: The final block in an assistant message cannot be `thinking`.")


@THINKING_RULES.about("thinking")
def thinking_budget_too_large(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require `thinking.budget_tokens` to be less than `max_tokens`.

    The published types say so (anthropic 2.12.0, 2026-11-22); thinking that is interleaved with tools may have more.
    """
    budget, most = object_or_empty(body.get("thinking")).get("budget_tokens"), body.get("max_tokens")
    if type(budget) is int and type(most) is int and budget >= most and not body.get("tools"):
        yield ProviderError(text="`max_tokens` must be greater than `thinking.budget_tokens`.")


@THINKING_RULES.about("thinking")
def thinking_with_forced_tool(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse thinking together with a forced tool: "Thinking may not be enabled when tool_choice forces tool use".

    Quoted in mastra-ai/mastra#7507 and usestrix/strix#503 (2026-11-22).
    """
    forced = object_or_empty(body.get("tool_choice")).get("type") in ("any", "tool")
    if forced and object_or_empty(body.get("thinking")).get("type") == "enabled":
        yield ProviderError(text="Thinking may not be enabled when tool_choice forces tool use.")


@THINKING_RULES.about("thinking")
def thinking_with_sampling(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse thinking together with another temperature than 1, with `top_k`, or with a `top_p` below 0.95.

    MartialBE/one-hub#529, and the documentation as quoted in LostRuins/lite.koboldai.net#108 (2026-11-23);
    SEMOSS/Semoss#1655 (2026-11-25). In adaptive mode the temperature alone is quoted: tokenparty-net/llm-xlate
    (FINDINGS, 4) and dotCipher/opencode-claude-bridge#1 measured it (2026-11-29).
    """
    mode = object_or_empty(body.get("thinking")).get("type")
    temperature = body.get("temperature")
    if mode in ("enabled", "adaptive") and temperature is not None and temperature != 1:
        also = " or in adaptive mode" if mode == "adaptive" else ""
        yield ProviderError(text=f"`temperature` may only be set to 1 when thinking is enabled{also}.")
    if mode != "enabled":
        return
    if body.get("top_k") is not None:
        yield ProviderError(text="`top_k` must be unset when thinking is enabled.")
    top_p = body.get("top_p")
    if isinstance(top_p, int | float) and top_p < _LEAST_TOP_P_OF_THINKING:
        text = f"`top_p` must be greater than or equal to {_LEAST_TOP_P_OF_THINKING} or unset when thinking is enabled."
        yield ProviderError(text=text)


REASONING_RULES: BodyRules[ReasoningRequest] = BodyRules()
"""The rules about reasoning that the provider has sent."""


@REASONING_RULES
def thinking_missing(request: ReasoningRequest) -> Iterator[ProviderError]:
    """Require the thinking that led to calls in front of them, as long as only their results came since.

    "Expected `thinking` or `redacted_thinking`, but found `tool_use`", quoted in anomalyco/opencode#3077,
    mastra-ai/mastra#7799 and deepset-ai/haystack-core-integrations#2146 (2026-11-25). It holds if `thinking` is
    enabled; with `adaptive`, messages need not begin with it, and without, it may be left out (documentation of
    extended thinking). A script that does not think is no model with thinking, so nothing is asked of what it sent.
    """
    number, message = _find_latest_reply(request.body)
    blocks = blocks_of(message)
    is_enabled = object_or_empty(request.body.get("thinking")).get("type") == "enabled"
    if not is_enabled or not blocks or blocks[0].get("type") in THINKING:
        return
    if any(step in request.sent.by_signature for step in request.sent.expect_steps(_call_ids(blocks))):
        text = (
            f"messages.{number}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
            f"`{blocks[0].get('type')}`. When `thinking` is enabled, a final `assistant` message must start with a "
            "thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you "
            "include thinking blocks from previous turns. To avoid this requirement, disable `thinking`."
        )
        yield ProviderError(text=text)


@REASONING_RULES
def signature_invalid(request: ReasoningRequest) -> Iterator[ProviderError]:
    """Refuse thinking whose text or signature is another one than was sent: "Invalid `signature` in `thinking` block".

    Quoted in ding113/claude-code-hub#518 and lbjlaq/Antigravity-Manager#498; "the check fails when a block differs in
    any way from what was originally returned" (anthropics/anthropic-sdk-python#1598, 2026-11-25). Thinking that this
    provider did not send is taken as it is.
    """
    texts = {thought.text for thought in request.sent.by_signature.values()}
    for place, _, block in iter_blocks(request.body):
        if block.get("type") != "thinking":
            continue
        thought = request.sent.by_signature.get(str(block.get("signature")))
        is_changed = thought.text != block.get("thinking") if thought is not None else block.get("thinking") in texts
        if is_changed:
            yield ProviderError(text=f"{path_of(place)}: Invalid `signature` in `thinking` block")


@REASONING_RULES
def thinking_modified(request: ReasoningRequest) -> Iterator[ProviderError]:
    """Require the thinking of the latest reply in its order and places: it "cannot be modified".

    Quoted in anthropics/claude-code#63284, #63548 and #13201; reordered and merged blocks are refused, too
    (anthropics/anthropic-sdk-python#1598, 2026-11-25).
    """
    number, message = _find_latest_reply(request.body)
    blocks = blocks_of(message)
    steps = request.sent.keep_known([_step_of(block) for block in blocks])
    thinking = [index for index, block in enumerate(blocks) if block.get("type") in THINKING]
    if thinking and steps != request.sent.expect_steps(_call_ids(blocks)) and _call_ids(blocks):
        text = (
            f"{path_of((number, thinking[0]))}: `thinking` or `redacted_thinking` blocks in the latest assistant "
            "message cannot be modified. These blocks must remain as they were in the original response."
        )
        yield ProviderError(text=text)


def _find_latest_reply(body: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
    """Return the latest message of the model with its number; an empty one if the user said something since."""
    for number, message in reversed(list(enumerate(body["messages"]))):
        if message.get("role") == "assistant":
            return number, message
        if not any(block.get("type") == "tool_result" for block in blocks_of(message)):
            break
    return 0, {}


def _call_ids(blocks: list[Mapping[str, Any]]) -> list[str]:
    return [str(block.get("id")) for block in blocks if block.get("type") == "tool_use"]


def _step_of(block: Mapping[str, Any]) -> str:
    name = {"thinking": "signature", "redacted_thinking": "data", "tool_use": "id"}.get(str(block.get("type")), "")
    return str(block.get(name) or "")
