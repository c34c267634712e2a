import Foundation
import TagFormats
import TestSupport
import Testing

/// What of a file is the same after a change of its tags.
@Suite struct SoundSampleTests {
    @Test func changedTags_leaveTheSoundAsItIs() throws {
        let folder = try PrivateFolder()
        let script = repository.path + "/Tests/Support/RetaggedFiles.py"
        let child = try Child("/usr/bin/python3", [script, folder.path])
        #expect(child.wait(timeout: 300) == .code(0), "\(child.errors)")
        var samples: [String: [String: [SoundSample]]] = [:]
        for file in child.output {
            let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: folder.path + "/" + file)))
            let sample = try #require(SoundSample(SoundSource(bytes)), "\(file)")
            // Also if only the ends of the file are in memory.
            let part = SoundSource(
                size: UInt64(bytes.count), head: Array(bytes.prefix(64)), tail: Array(bytes.suffix(130))
            ) { place, count in Array(bytes[Int(place)..<min(bytes.count, Int(place) + count)]) }
            #expect(SoundSample(part) == sample, "\(file)")
            let parts = file.split(separator: "/")
            let sound = String(parts[1].prefix(1))
            if let first = samples[String(parts[0])]?[sound]?.first {
                #expect(sample == first, "\(file): \(sample.length), not \(first.length)")
            }
            samples[String(parts[0]), default: [:]][sound, default: []].append(sample)
        }
        #expect(samples.count >= 19)
        for (format, sounds) in samples {
            #expect(sounds.count == 2 && sounds["a"]?.first != sounds["b"]?.first, "\(format)")
            #expect(sounds.values.allSatisfy { $0.count >= 2 }, "\(format)")
        }
    }

    @Test(arguments: ["", "Only text, and no sound.", "OggS", "fLaC", "RIFF\0\0\0\0WAVE", "ID3"])
    func whatIsNoMusic_hasNoSound(_ text: String) {
        #expect(SoundSample(SoundSource(Array(text.utf8))) == nil)
    }
}
