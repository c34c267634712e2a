#!/usr/bin/gjs -m
// A radio in JavaScript, with D-Bus of GJS: it is silent while it is interrupted, and resumes when it should.
import Gio from 'gi://Gio';
import GLib from 'gi://GLib';

const SERVICE = 'org.sessiond1';
const bus = Gio.bus_get_sync(Gio.BusType.SESSION, null);

// Calls a method with arguments of that signature, and returns its results.
function call(path, type, method, signature, ...values) {
    const parameters = new GLib.Variant(signature, values);
    return bus.call_sync(SERVICE, path, `${SERVICE}.${type}`, method, parameters, null, Gio.DBusCallFlags.NONE, -1, null)
        .recursiveUnpack();
}

// The daemon closes the session when this connection ends, for any reason.
const options = {category: new GLib.Variant('s', 'playback')};
const [session] = call('/org/sessiond1', 'Manager', 'CreateSession', '(sa{sv})', 'Radio', options);

bus.signal_subscribe(
    SERVICE, `${SERVICE}.Session`, null, session, null, Gio.DBusSignalFlags.NONE,
    (_bus, _sender, _path, _interface, signal, parameters) => {
        if (signal === 'InterruptionBegan') {
            const [, details] = parameters.recursiveUnpack();
            print(`silent: interrupted by ${details['by-name']}`);
        } else if (signal === 'InterruptionEnded') {
            const [shouldResume] = parameters.recursiveUnpack();
            if (!shouldResume)
                return;
            call(session, 'Session', 'Activate', '(a{sv})', {});
            print('playing on');
        }
    });
call(session, 'Session', 'Activate', '(a{sv})', {});
print('playing');
new GLib.MainLoop(null, false).run();
