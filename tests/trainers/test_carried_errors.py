import errno
import pickle

from trainers.carried_errors import packed, unpacked
from trainers.errors import NonFiniteLossError, UserCodeError, full_disk


def carried(error: Exception) -> BaseException:
    """The error as it arrives in another process."""
    try:
        raise error
    except Exception as caught:
        return unpacked(pickle.loads(pickle.dumps(packed(caught))))


def test_error_keeps_its_class_its_words_its_place_and_its_reason() -> None:
    try:
        try:
            raise OSError(errno.ENOSPC, "No space left on device", "epoch-0001.pt")
        except OSError as reason:
            raise RuntimeError("unexpected pos 64 vs 0") from reason
    except RuntimeError as error:
        arrived = carried(error)
    assert isinstance(arrived, RuntimeError)
    assert "test_error_keeps" in "".join(arrived.__notes__)
    disk = full_disk(arrived)
    assert disk is not None and disk.filename == "epoch-0001.pt"


def test_error_of_a_class_of_ones_own_that_cannot_be_copied_comes_as_its_words() -> None:
    class Local(Exception):
        pass

    arrived = carried(Local("no such column"))
    assert isinstance(arrived, UserCodeError)
    assert str(arrived) == "Local: no such column"
    assert isinstance(carried(NonFiniteLossError("loss is nan")), NonFiniteLossError)
