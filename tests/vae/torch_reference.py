"""The same autoencoders in PyTorch, for comparison: nothing here is shared with the package.

Images are [B, C, H, W], as PyTorch has them. Dropout and noise can be given from outside.
"""

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

# MKL chooses the kernel of an elementwise function in its first call. Where two threads make that call at once, one may
# get a kernel of half the precision (pytorch/pytorch#188792), so the first call is made here, by one thread.
for function in (torch.exp, torch.log, torch.log1p, torch.sqrt, torch.tanh):
    function(torch.ones(1))

KERNELS = {15: ((4, 4, 3), (3, 4, 4)), 4: ((3, 3, 3, 3, 3), (3, 3, 3, 3, 3))}


class Block(nn.Module):
    def __init__(self, published: bool, dropout: float) -> None:
        super().__init__()
        self.published = published
        drop = nn.Dropout2d if published else nn.Dropout
        self.block = nn.Sequential(
            nn.BatchNorm2d(64),
            nn.LeakyReLU(0.01),
            nn.Conv2d(64, 64, 3, padding=1),
            drop(dropout),
            nn.BatchNorm2d(64),
            nn.LeakyReLU(0.01),
            nn.Conv2d(64, 64, 3, padding=1),
            drop(dropout),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.block(x)
        return F.leaky_relu(y if self.published else x + y, 0.01)


class ReferenceVAE(nn.Module):
    def __init__(
        self,
        side: int = 15,
        channels: int = 20,
        gaussian: bool = False,
        published: bool = False,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        self.gaussian, self.published = gaussian, published
        down, up = KERNELS[side]
        outputs = 2 * channels if gaussian else channels
        between = [nn.LeakyReLU(0.01)] if published else []

        encoder: list[nn.Module] = []
        for i, kernel in enumerate(down[:-1]):
            encoder += [nn.Conv2d(64 if i else 1, 64, kernel, stride=2), *between]
            encoder += [Block(published, dropout)]
        encoder += [nn.Conv2d(64, outputs, down[-1], stride=2, padding=1)]
        self.encoder = nn.Sequential(*encoder)

        decoder: list[nn.Module] = []
        for i, kernel in enumerate(up[:-1]):
            decoder += [nn.ConvTranspose2d(64 if i else channels, 64, kernel, stride=2), *between]
            decoder += [Block(published, dropout)]
        decoder += [nn.ConvTranspose2d(64, 1, up[-1], stride=2)]
        self.decoder = nn.Sequential(*decoder)

    def decode(self, z: torch.Tensor) -> torch.Tensor:
        x = self.decoder(z)
        before = (x.shape[-1] - 128) // 2
        return x[:, :, before : before + 128, before : before + 128]

    def forward(
        self, frames: torch.Tensor, noise: torch.Tensor, tau: float = 0.5
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        q = self.encoder(frames)
        if self.gaussian:
            mean, log_variance = q.chunk(2, dim=1)
            z = mean + torch.exp(0.5 * log_variance) * noise
        else:
            if self.published:
                q = q.clamp(-8, 8)
            z = torch.sigmoid((q + noise) / tau)
        return q, z, self.decode(z)


def kl(q: torch.Tensor, gaussian: bool, prior: float = 0.5) -> torch.Tensor:
    """Per image, from torch's own distributions."""
    distributions = torch.distributions
    posterior: torch.distributions.Distribution
    target: torch.distributions.Distribution
    if gaussian:
        mean, log_variance = q.chunk(2, dim=1)
        posterior = distributions.Normal(mean, torch.exp(0.5 * log_variance))
        target = distributions.Normal(torch.zeros_like(mean), torch.ones_like(mean))
    else:
        posterior = distributions.Bernoulli(logits=q)
        target = distributions.Bernoulli(probs=torch.full_like(q, prior))
    return distributions.kl_divergence(posterior, target).sum(dim=(1, 2, 3))


def loss(
    model: ReferenceVAE, frames: torch.Tensor, noise: torch.Tensor, beta: float = 1e-4
) -> torch.Tensor:
    q, _, logits = model(frames, noise)
    cross_entropy = F.binary_cross_entropy_with_logits(logits, frames, reduction="none")
    return (cross_entropy.sum(dim=(1, 2, 3)) + beta * kl(q, model.gaussian)).mean()
