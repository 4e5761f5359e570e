"""Tables as people write them: what is read, what is decided about columns, and what is refused."""

import bz2
import gzip
import logging
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from search_spaces.shapes import TableShape
from trainers.data.spec import BUILT_IN_TABLES, DataSpec
from trainers.data.table_cells import cell_values, number_form
from trainers.data.table_columns import NumberColumn, encode_rows
from trainers.data.table_files import read_table, table_header
from trainers.data.table_loading import load_table
from trainers.data.table_sources import check_table_source, count_target_classes
from trainers.data.tables import TableData
from trainers.errors import BadDataError


def written(folder: Path, text: str | bytes, name: str = "table.csv", **fields: Any) -> DataSpec:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return DataSpec(source=str(path), **fields)


def rows(header: str, *cells: str, items: int = 40) -> str:
    """Return a table whose cells are format strings of the row's number i."""
    return "\n".join(
        [header, *(",".join(cell.format(i=i, parity="ab"[i % 2]) for cell in cells) for i in range(items))]
    )


def loaded(spec: DataSpec) -> TableData:
    check_table_source(spec)
    data = load_table(spec)
    assert count_target_classes(spec, None) == (len(data.class_names) or None)
    return data


def column(data: TableData, name: str) -> Any:
    return next(column for column in data.columns if column.name == name)


PLAIN = rows("x,y", "{i}.5", "{parity}")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le"])
def test_encodings_are_told_by_their_mark(tmp_path: Path, encoding: str) -> None:
    mark = "\ufeff" if encoding == "utf-16-le" else ""
    spec = written(
        tmp_path, (mark + rows("stadt,x,y", "Zürich{parity}", "{i}", "{parity}")).encode(encoding), target="y"
    )
    data = loaded(spec)
    assert column(data, "stadt").values == ("Züricha", "Zürichb")
    assert (len(data.train), len(data.validation), len(data.split("test"))) == (24, 8, 8)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.csv.bz2", "t.csv.zst", "t.tsv", "t.tsv.gz", "T.CSV"])
def test_compression_and_separator_are_told_by_name_and_content(tmp_path: Path, name: str) -> None:
    import pyarrow as pa

    content = (PLAIN.replace(",", "\t") if ".tsv" in name else PLAIN).encode()
    packed: dict[str, Callable[[bytes], bytes]] = {
        "gz": gzip.compress,
        "bz2": bz2.compress,
        "zst": lambda text: bytes(pa.compress(text, "zstd")),
    }
    data = loaded(written(tmp_path, packed.get(name.rsplit(".")[-1], bytes)(content), name))
    assert data.input_shape == TableShape(numbers=1)
    assert data.class_names == ("a", "b")


def test_parquet_is_read_with_its_types(tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame(
        {
            "n": [i if i % 5 else None for i in range(40)],
            "flag": [i % 3 == 0 for i in range(40)],
            "day": pd.date_range("2026-01-01", periods=40),
            "kind": pd.Categorical(["red", "blue"] * 20),
            "y": [i / 7 for i in range(40)],
        }
    )
    frame.to_parquet(tmp_path / "table.parquet")
    data = loaded(DataSpec(source=str(tmp_path / "table.parquet")))
    assert data.kind == "numbers"
    assert data.input_shape == TableShape(numbers=3, categories=(3, 3))  # n, day, and whether n is missing
    assert column(data, "flag").values == ("false", "true")
    assert np.isfinite(data.train.numbers_ND).all()


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (b"", "t.csv", "is empty"),
        (b"a,y\n1,2\n3\n", "t.csv", "Row #3: Expected 2 columns, got 1"),
        (b"a,y\n1,2\n3,4,5\n", "t.csv", "Row #3: Expected 2 columns, got 3"),
        (b"1.5,2\n3,4\n", "t.csv", r"begins with numbers \(1.5, 2\)"),
        (b"a,b,a,y\n1,2,3,4\n", "t.csv", "columns 1 and 3 are both named 'a'; rename"),
        ("stadt,y\nZürich,1\nBern,0\n".encode("latin-1"), "t.csv", "iconv -f WINDOWS-1252"),
        ("x,y\n1,Zürich\n2,Bern\n".encode("utf-16-le"), "t.csv", "UTF-16 without a mark"),
        (b"a,y\n\x00\x01,2\n", "t.csv", "NUL"),
        (gzip.compress(PLAIN.encode(), mtime=0)[:-20], "t.csv.gz", "cannot be read"),
        (b"no gzip", "t.csv.gz", "cannot be read"),
        (b"no parquet", "t.parquet", "cannot be read"),
        (b"x", "t.xlsx", r"unknown kind; allowed: iris, .*\.csv, \.tsv or \.parquet"),
        (b"x", "t.tar.gz", "unknown kind"),
    ],
)
def test_file_that_is_no_whole_table_is_refused(tmp_path: Path, content: bytes, name: str, message: str) -> None:
    with pytest.raises(BadDataError, match=message):
        loaded(written(tmp_path, content, name))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_header_may_be_longer_than_what_is_looked_at_first(tmp_path: Path, encoding: str) -> None:
    # in UTF-16, the last byte of each name is that of a line feed
    names = [f"{'a long name ' * 8} {place} \u010a" for place in range(1500)]
    lines = [";".join([*names, "y"]), *(";".join([f"{row},5"] * 1500 + ["ab"[row % 2]]) for row in range(12))]
    path = Path(written(tmp_path, "\n".join(lines).encode(encoding)).source)
    assert table_header(path) == (*names, "y")
    table = read_table(path, only=[names[0], names[-1], "y"])
    assert [cells[11].as_py() for cells in table.columns.values()] == ["11,5", "11,5", "b"]


def test_file_without_an_end_of_a_line_is_refused(tmp_path: Path) -> None:
    spec = written(tmp_path, b"a,b" * 2**23, "table.csv")
    with pytest.raises(BadDataError, match=r"table.csv has no end of a line in its first 16 MiB"):
        table_header(Path(spec.source))


def test_missing_file_is_answered_with_the_nearest_and_all(tmp_path: Path) -> None:
    spec = written(tmp_path, PLAIN)
    with pytest.raises(BadDataError, match=r"did you mean 'table.csv'\? allowed: iris, wine, breast_cancer, diabetes"):
        check_table_source(DataSpec(source=spec.source.replace("table.csv", "tabel.csv")))
    with pytest.raises(BadDataError, match="did you mean 'iris'"):
        check_table_source(DataSpec(source="irirs"))


def test_columns_that_are_not_there_are_refused_together_unread(tmp_path: Path) -> None:
    spec = written(tmp_path, PLAIN, target="yy", ignore=("x", "z"))
    with pytest.raises(BadDataError) as caught:
        check_table_source(spec)
    for part in ("target: no column 'yy'; did you mean 'y'?", "ignore: no column 'z';", "at least one to tell it from"):
        assert part in str(caught.value)


def test_cells_may_hold_separators_breaks_quotes_and_control_characters(tmp_path: Path) -> None:
    text = "note,y\n" + '"a, ""b""\nc",1.5\n' * 20 + f'"{chr(26)}",2.25\n' * 20
    table = read_table(Path(written(tmp_path, text).source))
    assert table.columns["note"].to_pylist() == ['a, "b"\nc'] * 20 + [chr(26)] * 20


def test_words_for_missing_are_categories_among_texts_and_missing_among_numbers(tmp_path: Path) -> None:
    text = "country,x,code\n" + "".join(
        f"{c},{i if i else 'NA'},{i % 30:03d}\n" for i, c in enumerate(["NA", "DE", "None", "FR"] * 15)
    )
    data = loaded(written(tmp_path, text, target="country"))
    assert data.class_names == ("DE", "FR", "NA", "None")
    assert len(data.train) + len(data.validation) + len(data.split("test")) == 60
    assert isinstance(column(data, "x"), NumberColumn)
    assert set(column(data, "code").values) <= {f"{code:03d}" for code in range(30)}
    assert any("leading zeros" in note for note in data.notes)


def test_decimal_comma_is_read_where_commas_do_not_separate(tmp_path: Path) -> None:
    text = "day;temp;y\n" + "".join(f"2026-01-{i % 28 + 1:02d};{20 + i % 9},{i % 10}5;{i % 2}\n" for i in range(60))
    spec = written(tmp_path, text)
    data = loaded(spec)
    temp = column(data, "temp")
    assert (temp.kind, temp.form, column(data, "day").form) == ("number", "decimal_comma", "date")
    first = encode_rows([temp], read_table(Path(spec.source))).numbers_ND[0, 0] * temp.scale + temp.mean
    assert first == pytest.approx(20.05, abs=1e-5)
    assert {"column 'temp' holds numbers with a decimal comma", "column 'day' holds dates; they count as days"} <= set(
        data.notes
    )


@pytest.mark.parametrize(
    ("cells", "separator", "first"),
    [
        (["1,234.5", "7", "12,345,678"], ",", 1234.5),
        (["1.234,5", "7", "12.345.678"], ";", 1234.5),
        (["+1e3", ".5", "5."], ",", 1000.0),
        ([" 4 ", "?", "n/a"], ",", 4.0),
    ],
)
def test_numbers_may_be_written_in_many_ways(tmp_path: Path, cells: list[str], separator: str, first: float) -> None:
    body = "\n".join(f'"{cells[i % 3]}"{separator}{"ab"[i % 2]}' for i in range(40))
    table = read_table(Path(written(tmp_path, f"n{separator}y\n{body}").source))
    form = number_form(table.columns["n"], table.separator)
    assert form is not None
    assert cell_values(table.columns["n"], form)[0] == first


def test_columns_that_say_nothing_are_left_out_and_named(tmp_path: Path) -> None:
    text = rows("id,empty,same,word,x,y", "user-{i}-x", "", "7", "hello", "{i}", "{parity}", items=300)
    data = loaded(written(tmp_path, text))
    assert [found.name for found in data.columns] == ["x"]
    assert [note.split("'")[1] for note in data.notes] == ["id", "empty", "same", "word"]
    with pytest.raises(BadDataError, match="no column says anything about 'y': column 'id' is left out"):
        loaded(written(tmp_path, text, ignore=("x",)))


def test_column_of_numbers_with_a_slip_is_told(tmp_path: Path) -> None:
    text = rows("n,x,y", "{i}", "{i}", "{parity}").replace("\n17,", "\n17a,")
    data = loaded(written(tmp_path, text))
    assert column(data, "n").kind == "category"
    assert any("only because of 1 cells, such as '17a'" in note for note in data.notes)


def test_missing_numbers_are_the_mean_beside_an_indicator(tmp_path: Path) -> None:
    text = "n,x,y\n" + "".join(f"{'' if i % 4 == 1 else i},{i},{'ab'[i % 2]}\n" for i in range(44))
    data = loaded(written(tmp_path, text))
    assert data.input_shape == TableShape(numbers=3)
    everything = np.concatenate([data.split(name).numbers_ND for name in ("train", "validation", "test")])
    assert set(everything[:, 2]) == {0.0, 1.0}
    assert everything[:, 2].sum() == 11
    assert (everything[everything[:, 2] == 1.0, 0] == 0.0).all()


def test_training_split_alone_gives_means_scales_and_categories(tmp_path: Path) -> None:
    data = loaded(written(tmp_path, rows("n,c,y", "{i}", "c{i}", "{parity}", items=60)))
    np.testing.assert_allclose(data.train.numbers_ND.mean(axis=0), 0.0, atol=1e-6)
    np.testing.assert_allclose(data.train.numbers_ND.std(axis=0), 1.0, atol=1e-6)
    assert len(column(data, "c").values) == len(data.train)
    assert (data.validation.categories_NC == 0).all()  # categories that training rows lack


@pytest.mark.parametrize(
    ("targets", "kind", "names"),
    [
        (["yes", "no"], "classes", ("no", "yes")),
        (["True", "False"], "classes", ("False", "True")),
        (["0", "1"], "classes", ("0", "1")),
        (["10", "9", "2.0"], "classes", ("2", "9", "10")),
        (["01", "1"], "classes", ("01", "1")),
        (["0.5", "1"], "numbers", ()),
        ([str(i) for i in range(20)], "classes", tuple(str(i) for i in range(20))),
        ([str(i) for i in range(21)], "numbers", ()),
    ],
)
def test_target_is_classes_or_numbers_by_its_column(
    tmp_path: Path, targets: list[str], kind: str, names: tuple[str, ...]
) -> None:
    text = "x,y\n" + "\n".join(f"{i},{targets[i % len(targets)]}" for i in range(120))
    data = loaded(written(tmp_path, text))
    assert (data.kind, data.class_names, data.num_outputs) == (kind, names, len(names) or 1)
    is_guess = kind == "classes" and len(names) > 2
    assert any("taken as classes" in note for note in data.notes) == is_guess


def test_wanted_kind_of_target_is_kept_or_refused(tmp_path: Path) -> None:
    whole = written(tmp_path, rows("x,y", "{i}", "{i}"))
    assert load_table(whole, "numbers").kind == "numbers"
    with pytest.raises(BadDataError, match=r"at least 3 items.*'0' has 1"):
        load_table(whole, "classes")
    with pytest.raises(BadDataError, match=r"'a', 'b', which are no numbers; .*tabular_classification"):
        load_table(written(tmp_path, PLAIN), "numbers")
    with pytest.raises(BadDataError, match="2000 different values in 2000 rows, too many to be classes"):
        load_table(written(tmp_path, rows("x,y", "{i}", "{i}", items=2000)), "classes")


def test_rows_without_a_target_are_refused_with_their_lines_or_dropped_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = "y,x\n" + "".join(f"{'' if i in (3, 17) else i % 2},{i}\n" for i in range(40))
    with pytest.raises(
        BadDataError, match=r"'y' is missing in 2 of 40 rows: lines 5 and 19; repair.*out: --drop-missing-target"
    ):
        load_table(written(tmp_path, text, target="y"))
    data = load_table(written(tmp_path, text, target="y", drop_missing_target=True))
    assert sum(len(data.split(name)) for name in ("train", "validation", "test")) == 38
    assert data.dropped_rows == 2
    assert "2 rows without a target 'y' are left out" in caplog.text


def test_lines_are_those_of_the_file_where_cells_hold_breaks(tmp_path: Path) -> None:
    text = '\n"x\n1",y\n"a\nb",1.5\n\n"a\nb",inf\na,2.5\nb,\n'
    with pytest.raises(BadDataError, match="in 2 of 4 rows: lines 7 and 10"):
        load_table(written(tmp_path, text))


@pytest.mark.parametrize("word", ["inf", "-inf", " +Infinity", "1e308", "-1e999"])
def test_numbers_without_a_square_are_missing_ones_and_told_with_their_lines(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, word: str
) -> None:
    cells = [f"{word if i in (4, 8) else '' if i == 6 else i},{'' if i == 2 else i % 2}\n" for i in range(40)]
    test = written(tmp_path, f"x,y\n{word},1\n2,0\n", "test.csv").source
    data = load_table(
        written(tmp_path, "x,y\n" + "".join(cells), target="y", drop_missing_target=True, test_source=test)
    )
    assert "column 'x': 2 numbers are infinite or beyond 1e+150 (lines 6 and 10), taken as missing" in caplog.text
    assert "'x' of the test source: 1 number is infinite or beyond 1e+150 (line 2), taken as missing" in caplog.text
    assert len(data.notes) == 2 and column(data, "x").indicates
    inputs = np.concatenate([data.split(name).numbers_ND for name in ("train", "validation", "test")])
    assert np.isfinite(inputs).all() and inputs[:, 1].sum() == 4


def test_infinite_numbers_of_a_file_with_types_are_told_with_their_rows(tmp_path: Path) -> None:
    pyarrow_parquet, pa = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    values = [float("inf") if i == 3 else 1e200 if i == 5 else float("nan") if i == 7 else float(i) for i in range(40)]
    path = tmp_path / "table.parquet"
    pyarrow_parquet.write_table(pa.table({"x": values, "whole": list(range(40)), "y": ["a", "b"] * 20}), path)
    notes = load_table(DataSpec(source=str(path))).notes
    assert notes == ("column 'x': 2 numbers are infinite or beyond 1e+150 (rows 4 and 6), taken as missing",)


@pytest.mark.parametrize("word", ["1e308", "-1e200", "inf"])
def test_target_without_a_square_is_refused_with_its_line(tmp_path: Path, word: str) -> None:
    text = "x,y\n" + "".join(f"{i},{word if i == 7 else i + 0.5}\n" for i in range(40))
    with pytest.raises(
        BadDataError, match=r"'y' is missing, infinite or beyond 1e\+150 in 1 of 40 rows: line 9; repair"
    ):
        load_table(written(tmp_path, text))


def test_target_with_the_largest_numbers_is_standardised_to_finite_ones(tmp_path: Path) -> None:
    data = load_table(written(tmp_path, rows("x,y", "{i}", "{i}.5e148")))
    standard = (data.train.targets_N - data.target_mean) / data.target_scale
    assert standard.mean() == pytest.approx(0.0, abs=1e-12) and standard.std() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("text", "value"), [(rows("y,x", "a", "{i}"), "'a'"), (rows("y,x", "2.5", "{i}"), "2.5")], ids=["class", "number"]
)
def test_target_with_one_value_is_refused(tmp_path: Path, text: str, value: str) -> None:
    with pytest.raises(BadDataError, match=f"target 'y' has 1 value, {value}; there is nothing to tell"):
        load_table(written(tmp_path, text, target="y"))


def test_rare_class_is_trained_only_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    spec = written(tmp_path, "y,x\n" + "".join(f"{'ab'[i % 2]},{i}\n" for i in range(40)) + "c,99\n", target="y")
    first, second = load_table(spec), load_table(spec)
    assert "classes with fewer than 3 items are in the training split alone: 'c' (1)" in caplog.text
    assert (first.train.labels_N == 2).sum() == 1
    assert first.fingerprint == second.fingerprint
    assert load_table(spec.model_copy(update={"split_seed": 1})).fingerprint != first.fingerprint


def test_too_few_rows_for_all_splits_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadDataError, match="needs at least 3 items"):
        load_table(written(tmp_path, "x,y\n1,0.5\n2,0.7\n"))


def test_test_source_is_read_as_the_source_was(tmp_path: Path) -> None:
    written(tmp_path, "y,x\n" + "".join(f"{i % 2}.0,{i}\n" for i in range(20)) + ",5\n", "test.csv")
    spec = written(
        tmp_path,
        "y,x\n" + "".join(f"{i % 2},{i}\n" for i in range(40)),
        target="y",
        test_source=str(tmp_path / "test.csv"),
        drop_missing_target=True,
    )
    data = loaded(spec)
    assert data.class_names == ("0", "1")
    assert (len(data.train), len(data.validation), len(data.split("test"))) == (32, 8, 20)
    assert data.split("test").labels_N.tolist() == [i % 2 for i in range(20)]


def test_test_source_with_other_classes_or_columns_is_refused(tmp_path: Path) -> None:
    test = str(tmp_path / "test.csv")
    spec = written(tmp_path, PLAIN, test_source=test)
    written(tmp_path, "x,y\n1,a\n2,c\n", "test.csv")
    with pytest.raises(BadDataError, match=r"test.csv: 'y' has values that are no class of the training file: 'c'"):
        load_table(spec)
    written(tmp_path, "z,y\n1,a\n2,b\n", "test.csv")
    with pytest.raises(BadDataError, match=r"test.csv has no column 'x'; it has z, y"):
        load_table(spec)
    written(tmp_path, "x\n1\n", "test.csv")
    with pytest.raises(BadDataError, match=r"test.csv has no column 'y', the target"):
        load_table(spec)


def test_test_source_with_numbers_written_otherwise_is_refused(tmp_path: Path) -> None:
    header, test = "x;when;z;y\n", str(tmp_path / "test.csv")
    lines = (f"{i}.5;2024-01-{i + 1:02};{i}.5;{'ab'[i % 2]}\n" for i in range(30))
    spec = written(tmp_path, header + "".join(lines), test_source=test, target="y")
    written(tmp_path, header + "1,5;1.12.2024;1.5;a\n2,5;2.12.2024;oops;b\nNA;;2.5;b\n", "test.csv")
    with pytest.raises(BadDataError) as refused:
        load_table(spec)
    assert str(refused.value) == (
        f"{test}: column 'x' has numbers such as 2050.5 in the training rows, and 2 of 2 cells here are none: '1,5', "
        "'2,5'; column 'when' has numbers such as 2024-12-31 in the training rows, and 2 of 2 cells here are none: "
        "'1.12.2024', '2.12.2024'; write these columns as in the training rows"
    )
    written(tmp_path, header + "NA;;1.5;a\n;;oops;b\n;?;2.5;b\n", "test.csv")
    notes = [note for note in load_table(spec).notes if "of the test source" in note]
    assert [note.rpartition(": ")[2] for note in notes] == ["3 missing", "3 missing", "1 missing"]


def test_later_rows_may_lack_values_and_have_new_ones(tmp_path: Path) -> None:
    text = "y,n,c\n" + "".join(f"{i % 2},{i},{('red', 'blue')[i % 2]}\n" for i in range(40))
    data = loaded(written(tmp_path, text, target="y"))
    table = read_table(Path(written(tmp_path, "n,c\n5,red\n,blue\n7,green\n", "later.csv").source))
    encoded = encode_rows(data.columns, table)
    assert encoded.categories_NC[:, 0].tolist() == [2, 1, 0]
    assert encoded.numbers_ND[1, 0] == 0.0
    assert encoded.notes == {"n": "1 missing", "c": "1 with a value that the training rows lack"}


@pytest.mark.parametrize(("name", "classes"), [("iris", 3), ("wine", 3), ("breast_cancer", 2), ("diabetes", None)])
def test_built_in_tables_need_no_file(name: str, classes: int | None) -> None:
    assert name in BUILT_IN_TABLES
    data = loaded(DataSpec(source=name))
    assert (len(data.class_names) or None) == classes
    assert data.input_shape.categories == ()


def test_data_can_be_shared_and_say_where_they_differ(tmp_path: Path) -> None:
    data = loaded(written(tmp_path, PLAIN))
    copy: TableData = pickle.loads(pickle.dumps(data))
    assert copy.fingerprint == data.fingerprint
    assert copy.columns == data.columns
    with pytest.raises(BadDataError, match="no test split; set test_fraction above 0, or a test_source"):
        load_table(written(tmp_path, PLAIN, test_fraction=0.0)).split("test")


def test_unnamed_column_gets_its_place_as_a_name(tmp_path: Path) -> None:
    assert table_header(Path(written(tmp_path, ",x , y\n0,1,2\n").source)) == ("column 1", "x", "y")


def test_what_was_decided_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    load_table(written(tmp_path, rows("same,x,y", "7", "{i}", "{parity}")))
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING"]
    assert "rows=40 target=y kind=classes numbers=1 categories=0" in caplog.text
