"""Sends one HTTP request to a service, with limits on time and size.

No redirection is followed, so that a key goes only to its own address. Requests to this machine use no proxy.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import httpx

from kbs.common.errors import ConfigurationError
from kbs.common.visible_text import visible

MAX_BODY = 8 * 1024 * 1024
"""Bytes of an answer: more than any model writes."""
MAX_ERROR = 64 * 1024
"""Bytes that are read if the status is not 200."""
_CONNECT_SECONDS = 30.0
_UNSENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.ProxyError,
    httpx.WriteError,
    httpx.UnsupportedProtocol,
    httpx.LocalProtocolError,
)
"""Errors of a request that the service did not receive completely."""


@dataclass(frozen=True)
class Received:
    """A status and a body."""

    status: int
    body: bytes
    """Complete with status 200, else its beginning."""
    retry_after: str
    """The header of that name, or empty."""


@dataclass(frozen=True)
class Lost:
    """There was no complete answer."""

    how: Literal["unreachable", "timeout", "flood", "broken"]
    """`unreachable`: the request did not get there. `flood`: more than `MAX_BODY`. `broken`: the connection ended after
    that and before the answer was whole; the service may have worked for it."""
    words: str


_HOST = re.compile(rb"[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]|[0-9A-Fa-f:.]+")
"""A name, as the domain name system has it, or a number."""


def check_address(address: str, name: str, *, has_key: bool) -> str:
    """A service's address without a slash at its end. ConfigurationError `address_invalid`, naming the setting `name`.

    It holds no password and no query, which would stand in messages. With a key it is https, or this machine.
    """
    hint = f"{name} is such as https://api.example.org/v1 or, for a service on this machine, http://127.0.0.1:8000/v1."
    try:
        url = httpx.URL(address.strip())
    except httpx.InvalidURL as error:
        raise ConfigurationError(f"{name} is no address", code="address_invalid", hint=hint) from error
    in_clear = has_key and url.scheme == "http" and not _is_here(url.host)
    wrong = (
        "it does not begin with http:// or https:// and a host" if url.scheme not in ("http", "https") or not url.host
        else "its host is not the name or the number of a machine" if not _HOST.fullmatch(url.raw_host)
        else "its port is not between 1 and 65535" if url.port is not None and not 0 < url.port < 65536
        else "it holds a user or a password" if url.userinfo
        else "it holds a query or a fragment" if url.query or url.fragment
        else "a key would go over the network without encryption" if in_clear
        else ""
    )  # fmt: skip
    if wrong:
        raise ConfigurationError(f"{name} cannot be used: {wrong}", code="address_invalid", hint=hint)
    return str(url).rstrip("/")


def _is_here(host: str) -> bool:
    """Whether a host is this machine, judged by its name or number alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def post(
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    seconds: float,
    take: Callable[[bytes], bool] | None = None,
) -> Received | Lost:
    """Send one request and read the complete answer within `seconds`.

    `take` gets the bytes of an answer with status 200 as they come; the connection ends where it returns False.

    Raises ConfigurationError `proxy_unusable`, `certificates_unusable` if the environment names a proxy or
    certificates that cannot be used.
    """
    talk = _Talk(url, {**headers, "Content-Type": "application/json", "Accept-Encoding": "identity"}, body, take)
    try:
        return asyncio.run(talk.within(seconds))
    except httpx.TransportError as error:
        words = visible(str(error))[:300] or type(error).__name__
        return Lost("unreachable" if isinstance(error, _UNSENT) else "broken", words)


class _Talk:
    def __init__(self, url: str, headers: dict[str, str], body: bytes, take: Callable[[bytes], bool] | None) -> None:
        self.url, self.headers, self.body, self.take = url, headers, body, take

    async def within(self, seconds: float) -> Received | Lost:
        try:
            async with asyncio.timeout(seconds), self._client() as client:
                return await self._with(client)
        except TimeoutError:
            return Lost("timeout", f"no whole answer within {seconds:g} s")

    def _client(self) -> httpx.AsyncClient:
        limits = httpx.Timeout(None, connect=_CONNECT_SECONDS)  # `seconds` bounds the whole
        try:
            return httpx.AsyncClient(timeout=limits, trust_env=not _is_here(httpx.URL(self.url).host))
        except (ImportError, ValueError) as error:  # a kind of proxy that needs another package, or that is none
            raise ConfigurationError(
                "the proxy that the environment names cannot be used",
                code="proxy_unusable",
                hint="See HTTPS_PROXY, HTTP_PROXY and ALL_PROXY; http:// and https:// proxies can be used.",
            ) from error
        except OSError as error:
            raise ConfigurationError(
                f"the certificates that the environment names cannot be used: {error.strerror or error}",
                code="certificates_unusable",
                hint="See SSL_CERT_FILE and SSL_CERT_DIR.",
            ) from error

    async def _with(self, client: httpx.AsyncClient) -> Received | Lost:
        async with client.stream("POST", self.url, headers=self.headers, content=self.body) as response:
            whole = response.status_code == httpx.codes.OK
            most, read = MAX_BODY if whole else MAX_ERROR, bytearray()
            async for chunk in response.aiter_raw():
                read += chunk
                if len(read) > most or (whole and self.take is not None and not self.take(chunk)):
                    break
            if whole and len(read) > most:
                return Lost("flood", f"more than {most:,} bytes")
            return Received(response.status_code, bytes(read[:most]), response.headers.get("retry-after", ""))
