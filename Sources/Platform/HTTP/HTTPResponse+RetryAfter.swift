import CCurl
import Glibc

extension HTTPResponse {
    /// The seconds that the server asks the client to wait (`Retry-After`, in seconds or as a date); nil: not given.
    public var retryAfter: Double? { retryAfter(now: time(nil)) }

    func retryAfter(now: time_t) -> Double? {
        guard let text = fields["Retry-After"] else { return nil }
        if let seconds = UInt32(text) { return Double(seconds) }
        let date = curl_getdate(text, nil)
        return date < 0 ? nil : Double(max(0, date - now))
    }
}
