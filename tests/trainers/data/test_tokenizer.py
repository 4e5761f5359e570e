import pytest

from trainers.data.tokenizer import FILLING, UNKNOWN, Tokenizer, TokenKind, characters, words
from trainers.errors import BadDataError

FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467"
SENTENCES = ["the card has not come", "the card is lost", "has the top up come", "the top up is lost"] * 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't stop_it!", ["don", "'", "t", "stop_it", "!"]),
        ("我想查询余额 now", ["我", "想", "查", "询", "余", "额", "now"]),
        ("カードが Abc", ["カ", "ー", "ド", "が", "abc"]),
        ("카드가 아직", ["카드가", "아직"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        (f"good {FAMILY}7", ["good", FAMILY, "7"]),
        ("👍🏽👍", ["👍🏽", "👍"]),
        ("🇩🇪🇫🇷", ["🇩🇪", "🇫🇷"]),
        ("CAFE\u0301 café", ["café", "café"]),
        ("Straße \uff33\uff34\uff32 \ufb01ne", ["strasse", "str", "fine"]),  # full width; a ligature
        (" \t\n\u0301 ", ["\u0301"]),
        ("", []),
    ],
)
def test_words_are_folded_and_never_cut_within_a_character(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("aB  c\n", ["a", "B", " ", "c"]),
        ("e\u0301\u00e9", ["é", "é"]),
        (f"x{FAMILY}我", ["x", FAMILY, "我"]),
        ("", []),
    ],
)
def test_characters_are_what_people_see(text: str, expected: list[str]) -> None:
    assert characters(text) == expected


def test_vocabulary_is_sorted_by_count_and_then_by_text_whatever_the_order_of_the_texts() -> None:
    texts = ["b b b", "c a", "a c", "once"]
    tokenizer = Tokenizer.learned(texts, kind="word")
    assert tokenizer.tokens == ("b", "a", "c")
    assert Tokenizer.learned(texts[::-1], kind="word") == tokenizer


def test_rarest_tokens_are_left_out_of_a_small_vocabulary() -> None:
    tokenizer = Tokenizer.learned(["b b b a a c c"], kind="word", vocabulary=4)
    assert (tokenizer.tokens, tokenizer.vocabulary) == (("b", "a"), 4)


def test_unknown_tokens_have_their_own_number_and_no_text_is_without_one() -> None:
    tokenizer = Tokenizer.learned(["b b b a a"], kind="word", length=3)
    assert tokenizer.numbers("B new a b b").tolist() == [2, UNKNOWN, 3]
    assert tokenizer.numbers("").tolist() == tokenizer.numbers(" \u3000").tolist() == [UNKNOWN]
    assert FILLING == 0


def test_description_holds_all_that_a_tokenizer_is() -> None:
    kinds: tuple[TokenKind, ...] = ("word", "character")
    for kind in kinds:
        tokenizer = Tokenizer.learned([*SENTENCES, f"我想 我想 {FAMILY} {FAMILY}"], kind=kind)
        described = tokenizer.to_json()
        tokens = tuple(str(described["tokens"]).split("\n"))
        assert Tokenizer(kind=kind, length=tokenizer.length, tokens=tokens) == tokenizer
        assert (described["kind"], described["length"]) == (kind, tokenizer.length)


def test_auto_takes_words_that_come_again_and_otherwise_characters() -> None:
    assert Tokenizer.learned(SENTENCES).kind == "word"
    assert (
        Tokenizer.learned(["我想查询余额", "请查询我的余额", "我想转账", "请帮我转账"]).kind == "word"
    )  # 3 of 21 occur once
    names = ["Anders", "Andrea", "Bertil", "Bertrand", "Camilla", "Camille"]
    assert Tokenizer.learned(names).kind == "character"


def test_length_is_that_of_almost_all_texts_in_eights_and_has_a_limit() -> None:
    assert Tokenizer.learned(["a " * 9] * 99 + ["a " * 5000], kind="word").length == 16
    assert Tokenizer.learned(["a " * 5000] * 3, kind="word").length == 512
    assert Tokenizer.learned(["a " * 5000] * 3, kind="word", length=2000).length == 2000


def test_texts_that_share_no_word_are_refused_with_advice() -> None:
    with pytest.raises(BadDataError, match=r"no word occurs twice in the 2 training texts.*tokens=character"):
        Tokenizer.learned(["one", "two"], kind="word")
