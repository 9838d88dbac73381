"""A small decoder-only language model that does not know how its attention is computed.

Owns the layers: norm, rotary attention with grouped heads, norm, MLP. Attention is handed in, so
that one process with the whole sequence and many with a shard each run the same code. Every other
operation works on a position alone, which is why sharding changes nothing there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

Attention = Callable[[Tensor, Tensor, Tensor], Tensor]


class Shape(NamedTuple):
    """The sizes of a model. Query head h reads key head h // (q_heads / kv_heads)."""

    layers: int = 2
    width: int = 128
    q_heads: int = 4
    kv_heads: int = 2
    head_dim: int = 32
    hidden: int = 384
    vocabulary: int = 256


class Model(nn.Module):
    """The language model, with weights that follow from the seed alone."""

    def __init__(self, shape: Shape, dtype: torch.dtype, seed: int) -> None:
        super().__init__()
        # Drawn in float64 and then rounded: the same weights in every dtype, up to rounding.
        generator = torch.Generator().manual_seed(seed)

        def weights(rows: int, columns: int, scale: float) -> nn.Parameter:
            drawn = torch.randn(rows, columns, generator=generator, dtype=torch.float64)
            return nn.Parameter((scale * drawn).to(dtype))

        self.embedding = weights(shape.vocabulary, shape.width, 1.0)
        self.layers = nn.ModuleList(Layer(shape, weights, dtype) for _ in range(shape.layers))
        self.norm = nn.Parameter(torch.ones(shape.width, dtype=dtype))
        self.logits = weights(shape.width, shape.vocabulary, shape.width**-0.5)

    def forward(self, tokens: Tensor, positions: Tensor, attend: Attention) -> Tensor:
        """Logits of the token after each one.

        Shapes: tokens and positions (c,), the positions global; result (c, vocabulary).
        """
        x = self.embedding[tokens]
        for layer in self.layers:
            x = layer(x, positions, attend)
        return normalized(x, self.norm) @ self.logits


class Layer(nn.Module):
    """One block: attention, then MLP, each added to what came in."""

    def __init__(
        self, shape: Shape, weights: Callable[[int, int, float], nn.Parameter], dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.shape = shape
        width, near = shape.width, shape.width**-0.5
        self.attention_norm = nn.Parameter(torch.ones(width, dtype=dtype))
        self.query = weights(width, shape.q_heads * shape.head_dim, near)
        self.key = weights(width, shape.kv_heads * shape.head_dim, near)
        self.value = weights(width, shape.kv_heads * shape.head_dim, near)
        self.out = weights(shape.q_heads * shape.head_dim, width, near)
        self.mlp_norm = nn.Parameter(torch.ones(width, dtype=dtype))
        self.up = weights(width, shape.hidden, near)
        self.down = weights(shape.hidden, width, shape.hidden**-0.5)

    def forward(self, x: Tensor, positions: Tensor, attend: Attention) -> Tensor:
        """The rows after this layer. Shapes: x (c, width), result the same."""
        rows = normalized(x, self.attention_norm)
        q, k, v = (self.heads(rows @ w) for w in (self.query, self.key, self.value))
        out = attend(rotary(q, positions), rotary(k, positions), v)  # (1, Hq, c, D)
        x = x + out[0].transpose(0, 1).flatten(1) @ self.out
        return x + functional.gelu(normalized(x, self.mlp_norm) @ self.up) @ self.down

    def heads(self, rows: Tensor) -> Tensor:
        """(c, H · D) as (1, H, c, D)."""
        width = self.shape.head_dim
        return rows.view(len(rows), rows.shape[-1] // width, width).transpose(0, 1)[None]


def normalized(x: Tensor, gain: Tensor) -> Tensor:
    """Each row divided by its root mean square. Shapes: x (c, width), gain (width,)."""
    return x * torch.rsqrt((x * x).mean(dim=-1, keepdim=True) + 1e-6) * gain


def rotary(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """`cpcore.positions.rotary` in torch: pair (i, i + D/2) turned by position · base**(-2i/D).

    Shapes: x (…, c, D), positions (c,), result as x.
    """
    half = x.shape[-1] // 2
    frequency = base ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = positions.to(torch.float64)[:, None] * frequency  # (c, D/2)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    first, second = x[..., :half], x[..., half:]
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def whole_attention(visible: Tensor) -> Attention:
    """Attention by one process over the whole sequence: the reference, plain torch autograd.

    Shapes: visible (S, S) bool; a row that sees nothing has output 0.
    """
    some = visible.any(dim=-1, keepdim=True)

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        group = q.shape[-3] // k.shape[-3]
        k, v = k.repeat_interleave(group, dim=-3), v.repeat_interleave(group, dim=-3)
        scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)  # (1, Hq, S, S)
        # A row that sees nothing sees everything for a moment: a softmax over nothing is NaN.
        probs = scores.masked_fill(~visible & some, -torch.inf).softmax(dim=-1)
        return torch.where(some, probs @ v, 0.0)

    return attend
