//! Login to a server: Weir is the client. The load generator and the doctor use it, too.

use crate::login::{ConnectParams, ConnectStep, Secured};
use std::sync::Arc;
use weir_auth::JobDone;
use weir_wire::Fault;

/// `login/connect.rs`: Weir logs in to a server.
pub trait Connect: Sized + Send {
    /// The server it becomes.
    type Back;
    /// A login that has not begun.
    fn new(params: ConnectParams) -> Self;
    /// What Weir says first (PostgreSQL's startup packet; MySQL's server speaks first).
    fn start(&mut self, out: &mut Vec<u8>);
    /// Looks at the server's bytes; returns how many are dealt with.
    ///
    /// # Errors
    /// What ends the login: the peer's bytes break the protocol or a bound, or a proof is wrong.
    fn handle_input(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(usize, ConnectStep), Fault>;
    /// The answer to `ConnectStep::Work`.
    ///
    /// # Errors
    /// What ends the login: the work has failed.
    fn handle_job(&mut self, done: JobDone, out: &mut Vec<u8>) -> Result<ConnectStep, Fault>;
    /// The handshake that `ConnectStep::Tls` asked for is done; or one before `start`, when TLS goes first.
    ///
    /// # Errors
    /// What ends the login: this peer may not go on by TLS.
    fn handle_secured(&mut self, secured: Arc<Secured>, out: &mut Vec<u8>) -> Result<(), Fault>;
    /// The server refused for what may be the transport: it may take the login by the other one.
    fn is_transport_refused(&self) -> bool;
    /// The server's own refusal (payload of its ErrorResponse or ERR packet), to be shown to the clients
    /// that wait for this pool.
    fn rejection(&self) -> Option<&[u8]>;
    /// After `LoggedIn`.
    fn into_back(self) -> Self::Back;
}
