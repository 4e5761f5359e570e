"""Which GPU a rank takes under every form of CUDA_VISIBLE_DEVICES; no GPU is needed."""

import pytest
import torch

from trainers.devices import device_of_rank, devices_of_ranks, gpus_of_torch, visible_gpus
from trainers.distributed import default_device
from trainers.errors import UnsupportedDeviceError

SETTINGS = [
    pytest.param("2,3", ("2", "3"), id="the last two"),
    pytest.param("3,2", ("3", "2"), id="the last two, turned"),
    pytest.param(" 2, 3 ", ("2", "3"), id="spaces"),
    pytest.param("GPU-aaaa,GPU-bbbb", ("GPU-aaaa", "GPU-bbbb"), id="names"),
    pytest.param("GPU-aaaa,1", ("GPU-aaaa",), id="a name and a number"),
    pytest.param("MIG-aaaa", ("MIG-aaaa",), id="a slice"),
    pytest.param(None, ("0", "1", "2", "3"), id="not set"),
    pytest.param("", (), id="empty"),
    pytest.param("-1", (), id="none"),
    pytest.param("NoDevFiles", (), id="a word"),
    pytest.param("0,-1,1", ("0",), id="cut by a negative number"),
    pytest.param("1,1", (), id="twice"),
    pytest.param("3", ("3",), id="one of its own"),
]


@pytest.mark.parametrize("setting, shown", SETTINGS)
def test_visible_gpus_are_those_of_the_setting_in_its_order(setting: str | None, shown: tuple[str, ...]) -> None:
    assert visible_gpus(setting, gpus=4) == shown


@pytest.mark.parametrize("setting, shown", SETTINGS)
def test_visible_gpus_agree_with_torch(
    setting: str | None, shown: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    if setting is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", setting)
    ours = visible_gpus(setting, gpus=64)  # torch reads the setting before it knows how many there are
    assert ours == tuple(map(str, torch.cuda._parse_visible_devices()))


def test_number_that_the_machine_does_not_have_ends_the_list() -> None:
    assert visible_gpus("1,4,0", gpus=4) == ("1",)


@pytest.mark.parametrize("setting", ["2,3", "3,2", "GPU-aaaa,GPU-bbbb", " 2, 3"])
def test_local_ranks_take_renumbered_devices(setting: str) -> None:
    visible = len(visible_gpus(setting, gpus=4))
    assert [device_of_rank(rank, visible) for rank in range(4)] == ["cuda:0", "cuda:1", "cuda:0", "cuda:1"]


@pytest.mark.parametrize("setting", ["0", "3", "GPU-aaaa"])
def test_process_with_one_gpu_of_its_own_takes_that(setting: str) -> None:
    visible = len(visible_gpus(setting, gpus=4))
    assert [device_of_rank(rank, visible) for rank in (0, 1)] == ["cuda:0", "cuda:0"]


@pytest.mark.parametrize("setting", ["", "-1"])
def test_process_without_gpus_computes_on_the_cpu(setting: str) -> None:
    assert device_of_rank(1, len(visible_gpus(setting, gpus=4))) == "cpu"


def test_default_device_is_what_torch_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [str(default_device(rank)) for rank in range(3)] == ["cuda:0", "cuda:1", "cuda:0"]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert str(default_device(1)) == "cpu"


def test_gpus_of_torch_are_as_many_as_it_counts() -> None:
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    assert len(gpus_of_torch().gpus) == count


@pytest.mark.parametrize(
    "count, wish, visible, devices",
    [
        (1, None, 0, ("cpu",)),
        (2, None, 0, ("cpu", "cpu")),
        (2, None, 3, ("cuda:0", "cuda:1")),
        (2, "cpu", 4, ("cpu", "cpu")),
        (2, "cuda", 2, ("cuda:0", "cuda:1")),
        (1, "cuda:1", 2, ("cuda:1",)),
    ],
)
def test_each_rank_has_a_device_of_its_own(
    count: int, wish: str | None, visible: int, devices: tuple[str, ...]
) -> None:
    assert devices_of_ranks(count, wish, visible) == devices


@pytest.mark.parametrize(
    "count, wish, visible, words",
    [
        (1, "gpu", 1, "no device 'gpu'; give cpu, cuda, or cuda:NUMBER"),
        (1, "cuda:", 1, "no device 'cuda:'"),
        (1, "cuda:first", 1, "no device 'cuda:first'"),
        (1, "cuda", 0, "torch sees no GPU here; give cpu"),
        (1, "cuda:2", 2, "torch sees 2 GPUs here, the first one is cuda:0"),
        (2, "cuda:0", 2, "one GPU for 2 ranks; give cuda"),
        (2, None, 1, "2 ranks need a GPU each, and torch sees one GPU here"),
        (3, "cuda", 2, "3 ranks need a GPU each, and torch sees 2 GPUs here"),
    ],
)
def test_device_that_a_rank_cannot_have_for_itself_is_refused(
    count: int, wish: str | None, visible: int, words: str
) -> None:
    with pytest.raises(UnsupportedDeviceError, match=words):
        devices_of_ranks(count, wish, visible)
