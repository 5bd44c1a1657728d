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
def scores(
    pointers: Pointers,
    rows: RowNumbers,
    columns: Columns,
    numbers: Floats,
    w: Floats,
    out: Floats,
    start: int,
    end: int,
    width: int,
) -> None: ...
def gradient(
    pointers: Pointers,
    rows: RowNumbers,
    columns: Columns,
    numbers: Floats,
    theta: Floats,
    out: Floats,
    start: int,
    end: int,
    width: int,
) -> None: ...
