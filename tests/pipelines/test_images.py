"""The Dockerfiles: what they install is what the project says, and whoever runs them is not root."""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatch

import pytest

from tests.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
NAMES = ("Dockerfile", "Dockerfile.cuda")


def steps(name: str) -> list[tuple[str, str]]:
    """(instruction, its words), in order; lines that go on are one."""
    text = re.sub(r"(?m)^\s*#.*\n", "", (ROOT / name).read_text("utf-8")).replace("\\\n", " ")
    found = [line.strip().partition(" ") for line in text.splitlines() if line.strip()]
    return [(word, " ".join(rest.split())) for word, _, rest in found]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_installed_has_the_versions_of_the_project(name: str) -> None:
    installs = [
        part for word, rest in steps(name) if word == "RUN" for part in rest.split("&&") if "pip install" in part
    ]
    assert len(installs) == 2
    pinned = dict(
        line.split("==") for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines() if "==" in line
    )
    for line in installs:
        assert "-c /tmp/constraints.txt" in line
        assert "--no-cache-dir" in line
    assert re.search(r" torch( |$)", installs[0])
    assert "torch" in pinned
    assert any(one.startswith("torch>=") for one in PROJECT["dependencies"])
    assert ('--index-url "$TORCH_INDEX"' in installs[0]) == (name == "Dockerfile")
    assert installs[1].split()[-1] == "/tmp/wheels/*.whl"
    wheels = [rest for word, rest in steps(name) if word == "RUN" and "pip wheel" in rest]
    assert len(wheels) == 1
    assert "--no-deps" in wheels[0]


@pytest.mark.parametrize("name", NAMES)
def test_python_is_one_that_kopt_is_tested_with(name: str) -> None:
    bases = [rest.split()[0] for word, rest in steps(name) if word == "FROM"]
    assert len(set(bases)) == 1
    version = {"python:3.12-slim": "3.12", "nvidia/cuda:13.0.2-devel-ubuntu24.04": "3.12"}[bases[0]]
    assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]
    assert f'"{version}"' in (ROOT / ".github" / "workflows" / "check.yml").read_text("utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_the_index_is_built_and_nobody_writes_the_home(name: str) -> None:
    made = steps(name)
    [variables] = [rest for word, rest in made if word == "ENV"]
    home = re.search(r"KOPT_HOME=(\S+)", variables)
    assert home
    built = next(n for n, (word, rest) in enumerate(made) if word == "RUN" and rest.startswith("kopt ingest"))
    assert f"chmod -R a-w,a+rX {home[1]}" in made[built][1]
    assert "useradd --uid 10001" in made[built][1]
    after = made[built + 1 :]
    assert after == [("USER", "10001"), ("WORKDIR", "/work"), ("ENTRYPOINT", '["kopt"]'), ("CMD", '["--help"]')]
    assert [word for word, _ in made].count("USER") == 1
    assert not any(word in ("ADD", "EXPOSE", "VOLUME") for word, _ in made)
    of_pytorch = ["TORCH_INDEX=https://download.pytorch.org/whl/cpu"] if name == "Dockerfile" else []
    assert [rest for word, rest in made if word == "ARG"] == of_pytorch, "whoever builds chooses nothing else"
    assert not any(re.search(r"curl|wget|http:", rest) for _, rest in made)


def test_what_is_copied_is_there_and_holds_no_more_than_the_wheel_needs() -> None:
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    kept = [line[1:] for line in lines if line.startswith("!")]
    assert lines[1] == "*"
    assert all((ROOT / one).exists() for one in kept)
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert {*wheel["packages"], PROJECT["readme"], *PROJECT["license-files"], "pyproject.toml"} <= set(kept)
    assert set(kept) - {"constraints.txt"} == {
        *wheel["packages"],
        PROJECT["readme"],
        *PROJECT["license-files"],
        "pyproject.toml",
    }
    for name in NAMES:
        for word, rest in steps(name):
            if word == "COPY" and not rest.startswith(("--from=", ". ")):
                assert any(fnmatch(rest.split()[0], one) for one in kept)


def test_what_was_not_built_says_so() -> None:
    assert "NOT BUILT" in (ROOT / "Dockerfile.cuda").read_text("utf-8")
    assert "not built" in (ROOT / "docs" / "pipelines.md").read_text("utf-8")
