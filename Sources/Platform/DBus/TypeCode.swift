/// The type codes of the wire (`DBUS_TYPE_*`, which are cast macros in C).
enum TypeCode {
    static let invalid: UInt8 = 0
    static let byte = UInt8(ascii: "y")
    static let bool = UInt8(ascii: "b")
    static let int16 = UInt8(ascii: "n")
    static let uint16 = UInt8(ascii: "q")
    static let int32 = UInt8(ascii: "i")
    static let uint32 = UInt8(ascii: "u")
    static let int64 = UInt8(ascii: "x")
    static let uint64 = UInt8(ascii: "t")
    static let double = UInt8(ascii: "d")
    static let string = UInt8(ascii: "s")
    static let objectPath = UInt8(ascii: "o")
    static let signature = UInt8(ascii: "g")
    static let fileDescriptor = UInt8(ascii: "h")
    static let array = UInt8(ascii: "a")
    static let variant = UInt8(ascii: "v")
    /// libdbus's codes of a structure and a dictionary entry; signatures have brackets instead.
    static let structure = UInt8(ascii: "r")
    static let dictionaryEntry = UInt8(ascii: "e")
    static let structureBegin = UInt8(ascii: "(")
    static let structureEnd = UInt8(ascii: ")")
    static let entryBegin = UInt8(ascii: "{")
    static let entryEnd = UInt8(ascii: "}")

    static func isBasic(_ code: UInt8) -> Bool {
        switch code {
        case byte, bool, int16, uint16, int32, uint32, int64, uint64, double, string, objectPath, signature,
            fileDescriptor:
            true
        default: false
        }
    }
}
