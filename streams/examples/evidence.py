"""Write what your systems would: who may do what, and how the world stands. The funnel file says where it is read."""

import os

import redis

store = redis.Redis.from_url(os.environ.get("TICKETGATE_REDIS", "redis://127.0.0.1:6379/0"))
store.set("support:authority:agent_1", '{"actor_id": "agent_1", "tools": ["assign_case"]}')
store.set("support:world:case_17", '{"facts": {"case_status": "open"}}')
