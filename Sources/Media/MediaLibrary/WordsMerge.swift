/// When the pieces of the full-text index are merged.
///
/// SQLite appends each change to the index as a new piece, also the removal of a row. After a scan that has changed many
/// rows, a search reads all these pieces, and takes several times as long.
struct WordsMerge {
    /// The rows that were added and removed since the last merge.
    var changes = 0
    var isRunning = false

    /// With fewer changes, merging costs more than it saves.
    static let threshold = 1_000
    /// The database pages that one step writes: about ten milliseconds.
    static let pages: Int64 = 100
}

extension Store {
    /// Merges pieces of the full-text index for some milliseconds, if many rows have changed since the last merge. Call it
    /// after a scan until it returns false.
    public func mergeWords() throws(SQLError) -> Bool {
        guard wordsMerge.isRunning || wordsMerge.changes >= WordsMerge.threshold else { return false }
        let before = db.totalChanges
        // A negative number marks all pieces for the merge. https://www.sqlite.org/fts5.html#the_merge_command
        let pages = wordsMerge.isRunning ? WordsMerge.pages : -WordsMerge.pages
        try db.run("INSERT INTO words(words, rank) VALUES('merge', ?)", [.whole(pages)])
        // The command itself counts as one change.
        wordsMerge.isRunning = db.totalChanges - before > 1
        if !wordsMerge.isRunning { wordsMerge.changes = 0 }
        return wordsMerge.isRunning
    }
}
