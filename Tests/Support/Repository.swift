public import Foundation

/// The folder of the repository, in which tests find the files that are installed.
public let repository = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..")
    .standardized
