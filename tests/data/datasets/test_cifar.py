"""CIFAR-10 in both editions: what the mosaics hold is the official binary version, byte for byte."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from colonnade.data.datasets import cifar
from colonnade.data.datasets.loading import available, load_dataset
from colonnade.errors import DataError


def write_binary(folder: Path, seed: int = 0) -> NDArray[np.uint8]:
    rng = np.random.default_rng(seed)
    for name in cifar.files(binary=True):
        whole = rng.integers(0, 256, (cifar.BATCH, cifar.PIXELS + 1), dtype=np.uint8)
        whole[:, 0] %= 10
        whole.tofile(folder / name)
    return whole  # the test batch


def test_binary_batches_are_labels_and_planes_of_colour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "cifar10"
    folder.mkdir()
    last = write_binary(folder)
    monkeypatch.setenv("COLONNADE_DATA", str(tmp_path))
    assert available("cifar10")
    found = load_dataset("cifar10")
    assert found.train.rows == 50_000
    assert found.test is not None
    assert found.test.y is not None
    np.testing.assert_array_equal(found.test.values, last[:, 1:])
    np.testing.assert_array_equal(found.test.y, last[:, 0])
    (folder / "test_batch.bin").write_bytes(b"short")
    with pytest.raises(DataError, match="not a binary batch of CIFAR-10"):
        load_dataset("cifar10")


def test_a_mosaic_is_cut_into_images(tmp_path: Path) -> None:
    from PIL import Image

    rng = np.random.default_rng(1)
    picture = rng.integers(0, 256, (3200, 3200, 3), dtype=np.uint8)
    Image.fromarray(picture).save(tmp_path / "test_batch.png")
    (tmp_path / "test_labels.json").write_text(str([k % 10 for k in range(10_000)]))
    table = cifar.read("test_batch", [tmp_path / "test_batch.png"])
    image = table.values[203].reshape(3, 32, 32)  # third row of images, the fourth in it
    np.testing.assert_array_equal(image, picture[64:96, 96:128].transpose(2, 0, 1))
    assert table.y is not None
    assert table.y[203] == 3
    (tmp_path / "test_labels.json").write_text("[1, 2]")
    with pytest.raises(DataError, match="2 labels for 10000 images"):
        cifar.read("test_batch", [tmp_path / "test_batch.png"])


def test_the_mosaics_hold_the_official_bytes() -> None:
    if not available("cifar10"):
        pytest.skip("CIFAR-10 is not on this machine")
    test = load_dataset("cifar10").test
    assert test is not None
    assert test.y is not None
    whole = np.hstack([test.y[:, None].astype(np.uint8), test.values])
    official = "803d5f7f4d78ea53de84dbe85f74fb6d"  # md5 of test_batch.bin
    assert hashlib.md5(whole.tobytes(), usedforsecurity=False).hexdigest() == official


def test_a_mosaic_without_pillow_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(DataError, match=r"pip install 'colonnade\[images\]'"):
        cifar.read("test_batch", [tmp_path / "test_batch.png"])
