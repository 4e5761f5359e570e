"""Which weights of a network are matrices between hidden layers, for optimizers that treat those apart."""

from torch import nn
from torch.nn.modules.conv import _ConvNd

__all__ = ["hidden_matrices"]


def hidden_matrices(network: nn.Module) -> list[nn.Parameter]:
    """Return the trainable matrices of linear maps, without the last one, which gives the answers.

    They are the weights of Linear, of attention's projections, and of convolutions: a kernel (outputs, inputs, ..) is
    a matrix (outputs, the rest), transposed convolutions the other way round. Not among them are biases and
    normalisation, embeddings (also where a Linear shares their weight), kernels of grouped convolutions, which are
    many small maps, and whatever else a module holds as its own parameter.

    The last layer is the one that was registered last.
    """
    maps = [weight for module in network.modules() for weight in _maps(module)]
    embedded = {id(module.weight) for module in network.modules() if isinstance(module, nn.Embedding | nn.EmbeddingBag)}
    exempt = embedded | {id(weight) for weight in maps[-1:]}
    unique = {id(weight): weight for weight in maps if weight.requires_grad}
    return [weight for key, weight in unique.items() if key not in exempt]


def _maps(module: nn.Module) -> list[nn.Parameter]:
    if isinstance(module, nn.Linear) or (isinstance(module, _ConvNd) and module.groups == 1):
        return _own(module, "weight")
    if isinstance(module, nn.MultiheadAttention):
        # one matrix for queries, keys and values together, or three where their sizes differ
        return _own(module, "in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight")
    return []


def _own(module: nn.Module, *names: str) -> list[nn.Parameter]:
    own = dict(module.named_parameters(recurse=False, remove_duplicate=False))
    return [own[name] for name in names if name in own]
