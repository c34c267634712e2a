"""The same as WHIPServer.py on aiortc, an implementation of WebRTC by others (Scripts/check whip installs it).

usage: WHIPPeer.py PORT TOKEN
"""
import asyncio
import sys

import numpy
from aiohttp import web
from aiortc import RTCPeerConnection, RTCSessionDescription

token = sys.argv[2]
peers = {}


def say(*words):
    print(*words, flush=True)


async def watch(track):
    try:
        while True:
            frame = await track.recv()
            if track.kind == "video":
                picture = frame.to_ndarray(format="gray")
                row, width = picture[picture.shape[0] // 2], picture.shape[1]
                say("number", sum(1 << bit for bit in range(16) if row[(2 * bit + 1) * width // 32] > 128))
            else:
                say("sound", numpy.abs(frame.to_ndarray().astype(float)).max() / 32768)
    except Exception:
        pass


async def post(request):
    if request.headers.get("Authorization") != "Bearer " + token:
        return web.Response(status=401)
    offer = await request.text()
    say("offer", "sendonly" if "a=sendonly" in offer and "a=sendrecv" not in offer else "other")
    peer = RTCPeerConnection()
    peer.on("track", lambda track: asyncio.ensure_future(watch(track)))
    await peer.setRemoteDescription(RTCSessionDescription(offer, "offer"))
    await peer.setLocalDescription(await peer.createAnswer())
    name = str(len(peers))
    peers[name] = peer
    return web.Response(
        status=201, text=peer.localDescription.sdp, content_type="application/sdp", headers={"Location": "/whip/" + name})


async def delete(request):
    peer = peers.pop(request.match_info["name"], None)
    if peer is None or request.headers.get("Authorization") != "Bearer " + token:
        return web.Response(status=404)
    say("deleted", request.path)
    await peer.close()
    return web.Response()


app = web.Application()
app.router.add_post("/whip", post)
app.router.add_delete("/whip/{name}", delete)
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=lambda *_: say("ready"))
