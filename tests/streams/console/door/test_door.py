"""The door: who comes in, and what is let through."""

from __future__ import annotations

from ..conftest import Opening, sign_in


async def test_nobody_sees_a_page_before_signing_in(opening: Opening) -> None:
    client = await opening()

    async with client.get("/", allow_redirects=False) as refused:
        assert (refused.status, refused.headers["Location"]) == (303, "/sign-in?next=%2F")
    await sign_in(client)
    async with client.get("/", allow_redirects=False) as let_in:
        assert let_in.status == 200
        assert "anna" in await let_in.text()
