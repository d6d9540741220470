"""Where language models are asked, and with which key: from the settings alone."""

from __future__ import annotations

import re

from kbs.common.errors import ConfigurationError, UsageError
from kbs.common.visible_text import visible
from kbs.language_model.http import check_address
from kbs.language_model.service import Access, Service
from kbs.language_model.wire import Provider
from kopt.services.settings import ModelServices

_ADDRESSES: dict[Provider, str] = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
}
_NAME = re.compile(r"[\x21-\x7e]{1,200}")


def named(given: str, services: ModelServices) -> tuple[Provider, str]:
    """The provider and the bare name of `openai:NAME`, or of NAME alone where only one service is set up.

    Raises UsageError (`model_ambiguous`).
    """
    prefix, colon, rest = given.partition(":")
    return (prefix, rest) if colon and prefix in _ADDRESSES else (_only(given, services), given)


def service_of(given: str, services: ModelServices) -> Service:
    """The service of a model that is named `openai:NAME`, `anthropic:NAME`, or NAME alone.

    Raises UsageError (`model_ambiguous`, `model_invalid`), and what `access` raises.
    """
    provider, name = named(given, services)
    if not _NAME.fullmatch(name):
        raise model_invalid(given)
    return Service(provider, name, access(provider, services))


def model_invalid(given: str) -> UsageError:
    """The error of a name that no model has."""
    return UsageError(
        f"{visible(given)[:80]} is not a model name",
        code="model_invalid",
        hint="Example: openai:NAME, with up to 200 characters and no spaces.",
    )


def access(provider: Provider, services: ModelServices) -> Access:
    """Where a provider's models are asked, and with which key.

    Raises ConfigurationError: `model_key_missing`, `model_key_invalid`, `address_invalid`.
    """
    key_name, address_name = f"{provider.upper()}_API_KEY", f"{provider.upper()}_BASE_URL"
    key, address = _of(provider, services)
    if not key and not address:
        raise ConfigurationError(
            f"no key is set for the service {_ADDRESSES[provider]}",
            code="model_key_missing",
            hint=f"Set {key_name}, or {address_name} to a service that wants no key.",
        )
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise ConfigurationError(
            f"{key_name} holds characters that no key has",
            code="model_key_invalid",
            hint="Set it to the key alone, without quotation marks or further lines.",
        )
    return Access(check_address(address or _ADDRESSES[provider], address_name, has_key=bool(key)), key, key_name)


def _of(provider: Provider, services: ModelServices) -> tuple[str, str]:
    """(key, address) as they are set; empty where they are not."""
    if provider == "openai":
        return services.openai_api_key.get_secret_value().strip(), services.openai_base_url.strip()
    return services.anthropic_api_key.get_secret_value().strip(), services.anthropic_base_url.strip()


def _only(name: str, services: ModelServices) -> Provider:
    """The provider that is set up, for a model that is named without one."""
    there = [provider for provider in _ADDRESSES if any(_of(provider, services))]
    if len(there) == 1:
        return there[0]
    why = "both services have a key or an address" if there else "no service has a key or an address"
    raise UsageError(
        f"which service has the model {visible(name)}: {why}",
        code="model_ambiguous",
        hint=f"Write --model openai:{visible(name)} or --model anthropic:{visible(name)}"
        + ("." if there else ", and set OPENAI_API_KEY or ANTHROPIC_API_KEY."),
    )
