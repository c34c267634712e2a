/// A timeline as a page of HTML: the picture, and everything that happened in a table. It loads nothing and runs nothing.
public struct TimelinePage: Sendable {
    private let timeline: Timeline
    private let title: String
    private let note: String

    /// - Parameters:
    ///   - title: what the page shows, for people.
    ///   - note: a line at its end, such as the program that wrote it.
    public init(_ timeline: Timeline, title: String, note: String) {
        (self.timeline, self.title, self.note) = (timeline, title, note)
    }

    /// The complete page.
    public var html: String {
        """
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
        <title>\(Markup.escaped(title))</title>
        <style>
        \(TimelinePicture.colours)
        \(TimelinePicture.shapes)
        \(Self.layout)
        </style>
        </head>
        <body>
        <main>
        <h1>\(Markup.escaped(title))</h1>
        <p class="lead">\(Markup.escaped(summary))</p>
        <div class="card picture">
        \(TimelinePicture(timeline, title: title).element)</div>
        \(table)
        <p class="foot">\(Markup.escaped(note))</p>
        </main>
        </body>
        </html>

        """
    }

    private static let layout = """
        * { box-sizing: border-box; }
        body { margin: 0; background: var(--band); color: var(--ink);
          font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
        main { max-width: 1040px; margin: 0 auto; padding: 32px 16px 48px; }
        h1 { margin: 0; font-size: 24px; line-height: 1.25; }
        h2 { margin: 32px 0 10px; font-size: 17px; }
        .lead { margin: 6px 0 20px; color: var(--dim); }
        .card { background: var(--paper); border: 1px solid var(--edge); border-radius: 12px; overflow-x: auto; }
        .picture svg { display: block; width: 100%; min-width: 640px; height: auto; margin-top: -36px; }
        .picture svg svg { margin: 0; min-width: 0; width: auto; }
        table { width: 100%; border-collapse: collapse; }
        td, th { padding: 7px 16px; text-align: left; vertical-align: top; border-top: 1px solid var(--edge); }
        thead th { border-top: 0; color: var(--dim); font-size: 12px; font-weight: 500; }
        td.time { font-variant-numeric: tabular-nums; color: var(--dim); white-space: nowrap; }
        td.who { font-weight: 600; overflow-wrap: anywhere; }
        td.what { width: 55%; overflow-wrap: anywhere; }
        .dot { display: inline-block; width: 9px; height: 9px; margin-right: 9px; border-radius: 50%; }
        .dot-heard { background: var(--heard); } .dot-ducked { background: var(--ducked); }
        .dot-muted { background: var(--muted); } .dot-waiting { background: var(--waiting); }
        .dot-all { border-radius: 1px; background: var(--dim); }
        .foot { color: var(--dim); font-size: 13px; }
        """

    /// How much happened, in one line.
    private var summary: String {
        func count(_ state: Timeline.State, _ word: String) -> String? {
            let number = timeline.rows.reduce(0) { $0 + $1.spans.filter { $0.state == state }.count }
            return number == 0 ? nil : word + (number == 1 ? " once" : " \(number) times")
        }
        let rows = timeline.rows.count
        let parts = [
            "\(timeline.period), \(Timeline.duration(timeline.length))", rows == 1 ? "1 program" : "\(rows) programs",
            count(.ducked, "ducked"), count(.waiting, "waited"),
        ]
        return parts.compactMap(\.self).joined(separator: " · ")
    }

    private var table: String {
        let events = timeline.events
        guard !events.isEmpty else { return "" }
        let lines = events.map { event in
            let length =
                event.state == nil ? "" : Timeline.duration(event.length) + (event.isOpen ? ", to the end" : "")
            let dot = "<span class=\"dot dot-\(event.state?.word ?? "all")\"></span>"
            return "<tr><td class=\"time\">\(timeline.clock(event.time))</td><td class=\"who\">"
                + "\(Markup.escaped(event.name))</td><td class=\"what\">\(dot)\(Markup.escaped(event.text))</td>"
                + "<td class=\"time\">\(length)</td></tr>"
        }
        return """
            <h2>What happened</h2>
            <div class="card"><table>
            <thead><tr><th>Time</th><th>Who</th><th>What</th><th>How long</th></tr></thead>
            <tbody>
            \(lines.joined(separator: "\n"))
            </tbody>
            </table></div>
            """
    }
}
