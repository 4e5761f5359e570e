import torch
from torch import nn

from trainers.networks import answered, brought_to


class Tells(nn.Module):
    """Answers where its input is."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1, device=device))

    def forward(self, inputs: torch.Tensor) -> str:
        return inputs.device.type


def test_network_is_tried_on_the_device_of_its_weights() -> None:
    one = (torch.ones(1, 3),)
    assert answered(Tells("meta"), one) == ("meta", 1)
    assert answered(Tells("cpu"), one) == ("cpu", 1)
    assert brought_to(nn.ReLU(), one) is one
