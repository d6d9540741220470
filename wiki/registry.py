"""The wikis and notes that `kopt ingest PATH` added, kept in KOPT_HOME."""

from __future__ import annotations

import json
from pathlib import Path

from kbs.common.errors import ConfigurationError

REGISTRY = "wikis.json"


def read_registry(home: Path) -> dict[str, str]:
    """name → folder. Raises `ConfigurationError` (`registry_damaged`)."""
    path = home / REGISTRY
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"cannot read {path}: {error}",
            code="registry_damaged",
            hint="Fix or remove it, and add the wikis again with `kopt ingest PATH`.",
        ) from error
    if not isinstance(content, dict) or not all(isinstance(v, str) for v in content.values()):
        raise ConfigurationError(
            f"{path} is not a list of wikis",
            code="registry_damaged",
            hint="Remove it, and add the wikis again with `kopt ingest PATH`.",
        )
    return content
