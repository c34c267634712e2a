import CCurl
import Glibc

extension HTTPResponse {
    /// Seconds until the server wants to be asked again (`Retry-After`, seconds or a date); nil if it does not say.
    public var retryAfter: Double? { retryAfter(now: time(nil)) }

    func retryAfter(now: time_t) -> Double? {
        guard let text = fields["Retry-After"] else { return nil }
        if let seconds = UInt32(text) { return Double(seconds) }
        let date = curl_getdate(text, nil)
        return date < 0 ? nil : Double(max(0, date - now))
    }
}
