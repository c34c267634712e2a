extension Wording {
    /// "1 file", "2 files".
    static func files(_ count: UInt64) -> String { count == 1 ? "1 file" : "\(count) files" }
}
