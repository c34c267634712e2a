import PluginKit

// The plugins of this package in one executable, which is installed under the name of each of them (hard links).

PluginProgram.main([
    (.player, servePlayer),
    (.recorder, serveRecorder),
    (.soundEffects, serveSoundEffects),
])
