"""Decisions as the framework takes them: results of the calls that ask for a confirmation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from google.genai import types

from ...contract import Decision, Unsupported
from .requests import CONFIRMATION


def message(decisions: Sequence[Decision], options: Mapping[str, Any]) -> types.Content:
    """
    Gives the message that answers.

    Arguments:
        options: `raw_in: calls` puts what is no decision where the result of the call itself would go.
    """
    parts = [types.Part(function_response=_response(decision, options)) for decision in decisions]
    return types.Content(role="user", parts=parts)


def _response(decision: Decision, options: Mapping[str, Any]) -> types.FunctionResponse:
    if decision.request is None:
        return types.FunctionResponse(id=decision.address, name=CONFIRMATION, response=_VERDICTS["approve"](decision))
    if decision.verdict == "raw" and options.get("raw_in") == "calls":
        asked = decision.request
        return types.FunctionResponse(id=asked.call_id, name=asked.tool, response={"result": decision.raw})
    answer = _VERDICTS[decision.verdict](decision)
    return types.FunctionResponse(id=decision.request.id, name=CONFIRMATION, response=answer)


def _reject(decision: Decision) -> Any:
    if decision.reason is None:
        return {"confirmed": False}
    return {"confirmed": False, "payload": {"reason": decision.reason}}


def _edit(decision: Decision) -> Any:
    return {"confirmed": True, "payload": {"arguments": dict(decision.arguments or {})}}


def _standing(decision: Decision) -> Any:
    raise Unsupported(decision.verdict, "an answer is about one call")


def _raw(decision: Decision) -> Any:
    # What is no word and no number would be the whole answer, which is an object; the others stand for its yes or no.
    raw = decision.raw
    return raw if raw is None or isinstance(raw, dict) else {"confirmed": raw}


_VERDICTS: Mapping[str, Callable[[Decision], Any]] = {
    "approve": lambda decision: {"confirmed": True},
    "reject": _reject,
    "edit": _edit,
    "always": _standing,
    "never": _standing,
    "raw": _raw,
}
