"""What a machine has, and what a container leaves of it."""

from pathlib import Path

import psutil
import pytest

from automl.machine import disk_space, this_machine
from trainers.artifact_files import existing_part
from trainers.memory_limits import memory_limit_bytes


def written(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_smallest_limit_of_all_groups_above_counts(tmp_path: Path) -> None:
    own = written(tmp_path / "own", "0::/user/job/step\n")
    written(tmp_path / "groups/memory.max", "max\n")
    written(tmp_path / "groups/user/memory.max", "3000\n")
    written(tmp_path / "groups/user/job/memory.max", "2000\n")
    written(tmp_path / "groups/user/job/step/memory.max", "max\n")
    assert memory_limit_bytes(tmp_path / "groups", own) == 2000


def test_limit_of_the_older_control_groups_counts(tmp_path: Path) -> None:
    own = written(tmp_path / "own", "12:cpu,cpuacct:/job\n9:memory:/job\n1:name=systemd:/job\n")
    written(tmp_path / "groups/memory/memory.limit_in_bytes", "9223372036854771712\n")
    written(tmp_path / "groups/memory/job/memory.limit_in_bytes", "4000\n")
    written(tmp_path / "groups/cpu,cpuacct/job/memory.limit_in_bytes", "1\n")
    assert memory_limit_bytes(tmp_path / "groups", own) == 4000


@pytest.mark.parametrize("line", ["0::/\n", "", "0::/../..\n"])
def test_no_limit_is_none(tmp_path: Path, line: str) -> None:
    assert memory_limit_bytes(tmp_path / "groups", written(tmp_path / "own", line)) is None


def test_this_machine_is_what_the_system_says() -> None:
    machine = this_machine()
    assert machine.memory_bytes == psutil.virtual_memory().total
    assert 1 <= machine.usable_cpus <= machine.cpus
    assert machine.memory_limit_bytes is None or 0 < machine.memory_limit_bytes < machine.memory_bytes


def test_space_of_a_folder_to_come_is_that_of_the_one_above(tmp_path: Path) -> None:
    assert existing_part(tmp_path / "a" / "b") == tmp_path
    space = disk_space(tmp_path / "a" / "b")
    assert space.folder == tmp_path
    assert 0.0 <= space.used <= 1.0
    assert 0 < space.free_bytes <= space.size_bytes
