"""pairs.py - Redlock as https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/ has it: locks and unlocks on
the Redis at these ports, for so long; prints a JSON object. argv: clients, seconds, seconds before that, ports."""

import functools
import json
import secrets
import socket
import sys
import threading
import time

TTL_MS, DRIFT = 30000, 0.01
RELEASE = 'if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end'


def connect(port):
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def ask(connection, *words):
    connection.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in map(str.encode, words)))
    return connection.recv(64)


def lock(nodes, name, ttl_ms=TTL_MS):
    """nodes: each is called with the words of a command."""
    value, began = secrets.token_hex(20), time.monotonic()
    got = sum(one("SET", name, value, "NX", "PX", str(ttl_ms)) == b"+OK\r\n" for one in nodes)
    left_ms = ttl_ms - (time.monotonic() - began) * 1000 - (ttl_ms * DRIFT + 2)
    if got >= len(nodes) // 2 + 1 and left_ms > 0:
        return value
    unlock(nodes, name, value)
    return None


def unlock(nodes, name, value):
    for one in nodes:
        one("EVAL", RELEASE, "1", name, value)


def work(who, ports, begin, end, us):
    nodes, turn = [functools.partial(ask, connect(port)) for port in ports], 0
    while (began := time.monotonic()) < end:
        name, turn = f"job:{who}:{turn % 32}", turn + 1
        value = lock(nodes, name)
        if value is not None:
            unlock(nodes, name, value)
            if began >= begin:
                us.append(round((time.monotonic() - began) * 1e6))


def main():
    clients, seconds, warm, *ports = map(float, sys.argv[1:])
    begin, us = time.monotonic() + warm, []
    workers = [threading.Thread(target=work, args=(who, list(map(int, ports)), begin, begin + seconds, us)) for who in range(int(clients))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(json.dumps({"us": us, "cpu_s": time.process_time()}))


if __name__ == "__main__":
    main()
