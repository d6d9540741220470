"""Which model is asked, and where: out of settings and the environment, and never with the key in a message."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from kbs.common.errors import ConfigurationError, KoptError, UsageError
from kopt.services.models import access
from kopt.services.runs.proposers.models import choose
from kopt.services.settings import ModelServices, Settings, load_settings
from loop.journal.language_model import ModelChoice

KEY = "sk-test-3b1f0c9a7e5d4820bb66"
NAMES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (*NAMES, "KOPT_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KOPT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def services(monkeypatch: pytest.MonkeyPatch, **named: str) -> ModelServices:
    """What the environment says."""
    for name, value in named.items():
        monkeypatch.setenv(name.upper(), value)
    return ModelServices()


def chosen(found: ModelServices, name: str = "", limits: dict[str, Any] | None = None, **settings: Any) -> ModelChoice:
    return choose(name, Settings(**settings), found, **(limits or {}))


@pytest.mark.parametrize(
    ("name", "there", "expected"),
    [
        ("openai:m-1", {"openai_api_key": KEY}, ("openai", "m-1")),
        ("anthropic:m-1", {"anthropic_api_key": KEY, "openai_api_key": KEY}, ("anthropic", "m-1")),
        ("m-1", {"anthropic_api_key": KEY}, ("anthropic", "m-1")),
        ("m-1", {"openai_base_url": "http://127.0.0.1:8000/v1"}, ("openai", "m-1")),
        ("llama3:8b", {"openai_base_url": "http://gpu-box:8000/v1"}, ("openai", "llama3:8b")),
        ("openai:vendor/m-1:free", {"openai_api_key": KEY}, ("openai", "vendor/m-1:free")),
    ],
)
def test_a_model_is_named_with_its_service_or_the_only_one_has_it(
    monkeypatch: pytest.MonkeyPatch, name: str, there: dict[str, str], expected: tuple[str, str]
) -> None:
    found = chosen(services(monkeypatch, **there), name)
    assert (found.provider, found.name) == expected


def test_the_setting_names_the_model_where_the_command_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KOPT_MODEL", "openai:from-the-setting")
    monkeypatch.setenv("KOPT_MODEL_TIMEOUT", "33")
    monkeypatch.setenv("KOPT_MODEL_INPUT_PRICE", "2.5")
    monkeypatch.setenv("KOPT_MODEL_OUTPUT_PRICE", "10")
    found = services(monkeypatch, openai_api_key=KEY)
    values = load_settings().values
    made = choose("", values, found, max_calls=7, max_tokens=5000, max_cost=Decimal("1.5"))
    assert (made.name, made.seconds, made.limits()) == ("from-the-setting", 33.0, "7 calls, 5,000 tokens, 1.5 USD")
    assert made.prices() == "2.5 USD for a million tokens in, 10 USD out"
    assert choose("other", values, found).name == "other"


@pytest.mark.parametrize(
    ("name", "there", "limits", "kind", "code"),
    [
        ("", {"openai_api_key": KEY}, {}, UsageError, "model_missing"),
        ("m-1", {}, {}, UsageError, "model_ambiguous"),
        ("m-1", {"openai_api_key": KEY, "anthropic_api_key": KEY}, {}, UsageError, "model_ambiguous"),
        ("openai:", {"openai_api_key": KEY}, {}, UsageError, "model_invalid"),
        ("openai:two words", {"openai_api_key": KEY}, {}, UsageError, "model_invalid"),
        ("m-1", {"openai_api_key": KEY}, {"max_tokens": 5}, UsageError, "limit_invalid"),
        ("m-1", {"openai_api_key": KEY}, {"max_calls": 0}, UsageError, "limit_invalid"),
        ("m-1", {"openai_api_key": KEY}, {"max_cost": Decimal("Infinity")}, UsageError, "limit_invalid"),
        ("m-1", {"openai_api_key": KEY}, {"max_cost": Decimal(5)}, UsageError, "price_missing"),
        ("openai:m-1", {"anthropic_api_key": KEY}, {}, ConfigurationError, "model_key_missing"),
        ("openai:m-1", {"openai_api_key": f"{KEY}\nmore"}, {}, ConfigurationError, "model_key_invalid"),
        ("openai:m-1", {"openai_api_key": f"“{KEY}”"}, {}, ConfigurationError, "model_key_invalid"),
        (
            "openai:m-1",
            {"openai_api_key": KEY, "openai_base_url": "http://gpu-box:8000/v1"},
            {},
            ConfigurationError,
            "address_invalid",
        ),
    ],
)
def test_what_cannot_be_asked_is_said_without_the_key(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    there: dict[str, str],
    limits: dict[str, Any],
    kind: type[KoptError],
    code: str,
) -> None:
    with pytest.raises(kind) as caught:
        chosen(services(monkeypatch, **there), name, limits)
    assert caught.value.code == code
    assert KEY not in caught.value.message + caught.value.hint


@pytest.mark.parametrize(
    ("provider", "address"), [("openai", "https://api.openai.com/v1"), ("anthropic", "https://api.anthropic.com")]
)
def test_without_an_address_the_providers_own_is_asked(
    monkeypatch: pytest.MonkeyPatch, provider: Any, address: str
) -> None:
    found = services(monkeypatch, **{f"{provider}_api_key": f" {KEY}\n"})
    there = access(provider, found)
    assert (there.address, there.key) == (address, KEY)
    assert KEY not in repr(there) + repr(found)


def test_a_workspace_names_no_model(tmp_path: Path) -> None:
    (tmp_path / "kopt.toml").write_text('model = "openai:m-1"\n', "utf-8")
    with pytest.raises(ConfigurationError, match="may not set"):
        load_settings()
