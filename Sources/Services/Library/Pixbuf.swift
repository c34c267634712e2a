import Glibc

/// Scales pictures by the library gdk-pixbuf, which is loaded when the first picture is requested. If it is not
/// installed, pictures stay unchanged.
enum Pixbuf {
    /// The extension of a picture's format, found from its first bytes. Nil: a format that desktops usually do not
    /// show.
    static func ending(_ bytes: [UInt8]) -> String? {
        if bytes.starts(with: [0xFF, 0xD8, 0xFF]) { return "jpg" }
        if bytes.starts(with: [0x89, 0x50, 0x4E, 0x47]) { return "png" }
        if bytes.starts(with: "GIF8".utf8) { return "gif" }
        if bytes.starts(with: "RIFF".utf8), bytes.dropFirst(8).starts(with: "WEBP".utf8) { return "webp" }
        return nil
    }

    private typealias Object = UnsafeMutableRawPointer
    private typealias NewLoader = @convention(c) () -> Object?
    private typealias Write =
        @convention(c) (Object, UnsafePointer<UInt8>, Int, UnsafeMutablePointer<Object?>?) -> Int32
    private typealias Close = @convention(c) (Object, UnsafeMutablePointer<Object?>?) -> Int32
    private typealias Get = @convention(c) (Object) -> Object?
    private typealias Number = @convention(c) (Object) -> Int32
    private typealias Scale = @convention(c) (Object, Int32, Int32, Int32) -> Object?
    private typealias Save =
        @convention(c) (
            Object, UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>, UnsafeMutablePointer<Int>, UnsafePointer<CChar>,
            UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?, UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?,
            UnsafeMutablePointer<Object?>?
        ) -> Int32

    private struct Library {
        let newLoader: NewLoader
        let write: Write
        let close: Close
        let picture: Get
        let width, height, hasAlpha: Number
        let scale: Scale
        let save: Save

        init?() {
            guard let handle = dlopen("libgdk_pixbuf-2.0.so.0", RTLD_NOW | RTLD_LOCAL) else { return nil }
            func symbol<Function>(_ name: String, _ type: Function.Type) -> Function? {
                dlsym(handle, "gdk_pixbuf_" + name).map { unsafeBitCast($0, to: type) }
            }
            guard let newLoader = symbol("loader_new", NewLoader.self), let write = symbol("loader_write", Write.self),
                let close = symbol("loader_close", Close.self), let picture = symbol("loader_get_pixbuf", Get.self),
                let width = symbol("get_width", Number.self), let height = symbol("get_height", Number.self),
                let hasAlpha = symbol("get_has_alpha", Number.self), let scale = symbol("scale_simple", Scale.self),
                let save = symbol("save_to_bufferv", Save.self)
            else { return nil }
            (self.newLoader, self.write, self.close, self.picture) = (newLoader, write, close, picture)
            (self.width, self.height, self.hasAlpha) = (width, height, hasAlpha)
            (self.scale, self.save) = (scale, save)
        }
    }

    private static let library = Library()

    /// Nil if the picture is small enough, or cannot be read. Allocated memory is freed when the worker ends.
    static func scaled(_ bytes: [UInt8], to size: Int) -> (data: [UInt8], ending: String)? {
        guard let library, let loader = library.newLoader() else { return nil }
        let isRead = bytes.withUnsafeBufferPointer { library.write(loader, $0.baseAddress!, $0.count, nil) }
        guard library.close(loader, nil) != 0, isRead != 0, let picture = library.picture(loader) else { return nil }
        let (width, height) = (Int(library.width(picture)), Int(library.height(picture)))
        let longer = max(width, height)
        guard longer > size, width > 0, height > 0 else { return nil }
        let (newWidth, newHeight) = (max(1, width * size / longer), max(1, height * size / longer))
        // 2: bilinear interpolation.
        guard let small = library.scale(picture, Int32(newWidth), Int32(newHeight), 2) else { return nil }
        let isPNG = library.hasAlpha(small) != 0
        var data: UnsafeMutablePointer<UInt8>?
        var count = 0
        var keys: [UnsafeMutablePointer<CChar>?] = [nil]
        var values: [UnsafeMutablePointer<CChar>?] = [nil]
        guard library.save(small, &data, &count, isPNG ? "png" : "jpeg", &keys, &values, nil) != 0, let data else {
            return nil
        }
        return (Array(UnsafeBufferPointer(start: data, count: count)), isPNG ? "png" : "jpg")
    }
}
