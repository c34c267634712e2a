"""A server of WHIP (RFC 9725) on GStreamer: says what it receives, line by line.

usage: WHIPServer.py PORT TOKEN [ORIGIN]

ORIGIN is the server that it names for the end of a connection: itself by default.
"""
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstSdp", "1.0")
gi.require_version("GstWebRTC", "1.0")
from gi.repository import Gst, GstSdp, GstWebRTC

Gst.init(None)
token = sys.argv[2]
origin = sys.argv[3] if len(sys.argv) > 3 else ""
peers = {}
lock = threading.Lock()


def say(*words):
    with lock:
        print(*words, flush=True)


class Peer:
    def __init__(self, offer):
        self.gathered = threading.Event()
        self.pipeline = Gst.Pipeline()
        self.webrtc = Gst.ElementFactory.make("webrtcbin")
        self.webrtc.set_property("bundle-policy", GstWebRTC.WebRTCBundlePolicy.MAX_BUNDLE)
        self.webrtc.connect("pad-added", self.added)
        self.webrtc.connect("notify::ice-gathering-state", self.gathering)
        self.pipeline.add(self.webrtc)
        self.pipeline.set_state(Gst.State.PLAYING)
        _, message = GstSdp.SDPMessage.new_from_text(offer)
        kind = GstWebRTC.WebRTCSDPType
        self.ask("set-remote-description", GstWebRTC.WebRTCSessionDescription.new(kind.OFFER, message))
        # The answer belongs to the reply.
        reply = self.ask("create-answer", None)
        self.ask("set-local-description", reply.get_value("answer"))
        self.gathered.wait(5)
        self.answer = self.webrtc.get_property("local-description").sdp.as_text()

    def ask(self, signal, value):
        promise = Gst.Promise.new()
        self.webrtc.emit(signal, value, promise)
        promise.wait()
        return promise.get_reply()

    def gathering(self, webrtc, _):
        if webrtc.get_property("ice-gathering-state") == GstWebRTC.WebRTCICEGatheringState.COMPLETE:
            self.gathered.set()

    def added(self, _, pad):
        if pad.get_current_caps().get_structure(0).get_string("media") == "video":
            text = "rtph264depay ! avdec_h264 ! videoconvert ! video/x-raw,format=GRAY8 ! appsink name=sink sync=false"
            take = self.picture
        else:
            text = "rtpopusdepay ! opusdec ! audioconvert ! audio/x-raw,format=F32LE,channels=1 ! appsink name=sink sync=false"
            take = self.sound
        made = Gst.parse_bin_from_description(text, True)
        sink = made.get_by_name("sink")
        sink.set_property("emit-signals", True)
        sink.connect("new-sample", take)
        self.pipeline.add(made)
        made.sync_state_with_parent()
        pad.link(made.get_static_pad("sink"))

    def picture(self, sink):
        sample = sink.emit("pull-sample")
        caps = sample.get_caps().get_structure(0)
        width, height = caps.get_value("width"), caps.get_value("height")
        data = sample.get_buffer().extract_dup(0, sample.get_buffer().get_size())
        row = len(data) // height * (height // 2)
        say("number", sum(1 << bit for bit in range(16) if data[row + (2 * bit + 1) * width // 32] > 128))
        return Gst.FlowReturn.OK

    def sound(self, sink):
        buffer = sink.emit("pull-sample").get_buffer()
        samples = memoryview(buffer.extract_dup(0, buffer.get_size())).cast("f")
        say("sound", max((abs(value) for value in samples), default=0))
        return Gst.FlowReturn.OK


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, status, text="", fields={}):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_POST(self):
        offer = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self.path != "/whip":
            return self.answer(404)
        if self.headers["Authorization"] != "Bearer " + token:
            return self.answer(401)
        if self.headers["Content-Type"] != "application/sdp":
            return self.answer(415)
        say("offer", "sendonly" if "a=sendonly" in offer and "a=sendrecv" not in offer else "other")
        name = "/whip/" + str(len(peers))
        peers[name] = Peer(offer)
        self.answer(201, peers[name].answer, {"Content-Type": "application/sdp", "Location": origin + name})

    def do_DELETE(self):
        say("delete", "with-token" if self.headers["Authorization"] else "without-token")
        peer = peers.pop(self.path, None)
        if not peer or self.headers["Authorization"] != "Bearer " + token:
            return self.answer(404)
        say("deleted", self.path)
        peer.pipeline.set_state(Gst.State.NULL)
        self.answer(200)


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
say("ready")
server.serve_forever()
