#!/usr/bin/python3
"""test_tour.py - docs/access-tour.sh: all its answers are as it says, it notices one that is not, and leaves nothing behind."""

import os
import pathlib
import subprocess
import tempfile

from world import BUILD, ROOT, check, check_equal, check_in, main, of_time, test, wait_until
from world.running import group_lives

SCRIPT = (ROOT / "docs/access-tour.sh").read_text(encoding="utf-8")


def tour(*change):
    """(exit status, what it shows) of the script with this change."""
    if change:
        check_equal(SCRIPT.count(change[0]), 1, f"{change[0]} in the script")
    with tempfile.TemporaryDirectory(prefix="pawl-tour-") as folder:
        path = pathlib.Path(folder, "tour.sh")
        path.write_text(SCRIPT.replace(*change) if change else SCRIPT, encoding="utf-8")
        with subprocess.Popen(["sh", path], env={**os.environ, "PAWL_BUILD": str(BUILD), "TMPDIR": folder}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, start_new_session=True) as process:
            said = process.communicate(timeout=240)[0]
        check_equal(os.listdir(folder), ["tour.sh"], "its directory is gone")
        wait_until(lambda: not group_lives(process.pid), "nothing of it is left")
        return process.returncode, said


@test
@of_time
def every_answer_of_the_tour_is_as_it_says():
    status, said = tour()
    check_equal(status, 0, said)
    check("left out" not in said, said)
    check_in("every answer was as it should be", said)


@test
def an_answer_that_is_another_ends_it():
    for old, new, words in (
            ("try 77 'not-yours' 'PAWL_ACCESS_TOKEN_FILE=crm.token pawl release", "try 77 'not-mine' 'PAWL_ACCESS_TOKEN_FILE=crm.token pawl release",
             "exit status 77, and it should be 77, with: not-mine"),
            ('rules "$old, $(hash_of shop.new)"   # both of them count now\'\nhang_up\njudged',
             'rules "$(hash_of shop.new)"\'\nhang_up\njudged\ngoes_on', "WRONG: a request failed")):
        status, said = tour(old, new)
        check_equal(status, 1, said)
        check_in(words, said)


main()
