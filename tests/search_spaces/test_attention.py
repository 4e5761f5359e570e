import torch

from search_spaces.attention import attended


def test_each_head_weighs_the_values_by_the_softmax_of_its_fits() -> None:
    items, length, heads, width = 2, 5, 3, 4
    parts = torch.randn(items, length, 3 * heads * width, generator=torch.Generator().manual_seed(0))
    queries, keys, values = parts.chunk(3, dim=2)
    answers = attended(parts, heads)
    for head in range(heads):
        own = slice(head * width, (head + 1) * width)
        fits_NLL = queries[:, :, own] @ keys[:, :, own].transpose(1, 2) / width**0.5
        torch.testing.assert_close(answers[:, :, own], fits_NLL.softmax(dim=2) @ values[:, :, own])


def test_tokens_that_are_masked_are_not_looked_at() -> None:
    parts = torch.randn(1, 4, 12, generator=torch.Generator().manual_seed(0))
    mask_NL = torch.tensor([[True, True, False, False]])
    torch.testing.assert_close(attended(parts, 2, mask_NL)[:, :2], attended(parts[:, :2], 2))
