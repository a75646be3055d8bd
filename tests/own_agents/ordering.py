"""Tools of a shop whose arguments have choices, bounds, patterns, objects and lists. Frameworks gate two of them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field


class Item(BaseModel):
    sku: Annotated[str, Field(pattern=r"^[A-Z]{2}\d{3}$")]
    count: Annotated[int, Field(ge=1, le=9)] = 1


class Address(BaseModel):
    street: str
    city: Literal["Oslo", "Rome"]
    zip: str | None = None


def order(items: list[Item], to: Address, speed: Literal["fast", "slow"] = "slow") -> dict[str, Any]:
    """Orders items."""
    return {"items": len(items), "speed": speed}


def quote(items: list[Item], factor: float = 1.0) -> str:
    """Says what items cost."""
    return f"{len(items)} items, {factor} times"


async def pay(amount: int, memo: str | None = None) -> str:
    """Pays an amount."""
    return f"paid {amount}, {memo}"
