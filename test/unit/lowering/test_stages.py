"""The staging algorithm on random dependency graphs, against its three promises."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from mlir_npu.lowering.stages import Units, assign_stages, components


@st.composite
def unit_graphs(draw):
    count = draw(st.integers(1, 12))
    on_npu = tuple(draw(st.booleans()) for _ in range(count))
    before = [
        tuple(sorted(draw(st.sets(st.integers(0, unit - 1), max_size=3)))) if unit else ()
        for unit in range(count)
    ]
    return Units(on_npu, tuple(before))


def worst_path(units: Units) -> int:
    """Most NPU runs on a path, by looking at every path."""

    def runs(unit: int) -> list[list[bool]]:
        tails = [path for p in units.predecessors[unit] for path in runs(p)] or [[]]
        return [[*path, units.on_npu[unit]] for path in tails]

    paths = [path for unit in range(len(units.on_npu)) for path in runs(unit)]
    return max(sum(1 for place, _ in itertools.groupby(path) if place) for path in paths)


@given(unit_graphs())
def test_every_predecessor_runs_no_later_and_on_its_own_kind_of_stage(units):
    stages = assign_stages(units)
    for unit, before in enumerate(units.predecessors):
        assert stages[unit] % 2 == units.on_npu[unit]
        assert all(stages[predecessor] <= stages[unit] for predecessor in before)


@given(unit_graphs())
def test_there_are_as_few_regions_as_the_worst_path_needs(units):
    regions = {stage for stage in assign_stages(units) if stage % 2}
    assert len(regions) == worst_path(units)


@given(unit_graphs())
def test_components_cover_the_npu_units_and_do_not_touch(units):
    stages = assign_stages(units)
    groups = components(units, stages)
    assert sorted(unit for group in groups for unit in group) == [
        u for u, npu in enumerate(units.on_npu) if npu
    ]
    home = {unit: index for index, group in enumerate(groups) for unit in group}
    for unit, before in enumerate(units.predecessors):
        for predecessor in before:
            if units.on_npu[unit] and stages[predecessor] == stages[unit]:
                assert home[predecessor] == home[unit]


def test_independent_work_sinks_to_its_reader():
    # 0: npu, 1: host after 0, 2: npu on its own, 3: npu that reads 1 and 2
    units = Units((True, False, True, True), ((), (0,), (), (1, 2)))
    assert assign_stages(units) == [1, 2, 3, 3]


def test_an_early_host_stage_joins_a_later_one():
    # 0: host on its own, 1: npu, 2: host that reads 0 and 1
    units = Units((False, True, False), ((), (), (0, 1)))
    assert assign_stages(units) == [2, 1, 2]
