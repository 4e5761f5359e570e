"""Texts in memory: numbered tokens per split, in arrays that processes can share without copies; no torch."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from search_spaces.shapes import TextShape
from trainers.data.spec import DataSpec, SplitName
from trainers.data.splits import cut_splits, fingerprint, present_split
from trainers.data.texts_sources import LabelledTexts, read_texts
from trainers.data.tokenizer import Tokenizer
from trainers.errors import BadDataError

__all__ = ["TextData", "TextSplit", "cut_texts", "load_texts"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSplit:
    """The items of one split, in the order of the source.

    Attributes:
        tokens_T: the tokens of all texts, one text after the other, int32; may be read-only.
        ends_N: where each text ends in `tokens_T`, int64; each has a token at least; may be read-only.
        labels_N: int64 class of each text; may be read-only.
    """

    tokens_T: npt.NDArray[np.int32]
    ends_N: npt.NDArray[np.int64]
    labels_N: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels_N)

    @property
    def lengths_N(self) -> npt.NDArray[np.int64]:
        """Number of tokens of each text."""
        return np.diff(self.ends_N, prepend=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextData:
    """A data set that is ready to train on; picklable, and shared by trials and ranks.

    Attributes:
        source: where it came from, for messages.
        train: what a network learns from.
        validation: what chooses the best trial.
        test: what only a finished search sees; None when the specification leaves it out.
        class_names: name of each class, in the order of the labels.
        tokenizer: turns texts into tokens; learned from the training texts.
        fingerprint: SHA-256 over all splits; equal on two machines only if their data, splits and tokens are.
    """

    source: str
    train: TextSplit
    validation: TextSplit
    test: TextSplit | None
    class_names: tuple[str, ...]
    tokenizer: Tokenizer
    fingerprint: str

    @property
    def input_shape(self) -> TextShape:
        """The longest text and the number of tokens."""
        return TextShape(length=self.tokenizer.length, vocabulary=self.tokenizer.vocabulary)

    @property
    def num_outputs(self) -> int:
        """Number of logits that a network answers with."""
        return len(self.class_names)

    def split(self, name: SplitName) -> TextSplit:
        """Return one split.

        Raises:
            BadDataError: there is no test split.
        """
        split = {"train": self.train, "validation": self.validation, "test": self.test}[name]
        return present_split(split, name, self.source, "set test_fraction above 0, or a test_source")


def load_texts(spec: DataSpec) -> TextData:
    """Read a source and its test source, cut them into splits, and learn their tokens.

    Raises:
        BadDataError: a source is missing, broken, or has too few items in a class.
    """
    texts, test = read_texts(spec)
    return cut_texts(texts, test, spec)


def cut_texts(texts: LabelledTexts, test: LabelledTexts | None, spec: DataSpec) -> TextData:
    """Cut the splits that the sources do not bring, learn the tokens of the training texts, and number all texts.

    Args:
        texts: to train and to validate on, and to test on where `test` is None.
        test: the items of the test split, or None.
        spec: says how.

    Raises:
        BadDataError: fewer than two classes, one too small to be in every split, or an unknown one in the test source.
    """
    class_names = texts.class_names
    if len(class_names) < 2:
        only = f": {class_names[0]!r}" if class_names else "s"
        raise BadDataError(
            f"the target of {spec.source!r} has {len(class_names)} value{only}; a classifier needs at least two"
        )
    splits = _splits(texts, test, spec)
    _warn_of_odd_texts(splits, spec)
    tokenizer = Tokenizer.learned(
        splits["train"].texts, kind=spec.tokens, vocabulary=spec.vocabulary, length=spec.max_length
    )
    numbered = {name: _numbered(split, tokenizer) for name, split in splits.items()}
    logger.info("texts read tokens=%s vocabulary=%d length=%d", tokenizer.kind, tokenizer.vocabulary, tokenizer.length)
    return TextData(
        source=spec.source,
        train=numbered["train"],
        validation=numbered["validation"],
        test=numbered.get("test"),
        class_names=class_names,
        tokenizer=tokenizer,
        fingerprint=fingerprint(
            (class_names, tokenizer.to_json()),
            {name: (split.tokens_T, split.ends_N, split.labels_N) for name, split in numbered.items()},
        ),
    )


def _splits(texts: LabelledTexts, test: LabelledTexts | None, spec: DataSpec) -> dict[SplitName, LabelledTexts]:
    brought: dict[SplitName, LabelledTexts] = {} if test is None else {"test": test}
    cut = cut_splits(texts.labels_N, texts.class_names, spec, brought, small_classes="train")
    return {**{name: texts.at(indices) for name, indices in cut.items()}, **brought}


def _numbered(texts: LabelledTexts, tokenizer: Tokenizer) -> TextSplit:
    pieces = [tokenizer.numbers(text) for text in texts.texts]
    return TextSplit(
        tokens_T=np.concatenate(pieces),
        ends_N=np.cumsum([len(piece) for piece in pieces], dtype=np.int64),
        labels_N=texts.labels_N,
    )


def _warn_of_odd_texts(splits: Mapping[SplitName, LabelledTexts], spec: DataSpec) -> None:
    """Say what is kept, but may be a mistake: texts without a word, and texts to be judged by that were learned."""
    empty = sum(not text for split in splits.values() for text in split.texts)
    if empty:
        logger.warning("empty texts source=%s count=%d each is taken as one unknown token", spec.source, empty)
    known = set(splits["train"].texts)
    for name in sorted(set(splits) - {"train"}):
        twice = sum(text in known for text in splits[name].texts)
        if twice:
            logger.warning(
                "texts of the %s split are among the training texts, too source=%s count=%d of %d",
                name,
                spec.source,
                twice,
                len(splits[name]),
            )
