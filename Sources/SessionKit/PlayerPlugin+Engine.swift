import DBus
import PluginAPI

// Events of the engine, and what happens next.

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
        changing {
            order(sound: false)
            // The next Play starts the whole queue again.
            guard queue.items.count > 1 else { return }
            queue.rewind()
            open(sounding: false)
        }
        emit("Finished", [.bool(success)])
        giveBack(notifyOthers: true)
        onFinished?(success)
    }

    /// The engine continued with the next item, without a gap.
    func advanced() {
        changing {
            emitItemFinished()
            let played = queue.following?.entry.uri
            if played == engine.uri, queue.goNext() { (tags, artURI) = (MediaTags(), "") }
        }
    }

    func failed(_ reason: String) {
        let message = FileURI.withoutUser(reason)
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
        changing {
            order(sound: false)
            interruption = nil
        }
        emit("Failed", [.string(message)])
        giveBack(notifyOthers: true)
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
