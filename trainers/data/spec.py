"""Which data a search trains on, and how they are cut into train, validation and test."""

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = ["BUILT_IN_IMAGES", "BUILT_IN_SOURCES", "BUILT_IN_TABLES", "DataSpec", "SplitName", "TokenChoice"]

SplitName: TypeAlias = Literal["train", "validation", "test"]
TokenChoice: TypeAlias = Literal["auto", "character", "word"]

BUILT_IN_IMAGES = ("digits",)
"""Images that come with scikit-learn."""
BUILT_IN_TABLES = ("iris", "wine", "breast_cancer", "diabetes")
"""Tables that come with scikit-learn."""
BUILT_IN_SOURCES = (*BUILT_IN_IMAGES, *BUILT_IN_TABLES)
"""Data that come with an installed library; every other source is a path."""


class DataSpec(BaseModel):
    """Names a data set and fixes its three splits.

    The splits depend on `split_seed` and the data alone, so that all trials, ranks and machines see the same
    ones, and the test split stays unseen by a search.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    source: str = "digits"
    """Images: `digits` (1,797 real images of 8x8 pixels that come with scikit-learn), an `.npz` file, or a folder
    with one sub-folder of images per class. Tables and texts: a `.csv`, `.tsv` or `.parquet` file; texts also a folder
    with one sub-folder of `.txt` files per class."""
    test_source: str | None = None
    """A file or folder of the same kind whose items are the test split. Default: the split is cut from the data."""
    target: str | None = None
    """Column of a table that is to be told. Default: the last one that is not the text."""
    text: str | None = None
    """Column of a table that holds the texts. Default: the one named `text`, or the one with the longest texts."""
    tokens: TokenChoice = "auto"
    """What a text is cut into; `auto`: words, or characters where more than a quarter of the words of the training
    texts occur there only once, because then as many words of new texts would be unknown."""
    vocabulary: Annotated[int, Field(ge=3)] = 20_000
    """Most different tokens of texts, the filling and the unknown one among them; the rarest are left out."""
    max_length: Annotated[int, Field(ge=1)] | None = None
    """Most tokens that are read of a text. Default: as many as 99 of 100 training texts have at most, up to 512."""
    ignore: tuple[str, ...] = ()
    """Columns of a table that are left out, such as identifiers."""
    drop_missing_target: bool = False
    """Whether rows without a value to tell are left out; otherwise they are refused."""
    image_size: Annotated[int, Field(ge=1)] | None = None
    """Height and width, in pixels, that the images of a folder are scaled to; arrays (`digits`, `.npz`) keep their
    size. Default: the size of the first image."""
    validation_fraction: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.2
    """Share of all items that choose the best trial; taken from the training items when a test split comes
    with the data."""
    test_fraction: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.2
    """Share of all items that only the finished search sees; ignored when the data bring a test split."""
    split_seed: int = 0
    """Seed of the stratified split."""

    @model_validator(mode="after")
    def _leave_training_items(self) -> "DataSpec":
        if self.validation_fraction + self.test_fraction >= 1.0:
            raise ValueError(
                f"validation_fraction={self.validation_fraction} and test_fraction={self.test_fraction} "
                "leave nothing to train on; together they must be below 1"
            )
        return self
