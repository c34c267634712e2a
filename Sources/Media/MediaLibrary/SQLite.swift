import CSQLite
import Glibc

/// A value of a database.
public enum SQLValue: Sendable, Hashable {
    case null
    case whole(Int64)
    case number(Double)
    case text(String)
    case blob([UInt8])

    init(_ value: UInt64) { self = .whole(Int64(bitPattern: value)) }
    init(_ value: Int) { self = .whole(Int64(value)) }
    init(_ value: Bool) { self = .whole(value ? 1 : 0) }
}

/// The reason why a database operation failed.
public struct SQLError: Error, Sendable, Hashable {
    public let code: Int32
    public let message: String

    /// The file is not a database, or parts of it are missing.
    public var isDamage: Bool { [SQLITE_CORRUPT, SQLITE_NOTADB].contains(code & 0xFF) }
    /// The operation was ended because it exceeded its time limit.
    public var isTooLong: Bool { code & 0xFF == SQLITE_INTERRUPT }
    /// The value does not fit into its column.
    var isOfValue: Bool { [SQLITE_CONSTRAINT, SQLITE_MISMATCH, SQLITE_TOOBIG].contains(code & 0xFF) }
    public var isFull: Bool { code & 0xFF == SQLITE_FULL }
    public var isReadOnly: Bool { [SQLITE_READONLY, SQLITE_CANTOPEN, SQLITE_PERM].contains(code & 0xFF) }
}

/// A connection to an SQLite database, for one thread. Statements are compiled once.
final class SQLite {
    private let raw: OpaquePointer
    private var statements: [String: OpaquePointer] = [:]
    private var transactions = 0
    /// Whether the transaction is one of ``reading(_:)``.
    private var isReading = false
    /// The processor time at which the current read exceeds its limit, in seconds.
    private var end = Double.infinity
    private var rowsRead: UInt64 = 0

    /// Opens the file, and creates it if it does not exist.
    init(_ path: String) throws(SQLError) {
        var raw: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        let code = sqlite3_open_v2(path, &raw, flags, nil)
        guard code == SQLITE_OK, let raw else {
            let error = SQLError(code: code, message: raw.map { String(cString: sqlite3_errmsg($0)) } ?? "no memory")
            sqlite3_close_v2(raw)
            throw error
        }
        self.raw = raw
        sqlite3_busy_timeout(raw, 5_000)
    }

    deinit {
        for statement in statements.values { sqlite3_finalize(statement) }
        sqlite3_close_v2(raw)
    }

    private func check(_ code: Int32) throws(SQLError) {
        guard code == SQLITE_OK else { throw error(code) }
    }

    private func error(_ code: Int32) -> SQLError {
        SQLError(code: code, message: String(cString: sqlite3_errmsg(raw)))
    }

    /// Runs several statements without values. They are not cached.
    func script(_ sql: String) throws(SQLError) { try check(sqlite3_exec(raw, sql, nil, nil, nil)) }

    private func statement(_ sql: String) throws(SQLError) -> OpaquePointer {
        if let known = statements[sql] { return known }
        var made: OpaquePointer?
        try check(sqlite3_prepare_v2(raw, sql, -1, &made, nil))
        guard let made else { throw SQLError(code: SQLITE_MISUSE, message: "no statement: \(sql)") }
        // Clients send many different queries, so idle statements are removed when there are too many.
        if statements.count >= 200 {
            for statement in statements.values where sqlite3_stmt_busy(statement) == 0 { sqlite3_finalize(statement) }
            statements = statements.filter { sqlite3_stmt_busy($0.value) != 0 }
        }
        statements[sql] = made
        return made
    }

    // MARK: Time

    /// Seconds of processor time that this thread has used. Other programs do not change it.
    private static var processorTime: Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// Ends the reads of `body` with an error (``SQLError/isTooLong``) when they have used that many seconds of
    /// processor time. Not to be used in a transaction that changes something: when SQLite ends a change, it rolls back
    /// the transaction.
    func within<Result>(_ seconds: Double, _ body: () throws(SQLError) -> Result) throws(SQLError) -> Result {
        end = Self.processorTime + seconds
        sqlite3_progress_handler(
            raw, 2_000,
            { context in
                guard let context else { return 0 }
                return Unmanaged<SQLite>.fromOpaque(context).takeUnretainedValue().isTooLate ? 1 : 0
            }, Unmanaged.passUnretained(self).toOpaque())
        defer {
            sqlite3_progress_handler(raw, 0, nil, nil)
            end = .infinity
        }
        return try body()
    }

    private var isTooLate: Bool { end.isFinite && Self.processorTime > end }

    /// Checks the time while the rows are handled: every 64 rows, because reading it is a system call.
    private func checkTime() throws(SQLError) {
        rowsRead &+= 1
        guard rowsRead.isMultiple(of: 64), isTooLate else { return }
        throw SQLError(code: SQLITE_INTERRUPT, message: "interrupted")
    }

    private func bind(_ values: [SQLValue], to statement: OpaquePointer) throws(SQLError) {
        for (index, value) in values.enumerated() {
            let place = Int32(index + 1)
            let code: Int32
            switch value {
            case .null: code = sqlite3_bind_null(statement, place)
            case .whole(let number): code = sqlite3_bind_int64(statement, place, number)
            case .number(let number): code = sqlite3_bind_double(statement, place, number)
            case .text(let text):
                code = sqlite3_bind_text(statement, place, text, Int32(text.utf8.count), shim_transient())
            case .blob(let bytes):
                code =
                    bytes.isEmpty
                    ? sqlite3_bind_zeroblob(statement, place, 0)
                    : sqlite3_bind_blob(statement, place, bytes, Int32(bytes.count), shim_transient())
            }
            try check(code)
        }
    }

    /// Calls `body` with each row.
    func rows(_ sql: String, _ values: [SQLValue] = [], _ body: (Row) throws(SQLError) -> Void) throws(SQLError) {
        var statement = try statement(sql)
        // If the same query runs inside itself, it needs a second statement.
        let isNested = sqlite3_stmt_busy(statement) != 0
        if isNested {
            var made: OpaquePointer?
            try check(sqlite3_prepare_v2(raw, sql, -1, &made, nil))
            if let made { statement = made }
        }
        defer { if isNested { sqlite3_finalize(statement) } else { sqlite3_reset(statement) } }
        try bind(values, to: statement)
        while true {
            let code = sqlite3_step(statement)
            if code == SQLITE_DONE { return }
            guard code == SQLITE_ROW else { throw error(code) }
            try checkTime()
            try body(Row(statement: statement))
        }
    }

    func run(_ sql: String, _ values: [SQLValue] = []) throws(SQLError) { try rows(sql, values) { _ in } }

    /// The result of `body` for the first row.
    func first<Result>(
        _ sql: String, _ values: [SQLValue] = [], _ make: (Row) -> Result
    ) throws(SQLError) -> Result? {
        var result: Result?
        try rows(sql, values) { row in if result == nil { result = make(row) } }
        return result
    }

    func all<Result>(
        _ sql: String, _ values: [SQLValue] = [], _ make: (Row) -> Result
    ) throws(SQLError) -> [Result] {
        var result: [Result] = []
        try rows(sql, values) { row in result.append(make(row)) }
        return result
    }

    func number(_ sql: String, _ values: [SQLValue] = []) throws(SQLError) -> Int64? {
        try first(sql, values) { $0.isNull(0) ? nil : $0.whole(0) } ?? nil
    }

    var lastID: Int64 { sqlite3_last_insert_rowid(raw) }
    var changes: Int { Int(sqlite3_changes(raw)) }
    var totalChanges: Int64 { sqlite3_total_changes64(raw) }

    /// Commits everything or nothing.
    func transaction(_ body: () throws(SQLError) -> Void) throws(SQLError) {
        try begin()
        do throws(SQLError) {
            try body()
        } catch {
            rollBack()
            throw error
        }
        try commit()
    }

    func begin() throws(SQLError) {
        if transactions == 0 { try script("BEGIN IMMEDIATE") }
        transactions += 1
    }

    func commit() throws(SQLError) {
        transactions -= 1
        guard transactions == 0 else { return }
        do throws(SQLError) {
            try script("COMMIT")
        } catch {
            try? script("ROLLBACK")
            throw error
        }
    }

    func rollBack() {
        transactions = 0
        try? script("ROLLBACK")
    }

    /// Whether changes are not committed yet.
    var isInTransaction: Bool { transactions > 0 && !isReading }

    /// Locks the file once for all that `body` reads, instead of once for each statement.
    func reading<Result>(_ body: () throws(SQLError) -> Result) throws(SQLError) -> Result {
        guard transactions == 0 else { return try body() }
        try script("BEGIN")
        (transactions, isReading) = (1, true)
        defer {
            (transactions, isReading) = (0, false)
            try? script("COMMIT")
        }
        return try body()
    }

    /// The current row of a statement; valid until the next row.
    struct Row {
        let statement: OpaquePointer

        func isNull(_ column: Int) -> Bool { sqlite3_column_type(statement, Int32(column)) == SQLITE_NULL }
        func whole(_ column: Int) -> Int64 { sqlite3_column_int64(statement, Int32(column)) }
        func unsigned(_ column: Int) -> UInt64 { UInt64(bitPattern: whole(column)) }
        func flag(_ column: Int) -> Bool { whole(column) != 0 }
        func number(_ column: Int) -> Double { sqlite3_column_double(statement, Int32(column)) }

        func text(_ column: Int) -> String {
            guard let bytes = sqlite3_column_text(statement, Int32(column)) else { return "" }
            let count = Int(sqlite3_column_bytes(statement, Int32(column)))
            return String(decoding: UnsafeBufferPointer(start: bytes, count: count), as: UTF8.self)
        }

        func blob(_ column: Int) -> [UInt8] {
            guard let bytes = sqlite3_column_blob(statement, Int32(column)) else { return [] }
            return Array(
                UnsafeRawBufferPointer(start: bytes, count: Int(sqlite3_column_bytes(statement, Int32(column)))))
        }

        func value(_ column: Int) -> SQLValue {
            switch sqlite3_column_type(statement, Int32(column)) {
            case SQLITE_INTEGER: .whole(whole(column))
            case SQLITE_FLOAT: .number(number(column))
            case SQLITE_TEXT: .text(text(column))
            case SQLITE_BLOB: .blob(blob(column))
            default: .null
            }
        }
    }
}
