"""Tune's own search spaces as ours, so that the `param_space` of an existing script can be handed over as it is."""

from collections.abc import Mapping
from typing import Any

from ray.tune.search import sample

from search_spaces.errors import InvalidParameterError
from search_spaces.parameters import Categorical, Float, Integer, Parameter

__all__ = ["parameters_of"]

_KNOWN = "give a parameter of ours, or tune.uniform, quniform, loguniform, randint, qrandint, lograndint or choice"


def parameters_of(domains: Mapping[str, Any]) -> dict[str, Parameter]:
    """Translate every Tune domain; parameters of ours stay as they are.

    Upper ends of Tune's integers are exclusive unless they are quantized, and become inclusive.

    Raises:
        InvalidParameterError: a domain has no counterpart, such as `tune.randn`, or what it describes cannot be; all of
            them are listed.
    """
    parameters: dict[str, Parameter] = {}
    problems = []
    for name, domain in domains.items():
        try:
            parameters[name] = domain if isinstance(domain, Parameter) else _parameter(domain)
        except InvalidParameterError as error:
            problems.append(f"{name}: {error}")
    if problems:
        raise InvalidParameterError("; ".join(problems))
    return parameters


def _parameter(domain: object) -> Parameter:
    if isinstance(domain, sample.Categorical):
        return Categorical(choices=tuple(domain.categories))
    if not isinstance(domain, sample.Float | sample.Integer):
        raise InvalidParameterError(f"{domain!r} is not allowed: {_KNOWN}")
    sampler, step = _sampler_and_step(domain)
    is_log = isinstance(sampler, sample.LogUniform)
    if not isinstance(sampler, sample.Uniform | sample.LogUniform) or (is_log and step is not None):
        raise InvalidParameterError(f"{domain.domain_str} with {type(sampler).__name__} is not allowed: {_KNOWN}")
    if isinstance(domain, sample.Float):
        return Float(low=domain.lower, high=domain.upper, log=is_log, step=step)
    if step in (None, 1):
        return Integer(low=domain.lower, high=domain.upper - 1, log=is_log)
    return Integer(low=domain.lower, high=domain.upper, step=int(step))


def _sampler_and_step(domain: sample.Domain) -> tuple[object, Any]:
    sampler: Any = domain.get_sampler()  # type: ignore[no-untyped-call]  # Ray's own
    return (sampler.sampler, sampler.q) if isinstance(sampler, sample.Quantized) else (sampler, None)
