import Scenario
import Testing

/// Programs that do not use sessiond, during calls that they or others make.
@Suite struct ForeignProgramTests {
    struct Story: Sendable, CustomStringConvertible {
        let name: String
        let text: String
        var description: String { name }

        init(_ name: String, _ text: String) { (self.name, self.text) = (name, text) }
    }

    static let stories = [
        Story(
            "a browser calls: the music of another page is paused, and resumed",
            """
            program browser "Chromium" executable=chromium
            stream music of browser
            player tab of music
            wait 5
            stream voice of browser
            stream mic of browser record
            wait 3
            expect player tab paused
            """),
        Story(
            "a browser calls: a page with another title is held and paused until the call ends",
            """
            program browser "Firefox" executable=firefox
            stream music of browser title=Radio
            player tab of music
            wait 5
            stream voice of browser title=Meeting
            stream mic of browser record title=Meeting
            wait 3
            expect stream music held
            expect player tab paused
            end mic
            end voice
            wait 8
            expect player tab playing
            """),
        Story(
            "another page of a held browser plays a notification: the music stays held",
            """
            program browser "Firefox" executable=firefox
            program zoom "Zoom" executable=zoom
            stream music of browser title=Radio
            wait 5
            stream voice of zoom
            stream mic of zoom record
            wait 3
            expect stream music held
            stream ping of browser title=Chat
            wait 1
            expect stream music held
            """),
        Story(
            "the page of the call changes its title and plays a chime: another page stays held",
            """
            program browser "Firefox" executable=firefox
            stream radio of browser title=Radio
            wait 5
            stream voice of browser title=Meet
            stream mic of browser record title=Meet
            wait 3
            expect stream radio held
            stream chime of browser title="(1) Meet"
            wait 1
            expect stream radio held
            """),
        Story(
            "a player is paused because its headphones were unplugged: its stream is held while a replug resumes it",
            """
            port speaker Speaker
            port phones Headphones
            server out=phones outputs=speaker,phones
            program rb "Rhythmbox" executable=rhythmbox
            stream song of rb
            player rhythmbox of song
            wait 5
            route old-device-unavailable out=speaker outputs=speaker
            wait 29
            expect player rhythmbox paused
            expect stream song held
            route new-device-available out=phones outputs=speaker,phones
            wait 2
            expect player rhythmbox playing
            expect stream song untouched
            """),
        Story(
            "the headphones stay away: the paused stream is not held for days, and its user may start it",
            """
            port speaker Speaker
            port phones Headphones
            server out=phones outputs=speaker,phones
            program rb "Rhythmbox" executable=rhythmbox
            stream song of rb
            player rhythmbox of song
            wait 5
            route old-device-unavailable out=speaker outputs=speaker
            wait 31
            expect player rhythmbox paused
            expect rb interrupted
            expect stream song muted
            wait 2
            expect stream song untouched
            route new-device-available out=phones outputs=speaker,phones
            wait 2
            expect player rhythmbox paused
            play rhythmbox
            wait 1
            expect rb active
            expect stream song untouched
            """),
        Story(
            "a paused player's program plays a click during a declared call: it is resumed",
            """
            program rb "Rhythmbox" executable=rhythmbox
            program calls "Calls" executable=gnome-calls
            stream song of rb
            player rhythmbox of song
            wait 5
            stream voice of calls role=phone
            wait 3
            expect player rhythmbox paused
            stream click of rb role=event
            wait 1
            end click
            wait 3
            expect player rhythmbox paused
            end voice
            wait 3
            expect player rhythmbox playing
            """),
        Story(
            "a paused player's program plays a click during a guessed call: it is resumed",
            """
            program rb "Rhythmbox" executable=rhythmbox
            program zoom "Zoom" executable=zoom
            stream song of rb
            player rhythmbox of song
            wait 5
            stream voice of zoom
            stream mic of zoom record
            wait 3
            expect player rhythmbox paused
            stream click of rb role=event
            end click
            wait 5
            end voice
            end mic
            wait 3
            expect player rhythmbox playing
            """),
        Story(
            "a voice message is recorded in a paused browser during a call: it is resumed",
            """
            program ff "Firefox" executable=firefox
            program calls "Calls" executable=gnome-calls
            stream music of ff title=Radio
            player tab of music
            wait 5
            stream voice of calls role=phone
            wait 3
            expect player tab paused
            stream memo of ff record title=Chat
            stream memo2 of ff title=Chat
            wait 3
            end memo
            end memo2
            wait 12
            end voice
            wait 3
            expect player tab playing
            """),
        Story(
            "a screen reader speaks during a call",
            """
            program reader "speech-dispatcher" executable=sd_espeak-ng
            program zoom "Zoom" executable=zoom
            stream speech of reader
            wait 5
            stream voice of zoom
            stream mic of zoom record
            wait 3
            expect stream speech untouched
            """),
        Story(
            "programs that read aloud are never silenced, whatever they are called",
            """
            program espeak "espeak-ng" executable=espeak-ng
            program tool "Terminal Reader" executable=tdsr
            program zoom "Zoom" executable=zoom
            stream words of espeak
            stream lines of tool role=a11y
            wait 5
            stream voice of zoom role=phone
            wait 3
            expect stream words untouched
            expect stream lines untouched
            stream more of tool role=a11y
            stream again of espeak
            wait 3
            expect stream more untouched
            expect stream again untouched
            end voice
            wait 3
            expect stream lines untouched
            """),
        Story(
            "a program that the settings list under another of its names is in a call, and one with `no-guess` is not",
            """
            settings call-program=org.example.Talk call-program=org.example.Jam
            program talk "Talk" executable=talk name=org.example.Talk name="/opt/a, b/talk"
            program jam "Jam" executable=jam name=org.example.Jam no-guess
            program music "Music" executable=mpv
            stream song of music
            stream guitar of jam
            stream pickup of jam record
            wait 3
            expect stream song untouched
            stream voice of talk
            stream mic of talk record
            wait 3
            expect stream song held
            end voice
            end mic
            wait 8
            expect stream song untouched
            """),
        Story(
            "never and always, by more names than one",
            """
            settings never=/opt/beeper never=Ticker always=Radio
            program beeper "Beeper" name=/opt/beeper
            program ticker "Ticker"
            program radio "Radio"
            session film playback
            activate film
            stream beep of beeper
            stream tick of ticker
            expect film active
            stream news of radio
            expect film interrupted by radio
            session phone play-and-record class=call
            activate phone
            wait 1
            expect stream news held
            expect stream beep untouched
            expect stream tick untouched
            """),
        Story(
            "a program that may not declare a call, or an alert, is an app",
            """
            program allowed "Allowed" executable=allowed
            program refused "Refused" executable=refused no-call no-alert no-guess
            program music "Music" executable=mpv
            stream song of music
            stream voice of refused role=phone
            stream mic of refused record role=phone
            stream bell of refused event=alarm-clock-elapsed
            wait 3
            expect stream song untouched
            stream talk of allowed role=phone
            wait 3
            expect stream song held
            """),
        Story(
            "the label of a recording alone is a call if the settings say so",
            """
            settings label-alone=on
            program phone "Phone" executable=phone
            program music "Music" executable=mpv
            stream song of music
            stream mic of phone record role=phone
            wait 1
            expect stream song held
            """),
    ]

    @Test(arguments: stories) func program_meetsTheExpectations(_ story: Story) throws {
        var run = Run(try Scenario(story.text, file: story.name))
        run.perform()
        #expect(run.failures == [])
    }
}
