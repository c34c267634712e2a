"""A server of RTSP with one endless stream: pictures with numbers in a file, again and again, and its sound."""
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer

Gst.init(None)
server = GstRtspServer.RTSPServer()
server.set_address("127.0.0.1")
server.set_service("0")
factory = GstRtspServer.RTSPMediaFactory()
# The film has pictures without reordering, as a camera sends them.
factory.set_launch(
    f"( filesrc location={sys.argv[1]} ! qtdemux name=demux "
    "demux.video_0 ! queue ! h264parse ! rtph264pay name=pay0 config-interval=-1 pt=96 "
    "demux.audio_0 ! queue ! aacparse ! rtpmp4apay name=pay1 pt=97 )")
factory.set_shared(True)
server.get_mount_points().add_factory("/stream", factory)
server.attach(None)
print(server.get_bound_port(), flush=True)
GLib.MainLoop().run()
