"""A training loop of one's own, searched as it is: `automl search --space examples/own_fit.py --trials 10`.

The file is the search space and the training: it defines SPACE and `fit(context)`.
"""

from typing import TYPE_CHECKING, Any

from search_spaces import Categorical, Float, Integer, SearchSpace

if TYPE_CHECKING:
    from trainers.custom.context import Context

SPACE = SearchSpace(
    "own_fit",
    {
        "learning_rate": Float(low=1e-3, high=1e-1, log=True),
        "hidden": Integer(low=8, high=64),
        "activation": Categorical(choices=("relu", "tanh")),
    },
    defaults={"learning_rate": 0.01, "hidden": 32, "activation": "relu"},
    description="A small network for handwritten digits.",
)
METRICS = {"accuracy": "maximize", "loss": "minimize"}


def load(source: str) -> Any:
    """Read the data, once for all trials."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    return (images / 16.0).astype("float32"), labels


def fit(context: "Context") -> None:
    """Train one configuration; `report` leaves this function when the trial shall end."""
    import torch
    from torch import nn
    from torch.nn.functional import cross_entropy

    choice, device = context.configuration, context.device
    images, labels = (torch.from_numpy(part).to(device) for part in context.data)
    activation = nn.ReLU() if choice["activation"] == "relu" else nn.Tanh()
    network = nn.Sequential(nn.Linear(64, choice["hidden"]), activation, nn.Linear(choice["hidden"], 10)).to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=choice["learning_rate"])
    if context.state is not None:  # goes on from the last report
        network.load_state_dict(context.state["network"])
        optimizer.load_state_dict(context.state["optimizer"])
    for _ in range(context.start_epoch, context.epochs):
        for batch in torch.randperm(1200, device=device).split(100):
            optimizer.zero_grad()
            cross_entropy(network(images[batch]), labels[batch]).backward()
            optimizer.step()
        with torch.no_grad():
            answers = network(images[1200:])
            loss = cross_entropy(answers, labels[1200:])
        accuracy = (answers.argmax(dim=1) == labels[1200:]).float().mean()
        state = {"network": network.state_dict(), "optimizer": optimizer.state_dict()}
        context.report({"accuracy": accuracy, "loss": loss}, state)
