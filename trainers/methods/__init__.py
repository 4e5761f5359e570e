"""Training methods: what may be done to batches, losses, gradients and weights besides the plain optimizer step.

One method, one module: a pure function and a thin class that a configuration switches on (`build_methods`).
"""
