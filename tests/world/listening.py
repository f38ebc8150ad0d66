"""A socket that listens in the test's own process; each connection has a thread."""

import socket
import threading


class Listening:
    """_serve(connection) says what becomes of one."""

    def listen(self, path=None, port=0, scheme="http"):
        """path: of a unix socket. Sets url, and port (None)."""
        self.listener = socket.socket(socket.AF_UNIX) if path else socket.create_server(("127.0.0.1", port))
        if path:
            self.listener.bind(path)
        self.listener.listen(1024)
        self.port = None if path else self.listener.getsockname()[1]
        self.url = f"unix:{path}" if path else f"{scheme}://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def _accept(self, listener):
        while True:
            try:
                connection = listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def close(self):
        """Also the accept() that waits."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
