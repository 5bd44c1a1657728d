"""CIFAR-10: the official binary batches, or mosaics of them as lossless pictures with the labels in JSON.

A row is an image as published: 1,024 red, then 1,024 green, then 1,024 blue values, line by line. It stays
in bytes until a party prepares its own columns.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colonnade.data.table import RawTable
from colonnade.errors import DataError

SIDE, BATCH = 32, 10_000  # pixels of an image, images of a batch
PIXELS = 3 * SIDE * SIDE
BATCHES = {"data_batch": tuple(f"data_batch_{k}" for k in range(1, 6)), "test_batch": ("test_batch",)}
LABELS = {"data_batch": "train_labels.json", "test_batch": "test_labels.json"}  # beside mosaics


def files(*, binary: bool) -> list[str]:
    """Return the names of the files that an edition consists of."""
    names = [name for part in BATCHES.values() for name in part]
    if binary:
        return [f"{name}.bin" for name in names]
    return [f"{name}.webp" for name in names] + [*LABELS.values()]


def read(part: str, batches: Sequence[Path]) -> RawTable:
    """Read the rows of `part` ("data_batch" or "test_batch") from its files, in the official order."""
    loaded = [_binary(path) if path.suffix == ".bin" else _mosaic(path) for path in batches]
    if batches[0].suffix == ".bin":
        y = np.concatenate([whole[:, 0] for whole in loaded]).astype(np.float64)
        X = np.concatenate([whole[:, 1:] for whole in loaded])
    else:
        X = np.concatenate(loaded)
        y = _labels(batches[0].with_name(LABELS[part]), len(X))
    return RawTable("cifar10", tuple(f"p{j}" for j in range(PIXELS)), X, y=y)


def _binary(path: Path) -> NDArray[np.uint8]:
    """Return one official batch: an image a row, its label first."""
    content = np.fromfile(path, dtype=np.uint8)
    if content.size != BATCH * (PIXELS + 1):
        raise DataError(f"{path}: not a binary batch of CIFAR-10, {BATCH} times a label and {PIXELS} values")
    return content.reshape(BATCH, PIXELS + 1)


def _mosaic(path: Path) -> NDArray[np.uint8]:
    """Return one batch from a picture of 100 x 100 images, an image a row."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ModuleNotFoundError:
        raise DataError(
            f"{path}: pictures need the extra 'images' (pip install 'colonnade[images]'); "
            "or fetch the binary batches of CIFAR-10"
        ) from None
    try:
        with Image.open(path) as picture:
            colours: NDArray[np.uint8] = np.asarray(picture.convert("RGB"))
    except (OSError, UnidentifiedImageError) as error:
        raise DataError(f"{path}: cannot be read as a picture ({error})") from error
    if colours.shape != (100 * SIDE, 100 * SIDE, 3):
        raise DataError(f"{path}: {colours.shape[:2]} pixels; a mosaic of CIFAR-10 has 3200 x 3200")
    tiles = colours.reshape(100, SIDE, 100, SIDE, 3).transpose(0, 2, 4, 1, 3)
    return tiles.reshape(BATCH, PIXELS)


def _labels(path: Path, rows: int) -> NDArray[np.float64]:
    """Return the labels in a JSON file, as many as there are rows."""
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
        y = np.array(found, dtype=np.float64)
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{path}: not a JSON list of labels ({error})") from error
    if y.shape != (rows,):
        raise DataError(f"{path}: {y.size} labels for {rows} images")
    return y
