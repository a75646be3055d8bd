"""Images, documents and other media in requests, which a scenario has no words for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_approvals.protocols.text import object_or_empty

_TYPES = {
    "image_url": "text",
    "input_audio": "text",
    "file": "text",
    "input_image": "input_text",
    "input_file": "input_text",
    "image": "text",
    "document": "text",
}
"""The types of parts that hold media in the protocols of OpenAI and Anthropic, and that of text beside them."""

_BEDROCK = ("image", "document", "video", "audio")
_GOOGLE = ("inlineData", "inline_data", "fileData", "file_data")


def replace_media(value: Any) -> Any:
    """Return a request with a text that names its kind in place of each image, document or other medium.

    >>> replace_media([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}])
    [{'type': 'text', 'text': '[image]'}]
    >>> replace_media({"inlineData": {"mimeType": "image/png", "data": "aGk="}})
    {'text': '[image/png]'}
    """
    if isinstance(value, list):
        return [replace_media(element) for element in value]
    if not isinstance(value, Mapping):
        return value
    return _to_text(value) or {name: replace_media(inner) for name, inner in value.items()}


def _to_text(part: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the text in place of a part; None if it holds no medium."""
    kind = part.get("type")
    if isinstance(kind, str) and kind in _TYPES and _has_medium(part, kind):
        return {"type": _TYPES[kind], "text": f"[{kind.removeprefix('input_').removesuffix('_url')}]"}
    for name in _GOOGLE:
        held = part.get(name)
        if isinstance(held, Mapping) and ("data" in held or "fileUri" in held or "file_uri" in held):
            return {"text": f"[{held.get('mimeType') or held.get('mime_type') or 'file'}]"}
    for name in _BEDROCK:
        if kind is None and "source" in object_or_empty(part.get(name)):
            return {"text": f"[{name}]"}
    return None


def _has_medium(part: Mapping[str, Any], kind: str) -> bool:
    """Return whether a part is one of a message, and not the arguments of a call, which may have any names."""
    fields = ("source", "file_id", "file_data", "file_url", "image_url", "detail", kind)
    return any(field in part for field in fields)
