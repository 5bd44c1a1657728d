from colonnade.arrays import Floats, Rows
from colonnade.models.sparse import Columns, Pointers, RowNumbers

def put_in_order(
    pointers: Pointers,
    columns: Columns,
    numbers: Floats,
    order: Rows,
    new_pointers: Pointers,
    new_rows: RowNumbers,
    new_columns: Columns,
    new_numbers: Floats,
) -> None: ...

class Table:
    def __init__(
        self, pointers: Pointers, rows: RowNumbers, columns: Columns, numbers: Floats, width: int, /
    ) -> None: ...
    def scores(self, w: Floats, out: Floats, start: int, end: int, /) -> None: ...
    def gradient(self, theta: Floats, out: Floats, start: int, end: int, /) -> None: ...
    def descend(self, theta: Floats, w: Floats, start: int, end: int, factor: float, /) -> None: ...
