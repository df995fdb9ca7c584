"""What all tests share: deterministic hypothesis and one thread."""

import hypothesis
import torch

hypothesis.settings.register_profile(
    "vntransfer",
    max_examples=15,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("vntransfer")
torch.set_num_threads(1)
