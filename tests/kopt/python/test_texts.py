"""What is no text where a text is wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import kopt


@pytest.mark.parametrize("call", [kopt.ask, kopt.search, kopt.cite, kopt.recommend])
def test_what_is_no_text_is_a_type_error(call: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="is a str, not int"):
        call(5)
