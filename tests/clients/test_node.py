#!/usr/bin/python3
"""The Node client, api/clients/node/pawl.cjs: every scenario."""

import shutil
import sys
import tempfile

import clients_test  # finds the service tests' own package
import scenarios
from clients_test import check_equal
from scenarios import CLIENT, outcome, scenario

NODE = shutil.which("node")
scenarios.begin([NODE, str(clients_test.HERE / "agent.mjs")], None if NODE else "there is no node")



@scenario
def a_signal_that_is_aborted_already_sends_nothing_and_harms_nobody(world, _agent, lease, gateway):
    aside = CLIENT["make"](lease.url, gateway.url)
    outcome(aside.ask("acquire", hold="h", name=world.name(), aborted=1), "not-done", "aborted")
    outcome(aside.ask("acquire", hold="h", name=world.name()), "ok")  # it still lives
    outcome(aside.ask("release", hold="h"), "ok")
    check_equal(lease.methods(), ["POST", "DELETE"])
    aside.end()


@scenario
def a_body_that_cannot_be_sent_is_a_mistake(world, agent, _lease, gateway):
    scenarios.granted(agent, world.name())
    for body in ("nothing", "number", "buffer"):
        outcome(agent.ask("put", hold="h", key=world.name(), odd=body), "mistake")
    check_equal(gateway.methods(), [])
    agent.ask("release", hold="h")


@scenario
def a_break_late_in_a_slice_is_sat_out_from_then_on(world, _agent, _lease, _gateway):
    with tempfile.TemporaryDirectory() as folder:
        scenarios.shortened(folder, "api/clients/node", "SLICE_MS = ", "agent.mjs")
        argv = [NODE, f"{folder}/tests/clients/agent.mjs"]
        scenarios.a_break_late_in_a_slice_is_sat_out_from_then_on(world, lambda *how: clients_test.Agent(argv, *how))


scenario(scenarios.a_release_of_what_is_lost_sends_the_fencing_token)
scenario(scenarios.events_go_on_whatever_somebody_between_answers)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    clients_test.main(scenarios.end, parts=2)
