"""One point of a scenario's matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .steps import AnswerSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """
    One point of a scenario's matrix.

    Attributes:
        serialize: `none`, `copy`, `json` or `native.NAME`.
        resume: `same` process, a `fresh` one forked from a warm interpreter, or a `cold` one.
        history: `whole` or `append`.
        source: Which copy of a request decisions are made from.
        oracle: Who decides what the story leaves open; `script` where the story decides itself (what remains is then
            approved).
        chunking: How a streamed reply is cut: `whole`, `tokens`, `ids_first`, `split`, `interleaved`, `empty`.
        protocol: How the model is reached: `native`, in the agent's usual way, or over the protocol `chat`, `responses`
            or `messages` by the framework's own client.
        saved_by: The older release that saved the state which is taken up after the first turn; see `states.py`.
    """

    serialize: str = "none"
    resume: Literal["same", "fresh", "cold"] = "same"
    history: Literal["whole", "append"] = "whole"
    stream: bool = False
    source: AnswerSource = "held"
    oracle: str = "script"
    chunking: str = "whole"
    protocol: str = "native"
    saved_by: str = ""

    @property
    def id(self) -> str:
        """
        Its name inside brackets: serialize mode and answer source always, the rest where it differs from the base
            variant.

        >>> Variant(serialize="json", stream=True, source="restored").id
        'json-stream-restored'
        """
        differs = [word for word, base in ((self.resume, "same"), (self.history, "whole")) if word != base]
        streamed = (["stream"] if self.stream else []) + ([self.chunking] if self.chunking != "whole" else [])
        rest = [word for word, base in ((self.oracle, "script"), (self.protocol, "native")) if word != base]
        words = [self.serialize, *differs, *streamed, self.source, *rest]
        taken_over = [f"from-{self.saved_by}"] if self.saved_by else []
        return "-".join([*(word.replace("_", "-") for word in words), *taken_over])
