"""A script of scikit-learn that knows nothing of the search but how to print what it has measured.

automl search --space examples/sklearn_space.py --script "python examples/sklearn_script.py" --metric accuracy
"""

import argparse
import json

from sklearn.datasets import load_iris
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.model_selection import train_test_split


def main() -> None:
    """Grow a model step by step, and print its accuracy after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--learning_rate", type=float, default=0.1)
    parser.add_argument("--max_leaf_nodes", type=int, default=8)
    parser.add_argument("--criterion", default="friedman_mse")
    parser.add_argument("--epochs", type=int, default=5)
    arguments = parser.parse_args()
    flowers = load_iris(return_X_y=True)
    train_x, valid_x, train_y, valid_y = train_test_split(*flowers, random_state=0, test_size=0.4)
    model = GradientBoostingClassifier(
        learning_rate=arguments.learning_rate,
        max_leaf_nodes=arguments.max_leaf_nodes,
        criterion=arguments.criterion,
        warm_start=True,
        random_state=0,
    )
    for epoch in range(1, arguments.epochs + 1):
        model.set_params(n_estimators=4 * epoch).fit(train_x, train_y)
        print(json.dumps({"epoch": epoch, "accuracy": model.score(valid_x, valid_y)}), flush=True)


if __name__ == "__main__":
    main()
