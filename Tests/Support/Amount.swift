import Foundation

/// The size of a test: short by default, and as long as the promise is if `SESSIOND_TEST_LONG` is set.
public func amount<T>(_ short: T, long: T) -> T {
    ProcessInfo.processInfo.environment["SESSIOND_TEST_LONG"] == nil ? short : long
}
