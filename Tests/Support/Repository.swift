public import Foundation

/// The repository's folder, where tests find what is installed from it.
public let repository = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..")
    .standardized
