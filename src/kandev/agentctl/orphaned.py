"""Without a backend for too long: idle agents are ended, and agentctl itself when none is left.

A running turn is never ended for that, and journals stay on the disk for the next agentctl.
"""

import asyncio
import logging
from collections.abc import Callable

from kandev.agentctl.activity import Activity
from kandev.agentctl.instances import Instances

log = logging.getLogger(__name__)


async def watch(instances: Instances, activity: Activity, orphan_s: float, end: Callable[[], None]) -> None:
    """Runs until it has called `end`. Looks ten times per `orphan_s`."""
    while True:
        await asyncio.sleep(max(orphan_s - activity.silent_for(), orphan_s / 10, 0.01))
        if activity.silent_for() < orphan_s:
            continue
        idle = [
            instance for instance in instances.all() if not instance.works and not instance.ended.is_set()
        ]
        log.info("no backend for %.0f s: ending %d idle agents", activity.silent_for(), len(idle))
        async with asyncio.TaskGroup() as group:
            for instance in idle:
                group.create_task(instance.stop(force=False))
        if activity.silent_for() >= orphan_s and all(instance.ended.is_set() for instance in instances.all()):
            end()
            return
