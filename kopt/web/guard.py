"""Who is let in, and what a page may do in the browser.

Every program of this machine, and every page of the web that its browser shows, reaches the port. So a request must
name this machine as its host, which a page of another name cannot make it do; it must have the cookie, which the token
is exchanged for; and it must not come from a page of another origin, except as a page that the user opens.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable
from http.cookies import SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kopt.services.serving.port import names

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'"
)
"""Nothing but files of this server is fetched, and neither script nor style that stands in a page has any effect."""
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
OPEN = "/static/"
"""Style and script, which hold nothing of the user's: the page that refuses is shown with them."""
_ENTER = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>kopt</title><meta http-equiv="refresh" content="0;url=/"></head>
<body><a href="/">Go on to kopt</a></body></html>
"""
"""A redirect would not do: where the address was opened from another site's page, the browser would leave out the
cookie that it has just been given."""
Refusal = Callable[[Request, int, str, str], Response]
"""Makes the page that says why a request is refused: of the request, status, what is wrong, and what to do."""


class Guard:
    """Wraps the application."""

    def __init__(self, app: ASGIApp, port: int, token: str, refusal: Refusal) -> None:
        self._app = app
        self._hosts = names(port)
        self._origins = tuple(f"http://{name}" for name in self._hosts)
        self._token = token
        self._name = f"kopt-{port}"  # cookies are shared by all ports of a host
        self._cookie = hmac.new(token.encode(), b"cookie", hashlib.sha256).hexdigest()
        self._refusal = refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer why not."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._answer(scope) or self._app
        await answer(scope, receive, guarded)

    def _answer(self, scope: Scope) -> Callable[[Scope, Receive, Send], Awaitable[None]] | None:
        headers, path = Headers(scope=scope), scope["path"]
        request = Request(scope)
        if headers.getlist("host") not in [[name] for name in self._hosts]:
            return self._refusal(request, 421, "This address does not lead here.", f"Open http://{self._hosts[0]}.")
        if scope["method"] not in ("GET", "HEAD"):
            return self._refusal(request, 405, "Pages are only read here.", "What changes anything is a command.")
        if headers.get("origin", self._origins[0]) not in self._origins or not _from_here(headers):
            return self._refusal(request, 403, "Another site's page may not ask kopt.", "Open kopt by its own address.")
        if path.startswith(OPEN):
            return None
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", []) if path == "/" else []
        if given and hmac.compare_digest(given[0].encode(), self._token.encode()):
            entered = HTMLResponse(_ENTER)
            entered.set_cookie(self._name, self._cookie, httponly=True, samesite="strict", path="/")
            return entered
        if self._known(headers):
            return None
        return self._refusal(
            request,
            401,
            "This browser has not been let in.",
            "Open the address with its token that `kopt web` printed; each start makes a new one.",
        )

    def _known(self, headers: Headers) -> bool:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self._name)
        except Exception:  # http.cookies raises several for what is no cookie
            return False
        return found is not None and hmac.compare_digest(found.value.encode(), self._cookie.encode())


def _from_here(headers: Headers) -> bool:
    """Whether the browser says that a page of this server asks, or the user; one of another port of this machine is
    another's. Browsers that say nothing are held by the cookie, which they send from here alone."""
    site = headers.get("sec-fetch-site", "none")
    opened = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    return site in ("none", "same-origin") or opened
