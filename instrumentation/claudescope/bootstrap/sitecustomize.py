"""Arms claudescope in every Python process that `claudescope run` starts, directly or through other programs.

Python imports a module of this name at its start; `claudescope run` puts this folder in front of PYTHONPATH. The file
must load in any Python that a command may start, also one that claudescope does not support, so its syntax is that of
Python 2.7, it never raises, and nothing of claudescope is imported before the process imports `anthropic`. A
`sitecustomize` that this one hides is loaded afterwards, and the folder is taken off `sys.path` (not off PYTHONPATH:
child processes need it), so the app finds the path that it would have without us.
"""
# ruff: noqa: ANN001, ANN202, BLE001, UP004, UP031, UP036

import os
import sys


class _Finder(object):
    """Finds no module itself; it notices that `anthropic` is looked for."""

    def find_spec(self, fullname, path=None, target=None):  # type: ignore[no-untyped-def]
        """Arms, and lets the others find `anthropic`: those that arming added, too."""
        if fullname != "anthropic":
            return None
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        _arm()
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            spec = None if find is None else find(fullname, path, target)
            if spec is not None:
                return spec
        return None


def _arm():
    # type: () -> None
    try:
        import claudescope.autoload
    except Exception:
        python = sys.executable or "python"
        if sys.version_info >= (3, 10):
            fix = "type: %s -m pip install claudescope" % python
        else:
            fix = "it needs Python 3.10 or newer"
        if sys.stderr is not None:
            sys.stderr.write("claudescope: %s cannot import claudescope; %s\n" % (python, fix))
    else:
        claudescope.autoload.arm()


def _leave_path():
    # type: () -> None
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if not entry or os.path.abspath(entry) != here]


def _load_hidden():
    # type: () -> None
    """Loads the `sitecustomize` that Python would have found without this one."""
    if sys.version_info < (3, 4):
        import imp  # type: ignore[import-not-found,unused-ignore]

        try:
            found = imp.find_module("sitecustomize", sys.path)
        except ImportError:
            return
        imp.load_module("sitecustomize", *found)
        return
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    from importlib.util import module_from_spec

    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


_leave_path()
if "anthropic" in sys.modules:
    _arm()
elif sys.version_info >= (3, 4):
    sys.meta_path.insert(0, _Finder())
_load_hidden()
