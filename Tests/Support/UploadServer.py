#!/usr/bin/python3
"""A web server to upload to, which misbehaves on command: PUT, forms, and tus 1.0.0 (core, creation, termination,
checksum).

    UploadServer.py FOLDER [PORT [CERTIFICATE]]

What was stored is in FOLDER, and is there again after a restart. Writes "port N", then one JSON object for each request,
and {"received": N} for each connection that ends: the bytes that the kernel received of it, read or not.

Reads one command a line from standard input and answers "done COMMAND":

    cut N                   ends the connection after N bytes of the next body
    cutat N                 ends the connection when an upload by tus has N bytes; may be given several times
    answer METHOD STATUS COUNT [RETRY-AFTER]
                            answers so the next requests, without reading their bodies
    after METHOD STATUS COUNT
                            the same, when their bodies are stored
    page METHOD COUNT       answers 200 with a page, without storing anything
    redirect METHOD STATUS TARGET COUNT
    late METHOD SECONDS COUNT
                            stores the body, and answers after so many seconds; negative: ends the connection instead
    silent METHOD COUNT     reads the head and then nothing, and says nothing
    endless METHOD COUNT    answers with a body without an end
    drip METHOD PART COUNT  sends the head or the body of an answer (PART) byte by byte, without an end
    garbage METHOD COUNT    answers with a line that is no HTTP
    forget                  knows no upload any more
    rewind N                has only N bytes of every upload
    lose                    stores what it gets with the next PATCH, and ends the connection instead of answering
    slow N                  reads N bytes in a second; 0: as fast as it can
    hold N                  reads N bytes of bodies and then nothing; writes "held" when it stops
    go                      reads as before
    drop                    ends every connection that sends a body
    max N                   refuses larger bodies with 413; 0: none
    plain                   does not speak tus

What is put at /null is read and not stored.
"""
import base64
import hashlib
import json
import os
import socket
import ssl
import struct
import sys
import threading
import time
import urllib.parse

FOLDER = sys.argv[1]
lock = threading.RLock()
rules = []
cuts = []
state = {"cut": None, "slow": 0, "max": 0, "tus": True, "lose": False, "hold": None, "held": False, "drops": 0}
counter = [0]
# Uploads that a connection writes to, also one whose client is gone and whose bytes are still being read.
busy = set()


def say(text):
    with lock:
        print(text, flush=True)


class Cut(Exception):
    pass


def reset(connection):
    """The other end sees a connection that is gone, not one that ended."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raise Cut


class Connection:
    def __init__(self, plain, connection):
        self.plain = plain
        self.socket = connection
        self.buffer = b""

    def line(self):
        while b"\n" not in self.buffer:
            more = self.socket.recv(65536)
            if not more:
                raise Cut
            self.buffer += more
        line, self.buffer = self.buffer.split(b"\n", 1)
        return line.rstrip(b"\r").decode("latin-1")

    def serve(self):
        try:
            while True:
                head = self.line().split(" ")
                if len(head) != 3:
                    raise Cut
                fields = {}
                while True:
                    line = self.line()
                    if not line:
                        break
                    name, _, value = line.partition(":")
                    fields[name.lower()] = value.strip()
                self.received = 0
                self.left = int(fields.get("content-length", 0))
                self.fields = fields
                self.request(head[0], head[1])
        except (Cut, OSError):
            pass
        finally:
            try:
                # tcpi_bytes_received
                info = self.plain.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
                say(json.dumps({"received": struct.unpack_from("Q", info, 128)[0]}))
            except OSError:
                pass
            self.socket.close()

    def share(self, size, drops):
        """How much of that may be read now; waits while that is nothing."""
        while True:
            with lock:
                if state["drops"] != drops:
                    reset(self.socket)
                if state["hold"] is None:
                    return size
                if state["hold"]:
                    size = min(size, state["hold"])
                    state["hold"] -= size
                    return size
                if not state["held"]:
                    state["held"] = True
                    say("held")
            time.sleep(0.01)

    def body(self):
        """Its blocks."""
        drops = state["drops"]
        if self.left and self.fields.get("expect", "").lower() == "100-continue":
            self.socket.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        while self.left:
            size = min(self.left, 65536)
            if state["slow"]:
                size = min(size, max(1, state["slow"] // 20))
                time.sleep(size / state["slow"])
            if state["cut"] is not None:
                size = min(size, state["cut"])
                if size == 0:
                    state["cut"] = None
                    reset(self.socket)
            size = self.share(size, drops)
            data, self.buffer = (self.buffer[:size], self.buffer[size:]) if self.buffer else (self.socket.recv(size), b"")
            with lock:
                if state["hold"] is not None:
                    # Not all of its share had come.
                    state["hold"] += size - len(data)
            if not data:
                raise Cut
            if state["cut"] is not None:
                state["cut"] -= len(data)
            self.left -= len(data)
            self.received += len(data)
            yield data

    def drop(self):
        for _ in self.body():
            pass

    def answer(self, status, fields=(), body=b""):
        lines = [f"HTTP/1.1 {status} Said"] + [f"{name}: {value}" for name, value in fields]
        if not any(name.lower() == "content-length" for name, _ in fields):
            lines.append(f"Content-Length: {len(body)}")
        if self.left:
            lines.append("Connection: close")
        say(json.dumps({
            "method": self.method, "path": self.path, "status": status, "body": self.received, "fields": self.fields}))
        text = ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8")
        self.socket.sendall(text + (b"" if self.method == "HEAD" else body))
        if self.left:
            # What comes is read for a moment: or the answer would be lost with the connection.
            self.socket.shutdown(socket.SHUT_WR)
            self.socket.settimeout(2)
            while self.socket.recv(65536):
                pass
            raise Cut

    def rule(self, kinds):
        with lock:
            for rule in rules:
                if rule["kind"] in kinds and rule["method"] in (self.method, "*"):
                    rule["count"] -= 1
                    if rule["count"] == 0:
                        rules.remove(rule)
                    return rule
        return None

    def request(self, method, path):
        self.method, self.path = method, path
        rule = self.rule(("answer", "page", "redirect", "silent", "endless", "drip", "garbage"))
        if rule:
            kind = rule["kind"]
            if kind == "answer":
                after = [("Retry-After", rule["after"])] if rule["after"] else []
                return self.answer(rule["status"], after + [("Content-Type", "text/plain")], b"as I was told\n")
            if kind == "page":
                self.drop()
                return self.answer(200, [("Content-Type", "text/html")], b"<html>Please log in</html>")
            if kind == "redirect":
                return self.answer(rule["status"], [("Location", rule["target"])])
            if kind == "garbage":
                self.drop()
                say(json.dumps({"method": method, "path": path, "status": 0, "fields": self.fields}))
                self.socket.sendall(b"SSH-2.0-server\r\n")
                raise Cut
            if kind == "drip":
                self.drop()
                self.socket.sendall(b"HTTP/1.1 200 OK\r\n" + (b"" if rule["part"] == "head" else b"\r\n"))
                while True:
                    for byte in b"X: y\r\n":
                        self.socket.sendall(bytes([byte]))
                        time.sleep(0.02)
            if kind == "silent":
                say(json.dumps({"method": method, "path": path, "status": 0}))
                while True:
                    time.sleep(60)
            self.socket.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                self.socket.sendall(bytes(65536))
        if state["max"] and self.left > state["max"]:
            return self.answer(413)
        name = urllib.parse.unquote(urllib.parse.urlsplit(path).path).strip("/").replace("/", "_")
        if name == "tus" or name.startswith("tus_"):
            return self.tus(name)
        return self.plainly(name)

    # PUT and forms

    def dawdle(self):
        rule = self.rule(("late",))
        if rule:
            say(json.dumps({"method": self.method, "path": "late", "status": 0, "body": self.received}))
            if rule["seconds"] < 0:
                reset(self.socket)
            time.sleep(rule["seconds"])

    def plainly(self, name):
        if name == "null":
            self.drop()
            return self.answer(201)
        place = os.path.join(FOLDER, name or "index")
        # Two requests may store under one name at the same time.
        part = "%s.part-%d" % (place, threading.get_ident())
        if self.method == "PUT":
            with open(part, "wb") as file:
                for data in self.body():
                    file.write(data)
            rule = self.rule(("after",))
            if rule:
                return self.answer(rule["status"])
            os.rename(part, place)
            self.dawdle()
            return self.answer(201, [("ETag", '"1"')])
        if self.method == "POST":
            with open(part, "wb") as file:
                for data in self.body():
                    file.write(data)
            os.rename(part, place)
            with open(place + ".type", "w") as file:
                file.write(self.fields.get("content-type", ""))
            self.dawdle()
            return self.answer(200, [("Content-Type", "text/html")], b"<html>Thank you</html>")
        self.drop()
        if self.method in ("GET", "HEAD"):
            if not os.path.exists(place):
                return self.answer(404)
            with open(place, "rb") as file:
                data = file.read() if self.method == "GET" else b""
            return self.answer(200, [("Content-Length", os.path.getsize(place))], data)
        if self.method == "OPTIONS":
            return self.answer(204, [("Allow", "GET, PUT, POST")])
        return self.answer(405)

    # tus

    def tus(self, name):
        if not state["tus"]:
            return self.plainly(name)
        version = [("Tus-Resumable", "1.0.0")]
        if self.method == "OPTIONS":
            self.drop()
            return self.answer(204, version + [
                ("Tus-Version", "1.0.0"), ("Tus-Extension", "creation,termination,checksum"),
                ("Tus-Checksum-Algorithm", "sha1")])
        if self.method != "GET" and self.fields.get("tus-resumable") != "1.0.0":
            return self.answer(412, [("Tus-Version", "1.0.0")])
        if self.method == "POST" and name == "tus":
            self.drop()
            with lock:
                counter[0] += 1
                name = f"tus_{os.getpid()}-{counter[0]}"
            with open(os.path.join(FOLDER, name + ".info"), "w") as file:
                json.dump({"length": int(self.fields["upload-length"]),
                           "metadata": self.fields.get("upload-metadata", "")}, file)
            open(os.path.join(FOLDER, name), "wb").close()
            return self.answer(201, version + [("Location", "/" + name.replace("_", "/", 1))])
        place = os.path.join(FOLDER, name)
        if not os.path.exists(place):
            return self.answer(404, version)
        with lock:
            if name in busy:
                return self.answer(423, version)
            if self.method == "PATCH":
                busy.add(name)
        try:
            return self.known(place, version)
        finally:
            if self.method == "PATCH":
                busy.discard(name)

    def known(self, place, version):
        with open(place + ".info") as file:
            length = json.load(file)["length"]
        offset = os.path.getsize(place)
        if self.method == "HEAD":
            return self.answer(200, version + [
                ("Upload-Offset", offset), ("Upload-Length", length), ("Cache-Control", "no-store")])
        if self.method == "DELETE":
            self.drop()
            os.remove(place)
            os.remove(place + ".info")
            return self.answer(204, version)
        if self.method == "GET":
            with open(place, "rb") as file:
                return self.answer(200, (), file.read())
        if self.method != "PATCH":
            return self.answer(405, version)
        if self.fields.get("content-type") != "application/offset+octet-stream":
            return self.answer(415, version)
        if int(self.fields.get("upload-offset", -1)) != offset:
            return self.answer(409, version)
        if offset + self.left > length:
            return self.answer(400, version)
        checksum = hashlib.sha1() if "upload-checksum" in self.fields else None
        try:
            with open(place, "ab", buffering=0) as file:
                for data in self.body():
                    if checksum:
                        checksum.update(data)
                    if cuts and offset + self.received >= cuts[0]:
                        file.write(data[:max(0, cuts.pop(0) - (offset + self.received - len(data)))])
                        reset(self.socket)
                    file.write(data)
        except Cut:
            # A piece with a checksum counts only as a whole.
            if checksum:
                os.truncate(place, offset)
            raise
        if checksum:
            said = self.fields["upload-checksum"].split(" ")
            if said != ["sha1", base64.b64encode(checksum.digest()).decode()]:
                os.truncate(place, offset)
                return self.answer(460, version)
        if state["lose"]:
            state["lose"] = False
            reset(self.socket)
        rule = self.rule(("after",))
        if rule:
            return self.answer(rule["status"], version)
        self.answer(204, version + [("Upload-Offset", os.path.getsize(place))])


def uploads():
    return [os.path.join(FOLDER, name) for name in os.listdir(FOLDER)
            if name.startswith("tus_") and not name.endswith(".info")]


def command(words):
    if words[0] == "cut":
        state["cut"] = int(words[1])
    elif words[0] == "cutat":
        cuts.append(int(words[1]))
        cuts.sort()
    elif words[0] in ("answer", "after"):
        rules.append({"kind": words[0], "method": words[1], "status": int(words[2]), "count": int(words[3]),
                      "after": words[4] if len(words) > 4 else None})
    elif words[0] == "redirect":
        rules.append({"kind": words[0], "method": words[1], "status": int(words[2]), "target": words[3],
                      "count": int(words[4])})
    elif words[0] == "drip":
        rules.append({"kind": words[0], "method": words[1], "part": words[2], "count": int(words[3])})
    elif words[0] == "late":
        rules.append({"kind": words[0], "method": words[1], "seconds": float(words[2]), "count": int(words[3])})
    elif words[0] in ("page", "silent", "endless", "garbage"):
        rules.append({"kind": words[0], "method": words[1], "count": int(words[2])})
    elif words[0] == "forget":
        for path in uploads():
            os.remove(path)
    elif words[0] == "rewind":
        for path in uploads():
            os.truncate(path, min(os.path.getsize(path), int(words[1])))
    elif words[0] == "lose":
        state["lose"] = True
    elif words[0] in ("slow", "max"):
        state[words[0]] = int(words[1])
    elif words[0] == "hold":
        state["hold"], state["held"] = int(words[1]), False
    elif words[0] == "go":
        state["hold"] = None
    elif words[0] == "drop":
        state["drops"] += 1
    elif words[0] == "plain":
        state["tus"] = False


def obey():
    for line in sys.stdin:
        with lock:
            command(line.split())
        say("done " + line.strip())
    os._exit(0)


server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
# What is cut is lost with what waits here: little, so that what is counted is the client's doing.
server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
server.bind(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 0))
server.listen(128)
context = None
if len(sys.argv) > 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[3])
say(f"port {server.getsockname()[1]}")
threading.Thread(target=obey, daemon=True).start()
while True:
    plain, _ = server.accept()

    def serve(plain=plain):
        try:
            connection = context.wrap_socket(plain, server_side=True) if context else plain
        except (OSError, ssl.SSLError):
            return plain.close()
        Connection(plain if not context else connection, connection).serve()

    threading.Thread(target=serve, daemon=True).start()
