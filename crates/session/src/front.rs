//! A logged-in client.

use crate::login::KillOutcome;
use crate::{Console, Packing};
use std::sync::Arc;
use weir_sql::catalogue::Knowledge;
use weir_wire::{Fault, Found, Pins};

/// The client's end of a session: finds requests in its bytes and carries what moves with it.
pub trait Front: Console + Send {
    /// Weir's number of this client.
    fn id(&self) -> u32;
    /// The database it uses now, where clients of one pool may use several; for the log.
    fn schema(&self) -> Option<&str>;
    /// What the program calls itself, for the log.
    fn application_name(&self) -> Option<std::borrow::Cow<'_, str>>;
    /// Looks at the start of the client's bytes. The same bytes are given again with more behind them
    /// after `Incomplete`; the front remembers how far it has looked, so that this is not quadratic.
    /// Local answers are appended to `out`.
    ///
    /// # Errors
    /// The client's bytes break the protocol or a bound; its connection ends.
    fn find(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Found, Fault>;
    /// What is known of the catalogue of its database, from now on.
    fn know(&mut self, knowledge: &Arc<Knowledge>);
    /// What was proven of the shareable request found last still holds, so it may run twice.
    fn is_proven(&self) -> bool;
    /// Both clients have found a request that is alike ([`weir_wire::Needs::alike`]), of the same bytes: the
    /// answer to one is the answer to the other. In doubt it is not.
    fn asks_as(&self, other: &Self) -> bool
    where
        Self: Sized;
    /// A number that clients have in common of which [`Front::asks_as`] is true, and few others.
    fn asks_under(&self) -> u64;
    /// The part of a pool's identity that this client chose (MySQL's CLIENT_FOUND_ROWS and its like;
    /// PostgreSQL: 0). Servers of its pool log in with it as `ConnectParams::variant`.
    fn pool_variant(&self) -> u32;
    /// Parts of a request were found and not its end. False where they were data of a COPY that is over.
    fn is_part_open(&self) -> bool;
    /// The client is in the middle of a message, of which `kept` bytes wait to be found.
    fn is_mid_message(&self, kept: usize) -> bool;
    /// The `kept` bytes that wait to be found are whole messages of a request whose end has not come.
    fn is_between_messages(&self, kept: usize) -> bool;
    /// It was passed the farewell of its server: its session is over.
    fn is_told_the_end(&self) -> bool;
    /// Whole messages that wait for the end of their request are found as a part of it, next time.
    fn hasten(&mut self);
    /// Why the lease must outlive the boundary, now.
    fn pins(&self) -> Pins;
    /// The request found last may be a reason for that.
    fn may_pin(&self) -> bool;
    /// What such a request says, for the operator: at most so many bytes from its beginning, without the
    /// values in it. `None`: it has no words.
    fn words_of(&self, request: &[u8], bytes: usize) -> Option<String>;
    /// The request `request` (as found) will not run: answers it with an error; the session goes on.
    fn reject(&mut self, fault: &Fault, request: &[u8], out: &mut Vec<u8>);
    /// What is still to come of a rejected part can be told from a new request.
    fn rejects_parts(&self) -> bool;
    /// Last words before Weir closes this client.
    fn fatal(&mut self, fault: &Fault, out: &mut Vec<u8>);
    /// Last words: a server's refusal of Weir's login, as [`Connect::rejection`](crate::Connect::rejection)
    /// gave it.
    fn fatal_rejection(&mut self, rejection: &[u8], out: &mut Vec<u8>);
    /// The login that `Found::Login` began was refused. True: the session goes on, as after its own login;
    /// false: close it.
    fn login_refused(&mut self) -> bool;
    /// The answer to `Found::Kill`. Returns the rest of that request, to be found next, if it has one.
    fn killed(&mut self, outcome: KillOutcome, out: &mut Vec<u8>) -> Vec<u8>;
    /// Idle time after which a client has asked to be closed (MySQL's `SET wait_timeout`); 0: it has not.
    fn idle_ms(&self) -> u64;
    /// Nobody here has the number of `Found::Kill`: the request that asks the database itself, in the
    /// client's words, to be found next.
    fn pass_on(&mut self) -> Vec<u8>;
    /// The request that was finished last ends with a KILL, which is still owed: of whom, and whether only of
    /// what it runs.
    fn take_kill(&mut self) -> Option<(u32, bool)>;
    /// It has begun a transaction that no server knows of yet (`Needs::late`).
    fn is_in_empty_transaction(&self) -> bool {
        false
    }
    /// The secret of a cancel request is this client's. Constant time.
    fn is_cancel_secret(&self, secret: &[u8]) -> bool;
    /// Its schema, when the settings give the one it begins in another name than the client did. PostgreSQL's
    /// database is its pool's, so there is nothing to say.
    fn set_schema(&mut self, _schema: &str) {}
    /// For what was found last one server is better than the others, if it is free
    /// ([`Back::is_favourite`](crate::Back::is_favourite)).
    fn has_favourite(&self) -> bool {
        false
    }
    /// And any other may answer wrongly: it waits for that one for a while, whoever has it.
    fn needs_favourite(&self) -> bool {
        false
    }
    /// It keeps its server only because it may ask next what that alone knows
    /// ([`Back::let_go`](crate::Back::let_go)).
    fn is_kept_in_case(&self) -> bool {
        false
    }
    /// All that it keeps its server for is that it listens there, and another connection could do that.
    fn only_listens(&self) -> bool {
        false
    }
    /// What was found last must not run before its server listens for it itself (`Needs::home`).
    fn wants_home(&self) -> bool {
        false
    }
    /// What its bytes are packed by from the end of its login on. Asked once.
    fn take_packing(&mut self) -> Option<Box<dyn Packing>> {
        None
    }
    /// It needs a server that was opened with these startup parameters.
    fn startup_parameters(&self) -> Option<Vec<(String, String)>> {
        None
    }
}
