import CGStreamer
import CStreaming
public import EventLoop
import FileFormats
import GStreamerBase
import Glibc
public import PluginAPI

/// A ``SoundDecoder`` on GStreamer; IMA4, for which GStreamer needs libav, is decoded here.
///
/// Everything is converted to 48 kHz in two channels, so that the memory for a sample at the server depends only on its
/// length.
public final class GStreamerDecoder: SoundDecoder {
    private let loop: EventLoop
    private var jobs: [ObjectIdentifier: Job] = [:]

    public init(loop: EventLoop) { self.loop = loop }

    static let sampleRate = 48_000
    static let channels = 2
    /// Seconds after which a file without data is refused; any disk is faster.
    private static let patience = 10.0

    public func decode(
        path: String, limit: Double, _ reply: @escaping (Result<SoundSample, SessionError>) -> Void
    ) {
        do throws(SessionError) {
            let job = try Job(path: path, limit: limit, loop: loop)
            jobs[ObjectIdentifier(job)] = job
            let watchdog = Timer(on: loop) { [weak job] in
                job?.onEnd?(.failure(.badParameter("'\(path)' cannot be decoded: it contains no audio")))
            }
            watchdog.arm(after: Self.patience)
            job.onEnd = { [weak self, weak job] result in
                withExtendedLifetime(watchdog) {
                    if let job {
                        job.onEnd = nil
                        self?.jobs[ObjectIdentifier(job)] = nil
                    }
                    reply(result)
                }
            }
            job.start()
        } catch {
            loop.later { reply(.failure(error)) }
        }
    }

    /// One file while it is decoded into memory.
    private final class Job {
        var onEnd: ((Result<SoundSample, SessionError>) -> Void)?
        private let path: String
        private let limit: Double
        private let pipeline: Pipeline
        /// The file in memory that GStreamer's thread writes to.
        private let output: Int32
        /// A file with IMA4 as a WAV, in memory; −1 for other files.
        private let input: Int32
        private let tally: UnsafeMutablePointer<shim_tally>

        init(path: String, limit: Double, loop: EventLoop) throws(SessionError) {
            self.path = path
            self.limit = limit
            input = try Self.packets(path, limit)
            let source: MediaSource
            do throws(MediaSource.Refusal) {
                source = try MediaSource(uri: Self.uri(input < 0 ? path : "/proc/self/fd/\(input)"))
            } catch {
                if input >= 0 { close(input) }
                throw .badParameter(error.message)
            }
            output = shim_memory_file("sound")
            let caps =
                "audio/x-raw,format=S16LE,layout=interleaved,rate=\(GStreamerDecoder.sampleRate),"
                + "channels=\(GStreamerDecoder.channels)"
            let made: Pipeline
            do throws(PipelineError) {
                made = try Pipeline(
                    source.description + " ! audioconvert ! audioresample ! capsfilter name=samples caps=\"\(caps)\" ! "
                        + "fdsink sync=false async=false fd=\(output)", on: loop)
            } catch {
                if input >= 0 { close(input) }
                close(output)
                throw .badParameter("'\(path)' cannot be decoded: \(error.message)")
            }
            pipeline = made
            tally = .allocate(capacity: 1)
            // One frame more than allowed shows that the file is too long.
            let bytes = (Int(limit * Double(GStreamerDecoder.sampleRate)) + 1) * GStreamerDecoder.channels * 2
            tally.initialize(to: shim_tally(bytes: 0, limit: gint64(bytes), pipeline: made.element))
            if let samples = made.child("samples"), let pad = gst_element_get_static_pad(samples, "src") {
                shim_count_bytes(pad, tally)
                gst_object_unref(pad)
            }
            if let origin = made.child("source") { source.apply(to: origin) }
            made.onMessage = { [weak self] in self?.received($0) }
        }

        deinit {
            pipeline.close()
            tally.deallocate()
            close(output)
            if input >= 0 { close(input) }
        }

        private static func packets(_ path: String, _ limit: Double) throws(SessionError) -> Int32 {
            let wave: [UInt8]?
            do throws(AppleFile.Refusal) {
                wave = try IMA4.wave(path: path, limit: limit)
            } catch {
                throw .badParameter("'\(path)' cannot be decoded: \(error.reason)")
            }
            guard let wave else { return -1 }
            let memory = shim_memory_file("sound")
            _ = wave.withUnsafeBytes { pwrite(memory, $0.baseAddress, $0.count, 0) }
            return memory
        }

        func start() { pipeline.setState(GST_STATE_PLAYING) }

        private func received(_ message: UnsafeMutablePointer<GstMessage>) {
            switch Notice(message) {
            case .application:
                guard let structure = gst_message_get_structure(message),
                    gst_structure_has_name(structure, "limit-reached") != 0
                else { return }
                onEnd?(
                    .failure(.badParameter("'\(path)' is longer than \(Int(limit)) s; play it with a player")))
            case .failed(let fault):
                onEnd?(.failure(.badParameter(Failure(fault, item: path, missing: nil).message)))
            case .ended: onEnd?(sample())
            case .prerolled, .segmentDone, .durationChanged, .lacksPlugin, .tags, .buffered, .element, .other: break
            }
        }

        private func sample() -> Result<SoundSample, SessionError> {
            let frame = GStreamerDecoder.channels * 2
            let count = Int(shim_tally_bytes(tally)) / frame * frame
            guard count > 0 else { return .failure(.badParameter("'\(path)' contains no audio")) }
            let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
                initialized = max(0, pread(output, buffer.baseAddress, count, 0))
            }
            return .success(
                SoundSample(
                    sampleRate: GStreamerDecoder.sampleRate, channels: GStreamerDecoder.channels, bytes: bytes))
        }

        private static func uri(_ path: String) -> String {
            guard let raw = g_filename_to_uri(path, nil, nil) else { return path }
            defer { g_free(raw) }
            return String(cString: raw)
        }
    }
}
