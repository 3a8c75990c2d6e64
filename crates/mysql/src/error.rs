//! The errno, SQLSTATE and text that a client gets for a [`Fault`].
//!
//! Never sends a fault's detail. The numbers are those of server errors: below 2000, or 3000 and above. A
//! driver must not be sent the numbers of errors that it raises itself (2013, "lost connection"); MariaDB's
//! driver reports them as "malformed packet".

use crate::frame;
use crate::message::ok::ErrPacket;
use weir_wire::FaultKind;

/// errno, SQLSTATE and text of a kind of fault.
pub fn of(kind: FaultKind) -> (u16, &'static str, &'static str) {
    match kind {
        FaultKind::ClientProtocol => (1835, "HY000", "Malformed communication packet"),
        FaultKind::ClientTooLarge => (1153, "08S01", "Got a packet bigger than 'max_allowed_packet' bytes"),
        FaultKind::LoginFailed => (1045, "28000", "Access denied"),
        FaultKind::LoginUnanswered => (1045, "28000", "Access denied"),
        FaultKind::LoginRejected => (1045, "28000", "Access denied"),
        FaultKind::ClientTls => (1043, "08S01", "Bad handshake"),
        FaultKind::ProxyHeader => {
            (1043, "08S01", "Bad handshake: a PROXY header is required from this address")
        }
        FaultKind::TlsRequired => (
            3159,
            "HY000",
            "Connections using insecure transport are prohibited while --require_secure_transport=ON.",
        ),
        FaultKind::ServerTls => {
            (1042, "08S01", "Can't connect to the database server: the TLS handshake failed")
        }
        FaultKind::LoginTimeout => (1159, "08S01", "Got timeout reading communication packets"),
        FaultKind::NoSuchDatabase => (1049, "42000", "Unknown database"),
        FaultKind::TooManyClients => (1040, "08004", "Too many connections"),
        FaultKind::TooManyLogins => (1040, "08004", "Too many logins at once"),
        FaultKind::ClientIdleTimeout => (4031, "HY000", "The client was disconnected because of inactivity"),
        FaultKind::ClientReadTimeout => (1159, "08S01", "Got timeout reading communication packets"),
        FaultKind::IdleInTransactionTimeout => {
            (4031, "HY000", "The client was disconnected because its transaction was idle too long")
        }
        FaultKind::TransactionTimeout => (1205, "HY000", "The transaction took too long and was ended"),
        FaultKind::QueryTimeout => {
            (3024, "HY000", "Query execution was interrupted, maximum statement execution time exceeded")
        }
        FaultKind::QueryWaitTimeout => (1040, "08004", "No server connection became free in time"),
        FaultKind::QueueFull => (
            1040,
            "08004",
            "Too many clients are already waiting for a server connection (max_waiting_clients); try again later, or raise pool_size",
        ),
        FaultKind::Cancelled => (1317, "70100", "Query execution was interrupted"),
        FaultKind::Killed => (1927, "70100", "Connection was killed"),
        FaultKind::NotAllowed => (1235, "42000", "This is not supported through the proxy"),
        FaultKind::ClientGone => (1184, "08S01", "Aborted connection"),
        FaultKind::ServerUnavailable => (1042, "08S01", "Can't connect to the database server"),
        FaultKind::ServerLoginFailed => (1045, "28000", "The database refused the proxy's login"),
        FaultKind::ServerLost => (1158, "08S01", "Lost connection to the database server"),
        FaultKind::ServerProtocol => (1158, "08S01", "Malformed packet from the database server"),
        FaultKind::ServerTooLarge => (1153, "08S01", "Got a packet bigger than the proxy accepts"),
        FaultKind::ShuttingDown => (1053, "08S01", "Server shutdown in progress"),
        FaultKind::WorkerFailed => (1053, "08S01", "The proxy ended this connection after an internal error"),
        FaultKind::InternalError => {
            (1105, "HY000", "The proxy closed this connection because of an internal error")
        }
        FaultKind::OutOfResources => (1041, "HY000", "Out of resources"),
    }
}

/// Appends an ERR packet. Returns the sequence number of the next packet.
pub fn put(out: &mut Vec<u8>, seq: u8, code: u16, sqlstate: &str, message: &str) -> u8 {
    let err = ErrPacket { code, sqlstate: sqlstate.as_bytes(), message: message.as_bytes() };
    frame::put(out, seq, |out| err.write(out))
}

/// Appends the ERR packet of a kind of fault.
pub fn put_fault(out: &mut Vec<u8>, seq: u8, kind: FaultKind) -> u8 {
    let (code, sqlstate, message) = of(kind);
    put(out, seq, code, sqlstate, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_state_and_a_text() {
        for &kind in FaultKind::ALL {
            let (code, sqlstate, message) = of(kind);
            assert!(code >= 1000 && sqlstate.len() == 5 && !message.is_empty(), "{kind:?}");
            assert!(!(2000..3000).contains(&code), "{kind:?}: {code} is for drivers to say");
        }
    }
}
