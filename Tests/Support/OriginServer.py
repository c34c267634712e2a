#!/usr/bin/python3
"""A web server to read media from, which misbehaves on command.

    OriginServer.py FOLDER

Serves the files of FOLDER with ranges, tags and If-Range. Writes "port N", then one JSON object for each request, when it has
ended: {"path", "range", "status", "sent"}; sent counts the bytes of the body that went into the socket.

Reads one command a line from standard input and answers "done COMMAND":

    rate N          sends N bytes in a second; 0: as fast as it can
    stall N SECONDS COUNT
                    stops at byte N of the file for so long, so often
    plain           knows no ranges: always 200
    shift N         answers with a range that begins N bytes later than asked for
    short N         sends N bytes less than it says
    long N          sends N bytes more than it says
    gzip            says that it is compressed, whatever it was asked for
    nostore         forbids to keep it
    unsized         tells no size (HTTP/1.0, ends with the connection)
    endless         the same, without an end
    status N        answers with that status
    redirect TARGET answers 302
    only NAME       serves that file for each path
    untagged        no tag and no date
    change          every file has new content and a new tag from now on
    normal          as at the start
"""
import http.server
import json
import os
import select
import socket
import sys
import threading
import time
import urllib.parse

FOLDER = sys.argv[1]
lock = threading.RLock()
state = {}
version = [1]


def reset():
    state.update(rate=0, stall=None, plain=False, shift=0, short=0, long=0, gzip=False, nostore=False, unsized=False,
                 endless=False, status=0, redirect="", untagged=False, only="")


reset()


def say(text):
    with lock:
        print(text, flush=True)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def setup(self):
        # What is in the socket's queue counts as sent: little may be there.
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16384)
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().setup()

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        self.sent = 0
        self.status = 0
        asked = self.headers.get("Range", "")
        try:
            self.answer(asked)
        except OSError:
            self.close_connection = True
        say(json.dumps({"path": self.path, "range": asked.replace("bytes=", ""), "status": self.status,
                        "sent": self.sent, "authorization": self.headers.get("Authorization", "")}))

    def head(self, status, fields):
        self.status = status
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.end_headers()

    def answer(self, asked):
        if state["status"]:
            return self.head(state["status"], [("Content-Length", "0")])
        if state["redirect"]:
            target, state["redirect"] = state["redirect"], ""
            return self.head(302, [("Location", target), ("Content-Length", "0")])
        name = os.path.basename(urllib.parse.unquote(urllib.parse.urlsplit(self.path).path))
        name = state["only"] or name
        path = os.path.join(FOLDER, name)
        if not name or not os.path.isfile(path):
            return self.head(404, [("Content-Length", "0")])
        data = Content(path)
        tag = '"%s-%d"' % (name, version[0])
        fields = [("Content-Type", "audio/x-mpegurl" if name.endswith(".list") else "video/mp4")]
        if not state["untagged"]:
            fields.append(("ETag", tag))
        if state["nostore"]:
            fields.append(("Cache-Control", "no-store"))
        if state["gzip"]:
            fields.append(("Content-Encoding", "gzip"))
        if state["unsized"] or state["endless"]:
            self.close_connection = True
            self.head(200, fields + [("Connection", "close")])
            while True:
                self.send(data, 0, data.size)
                if not state["endless"]:
                    return
        first, last = 0, data.size - 1
        condition = self.headers.get("If-Range")
        if asked.startswith("bytes=") and not state["plain"] and (condition is None or condition == tag):
            low, _, high = asked[6:].partition("-")
            if low == "":
                first = max(0, data.size - int(high))
            else:
                first = int(low)
                last = min(last, int(high)) if high else last
            if first > last:
                return self.head(416, [("Content-Range", "bytes */%d" % data.size), ("Content-Length", "0")])
            shift = state["shift"]
            fields += [("Content-Range", "bytes %d-%d/%d" % (first + shift, last + shift, data.size + shift)),
                       ("Accept-Ranges", "bytes")]
            status = 206
        else:
            status = 200
        count = last + 1 - first
        self.head(status, fields + [("Content-Length", str(count))])
        if self.command == "HEAD":
            return
        self.send(data, first, count - state["short"])
        if state["short"]:
            self.close_connection = True
        if state["long"]:
            self.wfile.write(b"x" * state["long"])
            self.close_connection = True

    def send(self, data, first, count):
        done = 0
        while done < count:
            size = min(16384, count - done)
            stall = state["stall"]
            if stall and stall[2] > 0 and first + done <= stall[0] < first + done + size:
                size = stall[0] - first - done
                if size == 0:
                    with lock:
                        stall[2] -= 1
                    # Until then, or until the client has left.
                    if select.select([self.connection], [], [], stall[1])[0]:
                        raise ConnectionResetError
                    continue
            self.wfile.write(data.part(first + done, size))
            self.sent += size
            done += size
            if state["rate"]:
                time.sleep(size / state["rate"])


class Content:
    def __init__(self, path):
        self.file = open(path, "rb")
        self.size = os.path.getsize(path)
        self.mask = (version[0] - 1) & 0xFF

    def part(self, first, size):
        self.file.seek(first)
        part = self.file.read(size)
        # Every version has other bytes everywhere.
        return bytes(byte ^ self.mask for byte in part) if self.mask else part


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, address):
        pass


def obey(line):
    words = line.split()
    name, rest = words[0], words[1:]
    if name == "normal":
        reset()
    elif name == "change":
        version[0] += 1
    elif name == "stall":
        state["stall"] = [int(rest[0]), float(rest[1]), int(rest[2])]
    elif name == "redirect":
        state["redirect"] = rest[0]
    elif name == "only":
        state["only"] = rest[0]
    elif name in ("rate", "shift", "short", "long", "status"):
        state[name] = int(rest[0])
    else:
        state[name] = True


server = Server(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
say("port %d" % server.server_address[1])
for line in sys.stdin:
    if line.strip():
        obey(line.strip())
        say("done " + line.strip())
