"""Batches of matrix products, tiled and staged for several targets, are exact on small integers."""

import pytest
from staged import kernel_text as k
from staged.run import check

SCHEDULES = {
    "chosen": "",
    "tiled": k.schedule([1, 2, 1, 0], [4]),
    "columns": k.schedule([0, 0, 1, 0]),
    "rows": k.schedule([3, 5, 0, 0]),
}


@pytest.mark.parametrize("target", ["edge", "small", "host"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_batch_of_products_is_exact(schedule, target):
    check(k.batch_matmul(3, 10, 12, 5, 7, schedule=SCHEDULES[schedule]), target)
