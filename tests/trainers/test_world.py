import pytest

from trainers.world import World, world_in

ADDRESS = {"MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}


def test_ranks_of_torchrun_know_their_places() -> None:
    told = {**ADDRESS, "RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}
    assert world_in(told) == World(rank=5, world_size=8, local_rank=1, local_world_size=4)


def test_rank_without_word_of_its_machine_is_the_only_one_there() -> None:
    assert world_in({**ADDRESS, "RANK": "1", "WORLD_SIZE": "2"}) == World(
        rank=1, world_size=2, local_rank=0, local_world_size=1
    )


@pytest.mark.parametrize(
    "told", [{}, {"RANK": "3"}, {"RANK": "1", "WORLD_SIZE": "2"}, {**ADDRESS, "RANK": "0", "WORLD_SIZE": "1"}]
)
def test_process_is_alone_where_not_all_is_told_or_nobody_else_is_there(told: dict[str, str]) -> None:
    assert world_in(told) is None


@pytest.mark.parametrize(
    "told, words",
    [
        ({"RANK": "first", "WORLD_SIZE": "2"}, "RANK='first' is no whole number"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "RANK=2 of WORLD_SIZE=2"),
        ({"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "1"}, "counted from 0"),
    ],
)
def test_what_cannot_be_a_place_is_refused(told: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        world_in({**ADDRESS, **told})
