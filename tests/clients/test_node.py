#!/usr/bin/python3
"""The Node client, api/node/pawl.mjs: every scenario."""

import shutil
import sys

import clients_test  # finds the service tests' own package
import scenarios

NODE = shutil.which("node")
scenarios.begin([NODE, str(clients_test.HERE / "agent.mjs")], None if NODE else "there is no node")

if __name__ == "__main__":
    sys.dont_write_bytecode = True
    clients_test.main(scenarios.end)
