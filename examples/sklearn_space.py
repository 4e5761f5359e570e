"""What `sklearn_script.py` may be called with: a search space without a network."""

from search_spaces import Categorical, Float, Integer, SearchSpace

SPACE = SearchSpace(
    "forest",
    {
        "learning_rate": Float(low=0.01, high=0.5, log=True),
        "max_leaf_nodes": Integer(low=4, high=32),
        "criterion": Categorical(choices=("friedman_mse", "squared_error")),
    },
    defaults={"learning_rate": 0.1, "max_leaf_nodes": 8, "criterion": "squared_error"},
    description="Gradient boosting of the Iris flowers.",
)
