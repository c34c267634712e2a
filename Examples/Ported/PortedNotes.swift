import AVNames
import Foundation

/// Voice notes from iOS: Sound.swift is the file of the same name in Examples/iOS/VoiceNotes, ported. The window is
/// replaced by words on the standard input: record FILE SECONDS, stop, play FILE, music, quit. Words after the name of the
/// program are one such line. Then the program does not read its standard input, which the picker of `music` needs.
@main
enum PortedNotes {
    @MainActor
    static func main() async throws {
        // The name that the desktop shows. Sound uses this session as the one of the app.
        let session = try await AVAudioSession(name: "Ported notes", category: .playback)
        let sound = Sound()
        for await words in lines(Array(CommandLine.arguments.dropFirst())) {
            do {
                switch (words.first, words.count) {
                case ("record", 3): try sound.record(to: URL(filePath: words[1]), seconds: Double(words[2]) ?? 1)
                case ("stop", 1): sound.stopRecording()
                case ("play", 2): try sound.play(URL(filePath: words[1]))
                case ("music", 1): sound.pickMusic().present()
                case ("quit", 1): return await session.close()
                case _: print("record FILE SECONDS, stop, play FILE, music, quit")
                }
            } catch {
                print(error)
            }
            fflush(nil)
        }
    }

    /// The lines of the standard input, as words, or the only line that is given. A thread waits for them.
    private static func lines(_ given: [String]) -> AsyncStream<[String]> {
        AsyncStream { continuation in
            Thread.detachNewThread {
                if !given.isEmpty {
                    continuation.yield(given)
                    // Until a signal ends the program.
                    while true { pause() }
                }
                // Not readLine: while it waits, nobody can flush all files.
                var rest = ""
                while case let data = FileHandle.standardInput.availableData, !data.isEmpty {
                    rest += String(decoding: data, as: UTF8.self)
                    while let end = rest.firstIndex(of: "\n") {
                        continuation.yield(rest[..<end].split(separator: " ").map(String.init))
                        rest.removeSubrange(...end)
                    }
                }
                continuation.finish()
            }
        }
    }
}
