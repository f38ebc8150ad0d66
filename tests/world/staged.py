"""One store; a gateway that sees it through a relay, and another that sees it as it is; an upstream whose answers wait."""

import pathlib
import tempfile
import threading

from .asking import Later
from .client import Client
from .record import open_intents
from .relay import Relay
from .tap import check, check_equal
from .upstream import Upstream, routes_file
from .wait import DEADLINE_S, wait_until
from .world import Daemon, World, run_daemon


class Hanging(Upstream):
    """A body "hang..." has no answer until go(), and none if it is dropped by then, a body "reset..." none at all."""

    def __init__(self):
        super().__init__(Hanging.act)
        self.hanging, self.dropped = {}, set()

    def act(self, request):  # pylint: disable=method-hidden # what the base calls
        if request.body.startswith(b"reset"):
            request.connection.reset()
            return
        if request.body.startswith(b"hang"):
            go_on = threading.Event()
            with self.lock:
                self.hanging[request.body] = go_on
                self.lock.notify_all()
            go_on.wait(60)
            if request.body in self.dropped:
                request.connection.close()
                return
        self.obey(request)


class Stage:
    """routes: what makes them of the upstream. The first gateway is `near`, the other one `far`."""

    def __init__(self, routes, threads=1, patient_s=DEADLINE_S):
        self.folder = tempfile.mkdtemp(prefix="pawl-stage-")
        self.upstream = Hanging()
        self.routes = routes(self.upstream)
        self.table = routes_file(self.folder, self.routes)
        self.world = World(gateway_flags=["--routes", self.table])
        self.redis, self.relay, self.far = self.world.redis, Relay(self.world.redis), self.world.gateway
        self.far.deadline_s = self.patient_s = patient_s
        self.state_dir, self.threads, self.sent = pathlib.Path(self.folder) / "near", str(threads), []
        self.state_dir.mkdir(mode=0o700)
        self.daemon = self.near = None

    def start(self, *flags, before=()):
        self.daemon = Daemon("pawl-gateway", "--redis", self.relay.url, "--keys", self.world.keys_file, "--listen", "127.0.0.1:0",
                             "--routes", self.table, "--state-dir", str(self.state_dir), "--threads", self.threads, *flags, before=before)
        self.near = Client("gateway", self.daemon.url, World.contract, self.patient_s)

    def ready(self):
        own = [self.near] if self.daemon and self.daemon.process.poll() is None else []
        wait_until(lambda: all(client("GET", "/readyz", held=False).status == 200 for client in (*own, self.far, self.world.lease)),
                   "all are ready")

    def hangs(self, body):
        with self.upstream.lock:
            check(self.upstream.lock.wait_for(lambda: body in self.upstream.hanging, 20), f"{body} has not come")

    def go(self, body):
        self.upstream.hanging[body].set()

    def send(self, path, grant, body, client=None, method="PUT"):
        return (client or self.near)(method, path, [("Fencing-Token", grant["fencing_token"])], body, held=False)

    def later(self, *args, **more):
        self.sent.append(Later(self.send, *args, **more))
        return self.sent[-1]

    def states(self, *names):
        """Of the open intents of these leases, as the store has them."""
        return sorted(words[4] for words in open_intents(self.redis) if words[0] in names)

    @staticmethod
    def ended(told, status):
        check_equal(told.get(30).status, status, repr(told.answer))

    def pawl(self, *words):
        done = run_daemon("pawl", *words, environment={"PAWL_GATEWAY_URL": self.far.url, "PAWL_REDIS": self.redis.url}, deadline_s=30)
        check_equal(done.returncode, 0, f"{words}: {done.stdout}{done.stderr}")
        return done.stdout

    def close(self):
        for go_on in self.upstream.hanging.values():
            go_on.set()
        for told in self.sent:
            told.thread.join(30)
        if self.daemon and self.daemon.process.poll() is None:
            check_equal(self.daemon.end(), 0)
        self.relay.close()
        self.world.close()
        self.upstream.close()
