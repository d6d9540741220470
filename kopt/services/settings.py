"""Settings: the one place that reads flags, environment and files.

Order: flags, `KOPT_*` environment variables, `kopt.toml` in the working folder, `config.toml` in KOPT_HOME, defaults.
A workspace is untrusted: its `kopt.toml` may set only what cannot run code or send anything anywhere. The wikis that it
names come after the user's own and replace none of them; `kopt.services.engine` leaves out those that are not trusted.
"""

from __future__ import annotations

import contextlib
import os
import tomllib
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import platformdirs
from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from kbs.common.errors import ConfigurationError

WORKSPACE_FILE = "kopt.toml"
HOME_FILE = "config.toml"
_GONE = {"vector_search": "Remove the line: every search asks Chroma now."}
"""Settings of earlier versions, and what to do about them."""
WORKSPACE_SETTINGS = frozenset({"wikis", "results"})
"""What an untrusted workspace may set."""


class Settings(BaseSettings):
    """What can be set: in files under these names, in the environment as `KOPT_` and the name in capitals."""

    model_config = SettingsConfigDict(env_prefix="KOPT_", extra="forbid", frozen=True, env_parse_none_str="none")

    wikis: tuple[str, ...] = ()
    """Folders of further wikis, read together with the bundled one; a later one overrides pages and values of an
    earlier one. In the environment a JSON list. Without those of `kopt.toml`."""
    embedding_model: str = "all-MiniLM-L6-v2"
    """The default model, or a folder that holds a sentence-transformers model."""
    chroma_url: str = ""
    """Address of a Chroma server, http://HOST:PORT or with a path; empty for the index on disk."""
    chroma_tenant: str = ""
    """Tenant of the Chroma server; empty for its default."""
    chroma_database: str = ""
    """Database of the Chroma server; empty for its default."""
    chroma_token: SecretStr = SecretStr("")
    """Token that the Chroma server wants, sent as a bearer token and as X-Chroma-Token."""
    chroma_headers: dict[str, SecretStr] = Field(default_factory=dict)
    """Further HTTP headers for the Chroma server; in the environment a JSON object."""
    results: int = Field(default=8, ge=1, le=100)
    """How many passages a search returns."""
    experience: str = ""
    """Folder of the experience log, such as one in a shared git repository; empty: `experience` in KOPT_HOME."""
    base_log: bool = True
    """Whether the records that ship with kopt count beside those of the experience log."""
    lock_timeout: float = Field(default=600.0, ge=0, le=86400)
    """Seconds to wait for another process that writes the index."""
    model: str = ""
    """The language model that the proposer `llm` asks: openai:NAME or anthropic:NAME, after the form that its service
    has; NAME alone where only one of the two has a key or an address."""
    model_timeout: float = Field(default=600.0, ge=1, le=86400)
    """Seconds for one answer of it."""
    model_output_tokens: int = Field(default=32000, ge=256, le=1_000_000)
    """Tokens that one answer may have."""
    model_input_price: Decimal | None = Field(default=None, ge=0, le=1_000_000, decimal_places=6)
    """US dollars for a million tokens of a prompt; without both prices no cost is told."""
    model_output_price: Decimal | None = Field(default=None, ge=0, le=1_000_000, decimal_places=6)
    """US dollars for a million tokens of an answer."""

    answer_model: str = ""
    """The language model that puts the answers of `kopt ask` into words, named as `model` is; empty: none."""
    answer_timeout: float = Field(default=120.0, ge=1, le=3600)
    """Seconds for one answer of it."""
    answer_output_tokens: int = Field(default=8000, ge=256, le=1_000_000)
    """Tokens that one answer of it may have, with those that it thinks in."""

    @classmethod
    def settings_customise_sources(  # type: ignore[override]  # pydantic-settings passes every source by its name
        cls, _: type[BaseSettings], init_settings: PydanticBaseSettingsSource, **others: object
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """What `load_settings` has read alone: it knows where each came from."""
        del others
        return (init_settings,)


class ModelServices(BaseSettings):
    """Keys and addresses of the services of language models, from the environment alone, where others read them too."""

    model_config = SettingsConfigDict(extra="ignore", frozen=True)

    openai_api_key: SecretStr = SecretStr("")
    openai_base_url: str = ""
    """Empty for OpenAI's own; any service with chat completions has one."""
    anthropic_api_key: SecretStr = SecretStr("")
    anthropic_base_url: str = ""
    """Empty for Anthropic's own."""


TRUSTING: ContextVar[bool] = ContextVar("TRUSTING", default=False)
"""Whether the command that is running was given `--trust`."""


@dataclass(frozen=True)
class LoadedSettings:
    """The settings in force, and where each came from."""

    values: Settings
    home: Path
    """KOPT_HOME: settings, registered wikis, the index and the log of gaps."""
    workspace: Path
    origins: Mapping[str, str]
    """Setting → `flag`, `environment (KOPT_X)`, the path of a file, or `default`."""

    @property
    def log_folder(self) -> Path:
        """Where the experience log stands."""
        chosen = self.values.experience
        if not chosen:
            return self.home / "experience"
        with contextlib.suppress(RuntimeError):  # ~name where there is no such user: a folder of that name
            return Path(chosen).expanduser().absolute()
        return Path(chosen).absolute()

    @property
    def base_log(self) -> Path | None:
        """The records that ship with kopt; None where they do not count."""
        if not self.values.base_log:
            return None
        from kbs.experience.files import base_log

        return base_log()

    workspace_wikis: tuple[str, ...] = ()
    """Folders that the workspace's `kopt.toml` names as wikis; none where a flag or the environment has `wikis`."""
    trusting: bool = False
    """Whether the workspace's wikis are used for this call without having been trusted (`--trust`)."""


def kopt_home() -> Path:
    """`KOPT_HOME`, or the platform's folder for user data."""
    chosen = os.environ.get("KOPT_HOME")
    if not chosen:
        return Path(platformdirs.user_data_dir("kopt", appauthor=False))
    with contextlib.suppress(RuntimeError):  # ~name where there is no such user: a folder of that name
        return Path(chosen).expanduser().absolute()
    return Path(chosen).absolute()


def debug_requested() -> bool:
    """Whether `KOPT_DEBUG` asks for tracebacks."""
    return os.environ.get("KOPT_DEBUG", "") not in ("", "0")


def load_settings(
    flags: Mapping[str, Any] | None = None, workspace: Path | None = None, home: Path | None = None
) -> LoadedSettings:
    """Read all sources; `home`: another KOPT_HOME. Raises `ConfigurationError` naming the file or variable that is
    wrong."""
    home, folder = home or kopt_home(), workspace or Path.cwd()
    given = {key: value for key, value in (flags or {}).items() if value is not None}
    environment, brought = _environment(), _read_file(folder / WORKSPACE_FILE, home, WORKSPACE_SETTINGS)
    own = _below(home, _read_file(home / HOME_FILE, home, frozenset(Settings.model_fields)))
    named = _folders(brought.pop("wikis", []), folder)
    layers: list[tuple[str, dict[str, Any]]] = [
        ("flag", given),
        ("environment", environment),
        (str(folder / WORKSPACE_FILE), brought),
        (str(home / HOME_FILE), own),
    ]
    origins: dict[str, str] = {}
    for name in Settings.model_fields:
        origin = next((where for where, layer in layers if name in layer), "default")
        origins[name] = f"environment (KOPT_{name.upper()})" if origin == "environment" else origin
    try:
        values = Settings(**{name: value for _, layer in reversed(layers) for name, value in layer.items()})
    except ValidationError as error:
        first = error.errors()[0]
        origin = origins.get(str(first["loc"][0]) if first["loc"] else "", "an unknown source")
        raise ConfigurationError(
            f"the setting {'.'.join(map(str, first['loc']))} from {origin} is wrong: {first['msg']}",
            code="setting_invalid",
            hint="`kopt doctor` shows every setting and where it came from.",
        ) from error
    if "wikis" in given or "wikis" in environment:
        named = ()
    return LoadedSettings(values, home, folder, origins, named, TRUSTING.get())


def _folders(value: Any, workspace: Path) -> tuple[str, ...]:
    """The folders of wikis that a workspace names, from its own folder."""
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ConfigurationError(
            f"the setting wikis from {workspace / WORKSPACE_FILE} is wrong: it is not a list of folders",
            code="setting_invalid",
            hint='Write, for example, wikis = ["docs/gpu-wiki"].',
        )
    return tuple(one if one.startswith("~") else str(workspace / one) for one in value)


def _below(home: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """The user's settings; a wiki without a full path is below KOPT_HOME, never in the folder that one works in."""
    wikis = settings.get("wikis")
    if not isinstance(wikis, list):
        return settings
    return {
        **settings,
        "wikis": [str(home / one) if isinstance(one, str) and not one.startswith("~") else one for one in wikis],
    }


def _environment() -> dict[str, Any]:
    try:
        found = EnvSettingsSource(Settings)()
    except Exception as error:  # pydantic-settings wraps a bad JSON value in an error of its own
        raise ConfigurationError(
            f"cannot read a KOPT_* environment variable: {error}",
            code="setting_invalid",
            hint="Lists and headers are JSON, such as KOPT_WIKIS='[\"/path/to/wiki\"]' and"
            ' KOPT_CHROMA_HEADERS=\'{"X-Team": "kernels"}\'.',
        ) from error
    return {name: value for name, value in found.items() if value is not None}


def _read_file(path: Path, home: Path, allowed: frozenset[str]) -> dict[str, Any]:
    try:
        with path.open("rb") as stream:
            content = tomllib.load(stream)
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, a number too long, a nesting too deep
        raise ConfigurationError(
            f"{path} is not valid TOML: {error}", code="settings_file", hint="Fix or remove the file."
        ) from error
    except OSError as error:
        inside = isinstance(error, NotADirectoryError)  # KOPT_HOME is a file
        raise ConfigurationError(
            f"{path.parent} is not a folder" if inside else f"cannot read {path}: {error.strerror}",
            code="settings_file",
            hint="KOPT_HOME must name a folder that you can write to." if inside else "Check its permissions.",
        ) from error
    for name in content:
        if name not in Settings.model_fields:
            known = ", ".join(sorted(Settings.model_fields))
            raise ConfigurationError(
                f"{path} sets {name!r}, which is {'no longer' if name in _GONE else 'not'} a setting",
                code="setting_unknown",
                hint=_GONE.get(name, f"The settings are {known}."),
            )
        if name not in allowed:
            raise ConfigurationError(
                f"{path} sets {name!r}, which a workspace may not set",
                code="setting_not_allowed",
                hint=f"Set it in {home / HOME_FILE} or as KOPT_{name.upper()}.",
            )
    return content
