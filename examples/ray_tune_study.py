"""A Ray Tune script whose trials are those of a study: run it on several machines, kill it, and run it again.

Only the lines with `study` differ from the same script without one. See its trials with `automl status tune-digits`.
"""

import argparse
from typing import Any

from ray import tune
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split

from automl.integrations.ray_tune import StudyScheduler, StudySearcher, TuneStudy

EPOCHS = 12


def train(config: dict[str, Any]) -> None:
    """Train a linear classifier of handwritten digits, and report after every epoch."""
    images, labels = load_digits(return_X_y=True)
    train_x, valid_x, train_y, valid_y = train_test_split(images / 16.0, labels, random_state=0, stratify=labels)
    model = SGDClassifier(
        loss=config["loss"], alpha=config["alpha"], eta0=config["eta0"], learning_rate="constant", random_state=0
    )
    for _ in range(EPOCHS):
        model.partial_fit(train_x, train_y, classes=range(10))
        tune.report({"accuracy": model.score(valid_x, valid_y)})


def main() -> None:
    """Search until the study has as many trials as asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=20, help="trials of the study, over all runs and machines")
    parser.add_argument("--results", help="folder of Ray Tune's own files; default: ~/ray_results")
    arguments = parser.parse_args()
    space = {
        "loss": tune.choice(["hinge", "log_loss", "modified_huber"]),
        "alpha": tune.loguniform(1e-6, 1e-2),
        "eta0": tune.loguniform(1e-4, 1.0),
    }
    with TuneStudy(
        "tune-digits", space=space, metric="accuracy", mode="max", epochs=EPOCHS, trials=arguments.trials
    ) as study:
        tuner = tune.Tuner(
            train,
            tune_config=tune.TuneConfig(
                search_alg=StudySearcher(study),
                scheduler=StudyScheduler(study),
                num_samples=-1,
                max_concurrent_trials=2,
                reuse_actors=True,
            ),
            run_config=tune.RunConfig(storage_path=arguments.results),
        )
        tuner.fit()
        best = study.best_trial()
        if best is not None:
            print(f"best: trial {best.number}, accuracy {best.value:.3f}, {dict(best.configuration)}")


if __name__ == "__main__":
    main()
