"""A layer of an LSTM, as PyTorch calls it on the CPU, and its gradient, step by step in calls that
become machine code. Only the layers of PyTorch's own library come as one call: GRU and RNN come as
their steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

aten = torch.ops.aten
_LSTM = 2  # of the modes of that library


def lstm_layer(
    x: Tensor,
    of_input: Tensor,
    of_hidden: Tensor,
    bias_input: Tensor,
    bias_hidden: Tensor,
    hidden: Tensor,
    cell: Tensor,
    reverse: bool,
    batch_sizes: Sequence[int],
    mode: int,
    hidden_size: int,
    num_layers: int,
    has_biases: bool,
    bidirectional: bool,
    batch_first: bool,
    train: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Output, last hidden state, last cell state, and nothing for the backward, which computes the
    states again."""
    if mode != _LSTM or batch_first or batch_sizes:
        return NotImplemented
    steps = _forward(x, of_input, of_hidden, _bias(bias_input, bias_hidden, has_biases), hidden,
                     cell, reverse)  # fmt: skip
    outputs = [step.hidden for step in steps]
    last = steps[-1]
    output = torch.stack(outputs[::-1] if reverse else outputs)
    hy, cy = last.hidden.reshape(hidden.shape), last.cell.reshape(cell.shape)
    return output, hy, cy, torch.empty([0], dtype=x.dtype)


class _Step:
    """Gates, and states behind them. previous: cell before; before: hidden state before."""

    def __init__(self, gates: Tensor, before: Tensor, previous: Tensor) -> None:
        i, f, g, o = gates.chunk(4, -1)
        self.before, self.previous = before, previous
        self.i, self.f, self.o = torch.sigmoid(i), torch.sigmoid(f), torch.sigmoid(o)
        self.g = torch.tanh(g)
        self.cell = self.f * previous + self.i * self.g
        self.tanh = torch.tanh(self.cell)
        self.hidden = self.o * self.tanh


def _bias(first: Tensor, second: Tensor, has_biases: bool) -> Tensor | None:
    return first + second if has_biases else None


def _forward(
    x: Tensor,
    of_input: Tensor,
    of_hidden: Tensor,
    bias: Tensor | None,
    hidden: Tensor,
    cell: Tensor,
    reverse: bool,
) -> list[_Step]:
    """In the order in which they are computed."""
    length, batch, _ = x.shape
    inputs = torch.mm(x.reshape(length * batch, -1), of_input.t())
    if bias is not None:
        inputs = inputs + bias
    inputs = inputs.reshape(length, batch, -1)
    hidden, cell = hidden.reshape(batch, -1), cell.reshape(batch, -1)
    steps: list[_Step] = []
    for time in range(length - 1, -1, -1) if reverse else range(length):
        step = _Step(inputs[time] + torch.mm(hidden, of_hidden.t()), hidden, cell)
        hidden, cell = step.hidden, step.cell
        steps.append(step)
    return steps


def lstm_layer_backward(
    x: Tensor,
    of_input: Tensor,
    of_hidden: Tensor,
    bias_input: Tensor,
    bias_hidden: Tensor,
    hidden: Tensor,
    cell: Tensor,
    output: Tensor,
    last_hidden: Tensor,
    last_cell: Tensor,
    grad_output: Tensor | None,
    grad_hidden: Tensor | None,
    grad_cell: Tensor | None,
    reverse: bool,
    mode: int,
    hidden_size: int,
    num_layers: int,
    has_biases: bool,
    train: bool,
    bidirectional: bool,
    batch_sizes: Sequence[int],
    batch_first: bool,
    workspace: Tensor,
) -> tuple[Tensor, ...]:
    if mode != _LSTM or batch_first or batch_sizes:
        return NotImplemented
    length, batch, width = x.shape
    bias = _bias(bias_input, bias_hidden, has_biases)
    steps = _forward(x, of_input, of_hidden, bias, hidden, cell, reverse)
    of_h = _like(grad_hidden, steps[-1].hidden)
    of_c = _like(grad_cell, steps[-1].cell)
    of_gates: list[Tensor] = []
    times = range(length) if reverse else range(length - 1, -1, -1)
    for time, step in zip(times, reversed(steps)):
        if grad_output is not None:
            of_h = of_h + grad_output[time]
        of_c = of_c + of_h * step.o * (1 - step.tanh * step.tanh)
        gates = torch.cat(
            [
                of_c * step.g * step.i * (1 - step.i),
                of_c * step.previous * step.f * (1 - step.f),
                of_c * step.i * (1 - step.g * step.g),
                of_h * step.tanh * step.o * (1 - step.o),
            ],
            -1,
        )
        of_gates.append(gates)
        of_h, of_c = torch.mm(gates, of_hidden), of_c * step.f
    ordered = of_gates if reverse else of_gates[::-1]
    before = [step.before for step in (reversed(steps) if reverse else steps)]
    flat = torch.cat(ordered)
    of_bias = flat.sum(0)
    return (
        torch.mm(flat, of_input).reshape(x.shape),
        torch.mm(flat.t(), x.reshape(length * batch, width)),
        torch.mm(flat.t(), torch.cat(before)),
        of_bias,
        of_bias.clone(),
        of_h.reshape(hidden.shape),
        of_c.reshape(cell.shape),
    )


def _like(gradient: Tensor | None, state: Tensor) -> Tensor:
    return torch.zeros_like(state) if gradient is None else gradient.reshape(state.shape)


RECURRENT: dict[torch._ops.OpOverload, Callable] = {
    aten.mkldnn_rnn_layer.default: lstm_layer,
    aten.mkldnn_rnn_layer_backward.default: lstm_layer_backward,
}
