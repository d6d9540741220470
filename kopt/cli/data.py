"""What all JSON under `data` has in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Data(BaseModel):
    """Base of all: descriptions come from the docstrings below the fields."""

    model_config = ConfigDict(use_attribute_docstrings=True, extra="forbid")
