import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image
from pydantic import ValidationError

from trainers.data.arrays import ImageData
from trainers.data.pixels import arrays_to_bytes
from trainers.data.sources import check_image_source, load_images
from trainers.data.spec import DataSpec
from trainers.errors import BadDataError

RNG = np.random.default_rng(0)


def pixels(items: int = 12, *shape: int) -> npt.NDArray[np.uint8]:
    return RNG.integers(0, 256, (items, *(shape or (5, 4))), dtype=np.uint8)


def labels(items: int = 12) -> npt.NDArray[np.int64]:
    return np.arange(items) % 2


def write_npz(path: Path, **arrays: Any) -> DataSpec:
    np.savez(path / "data.npz", **arrays)
    return DataSpec(source=str(path / "data.npz"))


def test_digits_are_cut_into_1078_360_and_359(digits: ImageData) -> None:
    assert (len(digits.train), len(digits.validation), len(digits.split("test"))) == (1078, 360, 359)
    assert digits.input_shape == (1, 8, 8) and digits.num_classes == 10
    assert digits.train.images_NCHW.max() == 255


def test_statistics_come_from_the_training_split_alone(digits: ImageData) -> None:
    values = digits.train.images_NCHW / 255.0
    assert digits.mean == pytest.approx([values.mean()])
    assert digits.std == pytest.approx([values.std()])


def test_fingerprint_repeats_and_tells_splits_apart(digits: ImageData) -> None:
    assert load_images(DataSpec()).fingerprint == digits.fingerprint
    assert load_images(DataSpec(split_seed=1)).fingerprint != digits.fingerprint


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((5, 4), (1, 5, 4)), ((5, 4, 3), (3, 5, 4)), ((3, 5, 4), (3, 5, 4)), ((5, 4, 1), (1, 5, 4))],
)
def test_npz_shapes_become_channels_first(tmp_path: Path, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    spec = write_npz(tmp_path, x=pixels(12, *shape), y=labels())
    check_image_source(spec)
    assert load_images(spec).input_shape == expected


def test_npz_channels_last_pixels_stay_where_they_belong(tmp_path: Path) -> None:
    x = pixels(12, 5, 4, 3)
    data = load_images(write_npz(tmp_path, x=x, y=labels()))
    everything = np.concatenate([data.split(name).images_NCHW for name in ("train", "validation", "test")])
    wanted = sorted(image.transpose(2, 0, 1).tobytes() for image in x)
    assert sorted(image.tobytes() for image in everything) == wanted


@pytest.mark.parametrize(
    "names",
    [
        ("x_train", "y_train", "x_test", "y_test"),
        ("train_images", "train_labels", "test_images", "test_labels"),
    ],
)
def test_npz_test_split_of_the_data_is_kept(tmp_path: Path, names: tuple[str, str, str, str]) -> None:
    test = pixels(4)
    arrays = dict(zip(names, (pixels(20), labels(20), test, labels(4)), strict=True))
    data = load_images(write_npz(tmp_path, **arrays))
    np.testing.assert_array_equal(data.split("test").images_NCHW[:, 0], test)
    assert (len(data.train), len(data.validation)) == (16, 4)


def test_npz_validation_split_of_the_data_is_kept(tmp_path: Path) -> None:
    arrays = {"x_train": pixels(20), "y_train": labels(20), "x_val": pixels(6), "y_val": labels(6)}
    data = load_images(write_npz(tmp_path, **arrays, x_test=pixels(4), y_test=labels(4)))
    assert [len(data.split(name)) for name in ("train", "validation", "test")] == [20, 6, 4]


def test_npz_labels_may_be_texts_columns_or_numbers_with_class_names(tmp_path: Path) -> None:
    texts = load_images(write_npz(tmp_path, x=pixels(), y=np.array(["dog", "cat"] * 6)))
    assert texts.class_names == ("cat", "dog")
    column = load_images(write_npz(tmp_path, x=pixels(), y=labels()[:, None] + 7))
    assert column.class_names == ("7", "8")
    named = load_images(write_npz(tmp_path, x=pixels(), y=labels(), classes=np.array(["no", "yes"])))
    assert named.class_names == ("no", "yes")


@pytest.mark.parametrize("kind", ["U", "S"])
def test_npz_labels_that_are_texts_are_names_of_its_classes(tmp_path: Path, kind: str) -> None:
    pictures = np.stack([np.full((5, 4), 40 * (i % 3), dtype=np.uint8) for i in range(18)])
    words = np.array(["dog", "cat", "ant"] * 6).astype(kind)
    path = write_npz(tmp_path, x=pictures, y=words, classes=np.array(["dog", "ant", "cat"]).astype(kind))
    data = load_images(path)
    assert data.class_names == ("dog", "ant", "cat")
    told = {
        int(image.max()): int(label) for image, label in zip(data.train.images_NCHW, data.train.labels_N, strict=True)
    }
    assert told == {0: 0, 40: 2, 80: 1}


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": pixels(), "labels": labels()}, "holds labels, x; needed: x and y"),
        ({"x": pixels(12, 5), "y": labels()}, "x has shape (12, 5); allowed: (N, height, width)"),
        ({"x": pixels(12, 5, 4, 2), "y": labels()}, "x has shape (12, 5, 4, 2)"),
        ({"x": pixels() * 3.7 - 9.0, "y": labels()}, "needed: integers in [0, 255], floats in [0, 1]"),
        ({"x": np.full((12, 5, 4), np.nan), "y": labels()}, "spans nan to nan"),
        ({"x": pixels(11), "y": labels()}, "train has 11 images and 12 labels"),
        ({"x": pixels(), "y": labels() + 0.5j}, "needed: a whole number or text"),
        ({"x": pixels(), "y": labels() + 0.5}, "y has labels that are no whole numbers: 0.5 (image 0), 1.5 (image 1)"),
        ({"x": pixels(), "y": [0.0, 1.0, np.nan, *[1.0] * 9]}, "no whole numbers: nan (image 2); repair them"),
        ({"x": pixels(), "y": [0.0, *[np.inf] * 5, *[1e30] * 6]}, "no whole numbers: inf (image 1), inf (image 2)"),
        ({"x": pixels(), "y": labels() - 1, "classes": np.array(["a", "b"])}, "outside its 2 classes: [-1] in train"),
        ({"x": pixels(), "y": labels() * 2, "classes": np.array(["a", "b"])}, "labels outside its 2 classes: [2]"),
        (
            {"x": pixels(), "y": np.array(["a", "c"] * 6), "classes": np.array(["a", "b"])},
            "outside its 2 classes: ['c'] in train; it has 'a', 'b'",
        ),
        ({"x": pixels(), "y": labels(), "classes": np.array(["a", "a"])}, "names classes twice: 'a'; give each"),
        ({"x": pixels(), "y": np.array([b"\xff", b"a"] * 6)}, "y holds bytes that are no UTF-8 text"),
        ({"x": pixels(), "y": np.zeros(12, dtype=int)}, "has 1 class; a classifier needs at least two"),
        (
            {"x_train": pixels(), "y_train": labels(), "x_test": pixels(4, 6, 6), "y_test": labels(4)},
            "images of test are (1, 6, 6) and of train (1, 5, 4)",
        ),
        ({"x": np.array([object()] * 12), "y": labels()}, "cannot be read"),
    ],
)
def test_npz_that_cannot_be_trained_on_is_refused(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    with pytest.raises(BadDataError) as caught:
        load_images(write_npz(tmp_path, **arrays))
    assert any(part in str(caught.value) for part in message.split("|"))


def test_npz_that_is_none_is_refused_by_the_check(tmp_path: Path) -> None:
    (tmp_path / "data.npz").write_text("no zip")
    with pytest.raises(BadDataError, match=r"is no \.npz file"):
        check_image_source(DataSpec(source=str(tmp_path / "data.npz")))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([True, False]), [255, 0]),
        (np.array([0.0, 0.5, 1.0]), [0, 128, 255]),
        (np.array([0, 200], dtype=np.int64), [0, 200]),
        (np.array([0.0, 200.0]), [0, 200]),
        (np.array([0, 65535, 257], dtype=np.uint16), [0, 255, 1]),
        (np.array([0, 200], dtype=np.uint16), [0, 200]),
    ],
)
def test_numbers_of_every_kind_become_bytes(values: npt.NDArray[Any], expected: list[int]) -> None:
    assert arrays_to_bytes(values, "x").tolist() == expected


def write_folder(root: Path, pictures: dict[str, Image.Image], suffix: str = ".png") -> DataSpec:
    """Write each picture three times into each of two classes, so that it can be split."""
    for label in ("one", "two"):
        (root / label).mkdir(parents=True, exist_ok=True)
        for name, picture in pictures.items():
            for copy in range(3):
                picture.save(root / label / f"{name}-{copy}{suffix}")
    return DataSpec(source=str(root))


def first_image(spec: DataSpec) -> npt.NDArray[np.uint8]:
    image: npt.NDArray[np.uint8] = load_images(spec).train.images_NCHW[0]
    return image


def test_folder_grey_palette_and_bit_pictures_have_one_meaning(tmp_path: Path) -> None:
    grey = np.tile(np.array([0, 255], dtype=np.uint8), (4, 3))
    picture = Image.fromarray(grey)
    for name, variant in {
        "L": picture,
        "1": picture.convert("1"),
        "LA": picture.convert("LA"),
        "I;16": Image.fromarray(grey.astype(np.uint16) * 257),
        "RGB": picture.convert("RGB"),
        "P": picture.convert("RGB").convert("P"),
        "RGBA": picture.convert("RGBA"),
    }.items():
        image = first_image(write_folder(tmp_path / name.replace(";", "_"), {"a": variant}))
        channels = 1 if name in ("L", "1", "LA", "I;16") else 3
        np.testing.assert_array_equal(image, np.repeat(grey[None], channels, axis=0), err_msg=name)


def test_folder_sixteen_bit_levels_are_scaled_not_cut(tmp_path: Path) -> None:
    deep = np.full((4, 4), 32768, dtype=np.uint16)
    image = first_image(write_folder(tmp_path, {"a": Image.fromarray(deep)}))
    np.testing.assert_array_equal(image, np.full((1, 4, 4), 128, dtype=np.uint8))


def test_folder_transparent_pixels_are_white_in_every_mode(tmp_path: Path) -> None:
    for mode in ("RGBA", "LA", "P"):
        picture = Image.new("RGBA", (4, 4), (10, 10, 10, 0))
        if mode == "P":
            picture = Image.new("P", (4, 4), 0)
            picture.putpalette([10, 10, 10, 20, 20, 20])
            picture.info["transparency"] = 0
        elif mode == "LA":
            picture = picture.convert("LA")
        assert (first_image(write_folder(tmp_path / mode, {"a": picture})) == 255).all(), mode


def test_folder_pictures_are_turned_as_their_exif_says(tmp_path: Path) -> None:
    plain = Image.fromarray(np.repeat(np.array([[0], [255]], dtype=np.uint8), 8, axis=1).repeat(4, axis=0))
    turned = plain.transpose(Image.Transpose.ROTATE_90)
    exif = turned.getexif()
    exif[0x0112] = 6  # to be turned by 90 degrees clockwise
    for label in ("one", "two"):
        (tmp_path / label).mkdir()
        for copy in range(3):
            turned.save(tmp_path / label / f"{copy}.png", exif=exif)
    np.testing.assert_array_equal(first_image(DataSpec(source=str(tmp_path))), np.asarray(plain)[None])


def test_folder_with_one_colour_picture_becomes_colour(tmp_path: Path) -> None:
    spec = write_folder(tmp_path, {"a": Image.new("L", (4, 4), 7), "b": Image.new("RGB", (4, 4), (1, 2, 3))})
    data = load_images(spec)
    assert data.input_shape == (3, 4, 4)
    assert {tuple(image[:, 0, 0]) for image in data.train.images_NCHW} == {(7, 7, 7), (1, 2, 3)}


def test_folder_pictures_are_scaled_to_one_size(tmp_path: Path) -> None:
    spec = write_folder(tmp_path, {"a": Image.new("L", (6, 4), 7), "b": Image.new("L", (9, 9), 7)})
    assert load_images(spec).input_shape == (1, 4, 6)  # that of the first picture
    assert load_images(spec.model_copy(update={"image_size": 5})).input_shape == (1, 5, 5)


def test_folder_splits_of_the_data_are_kept(tmp_path: Path) -> None:
    for split in ("train", "val", "test"):
        write_folder(tmp_path / split, {"a": Image.new("L", (4, 4), 9)})
    data = load_images(DataSpec(source=str(tmp_path)))
    assert [len(data.split(name)) for name in ("train", "validation", "test")] == [6, 6, 6]
    assert data.class_names == ("one", "two")


@pytest.mark.parametrize("names", [("val", "valid"), ("valid", "validation")])
def test_folder_with_two_folders_for_one_split_is_refused_with_both_names(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    for split in ("train", *names):
        write_folder(tmp_path / split, {"a": Image.new("L", (4, 4), 9)})
    spec = DataSpec(source=str(tmp_path))
    for read in (check_image_source, load_images):
        with pytest.raises(BadDataError, match=f"{names[0]} and {names[1]} are all validation; keep one folder"):
            read(spec)


def test_folder_broken_pictures_are_refused_together_by_name(tmp_path: Path) -> None:
    spec = write_folder(tmp_path, {"a": Image.new("RGB", (40, 40), (1, 2, 3))}, ".jpg")
    whole = (tmp_path / "one" / "a-0.jpg").read_bytes()
    (tmp_path / "one" / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "two" / "text.png").write_text("no picture")
    (tmp_path / "two" / "empty.png").write_bytes(b"")
    check_image_source(spec)
    with pytest.raises(BadDataError) as caught:
        load_images(spec)
    assert "3 of 9 pictures cannot be decoded" in str(caught.value)
    assert all(name in str(caught.value) for name in ("cut.jpg", "text.png", "empty.png"))


def test_folder_files_that_are_no_pictures_are_left_out_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spec = write_folder(tmp_path, {"a": Image.new("L", (4, 4), 9)})
    (tmp_path / "one" / "notes.txt").write_text("notes")
    (tmp_path / "one" / ".hidden.png").write_text("hidden")
    assert len(load_images(spec).train) == 2
    assert [record.getMessage() for record in caplog.records] == [
        f"files left out folder={tmp_path / 'one'} count=1 reason=no picture format"
    ]


def test_folder_without_classes_or_pictures_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    with pytest.raises(BadDataError, match="has 1 sub-folders; needed: one per class"):
        check_image_source(DataSpec(source=str(tmp_path)))
    (tmp_path / "two").mkdir()
    check_image_source(DataSpec(source=str(tmp_path)))
    with pytest.raises(BadDataError, match="holds no picture"):
        load_images(DataSpec(source=str(tmp_path)))


def test_unknown_sources_are_answered_with_the_nearest_and_what_is_allowed(tmp_path: Path) -> None:
    with pytest.raises(
        BadDataError, match=r"no data set 'digitz'; did you mean 'digits'\? allowed: digits, an \.npz file"
    ):
        check_image_source(DataSpec(source="digitz"))
    write_npz(tmp_path, x=pixels(), y=labels())
    with pytest.raises(BadDataError, match=f"did you mean {re.escape(repr(str(tmp_path / 'data.npz')))}"):
        check_image_source(DataSpec(source=str(tmp_path / "date.npz")))
    (tmp_path / "table.csv").write_text("a,b")
    with pytest.raises(BadDataError, match="file of an unknown kind; allowed: digits"):
        check_image_source(DataSpec(source=str(tmp_path / "table.csv")))


def test_fractions_that_leave_no_training_items_are_refused() -> None:
    with pytest.raises(ValidationError, match="leave nothing to train on"):
        DataSpec(validation_fraction=0.6, test_fraction=0.4)


@pytest.mark.skipif("AUTOML_BENCH_DATA" not in os.environ, reason="AUTOML_BENCH_DATA names no folder of data sets")
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("fashion_mnist_12k", (1, 28, 28)),
        ("cifar10_16px_12k", (3, 16, 16)),
        ("cifar10_12k_jpeg", (3, 32, 32)),
    ],
)
def test_benchmark_files_load(name: str, shape: tuple[int, int, int]) -> None:
    data = load_images(DataSpec(source=str(Path(os.environ["AUTOML_BENCH_DATA"]) / f"{name}.npz")))
    assert data.input_shape == shape and data.num_classes == 10
    assert [len(data.split(split)) for split in ("train", "validation", "test")] == [8000, 2000, 2000]
