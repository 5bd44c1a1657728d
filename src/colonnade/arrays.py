"""What kinds of arrays there are, named once for all files.

`Floats` are double precision, the numbers of linear and kernel models. `Numbers` are single or double
precision, as a network or a message has them. `Rows` names rows by their place. A `Matrix` is a party's
columns, dense or sparse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # it takes a third of the time in which a party starts, and only types need it here
    from scipy.sparse import csr_array

Floats: TypeAlias = NDArray[np.float64]
Numbers: TypeAlias = NDArray[Any]
Rows: TypeAlias = NDArray[np.int64]
Words: TypeAlias = NDArray[np.uint64]  # elements of the ring of integers modulo 2^64
Digests: TypeAlias = NDArray[np.uint8]  # [rows, 32]: SHA-256 of ids in normal form
Matrix: TypeAlias = "Floats | csr_array"
Arrays: TypeAlias = dict[str, NDArray[Any]]  # what a share stores, by name
