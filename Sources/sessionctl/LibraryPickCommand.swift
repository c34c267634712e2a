import ArgumentParser
import DBus
import EventLoop
import Glibc
import PluginAPI
import SessionBus

/// `sessionctl library pick`.
struct LibraryPickCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pick", abstract: "Let the user pick items on the terminal, and print their URIs.",
        usage: "sessionctl library pick [<options>]",
        discussion: """
            Type to filter; up, down, page up and page down move; tab marks an item (with --several); enter picks; escape \
            or ctrl-C cancels, with the exit code 1 or 130. The list is drawn on the terminal even if the standard output \
            is not a terminal: sessionctl play $(sessionctl library pick). If the library ends, the command is cancelled.
            """)

    @Flag(help: "Allow picking several items.")
    var several = false
    @Option(help: "The text above the list.")
    var prompt: String?
    @Option(help: "Only of these types, separated by commas: music, podcast, audiobook; default: all.")
    var mediaType: String?
    @OptionGroup var filter: LibraryFilter
    @OptionGroup var output: OutputOptions
    @OptionGroup var bus: BusOptions

    func run() throws {
        let terminal = open("/dev/tty", O_RDWR | O_CLOEXEC)
        guard terminal >= 0, Terminal(terminal).canRedraw, RawMode.isPossible(on: terminal) else {
            throw Complaint.refused(
                "'library pick' needs a terminal on which it can move the cursor; use 'library songs' or 'library search'"
            )
        }
        let place = try LibraryPlace(bus)
        var query = try filter.query(place).filter { $0.0 != "text" }
        if let mediaType {
            query.append(("media-types", .strings(mediaType.split(separator: ",").map(String.init))))
        }
        let list = PickList(picksSeveral: several, filter: filter.text ?? "")
        let fields =
            output.json ? LibraryListCommand.allFields : ["id", "uri", "title", "artist", "album", "duration"]
        let prompt = prompt ?? (several ? "Pick items" : "Pick an item")
        let picker = TerminalPicker(
            list, prompt: prompt.escaped, PickerSource(query, fields: fields, in: place), terminal: terminal)
        let rows = try picker.run()
        if output.json {
            let items = rows.map { row in Value.properties(fields.compactMap { key in row[key].map { (key, $0) } }) }
            Output.line(
                JSON.object(
                    .items, [("Count", .uint32(UInt32(rows.count))), ("Items", .array(of: "a{sv}", items))]))
        } else {
            for row in rows { Output.line((row["uri"]?.stringValue ?? "").escaped) }
        }
        Output.end(0, keeping: picker)
    }
}

/// The items of the library that match a query and a filter, page by page. Answers to older filters are ignored.
final class PickerSource {
    let place: LibraryPlace
    private let query: [(String, Value)]
    private let fields: [String]
    private var generation = 0
    private var isNew = true
    private var asked: Set<Int> = []
    private var subscription: Subscription?
    /// Called with the number of items, a page of them, and whether it replaces all other pages.
    var onAnswer: (_ count: Int, _ page: Int, _ rows: [PickList.Row], _ isNew: Bool) -> Void = { _, _, _, _ in }
    var onFailure: (Failure) -> Void = { _ in }
    var onChanged: () -> Void = {}

    init(_ query: [(String, Value)], fields: [String], in place: LibraryPlace) {
        (self.query, self.fields, self.place) = (query, fields, place)
        subscription = place.service.connection.subscribe(
            path: place.kind.objectPath, interface: place.kind.interface, member: "Changed", sender: place.place
        ) { [unowned self] _ in onChanged() }
    }

    /// Starts with a new filter.
    func begin(filter: String) {
        generation += 1
        isNew = true
        asked = []
        ask(filter: filter, page: 0)
    }

    func ask(filter: String, page: Int) {
        guard asked.insert(page).inserted else { return }
        let mine = generation
        let text: [(String, Value)] = filter.allSatisfy(\.isWhitespace) ? [] : [("text", .string(filter))]
        place.service.connection.call(
            place.place, place.kind.objectPath, place.kind.interface, "Items",
            [
                .properties(query + text), .uint32(UInt32(page * PickList.pageSize)),
                .uint32(UInt32(PickList.pageSize)), .strings(fields),
            ], timeout: PluginPlace.patience
        ) { [weak self] answer in
            guard let self, mine == generation else { return }
            switch answer {
            case .failure(let failure): onFailure(failure)
            case .success(let values):
                let rows = values.count == 2 ? (values[1].arrayValue ?? []).compactMap(\.asProperties) : []
                defer { isNew = false }
                onAnswer(Int(values.first?.uint32Value ?? 0), page, rows, isNew)
            }
        }
    }
}

/// A list on a terminal from which the user picks.
final class TerminalPicker {
    private static let (enter, leave): (StaticString, StaticString) = ("\u{1B}[?1049h", "\u{1B}[?25h\u{1B}[?1049l")
    private var list: PickList
    private let prompt: String
    private let source: PickerSource
    private let descriptor: Int32
    private let terminal: Terminal
    private let loop: EventLoop
    private var keyboard: Keyboard?
    private var signals: [SignalWatch] = []
    private var gone: Subscription?
    private var complaint: Complaint?
    private var isLoading = true
    /// Enter was pressed before the answer to the filter arrived.
    private var isEntered = false

    init(_ list: PickList, prompt: String, _ source: PickerSource, terminal descriptor: Int32) {
        (self.list, self.prompt, self.source, self.descriptor) = (list, prompt, source, descriptor)
        terminal = Terminal(descriptor)
        loop = source.place.service.loop
    }

    deinit { close(descriptor) }

    /// The picked items.
    /// - Throws: the reason, also if it was cancelled.
    func run() throws -> [PickList.Row] {
        let place = source.place
        source.onAnswer = { [unowned self] count, page, rows, isNew in
            list.learn(count, page: page, rows, isNew: isNew)
            isLoading = false
            draw()
            if isEntered, !list.picked.isEmpty { end(nil) }
            isEntered = false
        }
        source.onFailure = { [unowned self] in end(Complaint($0)) }
        source.onChanged = { [unowned self] in source.begin(filter: list.filter) }
        gone = place.service.connection.watchName(place.place) { [unowned self] in
            end(Complaint.refused("cancelled: the music library has ended"))
        }
        place.service.connection.onDisconnect = { [unowned self] in
            end(Complaint.unreachable("cancelled: the bus connection was lost"))
        }
        signals = [SIGINT, SIGTERM, SIGHUP, SIGQUIT].map { number in
            loop.watch(signal: number) { [unowned self] in end(Complaint(code: 128 + number, message: "")) }
        }
        signals.append(loop.watch(signal: SIGTSTP) { [unowned self] in suspend() })
        signals.append(loop.watch(signal: SIGWINCH) { [unowned self] in draw() })
        RawMode.farewell = Self.leave
        keyboard = Keyboard(
            loop, descriptor: descriptor, onGone: { [unowned self] in end(Complaint(code: 129, message: "")) },
            { [unowned self] in pressed($0) })
        put(Self.enter.description)
        source.begin(filter: list.filter)
        draw()
        _ = loop.run()
        keyboard = nil
        RawMode.restore()
        if let complaint {
            if !complaint.message.isEmpty { Output.complain(complaint.message) }
            Output.end(complaint.code, keeping: self)
        }
        return list.picked
    }

    private func end(_ complaint: Complaint?) {
        self.complaint = complaint
        loop.quit(0)
    }

    private func pressed(_ key: Keyboard.Key) {
        // The list still shows the items of the previous filter, so its first item is not the one that the user means.
        isEntered = isLoading && key == .editing(.enter)
        if isEntered { return }
        switch list.press(key, height: height) {
        case .nothing: return
        case .shown: break
        case .filtered:
            isLoading = true
            source.begin(filter: list.filter)
        case .picked: return end(nil)
        case .cancelled: return end(Complaint(code: 1, message: ""))
        }
        draw()
    }

    /// Ctrl-Z: restores the terminal until the process is continued.
    private func suspend() {
        RawMode.restore()
        kill(getpid(), SIGSTOP)
        RawMode.enter(on: descriptor)
        put(Self.enter.description)
        draw()
    }

    // MARK: Drawing

    private var size: (columns: Int, rows: Int) { terminal.size ?? (80, 24) }
    /// The number of rows of the list, without the prompt, the filter and the help.
    private var height: Int { max(1, size.rows - 3) }

    private func put(_ text: String) { _ = Output.put(Terminal.isUnicode ? text : text.inASCII, on: descriptor) }

    private func draw() {
        list.scroll(height: height)
        if let page = list.missingPage(height: height) { source.ask(filter: list.filter, page: page) }
        // The last column stays free: a terminal may break the line there.
        let width = max(1, size.columns - 1)
        let counted = isLoading ? "…" : "\(list.count)" + (list.marked.isEmpty ? "" : ", \(list.marked.count) marked")
        let typed = "> " + list.filter
        let room = width - counted.columns - 2
        // Of a long filter, the end is shown, where the user types.
        let shown = typed.columns <= room ? typed : "…" + String(typed.suffix(max(0, room - 1)))
        var lines = [
            terminal.styled(prompt.truncated(to: width), .strong),
            shown.padded(to: max(0, width - counted.columns)) + terminal.styled(counted, .dim),
        ]
        for row in list.top..<list.top + height {
            lines.append(row < list.count ? line(row, width) : "")
        }
        if list.count == 0, !isLoading { lines[2] = terminal.styled("Nothing found.".truncated(to: width), .dim) }
        let help = "type to filter · ↑/↓ · " + (list.picksSeveral ? "tab marks · " : "") + "enter picks · esc cancels"
        lines.append(terminal.styled(help.truncated(to: width), .dim))
        // The cursor is at the end of the filter.
        put(
            "\u{1B}[?25l\u{1B}[H" + lines.map { $0 + "\u{1B}[K" }.joined(separator: "\r\n")
                + "\u{1B}[J\u{1B}[2;\(min(width, shown.columns) + 1)H\u{1B}[?25h")
    }

    private func line(_ number: Int, _ width: Int) -> String {
        let isCurrent = number == list.cursor
        guard let row = list[number] else { return isCurrent ? "▸" : "" }
        let mark = (isCurrent ? "▸" : " ") + (list.isMarked(row) ? "* " : "  ")
        let time = Wording.clock(row["duration"]?.doubleValue ?? 0)
        let room = max(0, width - mark.columns - time.columns - 1)
        func text(_ key: String) -> String { (row[key]?.stringValue ?? "").escaped }
        let title = text("title").truncated(to: room)
        let from = [text("artist"), text("album")].filter { !$0.isEmpty }.joined(separator: " – ")
        let rest = max(0, room - title.columns - 2)
        let tail = rest > 4 && !from.isEmpty ? "  " + from.truncated(to: rest) : ""
        let gap = String(repeating: " ", count: max(0, room - title.columns - tail.columns) + 1)
        return mark + terminal.styled(title, isCurrent ? .strong : .plain) + terminal.styled(tail, .dim) + gap + time
    }
}
