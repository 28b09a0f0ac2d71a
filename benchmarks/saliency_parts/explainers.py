"""Ways to explain a frozen service that learn nothing: Grad-CAM, occlusion, integrated gradients.

    f(x) = mean score of the service over its own answer on x: the pixels it marks, or its class
    Grad-CAM:              relu(sum over maps A of mean(df/dA) * A), brought to the picture's size
    occlusion:             f(x) - f(x with a square in grey), mean over the squares on a pixel
    integrated gradients:  (x - grey) * mean over t in (0, 1) of df/dx at grey + t (x - grey)

Selvaraju and others, ICCV 2017, and for masks Vinogradova, Dibrov and Myers, AAAI 2020; Zeiler and
Fergus, ECCV 2014; Sundararajan, Taly and Yan, ICML 2017. All are held against captum in the tests.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from privet.methods.services.service import Service
from privet.nets.unet import UNet
from saliency_parts.methods import Importance

STEPS = 32
"""Places between grey and the picture at which integrated gradients look."""


def own_answer(service: Service, x: Tensor) -> Tensor:
    """Ones where the service says so: at the pixels that it marks, or at its class."""
    with torch.no_grad():
        scores = service(x)
    return (
        (scores > 0).float()
        if service.attribute.kind == "mask"
        else F.one_hot(scores.argmax(1), scores.shape[1]).float()
    )


def asked(service: Service, x: Tensor, where: Tensor) -> Tensor:
    """f: the one number per picture that is explained."""
    return (service(x) * where).flatten(1).sum(1) / where.flatten(1).sum(1).clamp(min=1)


def grad_cam(service: Service, layer: nn.Module) -> Importance:
    """Maps of `layer`, weighted by their mean gradient, where positive."""

    def ask(x: Tensor) -> Tensor:
        where = own_answer(service, x)
        seen: list[Tensor] = []

        def remember(_: nn.Module, __: object, maps: Tensor) -> Tensor:
            # A copy, since what follows may change its input in place.
            seen.append(maps if maps.requires_grad else maps.detach().requires_grad_())
            return seen[0].clone()

        hook = layer.register_forward_hook(remember)
        try:
            with torch.enable_grad():
                total = asked(service, x, where).sum()
        finally:
            hook.remove()
        (gradient,) = torch.autograd.grad(total, seen[0])
        found = F.relu((gradient.mean((2, 3), keepdim=True) * seen[0]).sum(1, keepdim=True))
        return F.interpolate(found.detach(), size=x.shape[2:], mode="bilinear").squeeze(1)

    return ask


def occlusion(service: Service, window: int, stride: int, grey: Tensor) -> Importance:
    """How much f falls when a square around the pixel is covered in grey (one value per
    channel)."""

    def ask(x: Tensor) -> Tensor:
        where = own_answer(service, x)
        with torch.inference_mode():
            whole = asked(service, x, where)
            fallen, covered = torch.zeros(2, *x.shape[2:], len(x), device=x.device)
            for square in squares(x.shape[2], x.shape[3], window, stride):
                hidden = x.clone()
                hidden[:, :, *square] = grey.to(x).view(1, -1, 1, 1)
                fallen[square] += whole - asked(service, hidden, where)
                covered[square] += 1
        return (fallen / covered).permute(2, 0, 1)

    return ask


def squares(height: int, width: int, window: int, stride: int) -> Iterator[tuple[slice, slice]]:
    """Squares that cover the picture, those at the far edges cut off.

    >>> list(squares(2, 5, 2, 2))
    [(slice(0, 2, None), slice(0, 2, None)), (slice(0, 2, None), slice(2, 4, None)), (slice(0, 2, \
None), slice(4, 6, None))]
    """
    downs, acrosses = (
        stride * np.arange(1 + max(0, -(-(side - window) // stride))) for side in (height, width)
    )
    for top in downs.tolist():
        for left in acrosses.tolist():
            yield slice(top, top + window), slice(left, left + window)


def integrated_gradients(
    service: Service, grey: Tensor, steps: int = STEPS, *, signed: bool = True
) -> Importance:
    """What each pixel adds to f on the straight way from grey to the picture, summed over
    channels; the size of it alone if not `signed`."""
    places, weights = np.polynomial.legendre.leggauss(steps)

    def ask(x: Tensor) -> Tensor:
        where, base = own_answer(service, x), grey.to(x).view(1, -1, 1, 1)
        total = torch.zeros_like(x)
        for place, weight in zip((places + 1) / 2, weights / 2, strict=True):
            z = (base + float(place) * (x - base)).requires_grad_()
            with torch.enable_grad():
                (gradient,) = torch.autograd.grad(asked(service, z, where).sum(), z)
            total += float(weight) * gradient
        found = (x - base) * total
        return found.sum(1) if signed else found.abs().sum(1)

    return ask


def explainers(service: Service, x: Tensor, grey: Tensor) -> dict[str, Importance]:
    """Every way, by its name; squares are an eighth of the shorter side, moved by half of it."""
    window = max(2, min(x.shape[2:]) // 8)
    module = service.module
    if isinstance(module, UNet):
        cams = {
            "Grad-CAM, deepest layer": grad_cam(service, module.deepest),
            "Grad-CAM, last layer": grad_cam(service, module.up[-1]),
        }
    else:
        cams = {"Grad-CAM": grad_cam(service, module.get_submodule("body"))}
    return {
        **cams,
        "occlusion": occlusion(service, window, max(1, window // 2), grey),
        "integrated gradients": integrated_gradients(service, grey),
        "integrated gradients, size alone": integrated_gradients(service, grey, signed=False),
    }
