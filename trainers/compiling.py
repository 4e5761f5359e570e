"""Compiles a network in place with torch.compile; where that fails, the network computes as it would without."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from torch import nn

from trainers.errors import is_out_of_memory
from trainers.reporting import JsonValue

__all__ = ["Compilation"]

logger = logging.getLogger(__name__)


class Compilation:
    """The compilation of one network, whose parts are compiled when they are first met: each new shape costs again.

    What is compiled does not depend on what this process has compiled before, so that a resumed training computes with
    the same code to the last bit. A search is not to end because a machine lacks a C++ compiler: then the log and the
    trial's record tell so.

    Attributes:
        compile_s: seconds that compiling took so far: forward, backward, and each new shape. Most of it lies within
            the first epoch.
        failure: why a part could not be compiled; None: all could.
    """

    def __init__(self) -> None:
        self.compile_s = 0.0
        self.failure: str | None = None
        self._began = 0.0
        self._is_looking = False

    def begin(self, network: nn.Module) -> None:
        """Let a network be compiled when it is called; names of weights and buffers stay."""
        torch.compiler.reset()  # the code of earlier trials, and the limit on how many shapes one module may meet

        def call(*inputs: torch.Tensor) -> torch.Tensor:
            answers: torch.Tensor = network._call_impl(*inputs)  # type: ignore[no-untyped-call]  # torch's own
            return answers

        from torch._dynamo.callback import callback_handler  # takes a second to load

        callback_handler.register_start_callback(self._start)
        callback_handler.register_end_callback(self._end)
        self._is_looking = True
        # What `nn.Module.compile` does, which passes over torch's own modules, nn.Sequential among them.
        network._compiled_call_impl = torch.compile(call, backend=self._compile)

    def end(self) -> None:
        """Stop to look at what torch compiles; does nothing before `begin`."""
        if not self._is_looking:
            return
        from torch._dynamo.callback import callback_handler

        callback_handler.remove_start_callback(self._start)
        callback_handler.remove_end_callback(self._end)
        self._is_looking = False

    def facts(self) -> Mapping[str, JsonValue]:
        """Return whether compiled code was used, and what it cost."""
        facts: dict[str, JsonValue] = {"compiled": self.failure is None, "compile_s": self.compile_s}
        return facts if self.failure is None else {**facts, "compile_failure": self.failure}

    def _compile(self, graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        """Compile one part for one shape; the interface of torch's back ends."""
        if self.failure is not None:
            return graph.forward
        from torch._inductor.compile_fx import compile_fx  # takes seconds to load

        try:
            # In this process: others would outlive the trial, and are ended with it.
            compiled = compile_fx(graph, inputs, config_patches={"compile_threads": 1})
            return cast(Callable[..., Any], compiled)
        except Exception as error:
            if is_out_of_memory(error):
                raise
            self.failure = f"{type(error).__name__}: {error}"
            logger.warning("not compiled, goes on without reason=%s", self.failure)
            return graph.forward

    def _start(self, _: object) -> None:
        """Take notice that torch begins to compile; what it compiles on the way to it is a part of it."""
        self._began = time.perf_counter()

    def _end(self, _: object) -> None:
        self.compile_s += time.perf_counter() - self._began
