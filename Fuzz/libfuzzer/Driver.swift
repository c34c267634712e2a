import Fuzzing
import Glibc

// libFuzzer's own main cannot be used, because Swift programs have theirs. Only `Scripts/fuzz decoders` builds this.
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<Int32>,
    _ words: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ test: @convention(c) (UnsafePointer<UInt8>?, Int) -> Int32
) -> Int32

/// SESSIOND_DECODER names the decoder. The arguments are those of libFuzzer.
@main
enum Driver {
    private static let decoder = getenv("SESSIOND_DECODER").flatMap { Decoder(rawValue: String(cString: $0)) }

    static func main() {
        guard decoder != nil else {
            let complaint = "SESSIOND_DECODER must be one of \(Decoder.allCases.map(\.rawValue))\n"
            _ = write(STDERR_FILENO, complaint, complaint.utf8.count)
            exit(64)
        }
        var count = CommandLine.argc
        var words = CommandLine.unsafeArgv
        exit(
            runDriver(&count, &words) { bytes, count in
                Driver.decoder?.decode(Array(UnsafeBufferPointer(start: bytes, count: count)))
                return 0
            })
    }
}
