"""A peer between a sender and a server: DeafPeer.py PORT. It prints its own port. After SIGUSR1 it reads nothing any more from
senders, and keeps their connections; after SIGUSR2 it goes on."""
import signal, socket, sys, threading

hears = threading.Event()
hears.set()
signal.signal(signal.SIGUSR1, lambda *_: hears.clear())
signal.signal(signal.SIGUSR2, lambda *_: hears.set())


def carry(source, target, waits):
    try:
        while True:
            if waits:
                hears.wait()
            data = source.recv(4096)
            if not data:
                break
            target.sendall(data)
    except OSError:
        pass
    for end in (source, target):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def serve():
    while True:
        sender, _ = listener.accept()
        server = socket.socket()
        try:
            server.connect(("127.0.0.1", int(sys.argv[1])))
        except OSError:
            sender.close()
            continue
        for ends in ((sender, server, True), (server, sender, False)):
            threading.Thread(target=carry, args=ends, daemon=True).start()


listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
# With small segments the sender's buffer is small, too.
listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
listener.bind(("127.0.0.1", 0))
listener.listen(8)
print(listener.getsockname()[1], flush=True)
threading.Thread(target=serve, daemon=True).start()
while True:
    signal.pause()
