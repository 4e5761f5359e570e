from automl.artifacts import Artifacts
from automl.inheritance import Origin
from automl.spec import SearchSpec
from automl.tasks import train_task
from search_spaces import catalog
from search_spaces.configuration import Configuration
from studies.trial import Lease
from trainers.config import TrainConfig


def test_train_task_of_an_older_space_keeps_the_hyperparameters_it_was_started_with() -> None:
    """One that the space has lost, one that it has got since, and one with a choice that is gone."""
    spec = SearchSpec.from_mapping({"space": "nas_small"}, "a test")
    defaults = catalog.load("nas_small").SPACE.defaults
    assert defaults is not None
    own = {**defaults, "batch_size": 48, "gradient_clip": 0.5}
    del own["augmentation"]
    artifacts, lease = Artifacts(root="/artifacts", study="s"), Lease(trial_id=1, number=0, attempt=2, owner="me")
    task = train_task(spec, artifacts, lease, Configuration(own), Origin())
    assert task.configuration == own
    assert (task.training.batch_size, task.training.gradient_clip) == (48, 0.5)
    assert task.training.augmentation == TrainConfig().augmentation
    assert task.training.learning_rate == own["learning_rate"]
