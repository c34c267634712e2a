import MediaPlayer
import SwiftUI

@main
struct VoiceNotesApp: App {
    var body: some Scene {
        WindowGroup { NotesView() }
    }
}

struct NotesView: View {
    @State private var sound = Sound()
    @State private var isPicking = false
    private let url = URL.documentsDirectory.appending(path: "note.wav")

    var body: some View {
        VStack(spacing: 20) {
            Button("Record") { try? sound.record(to: url, seconds: 10) }
            Button("Stop") { sound.stopRecording() }
            Button("Play") { try? sound.play(url) }
            Button("Music…") { isPicking = true }
        }
        .sheet(isPresented: $isPicking) { MusicPicker(sound: sound) }
    }
}

struct MusicPicker: UIViewControllerRepresentable {
    let sound: Sound

    func makeUIViewController(context: Context) -> MPMediaPickerController { sound.pickMusic() }
    func updateUIViewController(_ picker: MPMediaPickerController, context: Context) {}
}
