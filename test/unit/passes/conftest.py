import pytest


@pytest.fixture
def one_thread():
    """Kernels of a cached target run on torch's threads."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
