"""What the passes do in the case study, and why: one text per pass, one line per stage."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Note:
    """text: two to four sentences; shows: functions to show, if they changed; with_clean_up: the
    pass leaves constants and address arithmetic for the clean-up after it, so that is shown."""

    text: str
    shows: tuple[str, ...] = ()
    with_clean_up: bool = False


STAGE_NOTES = {
    "normalise": """
        One form for every network: channels last, weights packed, a function per kernel. Later
        stages then know a few kinds of kernel and no layouts.
    """,
    "schedule": """
        The only stage that chooses sizes. It writes its decision down as an attribute, so that it
        can be read, tested and overridden, and all later stages obey.
    """,
    "tile": """
        Loops over tiles, while the program is still made of tensors, where a tile is a slice and
        nothing can alias.
    """,
    "buffers": """
        From values to memory. From here on the caller owns every buffer.
    """,
    "stage": """
        The program of the machine: memories, moves, and the ops of its units.
    """,
    "pipeline": """
        The same program, faster: what need not be moved again is not, and moves overlap with
        compute.
    """,
    "allocate": """
        Addresses. After this stage a code generator for the machine takes over.
    """,
    "cpu": """
        The CPU in the place of the machine: each op becomes a vector kernel of its own.
    """,
    "llvm": """
        Upstream's conversions to the LLVM dialect, and passes of ours for what LLVM must know
        about code that is blocked by hand.
    """,
}

NOTES = {
    "canonicalize": Note("""
        folds and removes what the passes before left behind.
    """),
    "cse": Note("""
        merges equal computations.
    """),
    "strip-asserts": Note("""
        Run-time checks of sizes would be in the way of fusion.
    """),
    "drop-unused-results": Note("""
        A maximum comes with its position, which hardly anybody reads and no kernel computes.
    """),
    "narrow-contractions": Note("""
        In quantised networks, products of 8-bit integers that were widened to 32 bits become
        products of the 8-bit ones: a quarter of the bytes to move, and the fast mode of the matrix
        unit. This block computes with floats, so nothing changes.
    """),
    "convert-layout": Note("""
        Channels become the innermost dimension of the convolution and of all that follows: the
        matrix unit sums over channels, and a DMA moves contiguous channels in long bursts.
        Transposes remain only where the user's tensors come in and go out.
    """),
    "fuse-elementwise": Note("""
        Batch norm, residual add and ReLU are one elementwise op now, in the shape of the
        convolution's result: it will be the epilogue of the drain and costs no trip to dram. The
        part of batch norm that only depends on parameters stays apart, on one number per
        channel instead of every pixel.
    """),
    "convert-conv-to-matmul": Note("""
        A 1 x 1 convolution between tensors with channels first would stay in their order; this
        block begins and ends with other layers.
    """),
    "convert-conv-to-winograd": Note("""
        Only a CPU trades multiplications for additions; a matrix unit is made for the plain sum.
    """),
    "pack-weights": Note("""
        Output channels are split into blocks of the vector width of this machine, 8, and the
        weights are laid out block by block, the channels of a block innermost. A tile of weights
        is contiguous then, and the accumulators of a block are adjacent. With 8 output channels
        there is one block.
    """),
    "form-kernels": Note(
        """
        Each computation moves to a function of its own. The region is left as a list of calls:
        transposes into channels last, the arithmetic on parameters, the packing of the weights,
        the convolution with its epilogue, and a transpose back.
        """,
        ("main", "conv2d_0"),
    ),
    "outline-prepare": Note(
        """
        What depends on parameters alone goes to `@prepare`, which runs once, until parameters
        change. `@main` takes its results as `prepared` arguments.
        """,
        ("prepare", "main"),
    ),
    "duplicate-function-elimination": Note(
        """
        leaves one kernel of equal ones.
        """,
        ("main",),
    ),
    "symbol-dce": Note("""
        removes functions that nobody calls.
    """),
    "choose-tiles": Note("""
        The whole convolution exceeds the scratchpad. The search compares tiles, orders of loops
        and numbers of buffers by the cycles that the kernel takes with moves and compute
        overlapped: `cycles` is its estimate, `bound` the unit that limits it. `tile` has a size
        for each parallel loop (image, rows, columns, channel block, channel; 0 is the whole loop),
        `reduction_tile` one for each reduction loop (window rows, window columns, input channels).
        Here the sum over input channels is split, and partial sums wait in the accumulators.
    """),
    "tile-kernels": Note("""
        The schedule becomes loops: over tiles of the result, and inside over slices of the input
        channels, with the accumulators carried from slice to slice. The epilogue is fused in, so
        that it sees each tile while it is on chip. A tile of the image reaches into its neighbours
        by the halo of the window. The padding is still that of the whole image; it becomes the
        tiles' own when moves are made.
    """),
    "eliminate-empty-tensors": Note("""
        Results are written where the caller wants them.
    """),
    "protect-arguments": Note(
        """
        Bufferization must not use an argument of the region as scratch memory: it is a tensor of
        the user's.
        """,
        ("main",),
    ),
    "one-shot-bufferize": Note("""
        Tensors become memrefs. A slice becomes a subview, and the destination style of the ops
        lets tiles be computed in place.
    """),
    "booleans-to-bytes": Note(
        "Booleans become bytes in memory, as PyTorch has them: a vector of bits would be packed."
    ),
    "results-to-out-params": Note(
        """
        Results turn into trailing arguments. The runtime allocates them, as torch tensors, and
        compiled code never allocates.
        """,
        ("main", "conv2d_0"),
    ),
    "assign-memory-spaces": Note("""
        Every tile gets a place on chip: the sums in acc, what is read and written beside them in
        sram. Copies appear wherever a value has to change memory.
    """),
    "insert-dma": Note("""
        A copy between dram and sram is a move with a token and a wait. The pad of the image is
        folded into the moves of its tiles: each fetches the valid box only, whose extents follow
        from the loop counters, and makes the zeros on chip. The padded image is gone.
    """),
    "convert-linalg-to-npu": Note("""
        What is left of linalg is what the units do: the convolution for the matrix unit, the
        epilogue as the region of a drain.
    """),
    "order-tiles": Note("""
        The tile loops become nested `scf.for` in the order of the schedule. Order decides what
        stays: a tile that does not depend on the inner loops need not be fetched again.
    """),
    "hoist-invariant-dma": Note("""
        Loads that all iterations of a loop repeat move in front of it, with their buffer and their
        wait. Here scale and shift of the batch norm are loaded once. The weights are not: their
        slice changes with the slice of the input channels.
    """),
    "split-dma": Note("""
        A move with more dimensions than the DMA engine can step through becomes a loop of smaller
        ones, and a long move is shared by the channels if there are several.
    """),
    "double-buffer": Note(
        """
        Each tile that is moved again and again gets a second buffer. The load for the next
        iteration is started before this iteration computes, and a store is waited for where its
        buffer is made again, two iterations later: tokens travel as iteration arguments. The
        compute stands there once, its buffers selected by whether the iteration is odd. The
        accumulators take turns as well, so that one tile is drained while the next is summed.
        """,
        with_clean_up=True,
    ),
    "keep-planes": Note("""
        Where sram is a cache, first layers compute on tiles in the order of dram. This machine's
        matrix unit takes tiles in one order only.
    """),
    "elide-dma": Note("""
        Where sram is a cache, moves that only copy can go. This machine has none.
    """),
    "plan-scratchpad": Note(
        """
        Buffers whose lives do not overlap share bytes; every buffer becomes a view at a constant
        offset of one scratchpad, which is the last argument. A buffer with a move in flight is
        alive until the wait.
        """,
        ("conv2d_0",),
    ),
    "plan-workspace": Note(
        """
        The same for the tensors between kernels, in one workspace in dram.
        """,
        ("main",),
    ),
    "convert-npu-to-vector": Note("""
        Each npu op becomes loops of vector code for the CPU. The sums of a register tile are kept
        in vector registers, carried by the loop; each weight vector is used for several pixels.
        Here is the innermost loop of the convolution.
    """),
    "strip-memory-spaces": Note("""
        On the CPU the three memories are one.
    """),
    "outline-parallel": Note("""
        On a machine with several cores the outer tile loop would be split over them.
    """),
    "approximate-math": Note("""
        Elementary functions become polynomials; there are none here.
    """),
}
