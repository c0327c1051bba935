"""Without a backend for too long: idle agents are ended, and agentctl itself when none is left.

A running turn is never ended for that, and journals stay on the disk for the next agentctl.
"""

import asyncio
import logging
from collections.abc import Callable

from kandev.agentctl.activity import Activity
from kandev.agentctl.instance import Instance
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

        def still_lonely(instance: Instance) -> bool:
            return not instance.works and activity.silent_for() >= orphan_s

        async with asyncio.TaskGroup() as group:
            for instance in idle:
                group.create_task(_end_if(still_lonely, instance))
        if activity.silent_for() >= orphan_s and all(instance.ended.is_set() for instance in instances.all()):
            end()
            return


async def _end_if(still: Callable[[Instance], bool], instance: Instance) -> None:
    """Looked at again right before the act: a backend may have come meanwhile."""
    if still(instance):
        await instance.stop(force=False)
