import logging
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from trainers.data.spec import DataSpec
from trainers.data.texts import TextData, load_texts
from trainers.data.texts_sources import check_text_source, count_text_classes
from trainers.errors import BadDataError

FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467"
OPINIONS = (f"good {FAMILY}", "bad e\u0301")
EMOJI = "y,text\n" + "".join(f"{i % 2},{OPINIONS[i % 2]} {i}\n" for i in range(40))


def table(folder: Path, content: str, name: str = "data.csv", encoding: str = "utf-8", **fields: object) -> DataSpec:
    (folder / name).write_bytes(content.encode(encoding))
    return DataSpec.model_validate({"source": str(folder / name), **fields})


def rows(*more: str, items: int = 40) -> str:
    """Return a table of two classes, and further lines."""
    plain = [f"the {'good' if i % 2 else 'bad'} one {i % 7},{'yes' if i % 2 else 'no'}" for i in range(items)]
    return "\n".join(["words of it,verdict", *plain, *more]) + "\n"


def tokens(data: TextData, split: str = "train", item: int = 0) -> list[int]:
    own = getattr(data, split)
    start = 0 if item == 0 else own.ends_N[item - 1]
    return [int(token) for token in own.tokens_T[start : own.ends_N[item]]]


def test_table_is_cut_by_class_and_numbered(tmp_path: Path) -> None:
    data = load_texts(table(tmp_path, rows()))
    assert (len(data.train), len(data.validation), len(data.split("test"))) == (24, 8, 8)
    assert data.class_names == ("no", "yes")
    assert np.bincount(data.validation.labels_N).tolist() == [4, 4]
    assert data.input_shape == (8, data.tokenizer.vocabulary)
    assert (data.train.lengths_N == 4).all()
    first = [data.tokenizer.tokens[number - 2] for number in tokens(data)]
    assert first[0] == "the" and first[1] == ("good" if data.train.labels_N[0] else "bad")


def test_columns_are_found_by_name_or_by_length(tmp_path: Path) -> None:
    lines = [f"{i},{'a' if i % 2 else 'b'},long text number {i % 5}" for i in range(20)]
    spec = table(tmp_path, "\n".join(["id,label,words", *lines]))
    data = load_texts(spec)
    assert data.class_names == ("a", "b")  # the last column that is not the text
    named = load_texts(spec.model_copy(update={"text": "words", "target": "label", "ignore": ("id",)}))
    assert named.fingerprint == data.fingerprint
    assert count_text_classes(spec) == 2


def test_test_source_is_the_test_split_and_has_the_same_classes(tmp_path: Path) -> None:
    table(tmp_path, rows(items=10), "test.csv")
    spec = table(tmp_path, rows(), test_source=str(tmp_path / "test.csv"))
    data = load_texts(spec)
    assert (len(data.train), len(data.validation), len(data.split("test"))) == (32, 8, 10)

    table(tmp_path, rows("what,perhaps", items=10), "test.csv")
    with pytest.raises(BadDataError, match=r"test.csv.*'perhaps'"):
        load_texts(spec)


def test_tokens_are_learned_from_the_training_texts_alone(tmp_path: Path) -> None:
    (tmp_path / "test.csv").write_text("words of it,verdict\nunheard unheard unheard good,yes\n")
    data = load_texts(table(tmp_path, rows(), test_source=str(tmp_path / "test.csv")))
    assert "unheard" not in data.tokenizer.tokens
    assert tokens(data, "test")[:3] == [1, 1, 1]


def test_missing_labels_are_refused_with_their_lines_or_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spec = table(tmp_path, rows('"two\nlines",', "another,  "))
    with pytest.raises(BadDataError, match=r"2 of 42 texts have no value .*'verdict' \(lines 42 and 44\)"):
        load_texts(spec)
    data = load_texts(spec.model_copy(update={"drop_missing_target": True}))
    assert len(data.train) + len(data.validation) + len(data.split("test")) == 40
    assert "rows without a target left out" in caplog.text and "count=2" in caplog.text


def test_one_class_is_refused(tmp_path: Path) -> None:
    spec = table(tmp_path, "text,y\n" + "good thing,a\n" * 9)
    with pytest.raises(BadDataError, match=r"target of .* has 1 value: 'a'"):
        load_texts(spec)


def test_rare_class_is_trained_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = load_texts(table(tmp_path, rows("a rare one,perhaps")))
    assert data.class_names == ("no", "perhaps", "yes")
    assert [int((data.split(name).labels_N == 1).sum()) for name in ("train", "validation", "test")] == [1, 0, 0]
    assert "perhaps" in caplog.text


def test_labels_na_and_numbers_are_classes(tmp_path: Path) -> None:
    data = load_texts(table(tmp_path, rows(*["the third,NA"] * 5)))
    assert data.class_names == ("NA", "no", "yes")
    (tmp_path / "test.csv").write_text("text,y\nthe one,0.0\nthe one,1.0\n")
    numbers = "text,y\n" + "".join(f"the one,{i % 2}\n" for i in range(20))
    data = load_texts(table(tmp_path, numbers, "0.csv", test_source=str(tmp_path / "test.csv")))
    assert data.class_names == ("0", "1") and data.split("test").labels_N.tolist() == [0, 1]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_byte_order_marks_are_no_part_of_the_text(tmp_path: Path, encoding: str) -> None:
    plain = load_texts(table(tmp_path, rows()))
    assert load_texts(table(tmp_path, rows(), "marked.csv", encoding)).fingerprint == plain.fingerprint


def test_empty_and_repeated_texts_are_kept_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = load_texts(table(tmp_path, rows(*[",yes"] * 10)))
    assert "empty texts" in caplog.text and "count=10" in caplog.text
    assert data.train.lengths_N.min() == 1
    assert "are among the training texts" in caplog.text  # the texts of `rows` repeat


def test_fingerprint_follows_items_splits_and_tokens(tmp_path: Path) -> None:
    spec = table(tmp_path, rows())
    same = load_texts(spec)
    others: list[dict[str, object]] = [{"split_seed": 1}, {"tokens": "character"}, {"vocabulary": 5}, {"max_length": 2}]
    prints = {load_texts(spec.model_copy(update=change)).fingerprint for change in others}
    assert len(prints) == 4 and load_texts(spec).fingerprint == same.fingerprint not in prints
    assert pickle.loads(pickle.dumps(same)).fingerprint == same.fingerprint


def test_texts_of_all_scripts_are_read_alike_in_a_plain_locale(tmp_path: Path) -> None:
    spec = table(tmp_path, EMOJI)
    code = (
        "import logging; logging.basicConfig(); from trainers.data.spec import DataSpec\n"
        "from trainers.data.texts import load_texts\n"
        f"data = load_texts(DataSpec(source={spec.source!r}))\n"
        "print(data.fingerprint, ascii(data.tokenizer.tokens))"
    )
    environment = os.environ | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    data = load_texts(spec)
    assert run.stdout.split()[0] == data.fingerprint
    assert ascii(FAMILY)[1:-1] in run.stdout and {FAMILY, "é"} <= set(data.tokenizer.tokens)


def fill(folder: Path, **classes: int) -> Path:
    for name, items in classes.items():
        (folder / name).mkdir(parents=True)
        for item in range(items):
            (folder / name / f"{item}.txt").write_text(f"the {name} text number {item}\n", encoding="utf-8")
    return folder


def test_folder_has_a_class_per_sub_folder(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = fill(tmp_path / "train", good=10, bad=10)
    (folder / "good" / "notes.doc").write_bytes(b"\0")
    (folder / ".hidden").mkdir()
    spec = DataSpec(source=str(folder), test_source=str(fill(tmp_path / "test", bad=2, good=1)))
    check_text_source(spec)
    with caplog.at_level(logging.WARNING):
        data = load_texts(spec)
    assert data.class_names == ("bad", "good") and count_text_classes(spec) == 2
    assert data.split("test").labels_N.tolist() == [0, 0, 1]
    assert "files left out" in caplog.text


def test_folder_names_all_broken_files(tmp_path: Path) -> None:
    folder = fill(tmp_path, good=2, bad=2, empty=0)
    for name in ("good", "bad"):
        (folder / name / "0.txt").write_bytes(b"caf\xe9")
    with pytest.raises(BadDataError, match=r"bad/0.txt cannot be read as UTF-8.*empty holds no .txt.*good/0.txt"):
        load_texts(DataSpec(source=str(folder)))


def test_folder_of_splits_is_refused_with_advice(tmp_path: Path) -> None:
    for split in ("train", "test"):
        fill(tmp_path / split, good=2, bad=2)
    with pytest.raises(BadDataError, match=r"a folder per split \(test, train\); give .*train as source and .*test as"):
        check_text_source(DataSpec(source=str(tmp_path)))


def test_sources_that_cannot_be_are_refused_unread(tmp_path: Path) -> None:
    spec = table(tmp_path, rows())
    (tmp_path / "data.json").write_text("{}")
    cases: tuple[tuple[dict[str, object], str], ...] = (
        ({"source": str(tmp_path / "date.csv")}, r"no data set .*did you mean 'data.csv'.*allowed: a .csv"),
        ({"source": str(tmp_path / "data.json")}, "of an unknown kind; allowed"),
        ({"text": "word of it"}, r"text: no column 'word of it'; did you mean 'words of it'"),
        ({"target": "verdikt", "text": "verdict"}, r"target: no column 'verdikt'; did you mean 'verdict'"),
        ({"target": "verdict", "text": "verdict"}, "text and target are both 'verdict'"),
        ({"ignore": ("verdict",)}, "a column of texts and one to tell are needed"),
        ({"test_source": str(fill(tmp_path / "test", a=1, b=1))}, "allowed: two files or two folders"),
    )
    for change, message in cases:
        with pytest.raises(BadDataError, match=message):
            check_text_source(spec.model_copy(update=change))
