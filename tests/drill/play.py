"""One drill, from its stage to its result.

An accident is a function of this form, in which whatever must hold beyond the judge's counts ends in Wrong:

    def flushall(drill):
        drill.begin()
        for _ in drill.rounds():
            ...
"""

import functools
import os
import random
import shutil
import signal
import sys
import tempfile
import traceback

import pycurl

from history import OK, History
from judge import SLACK_MS, Judge
from load import LEASES, PROBE, Client, Load
from stage import ADMIT_MS, GRANT_MS, SOCKET_PATH_MAX, Cannot, Interrupted, Stage, Wrong, wait_for, wait_ms
from world.record import stripe_of

WARM_UP_GRANTS, WARM_UP_MS = 5, 10000
PLAYED, FAILED, NOT_RUN, INTERRUPTED = "played", "failed", "not-run", "interrupted"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interrupt(_number, _frame):
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    raise Interrupted


class Drill:
    """Only the main thread touches it; the history and the stage's services are for the clients, too."""

    def __init__(self, accident, wanted, seed, clients, return_ms, shim, keep, verbose):
        self.accident, self.wanted, self.seed, self.clients, self.return_ms = accident, wanted, seed, clients, return_ms
        self.shim, self.keep, self.verbose = shim, keep, verbose
        self.random = random.Random(f"{seed} accident")
        self.history, self.load, self.stage = History(), None, None
        self.played, self.mains, self.gaps_ms, self.notes = 0, 0, [], []
        self.end, self.why, self.judge = PLAYED, "", None

    def play(self, function):
        for number in SIGNALS:
            signal.signal(number, interrupt)
        try:
            try:
                function(self)
                if self.played < self.wanted:
                    raise Wrong(f"only {self.played} of {self.wanted} rounds were played")
                self._stop_load()
                self._read_all()
            finally:
                self._stop_load()
        except Interrupted:
            self._ends(INTERRUPTED, "interrupted")
        except Cannot as why:
            self._ends(NOT_RUN, str(why))
        except Exception as error:  # pylint: disable=broad-except # whatever goes wrong in it, the drill has failed
            known = isinstance(error, (Wrong, OSError))
            self._ends(FAILED, str(error) if known else "".join(traceback.format_exception(error)[-2:]))
        self._judge()
        self._close()

    def _ends(self, end, why):
        """The first that is said stays."""
        if self.end == PLAYED:
            self.end, self.why = end, " | ".join(why.splitlines())[:1024]

    # -- the beginning and the end

    def begin(self, first=None, stage=Stage, **plan):
        """The stage (plan: as of Stage), and the load. first(): done before the first grant."""
        self.stage = stage(self.folder, **plan)
        self.stage.open()
        if first is not None:
            first(self)
        self.load = Load(self.stage, self.history, self.clients, self.seed)
        self.let_work(WARM_UP_GRANTS, WARM_UP_MS)

    @functools.cached_property
    def folder(self):
        """With --keep one that stays, and is new: what an earlier drill left there is not mixed with this one's."""
        if self.keep:
            os.makedirs(self.keep, mode=0o700, exist_ok=True)
            folder = os.path.join(os.path.realpath(self.keep), self.accident.name)
            os.mkdir(folder, 0o700)
            return folder
        base = tempfile.gettempdir()
        return tempfile.mkdtemp(prefix="pawl-drill-", dir=base if len(base) < SOCKET_PATH_MAX - 40 else "/tmp")

    def _stop_load(self):
        load, self.load = self.load, None
        if load is not None:
            load.stop()

    def _read_all(self):
        """The last writes too must be seen by a read."""
        client = self.client()
        for lease in range(len(LEASES)):
            client.read(lease)

    def _judge(self):
        self.judge = Judge(self.history.events, lambda lease: stripe_of(LEASES[lease]), self.accident.slack_ms or SLACK_MS,
                           self.accident.allowed)
        if self.stage is not None and self.stage.torn:
            self.note(f"a kill tore Redis' last write {self.stage.torn} times, and redis-check-aof was run")
        if not self.judge.is_good:
            self._ends(FAILED, self.judge.first or "nothing was granted or written")

    def _close(self):
        if self.stage is not None:
            self.stage.close()
            if self.keep:
                self.history.write(os.path.join(self.folder, "history"))
        if "folder" in self.__dict__ and not self.keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    # -- in between

    def rounds(self):
        """Their numbers from 0 on; each that comes to its end is counted."""
        for number in range(self.wanted):
            yield number
            self.played += 1
            if self.verbose:
                print(f"{self.accident.name}: round {self.played} of {self.wanted}, {self.history.grants} grants so far",
                      file=sys.stderr, flush=True)

    def note(self, sentence):
        """What else must be told."""
        self.notes.append(sentence)

    def needs_shim(self):
        if not self.shim:
            raise Cannot("needs the shim (--shim FILE), which is in the package pawl-lab")
        if not os.access(self.shim, os.R_OK):
            raise Cannot(f"the shim {self.shim} cannot be had")

    def pause_a_moment(self, most_ms=250):
        """So that the accident happens at another place each time."""
        wait_ms(self.random.randint(0, most_ms))

    def wait_grant(self, since, from_ms, limit_ms=GRANT_MS):
        """Until a client was told of a grant that it asked for after the place since, within limit_ms from from_ms on; the time
        from there to it is a gap."""
        told_ms = self.history.wait_grant(since, from_ms + limit_ms)
        if told_ms is None or told_ms - from_ms > limit_ms:
            raise Wrong(f"no grant within {limit_ms} ms in round {self.played + 1}; /readyz of lease-0 says "
                        f"{self.stage.leases[0].readyz()}")
        self.gaps_ms.append(max(0, told_ms - from_ms))

    def let_work(self, grants, limit_ms=GRANT_MS):
        """Until clients were told of so many grants more."""
        wanted = self.history.grants + grants
        wait_for(lambda: self.history.grants >= wanted, limit_ms,
                 lambda: f"no {grants} grants within {limit_ms} ms in round {self.played + 1}", again_ms=5)

    def mark_while_nobody_asks(self, *kinds):
        self.load.pause()
        for kind in kinds:
            self.history.mark(kind)
        self.load.resume()

    # -- requests of the accident itself, of the main thread, with the spare leases

    def client(self, service=None, gateway=None):
        self.mains += 1
        return Client(0, f"{self.seed} main {self.mains}", self.stage, self.history, service, gateway)

    def expect_refusal(self, service, code):
        client = self.client(service)
        end = client.acquire(client.new_hold(PROBE, 300))
        if end == OK or client.code != code:
            raise Wrong(f"{service.name} was to refuse with {code}; it {'granted a lease' if end == OK else 'said ' + client.code}")

    def all_refuse(self, code):
        """/readyz of every service comes to name this code, and each lease service refuses with it. That nothing is granted
        before is for the judge to see."""
        for service in self.stage.leases:
            service.wait_unready(code, 5000)
            self.expect_refusal(service, code)
        self.stage.gateway.wait_unready(code, 5000)

    def goes_on(self, since, from_ms, limit_ms=ADMIT_MS):
        self.wait_grant(since, from_ms, limit_ms)
        self.stage.wait_all_ready(ADMIT_MS)

    def ask_plainly(self, service, lease):
        """Asks for a lease without the history: only for what must be refused. (status, body)."""
        try:
            answer = service.http("POST", f"/v1/leases/{LEASES[lease]}", body={"ttl_ms": 1000, "holder": "drill"}, held=False)
            return answer.status, answer.body.decode(errors="replace")
        except pycurl.error:
            return 0, ""

    def wait_refusal(self, service, lease, code, limit_ms=GRANT_MS):
        """Asks in this way until the answer is 503 with this code; the body."""
        def refused():
            status, body = self.ask_plainly(service, lease)
            return body if status == 503 and f'"code":"{code}"' in body else None
        return wait_for(refused, limit_ms, lambda: f"{service.name} did not come to refuse with {code} within {limit_ms} ms, but "
                                                   f"says: {self.ask_plainly(service, lease)}", again_ms=20)

    def check_reserved(self, service):
        """That no token was told that its state directory has not recorded as reserved."""
        highest = self.history.highest_token  # first: the floor may rise meanwhile, and then that is right
        floor = service.read_state().floor
        if highest > floor:
            raise Wrong(f"token {highest} was told, but {service.state} has recorded no more than {floor}")

    def epoch(self):
        return int(self.stage.redis("HGET", "pawl:{store}", "epoch"))
