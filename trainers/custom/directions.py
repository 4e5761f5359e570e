"""Which way is better for metrics whose names everybody knows."""

from collections.abc import Mapping

from trainers.config import Direction

__all__ = ["well_known_direction"]

_MAXIMIZED = (
    "accuracy", "acc", "balanced_accuracy", "top_5_accuracy", "f1", "f1_macro", "f1_micro", "auc", "roc_auc",
    "average_precision", "map", "precision", "recall", "r2", "iou", "dice", "bleu", "rouge", "score", "reward",
)  # fmt: skip
_MINIMIZED = (
    "loss", "log_loss", "error", "error_rate", "rmse", "mse", "mae", "mape", "perplexity", "cross_entropy", "wer",
    "cer", "fid", "nll",
)  # fmt: skip
_KNOWN: Mapping[str, Direction] = {
    **dict.fromkeys(_MAXIMIZED, "maximize"),
    **dict.fromkeys(_MINIMIZED, "minimize"),
}
_SPLITS = ("val_", "valid_", "validation_", "eval_", "dev_", "test_")


def well_known_direction(metric: str) -> Direction | None:
    """Return the direction of a metric that is known by its name, such as `accuracy` or `val_loss`; None: it is not."""
    name = metric.lower().replace("-", "_").replace(" ", "_")
    prefix = next((split for split in _SPLITS if name.startswith(split)), "")
    return _KNOWN.get(name.removeprefix(prefix))
