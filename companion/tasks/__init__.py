"""Synthetic tasks whose right answer is known: each module trains small models on one, and has it
as TASK."""

import pkgutil
from importlib import import_module

from companion.tasks.task import Task


def tasks() -> dict[str, Task]:
    """Import all tasks, and the models that they train, by name."""
    modules = {
        name: import_module(f"companion.tasks.{name}")
        for _, name, _ in pkgutil.iter_modules(__path__)
    }
    return {name: module.TASK for name, module in modules.items() if hasattr(module, "TASK")}
