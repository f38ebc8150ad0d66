"""tap.py - what a test program in Python is made of; speaks TAP on stdout."""

import sys
import traceback


class Tap:
    def __init__(self):
        self.count = self.failed = 0

    def run(self, sentence, test, *args):
        """A test passes when it returns, and fails when it raises."""
        self.count += 1
        try:
            test(*args)
        except Exception as error:  # whatever it is, the other tests go on
            self.failed += 1
            told = str(error) if isinstance(error, AssertionError) and str(error) else traceback.format_exc()
            print(f"not ok {self.count} - {sentence}")
            print("\n".join(f"# {line}" for line in told.splitlines()))
        else:
            print(f"ok {self.count} - {sentence}")
        sys.stdout.flush()

    def done(self):
        """Prints the plan; the exit status."""
        print(f"1..{self.count}")
        return 1 if self.failed or not self.count else 0
