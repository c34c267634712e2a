//! A radio that is silent while it is interrupted, and resumes when it should.

use std::collections::HashMap;

use zbus::blocking::Connection;
use zbus::proxy;
use zbus::zvariant::{OwnedObjectPath, OwnedValue, Value};

type Options<'a> = HashMap<&'a str, Value<'a>>;

// The proxies that zbus-xmlgen generates from the interface descriptions, with only the members that are used here.

#[proxy(interface = "org.sessiond1.Manager", default_service = "org.sessiond1", default_path = "/org/sessiond1")]
trait Manager {
    fn create_session(&self, name: &str, options: Options<'_>) -> zbus::Result<OwnedObjectPath>;
}

#[proxy(interface = "org.sessiond1.Session", default_service = "org.sessiond1")]
trait Session {
    fn activate(&self, options: Options<'_>) -> zbus::Result<()>;
}

fn main() -> zbus::Result<()> {
    let connection = Connection::session()?;
    // The daemon closes the session when this connection ends, for any reason.
    let options = HashMap::from([("category", Value::from("playback"))]);
    let path = ManagerProxyBlocking::new(&connection)?.create_session("Radio", options)?;
    let session = SessionProxyBlocking::builder(&connection).path(path)?.build()?;
    // Subscribes before the activation, so that it misses no interruption.
    let signals = session.inner().receive_all_signals()?;

    session.activate(HashMap::new())?;
    println!("playing");
    for message in signals {
        let header = message.header();
        match header.member().map(|member| member.as_str()) {
            Some("InterruptionBegan") => {
                let (_reason, details): (String, HashMap<String, OwnedValue>) = message.body().deserialize()?;
                let by = details.get("by-name").and_then(|name| <&str>::try_from(name).ok()).unwrap_or("");
                println!("silent: interrupted by {by}");
            }
            Some("InterruptionEnded") => {
                let (should_resume, _details): (bool, HashMap<String, OwnedValue>) = message.body().deserialize()?;
                if should_resume && session.activate(HashMap::new()).is_ok() {
                    println!("playing on");
                }
            }
            _ => {}
        }
    }
    Ok(())
}
