"""Cosine matrices of query and text, and soft counts of their values by Gaussian kernels."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from whyrank.core.errors import WhyrankError

MUS = (-0.9, -0.7, -0.5, -0.3, -0.1, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)
SIGMAS = (0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.001)
NARROWEST = 1e-4  # a trained width that came closer to zero would divide by it
SMALL = 1e-6


def cosine_matrix(query: Tensor, doc: Tensor, query_mask: Tensor, doc_mask: Tensor, eps: float = 1e-9) -> Tensor:
    """Cosines a . b / ((|a| + eps) (|b| + eps)) of [n, q, width] and [n, d, width]: [n, q, d], 0 at padding.

    Single precision even under autocast: the kernel for exact matches is narrower than a step of bfloat16.
    """
    with torch.autocast(query.device.type, enabled=False):
        a, b = (v.float() / (v.float().norm(dim=2, keepdim=True) + eps) for v in (query, doc))
        real = query_mask.bool().unsqueeze(2) & doc_mask.bool().unsqueeze(1)
        return torch.bmm(a, b.transpose(1, 2)).masked_fill(~real, 0.0)


class KernelPooling(nn.Module):
    """K_k = sum over the query of log(sum over the text of exp(-(s - mu_k)^2 / (2 sigma_k^2)) + 1e-6).

    Padding counts neither in the query nor in the text, so that a batch does not change the features of a pair.

    Xiong et al., "End-to-end neural ad-hoc ranking with kernel pooling", SIGIR 2017.
    """

    def __init__(self, mus: Sequence[float] = MUS, sigmas: Sequence[float] = SIGMAS, trainable: bool = False) -> None:
        """Kernels at `mus` of widths `sigmas`; `trainable` lets training move both."""
        super().__init__()
        if len(mus) != len(sigmas) or not mus or min(sigmas) <= 0:
            raise WhyrankError("kernels need one positive width for each place; give mus and sigmas of one length")
        self.mus = nn.Parameter(torch.tensor(mus, dtype=torch.float32), requires_grad=trainable)
        self.sigmas = nn.Parameter(torch.tensor(sigmas, dtype=torch.float32), requires_grad=trainable)

    def __len__(self) -> int:
        return len(self.mus)

    def forward(self, similarity: Tensor, query_mask: Tensor, doc_mask: Tensor) -> Tensor:
        """[n, q, d] -> [n, kernels], or with channels [n, c, q, d] -> [n, c, kernels]; masks [n, q] and [n, d]."""
        with torch.autocast(similarity.device.type, enabled=False):
            similarity, query_mask, doc_mask = similarity.float(), query_mask.float(), doc_mask.float()
            if similarity.ndim == 4:
                query_mask, doc_mask = query_mask.unsqueeze(1), doc_mask.unsqueeze(1)
            found = [self._soft_counts(similarity, k, doc_mask) for k in range(len(self))]
            logs = (torch.stack(found, dim=-1) + SMALL).log()
            return (logs * query_mask.unsqueeze(-1)).sum(dim=-2)

    def _soft_counts(self, similarity: Tensor, k: int, doc_mask: Tensor) -> Tensor:
        """How many pieces of the text lie near a kernel, for each of the query; one kernel at a time saves memory."""
        factor = -0.5 / self.sigmas[k].abs().clamp(min=NARROWEST).square()
        near = ((similarity - self.mus[k]).square() * factor).exp()
        return torch.matmul(near, doc_mask.unsqueeze(-1)).squeeze(-1)
