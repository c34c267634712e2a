# A network that loses datagrams, in both directions, before another UDP server: PORT-OF-THE-SERVER PERCENT. The first line is its own
# port; after SIGTERM it prints how many were lost and how many passed.
import random
import select
import signal
import socket
import sys

target, share = ("127.0.0.1", int(sys.argv[1])), float(sys.argv[2]) / 100
random.seed(1)
near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
near.bind(("127.0.0.1", 0))
far = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
far.connect(target)
print(near.getsockname()[1], flush=True)
counts = [0, 0]


def end(*_):
    print(*counts, flush=True)
    sys.exit()


signal.signal(signal.SIGTERM, end)
client = None
while True:
    for one in select.select([near, far], [], [])[0]:
        try:
            if one is near:
                data, client = near.recvfrom(65536)
            else:
                data = far.recv(65536)
            is_lost = random.random() < share
            counts[not is_lost] += 1
            if is_lost:
                continue
            if one is near:
                far.send(data)
            elif client:
                near.sendto(data, client)
        except ConnectionRefusedError:
            pass
