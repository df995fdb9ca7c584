"""Checks of input arrays: numpy or torch in, the same kind out, errors that name the argument."""

from collections.abc import Callable, Container
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vntransfer.errors import ArgumentError

Array = TypeVar("Array", Tensor, NDArray[Any])
"""A torch tensor or a numpy array; functions return the same kind."""

FLOATS, SWAPPED = ("float32", "float64"), (">f4", ">f8", "<f4", "<f8")


def take(
    *, finite: bool = True, optional: Container[str] = (), **arrays: Any
) -> tuple[list[Tensor], Callable[[Tensor], Any]]:
    """Check arrays and return them as tensors, with a function that converts a result back.

    All arrays must be of one kind (torch or numpy), one floating dtype (float32 or float64) and
    one device, and finite (unless ``finite`` is False: the caller checks). An ``optional`` one that
    is None is passed over.
    """
    given = {
        name: array for name, array in arrays.items() if array is not None or name not in optional
    }
    for name, array in given.items():
        if array is None:
            raise ArgumentError(f"{name}: expected a torch tensor or a numpy array, got None")
        if not isinstance(array, Tensor | np.ndarray):
            raise ArgumentError(
                f"{name}: expected a torch tensor or a numpy array, got {type(array).__name__}; "
                f"convert it with numpy.asarray(..., dtype=float)"
            )
        if isinstance(array, np.ma.MaskedArray):
            raise ArgumentError(
                f"{name}: is a masked array, whose mask would be lost; drop or fill masked entries"
            )
    kinds = {name: isinstance(array, np.ndarray) for name, array in given.items()}
    if len(set(kinds.values())) > 1:
        listed = ", ".join(f"{name} is {'numpy' if k else 'torch'}" for name, k in kinds.items())
        raise ArgumentError(f"all arrays must be of one kind: {listed}; convert one of them")
    numpy_in = any(kinds.values())
    tensors = {name: _tensor(name, array) for name, array in given.items()}
    _check_alike(tensors)
    if finite:
        check_finite(**tensors)
    return list(tensors.values()), to_numpy if numpy_in else _unchanged


def _tensor(name: str, array: Any) -> Tensor:
    dtype = str(array.dtype).removeprefix("torch.")
    if dtype not in FLOATS and dtype not in SWAPPED:
        raise ArgumentError(
            f"{name}: expected float32 or float64, got {dtype}; convert it with .double() (torch) "
            f"or .astype(float) (numpy)"
        )
    if isinstance(array, np.ndarray):
        array = from_numpy(np.asarray(array, order="C"))
    if array.numel() == 0:
        raise ArgumentError(f"{name}: empty, shape {tuple(array.shape)}; nothing to compute from")
    tensor: Tensor = array
    return tensor


def from_numpy(array: NDArray[Any]) -> Tensor:
    """Return an array of numbers as a tensor, without a copy if torch can use the memory."""
    steps = all(step >= 0 and step % array.itemsize == 0 for step in array.strides)
    usable = array.flags.writeable and array.dtype.isnative and steps
    return torch.from_numpy(array.astype(array.dtype.newbyteorder("="), copy=not usable))


def _check_alike(tensors: dict[str, Tensor]) -> None:
    for what, of in (("dtype", lambda t: t.dtype), ("device", lambda t: t.device)):
        seen = {name: of(tensor) for name, tensor in tensors.items()}
        if len(set(seen.values())) > 1:
            listed = ", ".join(f"{name} is {value}" for name, value in seen.items())
            raise ArgumentError(f"all arrays must have one {what}: {listed}; use .to(...) on one")


def check_finite(**tensors: Tensor) -> None:
    """Raise if a tensor contains NaN or infinity, and count them."""
    for name, tensor in tensors.items():
        # 0 x is NaN if and only if x is NaN or infinite: one pass, no mask.
        if torch.isfinite((tensor.detach() * 0).sum()):
            continue
        nans, infs = int(tensor.isnan().sum()), int(tensor.isinf().sum())
        raise ArgumentError(
            f"{name}: {nans} NaN and {infs} infinite of {tensor.numel()} values; remove or impute "
            f"those rows first"
        )


def _unchanged(tensor: Tensor) -> Tensor:
    return tensor


def to_numpy(tensor: Tensor) -> NDArray[Any]:
    """Give the values of a tensor."""
    return tensor.detach().cpu().numpy()
