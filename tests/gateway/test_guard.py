"""Who may come in: Host, Origin, token, cookie, at both doors."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from websockets.exceptions import InvalidStatus

from kandev.gateway.guard import GuardSettings
from tests.gateway.house import House, dial, open_house, serving

TOKEN = "a-token-of-some-length"
PATH = "/api/v1/actions/health.check"


@pytest.fixture
async def closed(tmp_path: Path) -> AsyncIterator[House]:
    """A backend that listens on every address and demands a token."""
    guard = GuardSettings(host="0.0.0.0", token=TOKEN, require_token=True, hosts=frozenset({"build.example"}))
    async with open_house(tmp_path, guard) as opened:
        yield opened


@pytest.mark.proves("CLI-host-origin")
@pytest.mark.parametrize("host", ["127.0.0.1:9", "localhost", "LocalHost:38429", "[::1]:80", "localhost."])
async def test_names_of_the_loopback_are_ours(house: House, host: str) -> None:
    response = await house.http.post(PATH, json={}, headers={"host": host})
    assert response.status_code == 200


@pytest.mark.proves("CLI-host-origin")
@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "10.0.0.1", "", "[", "[::1"])
@pytest.mark.parametrize("path", ["/", "/health", "/metrics", "/openapi.json"])
async def test_a_foreign_host_is_forbidden_everywhere(house: House, host: str, path: str) -> None:
    response = await house.http.get(path, headers={"host": host})
    assert (response.status_code, response.json()["code"]) == (403, "FORBIDDEN")


@pytest.mark.proves("CLI-host-origin")
@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:9999", "http://[", ""])
async def test_a_foreign_origin_is_forbidden(house: House, origin: str) -> None:
    response = await house.http.post(PATH, json={}, headers={"origin": origin})
    assert (response.status_code, response.json()["code"]) == (403, "FORBIDDEN")


async def test_a_page_of_our_own_may_ask(house: House) -> None:
    headers = {"host": "127.0.0.1:5", "origin": "http://127.0.0.1:5"}
    assert (await house.http.post(PATH, json={}, headers=headers)).status_code == 200


@pytest.mark.proves("CLI-host-origin")
async def test_a_websocket_of_a_foreign_page_is_forbidden(address: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with dial(address, origin="http://evil.example"):
            pass
    assert refused.value.response.status_code == 403


@pytest.mark.proves("CLI-token")
@pytest.mark.parametrize("header", ["", "Bearer", "Bearer wrong", "Basic " + TOKEN, "Bearer é"])
async def test_without_the_token_nothing_is_answered(closed: House, header: str) -> None:
    response = await closed.http.post(PATH, json={}, headers={b"authorization": header.encode("latin-1")})
    assert (response.status_code, response.json()["code"]) == (401, "UNAUTHORIZED")
    assert TOKEN not in response.text


@pytest.mark.proves("CLI-token")
async def test_the_token_opens_by_header(closed: House) -> None:
    response = await closed.http.post(PATH, json={}, headers={"authorization": f"Bearer {TOKEN}"})
    assert response.status_code == 200


@pytest.mark.proves("CLI-token", "DOOR-health")
async def test_probes_need_no_token(closed: House) -> None:
    assert (await closed.http.get("/health")).status_code == 200
    assert (await closed.http.get("/metrics")).status_code == 401


@pytest.mark.proves("CLI-token")
async def test_the_login_page_sets_a_cookie_that_opens_and_is_not_the_token(closed: House) -> None:
    first = await closed.http.get("/")
    assert (first.status_code, first.headers["location"]) == (303, "/login")
    assert 'type="password"' in (await closed.http.get("/login")).text
    wrong = await closed.http.post("/login", data={"token": "wrong"})
    assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)
    right = await closed.http.post("/login", data={"token": TOKEN})
    cookie = right.headers["set-cookie"]
    assert right.status_code == 303
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert TOKEN not in cookie
    assert (await closed.http.get("/")).status_code == 200


async def test_a_wrong_cookie_opens_nothing(closed: House) -> None:
    response = await closed.http.get("/metrics", headers={"cookie": "kandev_login=wrong"})
    assert response.status_code == 401


@pytest.mark.proves("CLI-token")
async def test_the_websocket_demands_the_token_too(closed: House) -> None:
    async with serving(closed.app) as address:
        with pytest.raises(InvalidStatus) as refused:
            async with dial(address):
                pass
        assert refused.value.response.status_code == 401
        async with dial(address, additional_headers={"authorization": f"Bearer {TOKEN}"}) as socket:
            assert (await socket.ok("health.check"))["status"] == "ok"


@pytest.mark.parametrize(
    ("host", "status"), [("192.0.2.7:80", 200), ("build.example", 200), ("other.example", 403)]
)
async def test_beyond_loopback_addresses_in_figures_and_given_names_are_ours(
    closed: House, host: str, status: int
) -> None:
    headers = {"host": host, "authorization": f"Bearer {TOKEN}"}
    assert (await closed.http.post(PATH, json={}, headers=headers)).status_code == status


async def test_a_given_token_is_no_reason_for_a_refusal_where_none_is_demanded(house: House) -> None:
    response = await house.http.post(PATH, json={}, headers={"authorization": "Bearer whatever"})
    assert response.status_code == 200
