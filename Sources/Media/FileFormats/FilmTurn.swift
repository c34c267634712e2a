/// How a player turns the pictures of a film: the matrix in the header of its track, in place.
package enum FilmTurn {
    /// New bytes of a file, and their place in it.
    package struct Patch: Sendable, Hashable {
        package let place: Int
        package let bytes: [UInt8]
    }

    /// - Parameters:
    ///   - beginning: the file up to the end of its first index, at least.
    ///   - degrees: clockwise: 0, 90, 180 or 270.
    /// - Returns: nothing if the index is not there yet.
    package static func patches(_ beginning: [UInt8], degrees: Int) -> [Patch] {
        var patches: [Patch] = []
        MovieIndex.each(beginning[...]) { kind, content in
            guard kind == "moov" else { return }
            MovieIndex.each(content) { kind, content in
                guard kind == "trak", isVideo(content) else { return }
                MovieIndex.each(content) { kind, content in
                    guard kind == "tkhd" else { return }
                    let matrix = content.first == 1 ? 52 : 40
                    guard content.count >= matrix + 44 else { return }
                    // Pixels with 16 bits behind the point, as the matrix has them.
                    let width = MovieIndex.number(content, matrix + 36, 4)
                    let height = MovieIndex.number(content, matrix + 40, 4)
                    patches.append(
                        Patch(
                            place: content.startIndex + matrix,
                            bytes: Self.matrix(degrees, width, height).flatMap { FilmBox.big($0, 4) }))
                }
            }
        }
        return patches
    }

    private static func isVideo(_ track: ArraySlice<UInt8>) -> Bool {
        var isVideo = false
        MovieIndex.each(track) { kind, content in
            MovieIndex.each(kind == "mdia" ? content : content.prefix(0)) { kind, content in
                if kind == "hdlr", content.dropFirst(8).prefix(4).elementsEqual("vide".utf8) { isVideo = true }
            }
        }
        return isVideo
    }

    /// The turned picture lies to the right of and below 0.
    private static func matrix(_ degrees: Int, _ width: Int, _ height: Int) -> [Int] {
        let (one, minus, weight) = (1 << 16, 0xffff_0000, 1 << 30)
        return switch degrees {
        case 90: [0, one, 0, minus, 0, 0, height, 0, weight]
        case 180: [minus, 0, 0, 0, minus, 0, width, height, weight]
        case 270: [0, minus, 0, one, 0, 0, 0, width, weight]
        default: [one, 0, 0, 0, one, 0, 0, 0, weight]
        }
    }
}

/// How a viewer turns a photo: a segment of EXIF behind the start of a JPEG.
package enum PhotoTurn {
    /// - Parameter degrees: clockwise: 0, 90, 180 or 270; 0 changes nothing.
    /// - Returns: nil if it is no JPEG.
    package static func jpeg(_ bytes: [UInt8], degrees: Int) -> [UInt8]? {
        guard bytes.starts(with: [0xff, 0xd8]) else { return nil }
        let orientation: UInt8
        switch degrees {
        case 90: orientation = 6
        case 180: orientation = 3
        case 270: orientation = 8
        default: return bytes
        }
        // TIFF, most significant bytes first: one entry, 0x112, of the type SHORT.
        let tiff: [UInt8] =
            [0x4d, 0x4d, 0, 42, 0, 0, 0, 8, 0, 1] + [0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, orientation, 0, 0] + [0, 0, 0, 0]
        let content = Array("Exif".utf8) + [0, 0] + tiff
        let length = content.count + 2
        return [0xff, 0xd8, 0xff, 0xe1, UInt8(length >> 8), UInt8(length & 0xff)] + content + bytes.dropFirst(2)
    }
}
