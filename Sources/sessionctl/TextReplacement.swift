extension String {
    /// The text with `new` in the place of the first `old`; unchanged if it does not contain that.
    ///
    /// Without Foundation, the standard library does this only with its library for regular expressions.
    func replacing(first old: String, with new: String) -> String {
        guard let place = firstRange(of: old) else { return self }
        return String(self[..<place.lowerBound]) + new + String(self[place.upperBound...])
    }

    private func firstRange(of part: String) -> Range<String.Index>? {
        let (bytes, wanted) = (Array(utf8), Array(part.utf8))
        guard wanted.count <= bytes.count else { return nil }
        return (0...(bytes.count - wanted.count)).first { bytes[$0..<($0 + wanted.count)].elementsEqual(wanted) }
            .map { utf8.index(startIndex, offsetBy: $0)..<utf8.index(startIndex, offsetBy: $0 + wanted.count) }
    }
}
