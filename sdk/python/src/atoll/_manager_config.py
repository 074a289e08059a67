# SPDX-License-Identifier: Apache-2.0
"""The settings of ``ExecutionManager``, and the file they may stand in.

The file is Unified-AI-Project's ``configs/system_config.yaml``: ``operational_configs.execution_monitor`` and ``operational_configs.timeouts``.
It is JSON, or YAML of which only ``operational_configs`` is read: nested maps of scalars, indented by spaces. Lists, anchors and texts of
several lines are refused there, so settings are never half understood.
"""
from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

DEFAULT_CONFIG_FILE = "configs/system_config.yaml"

#: Where a setting stands in the file, when that is not ``execution_monitor.NAME``.
_PLACES = {
    **{name: ("execution_monitor", "thresholds", name) for name in (
        "cpu_warning", "cpu_critical", "memory_warning", "memory_critical", "disk_warning", "disk_critical")},
    **{name: ("execution_monitor", "adaptive_timeout_config", name) for name in (
        "history_size", "timeout_multiplier", "slow_terminal_multiplier", "stuck_terminal_multiplier", "cache_size")},
    **{name: ("execution_monitor", "recovery_strategies", name) for name in (
        "stuck_process_timeout", "max_retry_attempts", "retry_delay", "escalation_enabled")},
    **{name: ("execution_monitor", "logging", name) for name in (
        "log_execution_details", "log_resource_usage", "log_terminal_status")},
    "log_level": ("execution_monitor", "logging", "level"),
    "default_timeout": ("timeouts", "command_execution_default"),
    "max_timeout": ("timeouts", "command_execution_max"),
    "min_timeout": ("timeouts", "command_execution_min"),
}


@dataclass
class ExecutionManagerConfig:
    """The settings of ``ExecutionManager``. Times are seconds, thresholds per cent.

    >>> ExecutionManagerConfig(default_timeout=10).max_timeout
    300.0
    """

    enabled: bool = True
    adaptive_timeout: bool = True
    terminal_monitoring: bool = True
    resource_monitoring: bool = True
    auto_recovery: bool = True
    default_timeout: float = 30.0
    max_timeout: float = 300.0
    min_timeout: float = 5.0
    cpu_warning: float = 80.0
    cpu_critical: float = 90.0
    memory_warning: float = 75.0
    memory_critical: float = 85.0
    disk_warning: float = 80.0
    disk_critical: float = 90.0
    history_size: int = 50
    timeout_multiplier: float = 2.5
    slow_terminal_multiplier: float = 1.5
    stuck_terminal_multiplier: float = 2.0
    cache_size: int = 100
    stuck_process_timeout: float = 30.0
    max_retry_attempts: int = 3
    retry_delay: float = 5.0
    escalation_enabled: bool = True
    log_level: str = "INFO"
    log_execution_details: bool = True
    log_resource_usage: bool = False
    log_terminal_status: bool = False

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> "ExecutionManagerConfig":
        """The settings from the tree of a configuration file; what it leaves out has its default.

        >>> ExecutionManagerConfig.from_dict({"operational_configs": {"timeouts": {"command_execution_max": 60}}}).max_timeout
        60
        """
        root = settings.get("operational_configs") or {}
        found: Dict[str, Any] = {}
        for field in fields(cls):
            value: Any = root
            for word in _PLACES.get(field.name, ("execution_monitor", field.name)):
                value = value.get(word) if isinstance(value, Mapping) else None
            if value is not None:
                _check_kind(field.name, value, getattr(cls, field.name))
                found[field.name] = value
        return cls(**found)

    @classmethod
    def from_file(cls, path: str = DEFAULT_CONFIG_FILE) -> "ExecutionManagerConfig":
        """The settings from a file of JSON or simple YAML."""
        with open(path, encoding="utf-8") as file:
            text = file.read()
        settings = json.loads(text) if text.lstrip().startswith("{") else parse_simple_yaml(section_of(text, "operational_configs"))
        return cls.from_dict(settings)

    @classmethod
    def from_system(cls) -> "ExecutionManagerConfig":
        """The settings from the file at its usual place below the working directory; the defaults where there is none."""
        return cls.from_file() if os.path.exists(DEFAULT_CONFIG_FILE) else cls()


def _check_kind(name: str, value: object, default: object) -> None:
    """Refuses a setting of another type than its default's; a whole number does for a fraction."""
    wanted: Tuple[type, ...] = (int, float) if isinstance(default, float) else (type(default),)
    if not isinstance(value, wanted) or (isinstance(value, bool) and not isinstance(default, bool)):
        raise ValueError("%s must be %s, not %r" % (name, wanted[-1].__name__, value))


_WORDS: Dict[str, Union[bool, None]] = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False, "null": None, "~": None, "": None}


def _scalar(text: str) -> Any:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    if text[0] in "[{&*|>!%@`-":
        raise ValueError("%r is more YAML than this reader knows" % text)
    return text


def section_of(text: str, name: str) -> str:
    """The lines of one key at the top of a YAML file, and empty ones in place of the others.

    >>> section_of("a:\\n- 1\\nb:\\n  c: 2\\n# d\\n  e: 3\\nf: 4", "b")
    '\\n\\nb:\\n  c: 2\\n# d\\n  e: 3\\n'
    """
    inside, lines = False, []
    for line in text.splitlines():
        if line.strip() and not line.startswith((" ", "#")):
            inside = line.split(":")[0].strip("'\"") == name
        lines.append(line if inside else "")
    return "\n".join(lines)


def parse_simple_yaml(text: str) -> Dict[str, Any]:
    """Nested maps of scalars.

    >>> parse_simple_yaml("a:\\n  b: 1.5  # half\\n  c: yes\\nd: word\\n")
    {'a': {'b': 1.5, 'c': True}, 'd': 'word'}
    """
    root: Dict[str, Any] = {}
    stack: List[Tuple[int, Dict[str, Any]]] = [(0, root)]
    pending: Optional[Tuple[int, Dict[str, Any], str]] = None  # a key that may turn out to hold a map
    for number, line in enumerate(text.splitlines(), 1):
        body = line.split(" #")[0].rstrip()
        if not body.strip() or body.lstrip().startswith("#") or body == "---":
            continue
        indent = len(body) - len(body.lstrip(" "))
        key, colon, rest = body.strip().partition(":")
        if not colon or (rest and not rest.startswith(" ")) or key.startswith(("-", "\t", "?")):
            raise ValueError("line %d: %r is not `key: value`" % (number, body.strip()))
        if pending is not None and indent > pending[0]:
            child: Dict[str, Any] = {}
            pending[1][pending[2]] = child
            stack.append((indent, child))
        while stack[-1][0] > indent:
            stack.pop()
        if stack[-1][0] != indent:
            raise ValueError("line %d: its indentation fits no line above" % number)
        holder = stack[-1][1]
        holder[key.strip("'\"")] = _scalar(rest.strip())
        pending = None if rest.strip() else (indent, holder, key.strip("'\""))
    return root
