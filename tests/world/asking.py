"""What is asked of a service, and the answer that is expected."""

import base64
import os
import threading

from .tap import check, check_equal


def path(name):
    """Of a lease."""
    return f"/v1/leases/{name}"


def fresh_id():
    """A lease_id of the client's own."""
    return base64.urlsafe_b64encode(os.urandom(18)).decode()


def refused(answer, status, code, **members):
    """The answer, which must be this problem with these members."""
    check_equal((answer.status, answer.code), (status, code), repr(answer))
    for member, value in members.items():
        check_equal(answer.json.get(member), value, f"{code}: {member}")
    return answer


def pages(client, target):
    """Of a list: the items of each page."""
    found, cursor = [], ""
    while cursor is not None:
        answer = client("GET", target + (f"{'&' if '?' in target else '?'}cursor={cursor}" if cursor else ""))
        check_equal(answer.status, 200, repr(answer))
        found.append(answer.json["items"])
        cursor = answer.json["next_cursor"]
    return found


class Later:
    """A call that is under way on a thread of its own."""

    def __init__(self, function, *args, **more):
        self.answer, self.error = None, None
        self.thread = threading.Thread(target=self._run, args=(function, args, more), daemon=True)
        self.thread.start()

    def _run(self, function, args, more):
        try:
            self.answer = function(*args, **more)
        except Exception as error:  # pylint: disable=broad-except # told by get()
            self.error = error

    def get(self, deadline_s=15):
        self.thread.join(deadline_s)
        if self.error:
            raise self.error
        check(self.answer is not None, "it was not answered")
        return self.answer
