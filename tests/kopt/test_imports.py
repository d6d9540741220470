"""What a command imports: a question starts without torch, a spec without Chroma."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("torch", "chromadb", "transformers", "sentence_transformers", "onnxruntime", "triton", "matplotlib")
PROBE = """
import sys
sys.argv = ["kopt", *{words!r}]
from kopt.cli.main import main
try:
    main()
except SystemExit as done:
    code = done.code
print("\\nLOADED", code, *[name for name in {heavy!r} if name in sys.modules])
"""


@pytest.mark.parametrize(
    ("words", "banned"),
    [
        (["--help"], HEAVY),
        (["spec", "h100-sxm", "hbm_bandwidth"], HEAVY),
        (["spec", "compare", "h100-sxm", "h200-sxm"], HEAVY),
        (["cite", "H100 SXM HBM bandwidth: 3.35 TB/s <- gpu-wiki/hardware/h100-sxm.md:L1"], HEAVY),
        (["ask", "why is my softmax memory-bound on H100", "--json"], tuple(set(HEAVY) - {"chromadb"})),
        (["ask", "what is a long scoreboard stall", "--json"], tuple(set(HEAVY) - {"chromadb"})),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)
def test_heavy_packages_stay_out(built_home: Path, words: list[str], banned: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(words=words, heavy=HEAVY)],
        env={**os.environ, "KOPT_HOME": str(built_home)},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    [line] = [line for line in done.stdout.splitlines() if line.startswith("LOADED")]
    assert not set(line.split()[2:]) & set(banned)
