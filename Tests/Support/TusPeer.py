"""A server of tus by others: aiohttp-tus, from PyPI (Scripts/check tus installs it).

    TusPeer.py FOLDER PORT LARGEST

Stores what is uploaded to /tus in FOLDER, by the name of the file. Refuses requests of more than LARGEST bytes. Writes
"port N".
"""
import asyncio
import pathlib
import sys

from aiohttp import web
from aiohttp_tus import setup_tus


async def serve():
    app = web.Application(client_max_size=int(sys.argv[3]))
    setup_tus(app, upload_path=pathlib.Path(sys.argv[1]), upload_url="/tus")
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", int(sys.argv[2])).start()
    print("port", runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


asyncio.run(serve())
