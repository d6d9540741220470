"""A Chroma server as the settings name it: its address, and what each request carries to it and to nobody else."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from kbs.common.errors import ConfigurationError

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
"""The name of an HTTP header."""


@dataclass(frozen=True)
class Server:
    """A Chroma server, and who asks it."""

    url: str
    """http://HOST:PORT, or with a path below which it answers."""
    tenant: str = ""
    database: str = ""
    token: str = field(default="", repr=False)
    """Sent as bearer token and as `X-Chroma-Token`."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def without_secrets(self, text: str) -> str:
        """A text in which the token and the values of the headers are left out, also where they are quoted."""
        for secret in (self.token, *self.headers.values()):
            for form in (secret, secret.strip(), json.dumps(secret)[1:-1], repr(secret)[1:-1]):
                text = text.replace(form, "…") if form else text
        return text

    def address(self) -> tuple[str, int, bool]:
        """(scheme, host and path; port; whether TLS is used). Raises `ConfigurationError`."""
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
            raise ConfigurationError(
                "the setting chroma_url is not an address of a Chroma server",
                code="chroma_url",
                hint="Set chroma_url to http://HOST:PORT, or leave it empty for the index on disk; a token belongs"
                " into chroma_token.",
            )
        tls = parts.scheme == "https"
        port = parts.port or (443 if tls else 8000)
        return f"{parts.scheme}://{parts.hostname}:{port}{parts.path.rstrip('/')}", port, tls

    def sent_headers(self) -> dict[str, str]:
        """The headers of each request. Raises `ConfigurationError` where HTTP cannot carry one; HTTP libraries would
        tell its value."""
        token = self.token.strip()  # from a file it comes with a line feed
        sent = {"Authorization": f"Bearer {token}", "X-Chroma-Token": token} if token else {}
        sent |= {name: value.strip() for name, value in self.headers.items()}
        for name, value in sent.items():
            if not (_NAME.fullmatch(name) and value.isascii() and value.isprintable()):
                setting = "chroma_headers" if name in self.headers else "chroma_token"
                raise ConfigurationError(
                    f"the setting {setting} cannot be sent: an HTTP header has a name without spaces, and a value of"
                    " printable ASCII in one line",
                    code="chroma_header",
                    hint="`kopt doctor` shows where each setting comes from.",
                )
        return sent
