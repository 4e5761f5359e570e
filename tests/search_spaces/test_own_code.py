"""What a person's own code raises, in words, and where it prints."""

import pytest

from search_spaces.own_code import OWN_CODE_ERRORS, error_in_words, prints_aside


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KeyError("width"), "KeyError: 'width'"),
        (ValueError(), "ValueError"),
        (SystemExit(3), "SystemExit: it called sys.exit(3)"),
        (SystemExit(), "SystemExit: it called sys.exit(None)"),
    ],
    ids=["with text", "without text", "exit", "exit without a code"],
)
def test_error_has_its_kind_and_what_it_says(error: BaseException, words: str) -> None:
    assert error_in_words(error) == words


def test_interrupt_is_no_fault_of_the_code() -> None:
    assert not isinstance(KeyboardInterrupt(), OWN_CODE_ERRORS)


@pytest.mark.parametrize("is_wanted", [True, False])
def test_prints_go_aside_while_it_is_wanted(is_wanted: bool, capsys: pytest.CaptureFixture[str]) -> None:
    with prints_aside(is_wanted):
        print("own")
    print("answer")
    found = capsys.readouterr()
    assert (found.out, found.err) == (("answer\n", "own\n") if is_wanted else ("own\nanswer\n", ""))
