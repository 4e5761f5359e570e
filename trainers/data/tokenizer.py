"""Turns texts into numbered tokens: words or characters, learned from the training texts alone.

Nothing is downloaded, and the same texts give the same tokens everywhere. No text is ever cut within what a person
sees as one character: marks and joined emoji stay with what they belong to.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from trainers.data.spec import TokenChoice
from trainers.errors import BadDataError
from trainers.reporting import JsonValue

__all__ = ["FILLING", "UNKNOWN", "TokenKind", "Tokenizer", "characters", "words"]

TokenKind: TypeAlias = Literal["character", "word"]

FILLING = 0
"""Number that fills up short texts of a batch."""
UNKNOWN = 1
"""Number of every token that is not in the vocabulary, and the only token of an empty text."""
FIRST_TOKEN = 2
MINIMUM_COUNT = 2
"""A token that the training texts hold only once is unknown: nothing general can be learned of it, and so the network
learns what to do with unknown ones."""
LARGEST_UNSEEN_SHARE = 0.25
"""Words are taken while at most this share of the words of new texts is expected to be unknown."""
USUAL_SHARE = 0.99
"""Share of the training texts that are kept whole where no length is asked for."""
LONGEST_BY_ITSELF = 512
"""More tokens of a text are read only where that is asked for: time and memory grow with them."""

_PLAIN_WORDS = re.compile(r"\w+|[^\w\s]")
_JOINER = "\u200d"
# Scripts that are written without spaces between words: Thai, Lao, Myanmar, Khmer, kana, Bopomofo, Han.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u312f\u31a0-\u31ff\u3400-\u9fff\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokenizer:
    """A vocabulary, and how texts are cut into tokens.

    Attributes:
        kind: what a token is.
        length: most tokens that are kept of a text; the rest of it is left out.
        tokens: token number `FIRST_TOKEN` and those after it, the most frequent first.
    """

    kind: TokenKind
    length: int
    tokens: tuple[str, ...]
    _numbers: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Number the tokens."""
        object.__setattr__(self, "_numbers", {token: FIRST_TOKEN + index for index, token in enumerate(self.tokens)})

    @classmethod
    def learned(
        cls, texts: Sequence[str], *, kind: TokenChoice = "auto", vocabulary: int = 20_000, length: int | None = None
    ) -> "Tokenizer":
        """Take the most frequent tokens of the training texts; equally frequent ones in the order of their characters.

        Args:
            texts: the training texts.
            kind: what a token is; `auto`: words, unless too many of them occur only once.
            vocabulary: most numbers, `FILLING` and `UNKNOWN` among them; at least 3.
            length: most tokens of a text; None: as many as 99 of 100 training texts have at most, rounded up to
                a multiple of 8, and at most `LONGEST_BY_ITSELF`.

        Raises:
            BadDataError: no token occurs twice.
        """
        counted = _Counted.of(texts, "character" if kind == "character" else "word")
        if kind == "auto" and counted.share_seen_once > LARGEST_UNSEEN_SHARE:
            counted = _Counted.of(texts, "character")
        frequent = [(-count, token) for token, count in counted.counts.items() if count >= MINIMUM_COUNT]
        if not frequent:
            raise BadDataError(
                f"no {counted.kind} occurs twice in the {len(texts)} training texts, so nothing can be learned of any; "
                "use tokens=character, or more texts"
            )
        return cls(
            kind=counted.kind,
            length=length if length is not None else counted.usual_length,
            tokens=tuple(token for _, token in sorted(frequent)[: vocabulary - FIRST_TOKEN]),
        )

    @property
    def vocabulary(self) -> int:
        """Number of different numbers, `FILLING` and `UNKNOWN` among them."""
        return FIRST_TOKEN + len(self.tokens)

    def numbers(self, text: str) -> npt.NDArray[np.int32]:
        """Return the numbers of a text's tokens: 1 to `length` of them."""
        known = self._numbers
        numbers = [known.get(token, UNKNOWN) for token in _cut(text, self.kind)[: self.length]]
        return np.array(numbers or [UNKNOWN], dtype=np.int32)

    def to_json(self) -> dict[str, JsonValue]:
        """Return a description of plain values; the tokens are one text, since thousands of small ones load slowly."""
        return {"kind": self.kind, "length": self.length, "tokens": "\n".join(self.tokens)}


def words(text: str) -> list[str]:
    """Cut a text into words, without regard to case and form (NFKC), and single signs.

    Each character of a script without spaces is a word, such as a Han character; so is each sign and each emoji.

    Example:
        >>> words("Don't, 我想 👍🏽")
        ['don', "'", 't', ',', '我', '想', '👍🏽']
    """
    folded = _spaced(unicodedata.normalize("NFKC", text).casefold())
    if folded.isascii():
        return _PLAIN_WORDS.findall(folded)
    found: list[str] = []
    inside = False  # whether the last word can go on
    for character in _clusters(folded):
        goes_on = (character[0].isalnum() or character[0] == "_") and not _UNSPACED.match(character)
        if inside and goes_on:
            found[-1] += character
        elif not character.isspace():
            found.append(character)
        inside = goes_on
    return found


def characters(text: str) -> list[str]:
    """Cut a text into what people see as characters (form NFC); white space of any length is one space.

    Example:
        >>> characters("a  e\u0301")
        ['a', ' ', 'é']
    """
    tidy = _spaced(unicodedata.normalize("NFC", text))
    return list(tidy) if tidy.isascii() else list(_clusters(tidy))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """How often each token occurs in some texts, and how many each text has."""

    kind: TokenKind
    counts: Counter[str]
    lengths: npt.NDArray[np.int64]

    @classmethod
    def of(cls, texts: Sequence[str], kind: TokenKind) -> "_Counted":
        counts: Counter[str] = Counter()
        lengths = np.zeros(len(texts), dtype=np.int64)
        for index, text in enumerate(texts):
            tokens = _cut(text, kind)
            counts.update(tokens)
            lengths[index] = len(tokens)
        return cls(kind=kind, counts=counts, lengths=lengths)

    @property
    def share_seen_once(self) -> float:
        """Estimates which share of the tokens of new texts will be new.

        Source: Good 1953, The population frequencies of species and the estimation of population parameters.
        """
        once = sum(1 for count in self.counts.values() if count == 1)
        return once / max(1, self.counts.total())

    @property
    def usual_length(self) -> int:
        longest = int(np.quantile(self.lengths, USUAL_SHARE, method="inverted_cdf"))
        return min(LONGEST_BY_ITSELF, 8 * max(1, -(-longest // 8)))


def _cut(text: str, kind: TokenKind) -> list[str]:
    return words(text) if kind == "word" else characters(text)


def _spaced(text: str) -> str:
    """Return a text with one space for each white space, so that no token holds the end of a line."""
    return " ".join(text.split())


def _clusters(text: str) -> Iterator[str]:
    """Yield the characters of a text, each with the marks and joined emoji that belong to it.

    The rules of Unicode Standard Annex 29 that need no tables of their own: marks and skin tones stay with what stands
    before them, a joiner also takes what follows it, and two regional letters are a flag.
    """
    cluster = ""
    for character in text:
        if cluster and (_extends(character) or cluster[-1] == _JOINER or _completes_flag(cluster, character)):
            cluster += character
        else:
            if cluster:
                yield cluster
            cluster = character
    if cluster:
        yield cluster


def _extends(character: str) -> bool:
    if character < "\u0300":
        return False
    is_mark = unicodedata.category(character)[0] == "M"  # variation selectors, too
    return is_mark or character == _JOINER or "\U0001f3fb" <= character <= "\U0001f3ff"


def _completes_flag(cluster: str, character: str) -> bool:
    return len(cluster) == 1 and _is_regional(cluster) and _is_regional(character)


def _is_regional(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"
