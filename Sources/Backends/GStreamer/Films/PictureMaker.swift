import CFilms
import FileFormats
import GStreamerBase
import Glibc
import PluginAPI

/// Rotates, scales and encodes pictures. It keeps its pipeline, because the next picture usually has the same format.
final class PictureMaker {
    /// The requested picture.
    struct Shape: Equatable {
        /// The box that the picture must fit into, in pixels; 0: no limit.
        var width = 0
        var height = 0
        var format = ImageFormat.jpeg
        /// In percent, 0 to 100.
        var quality = 85
    }

    private struct Key: Equatable {
        let caps: String
        let shape: Shape
        let orientation: Int32
    }

    private static let patience = 8.0

    private var key: Key?
    private var pipeline: FilmPipeline?

    /// The encoded bytes of the picture. The picture is never made larger.
    func encode(_ sample: OpaquePointer, _ shape: Shape, orientation: Int32) throws(FilmError) -> [UInt8] {
        guard let caps = gst_sample_get_caps(sample), let text = gst_caps_to_string(caps) else {
            throw FilmError(.decodeFailed, "a picture without a format")
        }
        defer { g_free(text) }
        let key = Key(caps: String(cString: text), shape: shape, orientation: orientation)
        if key != self.key {
            (self.key, pipeline) = (nil, nil)
            pipeline = try make(sample, caps, shape, orientation)
            self.key = key
        }
        guard let pipeline else { throw FilmError(.decodeFailed, "no encoder") }
        let (source, sink) = (try pipeline.child("source"), try pipeline.child("sink"))
        guard films_push(source, sample) != 0, let made = films_pull(sink, Times.nanoseconds(Self.patience))
        else {
            (self.key, self.pipeline) = (nil, nil)
            throw pipeline.failure() ?? FilmError(.decodeFailed, "the picture cannot be encoded")
        }
        defer { gst_sample_unref(made) }
        return try Self.bytes(of: made)
    }

    /// Decodes a picture that is stored in the file, such as the cover of an album, and encodes it again.
    static func encode(cover: OpaquePointer, _ shape: Shape) throws(FilmError) -> [UInt8] {
        guard let caps = gst_sample_get_caps(cover) else {
            throw FilmError(.decodeFailed, "a picture without a format")
        }
        if let size = PictureHeader.size(try bytes(of: cover)), PictureHeader.isTooLarge(size) {
            throw FilmError(.decodeFailed, "its cover has \(size.width) x \(size.height) pixels, which is too much")
        }
        let pipeline = try FilmPipeline(
            "appsrc name=source ! decodebin ! videoconvert ! video/x-raw,format=RGBA"
                + " ! appsink name=sink sync=false enable-last-sample=false")
        let source = try pipeline.child("source")
        films_announce(source, caps)
        pipeline.set(GST_STATE_PLAYING)
        guard films_push(source, cover) != 0 else { throw FilmError(.decodeFailed, "the cover cannot be read") }
        films_end(source)
        guard let picture = films_pull(try pipeline.child("sink"), Times.nanoseconds(patience)) else {
            throw pipeline.failure() ?? FilmError(.decodeFailed, "the cover cannot be read")
        }
        defer { gst_sample_unref(picture) }
        return try PictureMaker().encode(picture, shape, orientation: 0)
    }

    private func make(
        _ sample: OpaquePointer, _ caps: UnsafeMutablePointer<GstCaps>, _ shape: Shape, _ orientation: Int32
    ) throws(FilmError) -> FilmPipeline {
        var size = films_size()
        guard films_size_of(sample, &size) != 0 else { throw FilmError(.decodeFailed, "a picture without a size") }
        let stored = PictureSize(
            width: Int(size.width), height: Int(size.height), shape: (Int(size.shape_n), Int(size.shape_d)))
        let isTurned = PictureSize.isTurned(orientation)
        let box = isTurned ? (shape.height, shape.width) : (shape.width, shape.height)
        let (width, height) = stored.fitting(box, even: false)
        guard let encoder = FilmRuntime.find([Self.encoder(shape.format)]) else {
            throw FilmError(
                .encoderNotFound, "\(Self.encoder(shape.format)) (gstreamer1.0-plugins-good) is not installed")
        }
        let turn = orientation == 0 ? "" : " ! videoflip video-direction=\(orientation)"
        let pipeline = try FilmPipeline(
            "appsrc name=source format=time ! videoconvertscale ! video/x-raw,width=\(width),height=\(height),pixel-aspect-ratio=1/1"
                + turn + " ! videoconvert ! \(encoder)\(Self.options(shape))"
                + " ! appsink name=sink sync=false enable-last-sample=false")
        films_announce(try pipeline.child("source"), caps)
        pipeline.set(GST_STATE_PLAYING)
        return pipeline
    }

    private static func encoder(_ format: ImageFormat) -> String {
        switch format {
        case .jpeg: "jpegenc"
        case .png: "pngenc"
        case .webp: "webpenc"
        }
    }

    private static func options(_ shape: Shape) -> String {
        switch shape.format {
        case .jpeg, .webp: " quality=\(shape.quality)"
        case .png: ""
        }
    }

    private static func bytes(of sample: OpaquePointer) throws(FilmError) -> [UInt8] {
        guard let buffer = gst_sample_get_buffer(sample) else { throw FilmError(.decodeFailed, "an empty picture") }
        let size = gst_buffer_get_size(buffer)
        return [UInt8](unsafeUninitializedCapacity: Int(size)) {
            $1 = Int(gst_buffer_extract(buffer, 0, $0.baseAddress, size))
        }
    }
}

/// The size of a picture as stored, in pixels.
struct PictureSize: Equatable {
    var width: Int
    var height: Int
    /// The aspect ratio of a pixel: width to height.
    var shape: (Int, Int) = (1, 1)

    static func == (one: PictureSize, other: PictureSize) -> Bool {
        (one.width, one.height) == (other.width, other.height) && one.shape == other.shape
    }

    /// Whether an orientation (videoflip's `video-direction`) exchanges width and height.
    static func isTurned(_ orientation: Int32) -> Bool { [1, 3, 6, 7].contains(orientation) }

    /// The largest size with square pixels that fits into a box, keeps the aspect ratio and is not larger than the
    /// picture.
    /// - Parameter box: 0: no limit.
    func fitting(_ box: (width: Int, height: Int), even: Bool) -> (width: Int, height: Int) {
        // To get square pixels, one side is made smaller; neither side becomes larger.
        var wide = Double(width)
        var high = Double(height)
        if shape.0 > shape.1 {
            high *= Double(shape.1) / Double(shape.0)
        } else {
            wide *= Double(shape.0) / Double(shape.1)
        }
        var scale = 1.0
        if box.width > 0 { scale = min(scale, Double(box.width) / wide) }
        if box.height > 0 { scale = min(scale, Double(box.height) / high) }
        func whole(_ side: Double) -> Int {
            even ? max(2, Int((side * scale / 2).rounded()) * 2) : max(1, Int((side * scale).rounded()))
        }
        return (whole(wide), whole(high))
    }
}
