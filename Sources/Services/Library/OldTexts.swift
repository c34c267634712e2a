import Glibc
import PluginAPI

/// Reads texts in an encoding that the user has set. A text that is not in this encoding is not converted.
final class OldTexts {
    let encoding: Settings.TagEncoding
    private let converter: iconv_t?

    init(_ encoding: Settings.TagEncoding) {
        self.encoding = encoding
        // Microsoft's variants have further characters.
        let name =
            switch encoding {
            case .shiftJIS: "CP932"
            case .eucKR: "CP949"
            case .latin1: "ISO-8859-1"
            case .cp1250, .cp1251, .cp1252, .cp1253, .cp1254, .cp1255, .cp1256, .cp1257, .koi8r, .koi8u, .gbk, .big5:
                encoding.rawValue
            }
        let opened = encoding == .latin1 ? nil : iconv_open("UTF-8", name)
        // The error of iconv_open(3) is -1.
        converter = opened == iconv_t(bitPattern: -1) ? nil : opened
    }

    deinit { if let converter { iconv_close(converter) } }

    /// Nil if it is not in this encoding.
    func text(_ bytes: ArraySlice<UInt8>) -> String? {
        guard let converter else { return nil }
        iconv(converter, nil, nil, nil, nil)
        var source = bytes.map { CChar(bitPattern: $0) }
        // A character has at most four bytes in UTF-8.
        var target = [CChar](repeating: 0, count: bytes.count * 4)
        var (left, space) = (source.count, target.count)
        let isRead = source.withUnsafeMutableBufferPointer { source in
            target.withUnsafeMutableBufferPointer { target in
                var (from, to) = (source.baseAddress, target.baseAddress)
                return iconv(converter, &from, &left, &to, &space) != Int.max.magnitude * 2 + 1 && left == 0
            }
        }
        guard isRead else { return nil }
        return String(decoding: target.prefix(target.count - space).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
