"""What the service tests are made of: TAP, a private store, the daemons, clients, and the check of every answer."""

from .client import Client, Raw  # noqa: F401
from .contract import Contract, Wrong  # noqa: F401
from .relay import FROM_REDIS, TO_REDIS, Relay, function_of  # noqa: F401
from .process import die_with_parent  # noqa: F401
from .redis import DURABLE, PrivateRedis, RedisError  # noqa: F401
from .signature import Keys, read_token, signed_token  # noqa: F401
from .tap import check, check_equal, check_in, given, gives, main, of_time, skip, test, test_in  # noqa: F401
from .wait import DEADLINE_S, keeps_within, wait_until  # noqa: F401
from .world import BUILD, ROOT, Daemon, World, run_daemon  # noqa: F401
