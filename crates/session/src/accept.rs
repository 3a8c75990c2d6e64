//! Login of a client: Weir is the server.

use crate::Front;
use crate::login::{AcceptParams, AcceptStep, Admission, Secured};
use std::sync::Arc;
use weir_auth::JobDone;
use weir_wire::Fault;

/// `login/accept.rs`: a client logs in to Weir.
pub trait Accept: Sized + Send {
    /// The client it becomes.
    type Front: Front;
    /// A login that has not begun.
    fn new(params: AcceptParams) -> Self;
    /// A login on top of a session, begun by `request` (see `Found::Login`).
    ///
    /// # Errors
    /// The request cannot begin a login.
    fn again(params: AcceptParams, front: &Self::Front, request: &[u8]) -> Result<(Self, AcceptStep), Fault>;
    /// What Weir says first (MySQL's greeting; PostgreSQL says nothing).
    fn start(&mut self, out: &mut Vec<u8>);
    /// Looks at the client's bytes; returns how many are dealt with. Answers are appended to `out`.
    /// Called again with the rest until it returns `(0, More)`.
    ///
    /// # Errors
    /// What ends the login: the peer's bytes break the protocol or a bound, or a proof is wrong.
    fn handle_input(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(usize, AcceptStep), Fault>;
    /// The answer to `AcceptStep::Lookup`.
    ///
    /// # Errors
    /// What ends the login, such as an unknown user where that may be told.
    fn handle_lookup(&mut self, admission: Admission, out: &mut Vec<u8>) -> Result<AcceptStep, Fault>;
    /// The answer to `AcceptStep::Work`.
    ///
    /// # Errors
    /// What ends the login: the work has failed.
    fn handle_job(&mut self, done: JobDone, out: &mut Vec<u8>) -> Result<AcceptStep, Fault>;
    /// The answer to `AcceptStep::Vouch`: the password is right, or why it is not taken.
    ///
    /// # Errors
    /// What ends the login: the password is not taken.
    fn handle_vouched(&mut self, answer: Result<(), Fault>, out: &mut Vec<u8>) -> Result<AcceptStep, Fault>;
    /// The handshake that `AcceptStep::Tls` asked for is done.
    ///
    /// # Errors
    /// What ends the login: this peer may not go on by TLS.
    fn handle_secured(&mut self, secured: Arc<Secured>) -> Result<(), Fault>;
    /// The last words to a client whose login ends here, in a form it can read in its state.
    fn refuse(&self, fault: &Fault, out: &mut Vec<u8>);
    /// After `LoggedIn`.
    fn into_front(self) -> Self::Front;
}
