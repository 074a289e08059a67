# SPDX-License-Identifier: Apache-2.0
"""ExecutionManager of document 000: settings, statuses, adaptive timeouts, statistics and health."""
import asyncio
import dataclasses
import json
import sys
import time

import pytest

from program import ROOT

sys.path.insert(0, str(ROOT / "sdk" / "python" / "src"))
from atoll import Busy, Client, InvalidRequest  # noqa: E402
from atoll import _manager as manager_module  # noqa: E402
from atoll.executor import (ExecutionManager, ExecutionManagerConfig, ExecutionStatus, SandboxExecutor,  # noqa: E402
                            TerminalStatus)

pytestmark = pytest.mark.modes("root")

DEFAULTS = {"enabled": True, "adaptive_timeout": True, "terminal_monitoring": True, "resource_monitoring": True, "auto_recovery": True,
            "default_timeout": 30, "max_timeout": 300, "min_timeout": 5, "cpu_warning": 80, "cpu_critical": 90, "memory_warning": 75,
            "memory_critical": 85, "disk_warning": 80, "disk_critical": 90, "history_size": 50, "timeout_multiplier": 2.5,
            "slow_terminal_multiplier": 1.5, "stuck_terminal_multiplier": 2.0, "cache_size": 100, "stuck_process_timeout": 30,
            "max_retry_attempts": 3, "retry_delay": 5, "escalation_enabled": True, "log_level": "INFO", "log_execution_details": True,
            "log_resource_usage": False, "log_terminal_status": False}
FILE = """
operational_configs:
  execution_monitor:
    enabled: true
    terminal_monitoring: false   # not here
    thresholds:
      cpu_warning: 70
    adaptive_timeout_config:
      timeout_multiplier: 3.5
    recovery_strategies:
      max_retry_attempts: 1
    logging:
      level: WARNING
  timeouts:
    command_execution_default: 20
    command_execution_max: 200
    command_execution_min: 2
"""


@pytest.fixture
def manager(client):
    return ExecutionManager(client=client)


def test_settings(tmp_path):
    assert dataclasses.asdict(ExecutionManagerConfig()) == DEFAULTS
    path = tmp_path / "system_config.yaml"
    path.write_text(FILE)
    changed = {"terminal_monitoring": False, "cpu_warning": 70, "timeout_multiplier": 3.5, "max_retry_attempts": 1, "log_level": "WARNING",
               "default_timeout": 20, "max_timeout": 200, "min_timeout": 2}
    assert dataclasses.asdict(ExecutionManagerConfig.from_file(str(path))) == {**DEFAULTS, **changed}
    path.write_text(json.dumps({"operational_configs": {"timeouts": {"command_execution_max": 9}}}))
    assert ExecutionManagerConfig.from_file(str(path)).max_timeout == 9
    path.write_text("models:\n  - one\ntexts: [a, b]\n" + FILE + "\nothers: |\n  a\n  b\n")
    assert ExecutionManagerConfig.from_file(str(path)).cpu_warning == 70, "the rest of the file may be any YAML"
    for wrong in ("a:\n - b\n", "a: [1]\n", "a:\n    b: 1\n  c: 2\n", "word\n", "execution_monitor:\n  enabled: 1\n"):
        path.write_text("operational_configs:\n" + "".join("  %s\n" % line for line in wrong.splitlines()))
        with pytest.raises(ValueError):
            ExecutionManagerConfig.from_file(str(path))


def test_settings_of_the_system(tmp_path, monkeypatch):
    """A manager without settings takes those of the file at its usual place."""
    monkeypatch.chdir(tmp_path)
    assert ExecutionManager().config == ExecutionManagerConfig()
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "system_config.yaml").write_text(FILE)
    assert ExecutionManager().config.default_timeout == 20 and ExecutionManager(ExecutionManagerConfig()).config.default_timeout == 30


def test_executions(manager):
    done = manager.execute_command("echo out; echo err >&2; exit 3", timeout=5)
    assert (done.status, done.return_code, done.stdout, done.stderr) == (ExecutionStatus.COMPLETED, 3, "out\n", "err\n")
    assert done.timeout_used == 5 and done.error_message is None and done.execution_time > 0
    assert set(done.resource_usage) == {"cpu_percent", "memory_percent", "disk_percent", "timestamp"}
    assert 0 < done.resource_usage["disk_percent"] < 100
    assert manager.execute_command(["echo", "two  words"]).stdout == "two  words\n"
    assert manager.execute_command("python -c 'print(6 * 7)'").stdout == "42\n"
    assert asyncio.run(manager.execute_async_command("echo later")).stdout == "later\n"
    slow = manager.execute_command("while :; do :; done", timeout=0.3)
    assert (slow.status, slow.error_message) == (ExecutionStatus.TIMEOUT, "Command timed out after 0.3s") and slow.execution_time < 2
    stats = manager.get_execution_statistics()
    assert (stats["total_executions"], stats["successful_executions"], stats["timeout_executions"], stats["failed_executions"]) == (5, 4, 1, 0)
    assert stats["success_rate"] == 0.8 and stats["timeout_rate"] == 0.2 and stats["average_execution_time"] > 0
    with pytest.raises(InvalidRequest):
        manager.execute_command("echo", timeout=-1)


def test_stuck_and_cancelled(client):
    manager = ExecutionManager(ExecutionManagerConfig(stuck_process_timeout=0.5), client=client)
    assert manager.execute_command("sleep 20").status is ExecutionStatus.STUCK
    assert [manager_module.status_of(manager_module.Result.from_json({"status": word})).value for word in (
        "cancelled", "internal_error", "limit")] == ["cancelled", "error", "completed"]


def test_adaptive_timeouts(manager):
    def chosen(terminal, base=None, past=()):
        manager._terminal = (time.monotonic(), terminal)
        manager._past.clear()
        for seconds in past:
            manager._remember("x", seconds)
        return manager.calculate_adaptive_timeout("x", base)

    responsive, slow, stuck, gone = TerminalStatus
    assert chosen(responsive) == 30 and chosen(responsive, 2) == 2 and chosen(responsive, 400) == 300, "a caller's timeout is never raised"
    assert [chosen(word, past=(4, 8)) for word in (responsive, slow, stuck, gone)] == [15, 22.5, 30, 5]
    assert chosen(responsive, 10, (4, 8)) == 10 and chosen(responsive, 100, (4, 8)) == 15 and chosen(responsive, 100, (0.1,)) == 5
    manager.config.adaptive_timeout = False
    assert chosen(responsive, 100, (4, 8)) == 100
    manager.config.cache_size, manager.config.history_size = 2, 1
    for name in "abc":
        manager._remember(name, 1)
        manager._remember(name, 2)
    assert {name: list(times) for name, times in manager._past.items()} == {"b": [2], "c": [2]}


def test_recovery(manager):
    """What could not begin is tried again; what ran is not."""
    manager.config.retry_delay = 0
    tries = []

    def start(limits):
        tries.append(limits)
        if len(tries) < 3:
            raise Busy(429, {"detail": "full"})
        return manager.client.run("echo", "bash", **limits)

    assert manager.execute("x", start).status is ExecutionStatus.COMPLETED and len(tries) == 3
    assert manager.get_execution_statistics()["recovery_rate"] == 1.0
    del tries[:]
    manager.config.auto_recovery = False
    ended = manager.execute("x", start)
    assert (ended.status, ended.error_message, len(tries)) == (ExecutionStatus.ERROR, "full", 1)
    away = ExecutionManager(ExecutionManagerConfig(retry_delay=0), client=Client("http://127.0.0.1:9")).execute_command("echo")
    assert away.status is ExecutionStatus.ERROR and away.terminal_status is TerminalStatus.UNRESPONSIVE and "atoll serve" in away.error_message


def test_health(client):
    manager = ExecutionManager(ExecutionManagerConfig(memory_critical=0.0, disk_warning=0.0, disk_critical=100.0, cpu_warning=101.0,
                                                      cpu_critical=101.0), client=client)
    report = manager.get_system_health_report()
    assert set(report) == {"system_health", "execution_stats", "recent_issues", "recent_recoveries", "config"}
    health = report["system_health"]
    assert set(health) == {"cpu_percent", "memory_percent", "memory_available_gb", "disk_percent", "disk_free_gb", "terminal_status",
                           "load_average", "timestamp"}
    assert 0 <= health["cpu_percent"] <= 100 and 0 < health["memory_percent"] < 100 and len(health["load_average"]) == 3
    assert [(issue["resource"], issue["severity"], issue["threshold"]) for issue in report["recent_issues"]] == [
        ("memory", "critical", 0.0), ("disk", "warning", 0.0)]
    assert set(report["recent_issues"][0]) == {"timestamp", "type", "resource", "severity", "value", "threshold"}
    assert [(entry["type"], entry["resource"], entry["action"], entry["details"], entry["status"]) for entry in report["recent_recoveries"]] == [
        ("resource_recovery", "memory", "attempted", "garbage_collection", "completed")]
    json.dumps(report)
    with manager:  # it watches
        while len(manager.issues_log) < 4:
            time.sleep(0.01)
    assert manager._thread is None and manager.monitor.check_terminal_responsiveness() in TerminalStatus
    manager.reset_statistics()
    assert not manager.issues_log and not manager.recovery_actions and manager.get_execution_statistics()["total_executions"] == 0


def test_executor_is_counted(client):
    manager = ExecutionManager(client=client)
    before = len(client.history(limit=200))
    assert manager.check_terminal_responsiveness() is not TerminalStatus.UNRESPONSIVE and len(client.history(limit=200)) == before
    executor = SandboxExecutor(5, client=client, manager=manager)
    code = "class T:\n    def m(self, n): return n + 1"
    assert [executor.run(code, "T", "m", {"n": n}) for n in (1, 1, 2)] == [(2, None), (2, None), (3, None)]
    assert manager.get_execution_statistics()["total_executions"] == 3 and sorted(len(past) for past in manager._past.values()) == [1, 2]
    SandboxExecutor(5, False, client=client, manager=manager).run(code, "T", "m", {"n": 1})
    assert manager.get_execution_statistics()["total_executions"] == 3
