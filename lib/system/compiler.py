"""What Triton needs of a machine: it compiles a small C program before it first starts a kernel."""

import os
import shutil
import sysconfig
from importlib.util import find_spec
from pathlib import Path


def missing_for_triton() -> str:
    """Name what is missing here for Triton's kernels, and how to get it; "" if nothing is missing.

    It looks where `triton.runtime.build` looks: for the compiler that CC names, or for gcc or
    clang, and for Python's header. Containers often have neither.
    """
    if find_spec("triton") is None:
        return "Triton, which PyTorch's CUDA build installs on Linux"
    own = os.environ.get("CC")
    if own is not None and not shutil.which(own):
        return f"a C compiler, and CC={own!r} is none here: install it, or unset CC"
    if own is None and not (shutil.which("gcc") or shutil.which("clang")):
        advice = "install gcc, or set CC to another one"
        return f"a C compiler, and there is no gcc or clang here: {advice}"
    if not (_python_headers() / "Python.h").is_file():
        return f"Python.h, and there is none in {_python_headers()}: install python3-dev"
    return ""


def _python_headers() -> Path:
    """Find the folder of Python's headers. Debian's own scheme is for what its users install."""
    scheme = sysconfig.get_default_scheme()
    if scheme == "posix_local":
        scheme = "posix_prefix"
    return Path(sysconfig.get_paths(scheme)["include"])
