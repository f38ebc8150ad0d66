#!/usr/bin/python3
"""The Node client, api/clients/node/pawl.cjs: every scenario."""

import shutil
import subprocess

import clients_test  # finds the service tests' own package
import scenarios
from clients_test import check_equal, wait_until
from scenarios import CLIENT, outcome, scenario

NODE = shutil.which("node")
scenarios.begin([NODE, str(clients_test.HERE / "agent.mjs")], None if NODE else "there is no node")


@scenario
def a_signal_that_is_aborted_already_sends_nothing_and_harms_nobody(world, lease, gateway):
    aside = CLIENT["make"](lease.url, gateway.url)
    outcome(aside.ask("acquire", hold="h", name=world.name(), aborted=1), "not-done", "aborted")
    outcome(aside.ask("acquire", hold="h", name=world.name()), "ok")  # it still lives
    outcome(aside.ask("release", hold="h"), "ok")
    check_equal(lease.methods(), ["POST", "DELETE"])
    aside.end()


scenario(scenarios.who_gives_up_between_two_requests_is_told_unknown_and_leaves_no_hold_behind)


@scenario
def a_body_that_cannot_be_sent_is_a_mistake(world, agent, gateway):
    scenarios.granted(agent, world.name())
    for body in ("nothing", "number", "buffer"):
        outcome(agent.ask("put", hold="h", key=world.name(), odd=body), "mistake")
    check_equal(gateway.methods(), [])
    agent.ask("release", hold="h")


scenarios.short_sliced("api/clients/node", "agent.mjs", lambda folder: [NODE, f"{folder}/tests/clients/agent.mjs"])


LISTENS = """
const { Pawl } = require(process.argv[1]);
const { signal } = new AbortController();
(async () => {
  for await (const item of new Pawl({ leaseUrl: process.argv[2] }).events(process.argv[3], { signal })) {
    console.log(item.type, require("node:events").getEventListeners(signal, "abort").length);
  }
})();
"""


@scenario
def events_leave_one_listener_on_the_signal_however_often_they_connect(world):
    name, relay = world.name(), clients_test.HttpRelay(world.lease_daemon.port)
    listens = subprocess.Popen([NODE, "-e", LISTENS, str(clients_test.ROOT / "api/clients/node/pawl.cjs"), relay.url, name],
                               stdout=subprocess.PIPE, env=clients_test.environment(), preexec_fn=clients_test.die_with_parent)
    wait_until(lambda: relay.answered, "it listens")
    first = world.acquire(name)
    check_equal(listens.stdout.readline(), b"granted 1\n")
    relay.cut()
    wait_until(lambda: len(relay.seen) == 2, "it listens again")
    world.release(name, first)
    check_equal(listens.stdout.readline(), b"released 1\n")
    listens.kill()
    listens.wait()
    relay.close()


AS_BEFORE_20 = """
require("node:net").setDefaultAutoSelectFamily?.(false);
require("node:dns").lookup = (_, { all }, call) => all
  ? call(null, ["127.0.0.2", "127.0.0.1"].map((address) => ({ address, family: 4 }))) : call(null, "127.0.0.2", 4);
const { Pawl } = require(process.argv[1]);
new Pawl({ leaseUrl: process.argv[2] }).acquire(process.argv[3]).then((hold) => hold.release());
"""


@scenario
def the_next_address_is_tried_where_the_first_refuses(lease, name):
    subprocess.run([NODE, "-e", AS_BEFORE_20, str(clients_test.ROOT / "api/clients/node/pawl.cjs"), lease.url.replace("127.0.0.1", "localhost"), name],
                   check=True, env=clients_test.environment(), preexec_fn=clients_test.die_with_parent, timeout=30)


STANDS_STILL = """
const { Pawl } = require(process.argv[1]);
new Pawl({ leaseUrl: process.argv[2] }).acquire(process.argv[3], { ttlMs: 200 }).then((hold) => {
  while (hold.remainingMs() > 0);
  console.log(hold.signal.aborted, hold.signal.reason.code);
});
"""


@scenario
def the_signal_is_aborted_at_the_first_look_also_when_the_loop_stood_still(lease, name):
    told = subprocess.run([NODE, "-e", STANDS_STILL, str(clients_test.ROOT / "api/clients/node/pawl.cjs"), lease.url, name], check=True,
                          stdout=subprocess.PIPE, env=clients_test.environment(), preexec_fn=clients_test.die_with_parent, timeout=30)
    check_equal(told.stdout, b"true deadline-passed\n")


if __name__ == "__main__":
    clients_test.main(scenarios.end, parts=2)
