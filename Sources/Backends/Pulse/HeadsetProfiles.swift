/// Which headsets were switched to hands-free for a session, and their profiles before that.
///
/// A headset that is hands-free already, because of its user or another program, is not switched, and so not switched
/// back.
struct HeadsetProfiles {
    /// A connected headset.
    struct Headset {
        let card: String
        /// The profile that it has, or will have if the server obeys.
        let profile: String
        /// Whether the server does not show a requested profile or its devices yet.
        let isChanging: Bool
        /// The names of all its profiles.
        let profiles: Set<String>
        /// Its best profiles for music and for calls; nil: there is none.
        let musicProfile: String?
        let handsFreeProfile: String?

        var isHandsFree: Bool { Bluetooth.isHandsFree(profile) }
        /// The server is setting it up, or the user has disabled it.
        var isOff: Bool { profile == "off" }
    }

    /// The profiles before, by card, until the server shows another profile than a hands-free one. A card that is not
    /// connected stays here: it may come back as it was.
    private(set) var former: [String: String]
    /// The card of the headset that a session uses.
    private var talking: String?
    /// Until when its hands-free profile is requested once more if the server takes it away; nil: it is not.
    private var insistsUntil: UInt64?
    /// The cards whose former profile was requested. If the server refuses that, it is not asked again by itself.
    private var returning: Set<String> = []

    init(_ former: [String: String] = [:]) { self.former = former }

    /// The profiles to request, in order, so that the headset with that card is hands-free, and no other that was
    /// switched; nil: no headset is needed.
    mutating func use(_ card: String?, of headsets: [Headset], at now: UInt64) -> [(card: String, profile: String)] {
        if card != talking { insistsUntil = card == nil ? nil : now &+ HeadsetProfiles.restoreTime }
        talking = card
        forgetChanged(of: headsets)
        var requests: [(card: String, profile: String)] = []
        for headset in headsets where headset.card != card && headset.isHandsFree {
            guard let before = former[headset.card], returning.insert(headset.card).inserted else { continue }
            let isThere = headset.profiles.contains(before)
            requests.append((headset.card, isThere ? before : headset.musicProfile ?? before))
        }
        if let headset = headsets.first(where: { $0.card == card }) {
            returning.remove(headset.card)
            if !headset.isHandsFree, let profile = headset.handsFreeProfile {
                if !headset.isOff || former[headset.card] == nil { former[headset.card] = headset.profile }
                requests.append((headset.card, profile))
            }
        }
        return requests
    }

    /// Microseconds after the end of a recording in which WirePlumber may restore the profile that was there before that
    /// recording. It does so after two seconds, even if a session needs the profile for calls by then.
    static let restoreTime: UInt64 = 3_000_000

    /// A recording from the headset with that card has ended, or was paused.
    mutating func recordingEnded(on card: String, at now: UInt64) {
        if card == talking { insistsUntil = now &+ HeadsetProfiles.restoreTime }
    }

    /// The profile to request once more for the headset in use, because the server has taken it away after the end of a
    /// recording; nil: none.
    mutating func insist(of headsets: [Headset], at now: UInt64) -> (card: String, profile: String)? {
        guard let end = insistsUntil, now < end, let headset = headsets.first(where: { $0.card == talking }),
            !headset.isHandsFree, !headset.isChanging, !headset.isOff, let profile = headset.handsFreeProfile
        else { return nil }
        insistsUntil = nil
        former[headset.card] = former[headset.card] ?? headset.profile
        return (headset.card, profile)
    }

    /// The card of a switched headset that is hands-free, and was not switched back; nil: there is none.
    func switched(of headsets: [Headset]) -> String? {
        headsets.first { former[$0.card] != nil && !returning.contains($0.card) && $0.isHandsFree }?.card
    }

    /// Forgets the headsets that have another profile by now, except for the one in use, whose change may be in progress,
    /// and for those that are off: the server may still be setting them up.
    mutating func forgetChanged(of headsets: [Headset]) {
        for headset in headsets
        where headset.card != talking && !headset.isHandsFree && !headset.isChanging && !headset.isOff {
            former[headset.card] = nil
            returning.remove(headset.card)
        }
    }
}
