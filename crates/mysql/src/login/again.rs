//! Logs in again on an existing connection to a server: COM_CHANGE_USER, the only way back to a session
//! without a default schema.
//!
//! Owns: the packets of that exchange. Must not know: queues, clients.
//!
//! MySQL answers COM_CHANGE_USER with an AuthSwitchRequest and a new scramble; MariaDB accepts the response
//! to the scramble of the greeting. Encrypting a password for the server's key takes some tens of
//! microseconds, is needed only if the server no longer has this user in its cache, and is done on the
//! worker's thread.

use super::credentials::{Credentials, Method, refuse};
use super::{FAST_OK, FULL_NEEDED, KEY_REQUEST, MORE_DATA};
use crate::frame::{self, Header};
use crate::message::{Command, ok};
use crate::session_state::LOGIN_COLLATION;
use weir_wire::Fault;

/// What COM_CHANGE_USER needs of the first login.
#[derive(Debug)]
pub(crate) struct Again {
    pub credentials: Credentials,
    pub method: Method,
    pub scramble: Vec<u8>,
}

/// Where the exchange is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// More packets follow.
    More,
    /// The session is new and has no schema.
    Through,
}

impl Again {
    /// Appends COM_CHANGE_USER.
    pub(crate) fn start(&self, out: &mut Vec<u8>) -> Result<(), Fault> {
        let answer = self.credentials.answer(self.method, &self.scramble)?;
        let Ok(len) = u8::try_from(answer.len()) else { return Err(refuse("an answer over 255 bytes")) };
        frame::put(out, 0, |out| {
            out.push(Command::ChangeUser as u8);
            out.extend_from_slice(self.credentials.user.as_bytes());
            out.extend_from_slice(&[0, len]);
            out.extend_from_slice(&answer);
            // No schema; then the collation in two bytes and the name of the method.
            out.extend_from_slice(&[0, LOGIN_COLLATION, 0]);
            out.extend_from_slice(self.method.name());
            // Neither a further byte of the name nor attributes.
            out.extend_from_slice(&[0, 0]);
        });
        Ok(())
    }

    /// A packet of the server.
    ///
    /// # Errors
    /// `ServerLoginFailed` when it refuses or asks for what Weir does not give: the connection is lost.
    pub(crate) fn handle(
        &mut self,
        header: Header,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Verdict, Fault> {
        let seq = header.seq.wrapping_add(1);
        let answer = match payload {
            [ok::OK, ..] => return Ok(Verdict::Through),
            [ok::ERR, ..] => return Err(refuse("the server refuses COM_CHANGE_USER")),
            [ok::EOF, switch @ ..] => {
                let (method, scramble, answer) = self.credentials.switch(switch)?;
                self.method = method;
                self.scramble = scramble;
                answer
            }
            [MORE_DATA, FAST_OK] => return Ok(Verdict::More),
            [MORE_DATA, FULL_NEEDED] if self.credentials.private => self.credentials.in_clear()?,
            [MORE_DATA, FULL_NEEDED] => {
                self.credentials.needs_key()?;
                vec![KEY_REQUEST].into()
            }
            [MORE_DATA, pem @ ..] => {
                let masked = self.credentials.masked(&self.scramble)?;
                let sealed = weir_auth::rsa::encrypt(self.credentials.key(pem), &masked);
                sealed.ok_or_else(|| refuse("the server's public key cannot be used"))?.into()
            }
            _ => return Err(refuse("an answer to COM_CHANGE_USER that is not understood")),
        };
        frame::put(out, seq, |out| out.extend_from_slice(&answer));
        Ok(Verdict::More)
    }
}
