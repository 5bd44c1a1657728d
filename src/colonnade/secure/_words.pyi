from colonnade.arrays import Rows, Words
from colonnade.secure.words import Table

def products(
    table: Table, rows: Rows, vectors: Words, scores: Words, weights: Words, sums: Words, cuts: Rows
) -> None: ...
