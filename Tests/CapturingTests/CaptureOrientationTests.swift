import Capturing
import PluginAPI
import Testing

@Suite struct CaptureOrientationTests {
    @Test func orientation_isOneOfFour() throws {
        for degrees in [0, 90, 180, 270] as [UInt32] {
            #expect(try CaptureOrientation(degrees: degrees).degrees == Int(degrees))
        }
        for degrees in [1, 45, 360, .max] as [UInt32] {
            #expect(throws: SessionError.self) { try CaptureOrientation(degrees: degrees) }
        }
    }

    @Test(arguments: [
        ("/home/kim/door.jpg", 1, 1, "/home/kim/door.jpg"), ("/home/kim/door.jpg", 3, 9, "/home/kim/door-3.jpg"),
        ("/home/kim/door.jpg", 3, 12, "/home/kim/door-03.jpg"), ("/home/k.m/door", 12, 12, "/home/k.m/door-12"),
        ("/home/a.b.jpeg", 1, 2, "/home/a.b-1.jpeg"),
    ])
    func photosOfABurst_haveNumbersBeforeTheEnding(_ path: String, _ number: Int, _ count: Int, _ name: String) {
        #expect(BurstNames.path(path, number: number, of: count) == name)
    }
}
