import Foundation
import TestSupport

/// A web server whose paths cause faults. It also serves a folder.
final class WebServer {
    private let child: Child
    let port: String

    init(folder: String) throws {
        child = try Child("python3", ["-u", "-c", WebServer.program, folder])
        guard let line = child.line(where: { $0.hasPrefix("port ") }) else {
            throw SupportError("no web server: \(child.errors)")
        }
        port = String(line.dropFirst(5))
    }

    func uri(_ path: String) -> String { "http://127.0.0.1:\(port)/\(path)" }
    func kill() { child.kill() }

    /// Paths: 404, 500; loop (redirects to itself); mute (accepts the connection and sends nothing); stall (sends 400
    /// kB of tone.wav and then nothing); cut (the same, then closes the connection); slow (one byte a second); zeros
    /// (endless); tags (200 MB that claim to be a tag before an MP3); blocks (the same in a FLAC); radio (endless
    /// tone.mp3, with titles); live (the same without titles, and ten seconds after the first listener came, high.mp3); drops/… (a file, 9 kB every 0.2 s); any other path is a file.
    private static let program = #"""
        import http.server, os, socketserver, sys, threading, time

        folder = sys.argv[1]
        done = threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *words): pass

            def head(self, code, **headers):
                self.send_response(code)
                for name, value in headers.items(): self.send_header(name.replace('_', '-'), str(value))
                self.end_headers()

            def do_GET(self):
                name = self.path[1:].split('?')[0]
                try:
                    if name in ('404', '500'): self.send_error(int(name))
                    elif name == 'loop': self.head(302, Location='/loop')
                    elif name == 'mute': done.wait(60)
                    elif name == 'slow':
                        self.head(200, Content_Type='audio/x-wav', Content_Length=1000000)
                        for byte in open(folder + '/tone.wav', 'rb').read(60):
                            self.wfile.write(bytes([byte])); time.sleep(1)
                    elif name in ('stall', 'cut'):
                        data = open(folder + '/tone.wav', 'rb').read()
                        self.head(200, Content_Type='audio/x-wav', Content_Length=len(data))
                        self.wfile.write(data[:400000]); self.wfile.flush()
                        if name == 'stall': done.wait(60)
                    elif name == 'zeros':
                        self.head(200, Content_Type='application/octet-stream')
                        while True: self.wfile.write(bytes(65536))
                    elif name == 'tags':
                        self.head(200, Content_Type='audio/mpeg')
                        self.wfile.write(b'ID3\4\0\0' + bytes((200 << 20) >> shift & 127 for shift in (21, 14, 7, 0)))
                        for piece in range(3200): self.wfile.write(bytes(65536))
                    elif name == 'blocks':
                        self.head(200, Content_Type='audio/flac')
                        form = bytes([16, 0, 16, 0]) + bytes(6) + (44100 << 44 | 1 << 41 | 15 << 36).to_bytes(8, 'big')
                        self.wfile.write(b'fLaC\0\0\0\x22' + form + bytes(16))
                        for block in range(13):
                            self.wfile.write(b'\2\xff\xff\xfftest')
                            for piece in range(255): self.wfile.write(bytes(65536))
                            self.wfile.write(bytes(65531))
                    elif name == 'radio': self.radio()
                    elif name == 'live': self.live()
                    elif name.startswith('drops/'): self.drops(open(folder + name[5:], 'rb').read())
                    else: self.file(name)
                except (BrokenPipeError, ConnectionResetError): pass

            def file(self, name):
                kinds = {'m3u': 'audio/x-mpegurl', 'pls': 'audio/x-scpls', 'listen': 'audio/x-scpls'}
                path = folder + '/' + name
                if not os.path.isfile(path): return self.send_error(404)
                data = open(path, 'rb').read()
                kind = kinds.get(name.split('.')[-1], 'application/octet-stream')
                first = 0
                if self.headers.get('Range', '').startswith('bytes='):
                    first = int(self.headers['Range'][6:].split('-')[0])
                    self.head(206, Content_Type=kind, Content_Length=len(data) - first, Accept_Ranges='bytes',
                              Content_Range=f'bytes {first}-{len(data) - 1}/{len(data)}')
                else:
                    self.head(200, Content_Type=kind, Content_Length=len(data), Accept_Ranges='bytes')
                self.wfile.write(data[first:])

            def drops(self, data):
                self.head(200, Content_Length=len(data))
                for place in range(0, len(data), 9000):
                    self.wfile.write(data[place:place + 9000]); self.wfile.flush()
                    time.sleep(0.2)

            def radio(self):
                # Like an Icecast server: after each 4096 bytes, a length in units of 16 bytes and so much text.
                self.head(200, Content_Type='audio/mpeg', icy_name='Test Radio', icy_metaint=4096)
                sound, place, block = open(folder + '/tone.mp3', 'rb').read(), 0, 0
                start = time.monotonic()
                while True:
                    data = b''
                    while len(data) < 4096:
                        data += sound[place:place + 4096 - len(data)]
                        place = (place + 4096) % len(sound) if len(data) == 4096 else 0
                    title = 'First Song' if block < 24 else 'Second Song'
                    text = f"StreamTitle='{title}';".encode() if block in (0, 24) else b''
                    size = (len(text) + 15) // 16
                    self.wfile.write(data + bytes([size]) + text.ljust(size * 16, b'\0'))
                    block += 1
                    # 128 kbit/s, the first two seconds at once.
                    ahead = block * 4096 / 16000 - 3 - (time.monotonic() - start)
                    if ahead > 0: time.sleep(ahead)

            def live(self):
                global born
                self.head(200, Content_Type='audio/mpeg', icy_name='Live Radio', icy_metaint=4096)
                low, high = (open(folder + name, 'rb').read() for name in ('/tone.mp3', '/high.mp3'))
                start, block, place = time.monotonic(), 0, 0
                born = born or start
                while True:
                    # 128 kbit/s; as every station does, it begins with what it has sent in the last seconds.
                    date = start + block * 4096 / 16000 - 3
                    sound = low if date < born + 10 else high
                    data = (sound + sound)[place:place + 4096]
                    place = (place + 4096) % len(sound)
                    self.wfile.write(data + b'\0'); self.wfile.flush()
                    block += 1
                    ahead = date - time.monotonic()
                    if ahead > 0: time.sleep(ahead)

        born = None

        class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True

        server = Server(('127.0.0.1', 0), Handler)
        print('port', server.server_address[1])
        server.serve_forever()
        """#
}
