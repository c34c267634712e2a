import DBus
import MediaLibrary
import PluginAPI
import Processes
import SessionBus

/// The database of the library, as clients use it: a call that takes too long ends, and a damaged database is replaced.
final class LibraryDatabase {
    /// The processor time that a call may use for reading, in seconds. Other calls wait meanwhile.
    private static let readTime = 2.0

    private(set) var store: Store
    /// Damage that was found.
    private(set) var findings: [String] = []
    /// Called for each finding.
    var onFinding: (String) -> Void = { _ in }
    /// Commits the changes of a running scan, before a client uses the database.
    var commit: () throws(SQLError) -> Void = {}
    /// Called when a client has changed it.
    var onChanged: () -> Void = {}
    /// Called if the database is damaged, while it is used: it must be opened again later.
    var onDamage: () -> Void = {}

    init() throws(Failure) {
        store = try Self.open()
        findings = store.findings
    }

    private static func open() throws(Failure) -> Store {
        guard let data = UserFolder.data.path else {
            throw .failed("neither XDG_DATA_HOME nor HOME is set: there is no place for the library")
        }
        do throws(SQLError) {
            return try Store(data + "/sessiond")
        } catch {
            throw .failed("the library in \(data)/sessiond cannot be opened: \(error.message)")
        }
    }

    /// Opens it again. A damaged database is renamed, and a new one is created.
    func reopen() throws(Failure) {
        store = try Self.open()
        for finding in store.findings { add(finding) }
    }

    private func add(_ finding: String) {
        findings.append(finding)
        onFinding(finding)
    }

    /// Adds a finding, once. False: it is known.
    func say(_ finding: String) -> Bool {
        guard !findings.contains(finding) else { return false }
        add(finding)
        return true
    }

    /// The error for the client.
    func problem(_ error: SQLError) -> SessionError {
        if error.isFull { return SessionError(.diskFull, "the disk of the library is full: \(store.folder)") }
        if error.isReadOnly {
            return SessionError(
                .resourceNotAvailable, "the library in \(store.folder) cannot be written to: \(error.message)")
        }
        if error.isDamage { onDamage() }
        return SessionError(.resourceNotAvailable, "the database of the library: \(error.message)")
    }

    /// Reads or changes the database for a client.
    func use<Result>(_ body: (Store) throws(SQLError) -> Result) throws(Failure) -> Result {
        do throws(SQLError) {
            return try body(store)
        } catch {
            if error.isTooLong {
                throw .limitsExceeded(
                    "this took longer than \(Int(Self.readTime)) s; ask for fewer items, or with fewer conditions or words"
                )
            }
            throw Failure(problem(error))
        }
    }

    /// Reads for a client. The client gets `LimitsExceeded` if the read takes too long.
    func read<Result>(_ body: (Store) throws(SQLError) -> Result) throws(Failure) -> Result {
        try use { store throws(SQLError) in
            // A read that is ended must not end changes.
            try commit()
            return try store.within(Self.readTime) { () throws(SQLError) in try body(store) }
        }
    }

    /// Changes the database for a client. The change is on the disk when this returns.
    func change<Result>(_ body: (Store) throws(SQLError) -> Result) throws(Failure) -> Result {
        let result = try use { store throws(SQLError) in
            try commit()
            return try body(store)
        }
        onChanged()
        return result
    }
}
