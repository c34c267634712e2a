import Glibc

/// The tracks that an MPEG transport stream names in the tables (PAT and PMT) at its start, also in an M2TS file of a camera.
package struct TransportStream: Equatable {
    /// What a track contains.
    package enum Kind: Equatable {
        case video, audio, subtitle
        /// Data for programs, such as the times of advertisements.
        case data
    }

    /// A track, as the table of its program names it.
    package struct Track: Equatable {
        /// The number of its packets.
        package let id: Int
        package let program: Int
        package let kind: Kind
        /// A short name, such as `aac`; `unknown` if the table does not say it.
        package let codec: String
    }

    /// In the order of the tables.
    package private(set) var tracks: [Track] = []

    /// The part of the file that is searched for the tables.
    private static let searched = 1 << 20

    /// Nil if it is not such a file.
    package init?(_ path: [UInt8]) {
        let file = open(path.map { CChar(bitPattern: $0) } + [0], O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else { return nil }
        defer { close(file) }
        guard Self.layout(FileContent.bytes(of: file, at: 0, count: 1_024)) != nil else { return nil }
        self.init(start: FileContent.bytes(of: file, at: 0, count: Self.searched))
    }

    /// - Parameter start: the start of the file.
    package init?(start bytes: [UInt8]) {
        guard let (first, length) = Self.layout(bytes) else { return nil }
        var tables: [Int: [UInt8]] = [:]
        var programs: [Int: Int] = [:]
        var named: [(track: Entry, program: Int)] = []
        var starts: [Int: ArraySlice<UInt8>] = [:]
        var known: Set<Int> = []
        for place in stride(from: first, through: bytes.count - 188, by: length) {
            guard let packet = Packet(bytes[place..<place + 188]) else { continue }
            if packet.id == 0 || programs[packet.id] != nil {
                guard let table = Self.table(packet, &tables[packet.id, default: []]) else { continue }
                if packet.id == 0 {
                    for (number, id) in Self.programs(in: table) { programs[id] = number }
                } else if let number = programs[packet.id], known.insert(packet.id).inserted {
                    named += Self.entries(in: table).map { ($0, number) }
                }
            } else if packet.isStart, starts[packet.id] == nil {
                starts[packet.id] = packet.content
            }
        }
        tracks = named.map { entry, program in
            let (kind, codec) = entry.described(start: starts[entry.id] ?? [])
            return Track(id: entry.id, program: program, kind: kind, codec: codec)
        }
    }

    /// The position of the first packet, and the distance of two packets: 188, or more with a time before or a checksum behind
    /// each of them.
    private static func layout(_ bytes: [UInt8]) -> (first: Int, length: Int)? {
        for (first, length) in [(0, 188), (4, 192), (0, 204)] {
            let places = (0..<4).map { first + $0 * length }.filter { $0 < bytes.count }
            if places.count > 1, places.allSatisfy({ bytes[$0] == 0x47 }) { return (first, length) }
        }
        return nil
    }

    private struct Packet {
        let id: Int
        /// Whether a table or a frame begins in it.
        let isStart: Bool
        let content: ArraySlice<UInt8>

        init?(_ bytes: ArraySlice<UInt8>) {
            let begin = bytes.startIndex
            guard bytes[begin] == 0x47, bytes[begin + 3] & 0x10 != 0 else { return nil }
            id = Int(bytes[begin + 1] & 0x1F) << 8 | Int(bytes[begin + 2])
            isStart = bytes[begin + 1] & 0x40 != 0
            let extra = bytes[begin + 3] & 0x20 != 0 ? 1 + Int(bytes[begin + 4]) : 0
            content = bytes.dropFirst(4 + extra)
        }
    }

    /// A whole table without its checksum, when its last packet is there.
    private static func table(_ packet: Packet, _ gathered: inout [UInt8]) -> ArraySlice<UInt8>? {
        if packet.isStart {
            gathered = Array(packet.content.dropFirst(1 + Int(packet.content.first ?? 0)))
        } else if !gathered.isEmpty {
            gathered += packet.content
        }
        guard gathered.count > 8 else { return nil }
        let end = 3 + MovieIndex.number(gathered[...], 1, 2) & 0xFFF
        guard end >= 12, end <= gathered.count, gathered[0] == 0 || gathered[0] == 2 else { return nil }
        defer { gathered = [] }
        return gathered[..<(end - 4)]
    }

    private static func programs(in table: ArraySlice<UInt8>) -> [(number: Int, id: Int)] {
        stride(from: 8, through: table.count - 4, by: 4).compactMap { place in
            let number = MovieIndex.number(table, place, 2)
            return number == 0 ? nil : (number, MovieIndex.number(table, place + 2, 2) & 0x1FFF)
        }
    }

    private static func entries(in table: ArraySlice<UInt8>) -> [Entry] {
        guard table.count >= 12 else { return [] }
        let own = MovieIndex.number(table, 10, 2) & 0xFFF
        let isDisc = names(in: table.dropFirst(12).prefix(own)).contains("HDMV")
        var entries: [Entry] = []
        var place = 12 + own
        while place + 5 <= table.count {
            let count = MovieIndex.number(table, place + 3, 2) & 0xFFF
            entries.append(
                Entry(
                    id: MovieIndex.number(table, place + 1, 2) & 0x1FFF, type: MovieIndex.number(table, place, 1),
                    isDisc: isDisc, descriptors: table.dropFirst(place + 5).prefix(count)))
            place += 5 + count
        }
        return entries
    }

    /// The registered names in a list of descriptors.
    private static func names(in descriptors: ArraySlice<UInt8>) -> [String] {
        each(descriptors).filter { $0.tag == 5 }.map { String(decoding: $0.content.prefix(4), as: UTF8.self) }
    }

    private static func each(_ descriptors: ArraySlice<UInt8>) -> [(tag: UInt8, content: ArraySlice<UInt8>)] {
        var found: [(tag: UInt8, content: ArraySlice<UInt8>)] = []
        var rest = descriptors
        while rest.count >= 2, let tag = rest.first {
            let count = Int(rest[rest.startIndex + 1])
            found.append((tag, rest.dropFirst(2).prefix(count)))
            rest = rest.dropFirst(2 + count)
        }
        return found
    }

    /// A line of the table of a program.
    private struct Entry {
        let id: Int
        let type: Int
        /// Whether the types are those of a Blu-ray disc.
        let isDisc: Bool
        let descriptors: ArraySlice<UInt8>

        private static let types: [Int: (Kind, String)] = [
            0x01: (.video, "mpeg1"), 0x02: (.video, "mpeg2"), 0x03: (.audio, "mp3"), 0x04: (.audio, "mp3"),
            0x0F: (.audio, "aac"), 0x10: (.video, "mpeg4"), 0x11: (.audio, "aac"), 0x1B: (.video, "h264"),
            0x1C: (.audio, "aac"), 0x20: (.video, "h264"), 0x21: (.video, "jpeg2000"), 0x24: (.video, "h265"),
            0x2D: (.audio, "mpegh"), 0x2E: (.audio, "mpegh"), 0x33: (.video, "h266"), 0x42: (.video, "avs"),
            0x81: (.audio, "ac3"), 0x87: (.audio, "eac3"), 0xD1: (.video, "dirac"), 0xD2: (.video, "avs2"),
            0xD4: (.video, "avs3"), 0xEA: (.video, "vc1"),
        ]
        private static let discTypes: [Int: (Kind, String)] = [
            0x80: (.audio, "lpcm"), 0x82: (.audio, "dts"), 0x83: (.audio, "truehd"), 0x84: (.audio, "eac3"),
            0x85: (.audio, "dts"), 0x86: (.audio, "dts"), 0xA1: (.audio, "eac3"), 0xA2: (.audio, "dts"),
            0x90: (.subtitle, "pgs"), 0x92: (.subtitle, "text"),
        ]
        /// Descriptors of DVB.
        private static let tags: [UInt8: (Kind, String)] = [
            0x46: (.subtitle, "teletext"), 0x56: (.subtitle, "teletext"), 0x59: (.subtitle, "dvb"),
            0x6A: (.audio, "ac3"), 0x7A: (.audio, "eac3"), 0x7B: (.audio, "dts"), 0x7C: (.audio, "aac"),
        ]
        private static let registered: [String: (Kind, String)] = [
            "AC-3": (.audio, "ac3"), "EAC3": (.audio, "eac3"), "BSSD": (.audio, "s302m"), "Opus": (.audio, "opus"),
            "DTS1": (.audio, "dts"), "DTS2": (.audio, "dts"), "DTS3": (.audio, "dts"), "AC-4": (.audio, "ac4"),
            "HEVC": (.video, "h265"), "AV01": (.video, "av1"), "VC-1": (.video, "vc1"), "drac": (.video, "dirac"),
            "KLVA": (.data, "klv"), "ID3 ": (.data, "id3"), "CUEI": (.data, "scte35"),
        ]

        /// - Parameter start: the start of the first frame; empty: not found.
        func described(start: ArraySlice<UInt8>) -> (Kind, String) {
            if isDisc, let known = Self.discTypes[type] { return known }
            if let known = Self.types[type] { return known }
            guard type == 6 else { return (.data, "unknown") }
            for descriptor in TransportStream.each(descriptors) {
                if let known = Self.tags[descriptor.tag] { return known }
            }
            for name in TransportStream.names(in: descriptors) {
                if let known = Self.registered[name] { return known }
            }
            return Self.guessed(start)
        }

        /// What a frame of a track shows of which the table says nothing.
        private static func guessed(_ start: ArraySlice<UInt8>) -> (Kind, String) {
            guard start.starts(with: [0, 0, 1]), start.count > 8 else { return (.data, "unknown") }
            let sound = start.dropFirst(9 + Int(start[start.startIndex + 8])).prefix(2)
            if sound.elementsEqual([0x0B, 0x77]) { return (.audio, "ac3") }
            let isADTS = sound.first == 0xFF && (sound.last ?? 0) & 0xF6 == 0xF0
            switch start[start.startIndex + 3] {
            case 0xC0...0xDF: return (.audio, isADTS ? "aac" : "unknown")
            case 0xE0...0xEF: return (.video, "unknown")
            default: return isADTS ? (.audio, "aac") : (.data, "unknown")
            }
        }
    }
}
