"""Ids that are brought into one form together are as those that are looked at one by one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.data.prepare.labels import category_codes, category_names
from colonnade.data.read.files import load
from colonnade.data.read.formats import ID_MARK
from colonnade.data.read.ids import identified, normal, normaliser
from colonnade.data.split.split import load_party_files
from colonnade.data.table import RawTable, array_of
from colonnade.errors import DataError
from colonnade.job import Key

WITHOUT_MARK = st.characters(codec="utf-8", exclude_characters=ID_MARK + "\0")
ASCII = st.text(st.characters(max_codepoint=127, exclude_characters=ID_MARK + "\0"), max_size=6)
TEXTS = st.lists(ASCII | st.text(WITHOUT_MARK, max_size=6), min_size=1, max_size=8)
KEYS = st.sampled_from(
    [Key(), Key(trim=False), Key(case="lower"), Key(kind="integer"), Key(kind="integer", trim=False)]
)
NUMBERS = st.lists(st.from_regex(r"[ ]?0{0,3}[0-9]{1,12}(\.0)?[ ]?", fullmatch=True), min_size=1, max_size=8)


def table(ids: list[str]) -> RawTable:
    return RawTable("people.csv", ("age",), np.zeros((len(ids), 1)), np.array(ids, dtype=np.str_))


def one_by_one(ids: list[str], key: Key) -> list[str] | None:
    form = normaliser(key, "id")
    try:
        return [form(text, 0) for text in ids]
    except DataError:
        return None


@given(TEXTS | NUMBERS, KEYS)
def test_forms_of_many_ids_are_those_of_each(ids: list[str], key: Key) -> None:
    ids = np.array(ids, dtype=np.str_).tolist()  # NumPy drops zero characters at the end
    expected = one_by_one(ids, key)
    if expected is None:
        with pytest.raises(DataError):
            normal(table(ids), [key], ["id"])
    else:
        assert normal(table(ids), [key], ["id"]).tolist() == np.array(expected, dtype=np.str_).tolist()


@given(TEXTS)
def test_texts_for_arrow_are_the_same_texts(texts: list[str]) -> None:
    values = np.array(texts, dtype=np.str_)
    assert array_of(values).to_pylist() == values.tolist()
    assert array_of(values.astype(object)).to_pylist() == values.tolist()


def test_no_ids_for_arrow() -> None:
    assert array_of(np.array([], dtype=np.str_)).to_pylist() == []
    assert array_of(np.array(["", ""])).to_pylist() == ["", ""]


def test_a_mark_within_an_id_is_a_letter_like_any_other() -> None:
    for ids in (["a\x1fb", "c"], ["\xe4\x1fb", "c"]):
        assert identified(table(ids), [Key()], ["id"]).rows == 2


def test_a_mark_within_an_id_of_several_columns_is_refused_by_name() -> None:
    with pytest.raises(DataError, match=r"id of row 2 has the character '\\x1f'"):
        identified(table([f"a{ID_MARK}b", f"a{ID_MARK}b{ID_MARK}c"]), [Key(), Key()], ["one", "two"])


@given(st.lists(st.sampled_from(["a", "B ", " b", "", "10", "9", "1.5"]), min_size=1, max_size=30))
def test_codes_are_places_among_the_names(texts: list[str]) -> None:
    values = np.array(texts, dtype=object)
    names = category_names(values)
    assert set(names) == {text.strip() for text in texts} - {""}
    codes = category_codes(values, names)
    assert [names[k] if k >= 0 else "" for k in codes.tolist()] == [text.strip() for text in texts]


IDS = st.lists(
    st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=3), unique=True
)


@given(st.lists(IDS, min_size=2, max_size=3))
def test_joined_rows_are_those_that_all_have_sorted_by_id(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[str]]
) -> None:
    folder: Path = tmp_path_factory.mktemp("joined")
    shared = ["m-1", "\u00e9-2", "Z"]
    paths = {}
    for number, ids in enumerate(files):
        own = [*ids, *shared] if number % 2 else [*shared[::-1], *ids]
        path = folder / f"{number}.csv"
        lines = [f'"{one}",{row}.5' for row, one in enumerate(own)]
        path.write_text("\n".join([f"id,c{number}", *lines]), encoding="utf-8")
        paths[str(number)] = path
    try:
        alone = {party: load(path, id="id") for party, path in paths.items()}
    except DataError:  # two ids that are one in their normal form
        return
    joined = load_party_files(paths, id="id")
    common = sorted(
        set.intersection(*(set(raw.ids.tolist()) for raw in alone.values() if raw.ids is not None))
    )
    for party, raw in joined.items():
        assert raw.ids is not None
        assert raw.ids.tolist() == common
        values = dict(zip(alone[party].ids.tolist(), alone[party].column(f"c{party}").tolist(), strict=True))  # type: ignore[union-attr]
        assert raw.column(f"c{party}").tolist() == [values[one] for one in common]
