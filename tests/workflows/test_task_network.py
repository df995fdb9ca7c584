"""Networks of tasks predict with numpy what their modules predict with torch."""

from pathlib import Path

import numpy as np
import pytest
import torch

from helpers.towns import towns
from vntransfer import learn_tasks, load


@pytest.mark.parametrize("method", ["sgd", "covp", "closed_form", "closed_form_covp"])
@pytest.mark.parametrize("response", ["price", "garden"])
def test_numpy_and_torch_give_the_same(method: str, response: str, tmp_path: Path) -> None:
    rows = {name: own[:100] for name, own in towns().items()}
    model = learn_tasks(rows, task="town", response=response, method=method, random_state=3)
    model.save(tmp_path)
    again = load(tmp_path)
    X = np.random.default_rng(0).uniform(-6, 6, (40, len(model.center)))
    for one in (model, again):
        like = next(one.net.parameters())
        with torch.no_grad():
            expected = one.net(torch.from_numpy(X).to(like)).double().numpy()
        scale = np.abs(expected).max()
        np.testing.assert_allclose(one.network(X), expected, rtol=1e-5, atol=1e-5 * scale)
