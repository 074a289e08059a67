# SPDX-License-Identifier: Apache-2.0
"""``ExecutionManager`` of Unified-AI-Project: commands in a sandbox, watched; adaptive timeouts, statistics, a health report.

Three decisions differ from a manager of ordinary processes, because the code is not trusted:
- A timeout that the caller gave is strict. The adaptive value, mean of the command's own past times × ``timeout_multiplier``, may only lower it.
- Code that has run is never run again. ``auto_recovery`` repeats an execution that could not begin: no daemon, or no room in it.
- "Stuck" means that the sandbox saw neither output nor processor time for ``stuck_process_timeout`` seconds.

The "terminal" is the sandbox service: its status is the time that ``echo test`` takes in it.
"""
from __future__ import annotations

import asyncio
import enum
import gc
import logging
import shlex
import threading
import time
from collections import OrderedDict, deque
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any, Callable, Deque, Dict, List, Optional, Sequence, Type, Union

from . import _host
from ._client import Client
from ._errors import AtollError, Busy, ConnectionFailed
from ._manager_config import ExecutionManagerConfig
from ._result import Result

TERMINAL_CHECK_SECONDS = 5.0  # how long a status of the terminal counts
TERMINAL_TIMEOUT = 5.0
HEALTH_SECONDS = 10.0
RECENT_SECONDS = 3600.0
LOG_MAX = 1000  # issues and recoveries kept

Command = Union[str, Sequence[str]]


class ExecutionStatus(enum.Enum):
    """How an execution stands. A program that exits with another code than 0 has completed."""

    RUNNING = "running"
    COMPLETED = "completed"
    TIMEOUT = "timeout"
    STUCK = "stuck"
    ERROR = "error"
    CANCELLED = "cancelled"


class TerminalStatus(enum.Enum):
    """How fast the sandbox service answers: within 0.1 s, 1 s, 3 s, or not."""

    RESPONSIVE = "responsive"
    SLOW = "slow"
    STUCK = "stuck"
    UNRESPONSIVE = "unresponsive"


@dataclass
class ExecutionResult:
    """What became of one execution.

    ``resource_usage``: processor time in per cent of the execution's time and peak of memory in per cent of the machine's, both
    from the sandbox's cgroup, and the disk in use. ``result`` is the whole account.
    """

    status: ExecutionStatus
    return_code: Optional[int] = None
    stdout: str = ""
    stderr: str = ""
    execution_time: float = 0.0
    timeout_used: float = 0.0
    terminal_status: TerminalStatus = TerminalStatus.RESPONSIVE
    resource_usage: Dict[str, float] = field(default_factory=dict)
    error_message: Optional[str] = None
    result: Optional[Result] = field(default=None, repr=False)


_STATUSES = {"success": ExecutionStatus.COMPLETED, "error": ExecutionStatus.COMPLETED, "limit": ExecutionStatus.COMPLETED,
             "timeout": ExecutionStatus.TIMEOUT, "cancelled": ExecutionStatus.CANCELLED}
_COUNTS = ("total_executions", "successful_executions", "failed_executions", "timeout_executions", "recovered_executions")
#: Debian has no program of that name, and commands use it.
_PYTHON = 'type python >/dev/null 2>&1 || python() { python3 "$@"; }; '
_RECOVERIES = {"cpu": "cpu_throttling_suggested", "memory": "garbage_collection", "disk": "temp_cleanup_suggested"}


def status_of(result: Result) -> ExecutionStatus:
    """The document's status of a result."""
    if result.cause.kind == "idle":
        return ExecutionStatus.STUCK
    return _STATUSES.get(result.status, ExecutionStatus.ERROR)


class ExecutionManager:
    """Runs commands in a sandbox and keeps an account of them.

    >>> manager = ExecutionManager()
    >>> manager.execute_command("echo reef").stdout
    'reef\\n'
    >>> manager.get_execution_statistics()["success_rate"]
    1.0
    """

    def __init__(self, config: Optional[ExecutionManagerConfig] = None, *, client: Optional[Client] = None) -> None:
        """``config=None`` reads ``configs/system_config.yaml`` below the working directory, where there is one."""
        self.config = config or ExecutionManagerConfig.from_system()
        self.logger = logging.getLogger("atoll.executor.ExecutionManager")
        self.logger.setLevel(self.config.log_level.upper())
        self.issues_log: Deque[Dict[str, Any]] = deque(maxlen=LOG_MAX)
        self.recovery_actions: Deque[Dict[str, Any]] = deque(maxlen=LOG_MAX)
        self._client = client
        self._lock = threading.Lock()
        self._processor = _host.Processor()
        self._past: "OrderedDict[str, Deque[float]]" = OrderedDict()  # times of completed executions, by command
        self._terminal = (float("-inf"), TerminalStatus.RESPONSIVE)
        self._stop: Optional[threading.Event] = None
        self._thread: Optional[threading.Thread] = None
        self.reset_statistics()

    def __enter__(self) -> "ExecutionManager":
        """Starts to watch this machine."""
        self.start_health_monitoring()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.stop_health_monitoring()

    @property
    def monitor(self) -> "ExecutionManager":
        """The document's second object, which measures and runs; here it is this one."""
        return self

    @property
    def client(self) -> Client:
        """The client whose daemon runs the commands."""
        if self._client is None:
            from . import default_client

            self._client = default_client()
        return self._client

    # --- executing ---------------------------------------------------------------------------------------------------

    def execute_command(self, command: Command, timeout: Optional[float] = None, retry_on_failure: bool = True,
                        **options: Any) -> ExecutionResult:
        """Runs a shell command, or a list of words, in a sandbox. ``options`` are those of ``Client.run``.

        >>> ExecutionManager().execute_command(["sh", "-c", "exit 3"]).return_code
        3
        """
        text = command if isinstance(command, str) else " ".join(shlex.quote(word) for word in command)

        def start(limits: Dict[str, Any]) -> Result:
            return self.client.run(_PYTHON + text, "bash", **dict(options, **limits))

        return self.execute(text, start, timeout, retry_on_failure)

    async def execute_async_command(self, command: Command, timeout: Optional[float] = None, **options: Any) -> ExecutionResult:
        """As ``execute_command``; the event loop goes on meanwhile."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, lambda: self.execute_command(command, timeout, **options))

    def execute(self, key: str, start: Callable[[Dict[str, Any]], Result], timeout: Optional[float] = None,
                retry_on_failure: bool = True) -> ExecutionResult:
        """Runs ``start(limits)`` under this manager's care; ``key`` names what is run, for its history of times."""
        if not self.config.enabled:
            chosen = self.config.default_timeout if timeout is None else timeout
            return self._finish(start({"timeout": chosen}), chosen)
        if self.config.log_execution_details:
            self.logger.info("executing %s", key if len(key) < 200 else key[:200] + " …")
        chosen = self.calculate_adaptive_timeout(key, timeout)
        limits = {"timeout": chosen}
        if self.config.escalation_enabled and 0 < self.config.stuck_process_timeout < chosen:
            limits["idle_timeout"] = self.config.stuck_process_timeout
        tries = self.config.max_retry_attempts if retry_on_failure and self.config.auto_recovery else 0
        try:
            result, repeated = self._start_patiently(start, limits, tries)
        except AtollError as error:
            ended = ExecutionResult(ExecutionStatus.ERROR, timeout_used=chosen, terminal_status=self._terminal[1], error_message=str(error))
            self._count(ended, key, False)
            raise_unless_busy(error)
            return ended
        ended = self._finish(result, chosen)
        self._count(ended, key, repeated)
        return ended

    def _start_patiently(self, start: Callable[[Dict[str, Any]], Result], limits: Dict[str, Any], tries: int) -> "tuple[Result, bool]":
        """The result, and whether the first try could not begin."""
        for attempt in range(tries + 1):
            try:
                return start(limits), attempt > 0
            except (Busy, ConnectionFailed) as error:
                if attempt == tries or not _has_not_begun(error):
                    raise
                self.logger.warning("try %d of %d: %s", attempt + 1, tries + 1, error)
                time.sleep(self.config.retry_delay)
        raise AssertionError("the loop returns or raises")

    def _finish(self, result: Result, chosen: float) -> ExecutionResult:
        status = status_of(result)
        message: Optional[str] = None
        if status is ExecutionStatus.TIMEOUT:
            message = "Command timed out after %ss" % chosen
        elif status is not ExecutionStatus.COMPLETED or result.status == "limit":
            message = result._explain_end()
        return ExecutionResult(status, result.exit_code, result.stdout, result.stderr, result.duration, chosen, self._terminal[1],
                               self._usage(result), message, result)

    def _usage(self, result: Result) -> Dict[str, float]:
        if not self.config.resource_monitoring:
            return {}
        usage = {"cpu_percent": _host.percent(result.cpu_time, result.duration),
                 "memory_percent": _host.percent(result.memory_peak, _host.memory()[1]),
                 "disk_percent": _host.percent(*_host.disk()), "timestamp": time.time()}
        if self.config.log_resource_usage:
            self.logger.info("usage of %s: %s", result.id, usage)
        return usage

    # --- timeouts ----------------------------------------------------------------------------------------------------

    def calculate_adaptive_timeout(self, key: str, timeout: Optional[float] = None) -> float:
        """The timeout for the next execution of ``key``; never more than ``timeout``.

        >>> ExecutionManager(ExecutionManagerConfig(terminal_monitoring=False)).calculate_adaptive_timeout("echo", 2)
        2
        """
        config = self.config
        asked = config.default_timeout if timeout is None else timeout
        if not config.adaptive_timeout:
            return asked
        with self._lock:
            past = list(self._past.get(key, ()))
        value = min(sum(past) / len(past) * config.timeout_multiplier, config.max_timeout) if past else asked
        terminal = self.check_terminal_responsiveness() if config.terminal_monitoring else TerminalStatus.RESPONSIVE
        if terminal is TerminalStatus.UNRESPONSIVE:
            value = config.min_timeout
        elif past:
            value = max(value, config.min_timeout) * {TerminalStatus.SLOW: config.slow_terminal_multiplier,
                                                      TerminalStatus.STUCK: config.stuck_terminal_multiplier}.get(terminal, 1.0)
        value = min(max(value, config.min_timeout), config.max_timeout)
        return value if timeout is None else min(value, timeout)

    def check_terminal_responsiveness(self) -> TerminalStatus:
        """How fast the sandbox service answers; asked every five seconds at most."""
        if time.monotonic() - self._terminal[0] < TERMINAL_CHECK_SECONDS:
            return self._terminal[1]
        start = time.monotonic()
        answered, seconds = False, 0.0
        try:
            result = self.client.run("echo test", "bash", timeout=TERMINAL_TIMEOUT)
            answered, seconds = result.ok, time.monotonic() - start
            self.client.delete(result.id)  # the history is the caller's
        except AtollError:
            pass
        status = TerminalStatus.UNRESPONSIVE
        if answered:
            bounds = ((0.1, TerminalStatus.RESPONSIVE), (1.0, TerminalStatus.SLOW), (3.0, TerminalStatus.STUCK))
            status = next((word for bound, word in bounds if seconds < bound), TerminalStatus.UNRESPONSIVE)
        self._terminal = (time.monotonic(), status)
        if self.config.log_terminal_status:
            self.logger.info("terminal %s after %.3f s", status.value, seconds)
        return status

    # --- statistics --------------------------------------------------------------------------------------------------

    def _count(self, ended: ExecutionResult, key: str, repeated: bool) -> None:
        completed = ended.status is ExecutionStatus.COMPLETED
        with self._lock:
            self._counts["total_executions"] += 1
            self._seconds += ended.execution_time
            if completed:
                self._counts["successful_executions"] += 1
                self._counts["recovered_executions"] += repeated
                self._remember(key, ended.execution_time)
            elif ended.status is ExecutionStatus.TIMEOUT:
                self._counts["timeout_executions"] += 1
            else:
                self._counts["failed_executions"] += 1

    def _remember(self, key: str, seconds: float) -> None:
        """Keeps a time of a command; of the commands, those that ran last."""
        times = self._past.setdefault(key, deque(maxlen=max(self.config.history_size, 1)))
        times.append(seconds)
        self._past.move_to_end(key)
        while len(self._past) > max(self.config.cache_size, 1):
            self._past.popitem(last=False)

    def get_execution_statistics(self) -> Dict[str, Any]:
        """Counts, rates from 0 to 1, and the mean time."""
        with self._lock:
            stats: Dict[str, Any] = dict(self._counts)
            total = stats["total_executions"]
            stats["average_execution_time"] = self._seconds / total if total else 0.0
        for rate, count in (("success_rate", "successful"), ("failure_rate", "failed"), ("timeout_rate", "timeout"), ("recovery_rate", "recovered")):
            stats[rate] = stats[count + "_executions"] / total if total else 0.0
        return stats

    def reset_statistics(self) -> None:
        """Starts to count again, and forgets issues and recoveries."""
        with self._lock:
            self._counts = {name: 0 for name in _COUNTS}
            self._seconds = 0.0
        self.issues_log.clear()
        self.recovery_actions.clear()

    # --- health ------------------------------------------------------------------------------------------------------

    def get_system_health(self) -> Dict[str, Any]:
        """Readings of this machine, and the terminal's status."""
        terminal = self.check_terminal_responsiveness() if self.config.terminal_monitoring else self._terminal[1]
        return dict(_host.readings(self._processor), terminal_status=terminal.value)

    def get_system_health_report(self) -> Dict[str, Any]:
        """Readings, statistics, issues and recoveries of the last hour, and the settings.

        >>> sorted(ExecutionManager().get_system_health_report())
        ['config', 'execution_stats', 'recent_issues', 'recent_recoveries', 'system_health']
        """
        health = self.get_system_health()
        self._check_thresholds(health)
        return {"system_health": health, "execution_stats": self.get_execution_statistics(), "recent_issues": _recent(self.issues_log),
                "recent_recoveries": _recent(self.recovery_actions), "config": asdict(self.config)}

    def _check_thresholds(self, health: Dict[str, Any]) -> None:
        for resource in _RECOVERIES:
            value = health[resource + "_percent"]
            for severity in ("critical", "warning"):
                threshold = getattr(self.config, "%s_%s" % (resource, severity))
                if value > threshold:
                    self.issues_log.append({"timestamp": time.time(), "type": "resource_threshold", "resource": resource,
                                            "severity": severity, "value": value, "threshold": threshold})
                    self.logger.warning("%s use of %s %% is above the %s threshold", resource, value, severity)
                    if severity == "critical" and self.config.auto_recovery:
                        self._recover(resource)
                    break

    def _recover(self, resource: str) -> None:
        if resource == "memory":
            gc.collect()
        self.recovery_actions.append({"timestamp": time.time(), "type": "resource_recovery", "resource": resource, "action": "attempted",
                                      "details": _RECOVERIES[resource], "status": "completed"})

    def start_health_monitoring(self) -> None:
        """Compares readings with the thresholds every ten seconds, in a thread, until ``stop_health_monitoring``."""
        if self._thread is not None or not (self.config.enabled and self.config.resource_monitoring):
            return
        stop = self._stop = threading.Event()

        def watch() -> None:
            while True:
                self._check_thresholds(self.get_system_health())
                if stop.wait(HEALTH_SECONDS):
                    return

        self._thread = threading.Thread(target=watch, name="atoll-health", daemon=True)
        self._thread.start()

    def stop_health_monitoring(self) -> None:
        """Ends the thread."""
        if self._thread is not None and self._stop is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None


def _recent(entries: Deque[Dict[str, Any]]) -> List[Dict[str, Any]]:
    now = time.time()
    return [entry for entry in list(entries) if now - float(entry["timestamp"]) < RECENT_SECONDS]


def _has_not_begun(error: AtollError) -> bool:
    """Whether the daemon cannot have seen the request: it was refused for want of room, or no daemon took the connection."""
    return isinstance(error, Busy) or isinstance(error.__cause__, (ConnectionRefusedError, FileNotFoundError))


def raise_unless_busy(error: AtollError) -> None:
    """A request that is wrong is the caller's error; that there is no daemon or no room is a result of status ``error``."""
    if not isinstance(error, (Busy, ConnectionFailed)):
        raise error


_default_lock = threading.Lock()
_default: Optional[ExecutionManager] = None


def get_execution_manager(config: Optional[ExecutionManagerConfig] = None) -> ExecutionManager:
    """The manager that this process shares; ``config`` replaces it by one with these settings."""
    global _default
    with _default_lock:
        if _default is None or config is not None:
            _default = ExecutionManager(config)
        return _default
