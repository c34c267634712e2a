import DBus
import MediaValues
import PluginAPI
import SessionKit

// Events of the engine and their consequences.

extension PlayerPlugin {
    func finished(_ success: Bool) {
        let goesOn = changing {
            emitItemFinished()
            let sounding = sounds
            guard queue.goNext() else { return false }
            open(sounding: sounding)
            return true
        }
        if goesOn { return }
        let effects = changing { () -> [Grant.Effect] in
            let effects = driver.decide(.finished)
            // The next Play starts the whole queue again.
            guard queue.count > 1 else { return effects }
            queue.rewind()
            open(sounding: false)
            return effects
        }
        emit("Finished", [.bool(success)])
        driver.carry(out: effects)
        onFinished?(success)
    }

    /// The engine continued with the next item, without a gap.
    func advanced() {
        changing {
            // Its times are those of the item before.
            seeking = nil
            emitItemFinished()
            let played = queue.following?.entry.uri
            if played == engine.uri, queue.goNext() { (tags, artURI) = (MediaTags(), "") }
        }
    }

    func failed(_ reason: String) {
        let message = FileURI.withoutSecrets(reason)
        let goesOn = changing {
            failure = message
            guard let item = queue.current else { return false }
            queue.markFailed(item.id)
            guard queue.goNext() else { return false }
            emit("ItemFailed", [.objectPath(trackPath(item.id)), .string(message)])
            open(sounding: sounds)
            return true
        }
        if goesOn { return }
        let effects = changing { driver.decide(.finished) }
        emit("Failed", [.string(message)])
        driver.carry(out: effects)
        onFailed?(message)
    }

    /// The current item is a playlist: its entries replace it.
    func opened(_ entries: [PlaylistEntry]) {
        changing {
            guard let list = queue.current else { return }
            guard list.depth < PlayerPlugin.depthLimit else {
                isListFailed = true
                return failed("'\(list.entry.uri)' cannot be played: playlists are nested too deeply")
            }
            _ = queue.replace(list.id, with: entries, nested: true)
            open(sounding: sounds)
        }
    }

    /// The limit for nested playlists; real ones have at most two levels.
    private static let depthLimit = 4
}
