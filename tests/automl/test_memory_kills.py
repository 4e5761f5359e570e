"""Which counter of the kernel tells that a process near this one was ended for want of memory."""

from pathlib import Path

import pytest

from automl.memory_kills import MemoryKills, memory_kills


def written(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_own_group_counts_and_no_foreign_one(tmp_path: Path) -> None:
    own = written(tmp_path / "own", "0::/user/job\n")
    written(tmp_path / "groups/user/memory.events", "low 0\noom 9\noom_kill 9\n")
    counter = written(tmp_path / "groups/user/job/memory.events", "low 0\noom 3\noom_kill 2\noom_group_kill 0\n")
    assert memory_kills(root=tmp_path / "groups", own=own) == MemoryKills(counter, 2)


def test_older_groups_count_in_a_file_of_another_name(tmp_path: Path) -> None:
    own = written(tmp_path / "own", "9:memory:/job\n1:name=systemd:/job\n0::/\n")
    counter = written(
        tmp_path / "groups/memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n"
    )
    assert memory_kills(root=tmp_path / "groups", own=own) == MemoryKills(counter, 4)


def test_container_that_sees_its_own_group_as_the_root_counts_there(tmp_path: Path) -> None:
    own = written(tmp_path / "own", "9:memory:/containers/42\n")
    counter = written(tmp_path / "groups/memory/memory.oom_control", "under_oom 0\noom_kill 1\n")
    assert memory_kills(root=tmp_path / "groups", own=own) == MemoryKills(counter, 1)


@pytest.mark.parametrize("line", ["0::/\n", ""])
def test_whole_machine_counts_where_no_group_is_shown(tmp_path: Path, line: str) -> None:
    known = memory_kills(root=tmp_path / "groups", own=written(tmp_path / "own", line))
    assert known.counter == Path("/proc/vmstat")
    assert known.count >= 0


def test_counter_of_an_earlier_answer_is_read_again(tmp_path: Path) -> None:
    counter = written(tmp_path / "memory.events", "oom_kill 1\n")
    assert memory_kills(counter) == MemoryKills(counter, 1)
    written(counter, "oom_kill 2\n")
    assert memory_kills(counter).count == 2


def test_counter_of_a_group_that_is_gone_tells_of_no_kill(tmp_path: Path) -> None:
    assert memory_kills(tmp_path / "gone") == MemoryKills(tmp_path / "gone", 0)
