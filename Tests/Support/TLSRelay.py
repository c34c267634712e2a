# TLS before another server: CERTIFICATE KEY PORT-OF-THE-SERVER. The first line is its own port.
import socket
import ssl
import sys
import threading

context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)


def pass_on(one, other):
    try:
        while data := one.recv(65536):
            other.sendall(data)
    except OSError:
        pass
    for end in (one, other):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def serve(plain):
    try:
        one = context.wrap_socket(plain, server_side=True)
        other = socket.create_connection(("127.0.0.1", int(sys.argv[3])))
    except OSError:
        return
    for pair in ((one, other), (other, one)):
        threading.Thread(target=pass_on, args=pair, daemon=True).start()


while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
