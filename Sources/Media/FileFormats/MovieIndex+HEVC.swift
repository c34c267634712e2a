/// HEVC that every decoder of HEVC can decode.
extension MovieIndex {
    /// Whether the pictures of a track are progressive HEVC with 8 bits and 4:2:0, as its configuration states
    /// (ISO/IEC 14496-15, 8.3.3.1); nil for tracks without pictures.
    static func isCommonHEVC(_ track: ArraySlice<UInt8>) -> Bool? {
        var hasPictures = false
        var isCommon = false
        // Only these boxes in each other: a hostile file can nest boxes a million times.
        func search(_ bytes: ArraySlice<UInt8>, _ path: ArraySlice<String>) {
            each(bytes) { kind, content in
                switch kind {
                case "hdlr": if content.dropFirst(8).starts(with: "vide".utf8) { hasPictures = true }
                case "hvc1" where path.first == kind, "hev1" where path.first == "hvc1":
                    search(content.dropFirst(78), path.dropFirst())
                case "stsd" where path.first == kind:
                    if number(content, 4, 4) == 1 { search(content.dropFirst(8), path.dropFirst()) }
                case "hvcC" where path.first == kind: isCommon = isCommonConfiguration(content)
                default: if path.first == kind { search(content, path.dropFirst()) }
                }
            }
        }
        search(track, ["mdia", "minf", "stbl", "stsd", "hvc1", "hvcC"])
        return hasPictures ? isCommon : nil
    }

    private static func isCommonConfiguration(_ content: ArraySlice<UInt8>) -> Bool {
        let bytes = Array(content.prefix(23))
        guard bytes.count == 23, bytes[0] == 1 else { return false }
        let isInterlaced = bytes[6] & 0xC0 == 0x40
        let (chroma, bits, bitsOfColour) = (bytes[16] & 3, bytes[17] & 7, bytes[18] & 7)
        return !isInterlaced && chroma == 1 && bits == 0 && bitsOfColour == 0
    }
}
