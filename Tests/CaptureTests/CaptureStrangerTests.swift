import DBus
import PluginAPI
import SessionBus
import TestSupport
import Testing

/// Another program on the bus, while one records a film.
@Suite(.timeLimit(.minutes(2))) struct CaptureStrangerTests {
    @Test func stranger_neitherEndsAFilm_norChangesIt() throws {
        let stage = try CaptureStage()
        let record = try stage.sessionctl("camera", "record", "--duration", "3", stage.path("film.mp4"))
        #expect(record.line { $0.hasPrefix("recording") } != nil, "\(record.errors)")
        let session = "/org/sessiond1/capture/session/1"
        func ask(_ member: String, _ arguments: [Value] = [], of interface: String) throws -> String {
            do {
                let place = try stage.place()
                return "\(try stage.connection.callAndWait(place, session, interface, member, arguments, timeout: 10))"
            } catch let failure as Failure {
                return failure.name
            }
        }
        let interface = "org.sessiond1.CaptureSession"
        let notOwner = BusName.errorPrefix + "NotOwner"
        #expect(try ask("StopRecording", of: interface) == notOwner)
        let preset: [Value] = [.string(interface), .string("Preset"), .variant(.string("low"))]
        #expect(try ask("Set", preset, of: StandardName.properties) == notOwner)
        #expect(try ask("Get", Array(preset.prefix(2)), of: StandardName.properties).contains("high"))
        #expect(record.wait(timeout: 30) == .code(0), "\(record.errors)")
        #expect(try ReadFilm(stage.path("film.mp4")).pictures.count == 90)
    }
}
