/// The release this program is of.
let version = "0.1.0"
