# SPDX-License-Identifier: Apache-2.0
"""How busy this machine is: processor, memory, disk and load, read from /proc and from this process's own cgroup.

Memory is judged by the nearest bound: the limit of the cgroup that this process is in, where it has one below the machine's memory.
"""
from __future__ import annotations

import os
import time
from typing import Dict, List, Optional, Tuple

GIB = float(1 << 30)
FIRST_READING_SECONDS = 0.05  # processor time is a difference of two readings; the first one has to make both


def _read(path: str) -> Optional[str]:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return None


def _number(path: str) -> Optional[int]:
    text = (_read(path) or "").strip()
    return int(text) if text.isdigit() else None


def _cgroup_files(cgroups: str) -> List[Tuple[str, str]]:
    """The files of memory in use and its limit, of v2 and of v1, for the text of /proc/self/cgroup.

    >>> _cgroup_files("4:memory:/a\\n0::/b\\n")[1]
    ('/sys/fs/cgroup/b/memory.current', '/sys/fs/cgroup/b/memory.max')
    """
    found = []
    for line in cgroups.splitlines():
        _, names, path = (line.split(":", 2) + ["", ""])[:3]
        if "memory" in names.split(","):
            base = "/sys/fs/cgroup/memory" + path.rstrip("/")
            found.append((base + "/memory.usage_in_bytes", base + "/memory.limit_in_bytes"))
        elif not names:
            base = "/sys/fs/cgroup" + path.rstrip("/")
            found.append((base + "/memory.current", base + "/memory.max"))
    return found


def memory() -> Tuple[int, int]:
    """Bytes in use and bytes in all."""
    fields = dict(line.split(":", 1) for line in (_read("/proc/meminfo") or "").splitlines() if ":" in line)
    total = int(fields.get("MemTotal", "0 kB").split()[0]) << 10
    used = total - (int(fields.get("MemAvailable", "0 kB").split()[0]) << 10)
    for used_file, limit_file in _cgroup_files(_read("/proc/self/cgroup") or ""):
        own_used, limit = _number(used_file), _number(limit_file)
        if own_used is not None and limit is not None and 0 < limit < total:
            return own_used, limit
    return used, total


def disk(path: str = "/") -> Tuple[int, int]:
    """Bytes in use and bytes in all of the file system of a path, without what is reserved for root."""
    stat = os.statvfs(path)
    used = (stat.f_blocks - stat.f_bfree) * stat.f_frsize
    return used, used + stat.f_bavail * stat.f_frsize


def load_average() -> List[float]:
    """The run queue's length over 1, 5 and 15 minutes."""
    return [float(word) for word in (_read("/proc/loadavg") or "").split()[:3]]


def percent(used: float, total: float) -> float:
    """A share of a whole; 0 of nothing.

    >>> percent(1, 8), percent(1, 0)
    (12.5, 0.0)
    """
    return round(100.0 * used / total, 4) if total else 0.0


class Processor:
    """The share of processor time in use since the previous reading."""

    def __init__(self) -> None:
        self._last: Optional[Tuple[int, int]] = None

    @staticmethod
    def _times() -> Tuple[int, int]:
        """Busy and total time of all processors, in ticks."""
        words = (_read("/proc/stat") or "cpu 0 0 0 0 0").split("\n", 1)[0].split()[1:9]
        ticks = [int(word) for word in words]
        return sum(ticks) - sum(ticks[3:5]), sum(ticks)

    def percent(self) -> float:
        """From 0 to 100."""
        if self._last is None:
            self._last = self._times()
            time.sleep(FIRST_READING_SECONDS)
        now = self._times()
        busy, total = now[0] - self._last[0], now[1] - self._last[1]
        self._last = now
        return percent(max(busy, 0), total)


def readings(processor: Processor) -> Dict[str, object]:
    """All of it, by the names of Unified-AI-Project."""
    memory_used, memory_total = memory()
    disk_used, disk_total = disk()
    return {"cpu_percent": processor.percent(), "memory_percent": percent(memory_used, memory_total),
            "memory_available_gb": round(max(memory_total - memory_used, 0) / GIB, 2),
            "disk_percent": percent(disk_used, disk_total), "disk_free_gb": round((disk_total - disk_used) / GIB, 2),
            "load_average": load_average(), "timestamp": time.time()}
