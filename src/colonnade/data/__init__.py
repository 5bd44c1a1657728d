"""Data: from files to each party's numbers."""

from colonnade.arrays import Matrix, Rows
from colonnade.data.catalogue import DATASETS, Dataset, Defaults
from colonnade.data.datasets import DatasetFiles, available, load_dataset, read, verify
from colonnade.data.labels import Labels, Task
from colonnade.data.prepare import Missing, Preparation
from colonnade.data.scaling import Scale
from colonnade.data.split import (
    Parties,
    load_party_files,
    split_by_count,
    split_by_name,
    split_columns,
    train_test_rows,
)
from colonnade.data.table import RawTable, Table, load

__all__ = [
    "DATASETS",
    "Dataset",
    "DatasetFiles",
    "Defaults",
    "Labels",
    "Matrix",
    "Missing",
    "Parties",
    "Preparation",
    "RawTable",
    "Rows",
    "Scale",
    "Table",
    "Task",
    "available",
    "load",
    "load_dataset",
    "load_party_files",
    "read",
    "split_by_count",
    "split_by_name",
    "split_columns",
    "train_test_rows",
    "verify",
]
