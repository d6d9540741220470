"""A kernel's language is told by what it imports; where what it needs is missing, that is said."""

from __future__ import annotations

import sys

import pytest

from evaluator.source import languages
from evaluator.source.languages import HIP, check_language, language_of, language_words
from evaluator.source.source_file import SourceFile
from kbs.common.errors import ConfigurationError

KERNEL = 'extern "C" void solve(float *x) {}\n'


@pytest.mark.parametrize(
    ("name", "text", "language"),
    [
        ("a.py", "import tilelang.language as T\n", "TileLang"),
        ("a.py", "def f():\n    from tilelang import jit\n", "TileLang"),
        ("a.py", "from cutlass import cute\n", "CuTe DSL"),
        ("a.py", "import cutlass.cute as cute\n", "CuTe DSL"),
        ("a.py", "import flydsl.compiler as flyc\n", "FlyDSL"),
        ("a.hip", KERNEL, "HIP C++"),
        ("a.cu", f"#include <hip/hip_runtime.h>\n{KERNEL}", "HIP C++"),
        ("a.py", "import triton\n# import tilelang\n", None),
        ("a.py", "'import flydsl'\n", None),
        ("a.py", "import flydsl_like\n", None),
        ("a.py", "def (", None),
        ("a.cu", KERNEL, None),
    ],
)
def test_what_a_file_imports_tells_its_language(name: str, text: str, language: str | None) -> None:
    found = language_of(SourceFile(name=name, text=text))
    assert (found.name if found else None) == language


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    source = SourceFile(name="a.py", text="import tilelang\n")
    monkeypatch.setattr(languages.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ConfigurationError) as caught:
        check_language(source)
    assert caught.value.exit_code == 5
    assert f"a.py is written in TileLang, and {sys.executable} has no module tilelang" in caught.value.message
    assert "pip install tilelang" in caught.value.hint
    monkeypatch.setattr(languages.importlib.util, "find_spec", lambda _: object())
    check_language(source)
    assert language_words(source, "torch") == "TileLang, backend torch"
    with pytest.raises(ConfigurationError, match=r"HIP C\+\+"):
        check_language(SourceFile(name="a.hip", text=KERNEL))
    assert "HIP_PLATFORM=nvidia" in HIP.install
