"""The official SDK's client as the tests use it."""

from __future__ import annotations

from typing import Any


def callbacks() -> dict[str, Any]:
    """What the official SDK's client answers when a server asks, by the name of its parameter."""
    from mcp import types as known

    types: Any = known

    async def roots(context: Any) -> Any:
        return types.ListRootsResult(roots=[types.Root(uri="file:///sdk")])

    async def sampling(context: Any, params: Any) -> Any:
        words = types.TextContent(type="text", text="sampled")
        return types.CreateMessageResult(role="assistant", content=words, model="m")

    async def elicitation(context: Any, params: Any) -> Any:
        return types.ElicitResult(action="accept", content={"name": "sdk-user"})

    return {"list_roots_callback": roots, "sampling_callback": sampling, "elicitation_callback": elicitation}
