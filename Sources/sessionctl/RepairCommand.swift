import ArgumentParser
import FileFormats

/// `sessionctl repair`.
struct RepairCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "repair", abstract: "Make recordings that were cut off ordinary films, in place.",
        discussion: """
            For fragmented MP4, M4A and MOV files, such as recordings of sessiond and of cameras whose program was \
            killed. Sound and pictures are not changed or copied; an incomplete end is cut off. A film that has one \
            index already is not changed. One that is damaged before its end, or that another program writes, is refused. \
            No daemon is needed.
            """)

    @Argument(help: "The films.", completion: .file())
    var files: [String]

    func run() throws {
        var code: Int32 = 0
        for file in files {
            let path = try FileArgument.path(file)
            let shown = path.escaped
            do throws(FilmRepair.Problem) {
                switch try FilmRepair.mend(Array(path.utf8)) {
                case .ordinary: Output.line("\(shown)  has one index already; not changed")
                case .mended(let seconds, let lost):
                    let length = seconds.map { "  \(Wording.tenths($0)) s" } ?? ""
                    let cut = lost > 0 ? "; an incomplete end of \(Wording.bytes(UInt64(lost))) was cut off" : ""
                    Output.line("\(shown)\(length)  repaired\(cut)")
                }
            } catch {
                code = 1
                Output.complain("\(shown) \(error.message)")
            }
        }
        Output.end(code, keeping: ())
    }
}
