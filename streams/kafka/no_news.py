"""What aiokafka tells as an error and heals by itself is kept out of the log, by importing this.

The first consumer of a group on a new broker asks for a coordinator while the broker still makes the topic in which
groups are kept: it asks again, and /readyz says that the worker waits. Source: aiokafka 0.14, its group coordinator.
"""

from __future__ import annotations

import logging

_COORDINATOR_NOT_AVAILABLE = "[Error 15]"


def _is_news(record: logging.LogRecord) -> bool:
    return not (
        "Coordinator Request failed" in str(record.msg) and _COORDINATOR_NOT_AVAILABLE in record.getMessage()
    )


logging.getLogger("aiokafka.consumer.group_coordinator").addFilter(_is_news)
