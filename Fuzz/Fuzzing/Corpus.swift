public import Foundation

/// The initial inputs: the files in the decoder's folder, sorted by name.
public func corpus(of decoder: Decoder, in folder: URL) throws -> [[UInt8]] {
    try FileManager.default.contentsOfDirectory(
        at: folder.appendingPathComponent(decoder.rawValue), includingPropertiesForKeys: nil
    )
    .sorted { $0.lastPathComponent < $1.lastPathComponent }
    .map { [UInt8](try Data(contentsOf: $0)) }
}
