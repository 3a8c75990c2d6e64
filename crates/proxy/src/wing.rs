//! What the hall needs of a protocol. `postgres` and `mysql` have the same plan; this trait is the plan
//! as the compiler checks it. `wing/adapters.rs` puts the two into it.
//!
//! All of it is pure: bytes in, bytes out, no sockets, no clock.

mod adapters;

pub use adapters::{MySql, Postgres};

use crate::context::Shared;
use crate::mail::{Mail, WingMail};
use crate::pool::Registry;
use std::sync::Arc;
use weir_auth::JobDone;
use weir_auth::login::{
    AcceptParams, AcceptStep, Admission, CancelPlan, ConnectParams, ConnectStep, KillOutcome, Secured,
    ServerGreeting,
};
use weir_net::Net;
use weir_session::Protocol;
use weir_sql::catalogue::{Answer, Knowledge, Reading};
use weir_wire::console::{Heard, Progress};
use weir_wire::{Boundary, Fault, Found, Owner, Pins, Step};

/// One database protocol.
pub trait Wing: Sized + 'static {
    /// Which one.
    const PROTOCOL: Protocol;
    /// Its backs can be asked for the catalogue of their database.
    const HAS_CATALOGUE: bool;
    /// With it they are asked what becomes of the account that they have logged in with.
    const ASKS_ACCOUNTS: bool;
    /// Addresses a message to this wing's hall.
    fn mail<N: Net>(mail: WingMail<Self, N>) -> Mail<N>;
    /// The schema this client begins in, when the settings give it another name than the client did.
    /// PostgreSQL's database is its pool's, so there is nothing to say.
    fn set_schema(_front: &mut Self::Front, _schema: &str) {}
    /// This free server can run what the client was found to ask for last (`Needs::choosy`). MySQL's all can.
    fn suits(_back: &Self::Back, _front: &Self::Front) -> bool {
        true
    }
    /// For what the client was found to ask for last one server is better than the others, if it is free.
    fn has_favourite(_front: &Self::Front) -> bool {
        false
    }
    /// This is that server.
    fn is_favourite(_back: &Self::Back, _front: &Self::Front) -> bool {
        true
    }
    /// The client keeps its server only because it may ask next what it alone knows.
    fn is_kept_in_case(_front: &Self::Front) -> bool {
        false
    }
    /// It has not, and no longer keeps it for that.
    fn let_go(_front: &mut Self::Front, _back: &mut Self::Back) {}
    /// This server is for one client only: others never get it.
    fn is_reserved(_back: &Self::Back) -> bool {
        false
    }
    /// The client needs a server that was opened with these startup parameters.
    fn startup_of(_front: &Self::Front) -> Option<Vec<(String, String)>> {
        None
    }
    /// Ends the login of a client of the console; see `console.rs` of the wings.
    fn console_greet(front: &mut Self::Front, version: &str, out: &mut Vec<u8>);
    /// Last words to a client that is not let in: to the console, or to a database that takes nobody now.
    fn console_refuse(front: &mut Self::Front, text: &str, out: &mut Vec<u8>);
    /// The database's own number of a connection; 0: it has told none.
    fn console_pid(back: &Self::Back) -> u64;
    /// Last words to a client in its session.
    fn console_farewell(front: &mut Self::Front, text: &str, out: &mut Vec<u8>);
    /// Looks at the start of the bytes of a client of the console.
    fn console_find(front: &mut Self::Front, input: &[u8], out: &mut Vec<u8>) -> Heard;
    /// Puts an answer of the console into bytes, of rows about `most` at a time. True: all of it.
    fn console_put(
        front: &mut Self::Front,
        answer: &weir_wire::console::Answer,
        progress: &mut Progress,
        most: usize,
        out: &mut Vec<u8>,
    ) -> bool;
    /// Login, we are the server.
    type Accept: Accept<Self> + Send;
    /// Login, we are the client.
    type Connect: Connect<Self> + Send;
    /// A logged-in client.
    type Front: Front<Self> + Send;
    /// A logged-in server.
    type Back: Back<Self> + Send;
    /// What clients of one pool are greeted with.
    type Welcomes: Welcomes<Self> + Send + Sync;
    /// The pools of this protocol.
    fn registry<N: Net>(shared: &Shared<N>) -> &Registry<Self::Welcomes>;
}

/// `login/accept.rs`: a client logs in to Weir.
pub trait Accept<W: Wing> {
    /// A login that has not begun.
    fn new(params: AcceptParams) -> Self;
    /// A login on top of a session, begun by `request` (see `Found::Login`).
    ///
    /// # Errors
    /// The request cannot begin a login.
    fn again(params: AcceptParams, front: &W::Front, request: &[u8]) -> Result<(Self, AcceptStep), Fault>
    where
        Self: Sized;
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
    /// The handshake that `AcceptStep::Tls` asked for is done.
    ///
    /// # Errors
    /// What ends the login: this peer may not go on by TLS.
    fn handle_secured(&mut self, secured: Arc<Secured>) -> Result<(), Fault>;
    /// The last words to a client whose login ends here, in a form it can read in its state.
    fn refuse(&self, fault: &Fault, out: &mut Vec<u8>);
    /// After `LoggedIn`.
    fn into_front(self) -> W::Front;
}

/// `login/connect.rs`: Weir logs in to a server.
pub trait Connect<W: Wing> {
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
    fn into_back(self) -> W::Back;
}

/// The client's end of a session: finds requests in its bytes and carries what moves with it.
pub trait Front<W: Wing> {
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
    /// The request `request` (as found) will not run: answers it with an error; the session goes on.
    fn reject(&mut self, fault: &Fault, request: &[u8], out: &mut Vec<u8>);
    /// Last words before Weir closes this client.
    fn fatal(&mut self, fault: &Fault, out: &mut Vec<u8>);
    /// Last words: a server's refusal of Weir's login, as [`Connect::rejection`] gave it.
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
    /// The secret of a cancel request is this client's. Constant time.
    fn is_cancel_secret(&self, secret: &[u8]) -> bool;
}

/// The server's end: a queue of requests, what is owed for each, and where the boundary is.
pub trait Back<W: Wing> {
    /// Puts a request of `front` at the end of the queue and appends to `out` what makes it run here: the
    /// difference of settings, statements to prepare, the request itself with names of its own. With
    /// `whole` false it is the first part of a request and `extend` follows.
    ///
    /// # Errors
    /// The request cannot run: it breaks the protocol or a bound; its client ends.
    fn dispatch(
        &mut self,
        front: &mut W::Front,
        owner: Owner,
        request: &[u8],
        whole: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault>;
    /// A further part of the request at the end of the queue (found with `needs.continues`); `whole` says
    /// that it is the last one. When the server has already ended that request (an error in COPY), the
    /// bytes are dropped or sent as the protocol wants; no new entry appears.
    ///
    /// # Errors
    /// As [`Back::dispatch`].
    fn extend(
        &mut self,
        front: &mut W::Front,
        bytes: &[u8],
        whole: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault>;
    /// Puts the check of a client's login settings at the end of the queue (see [`Welcomes`]).
    ///
    /// # Errors
    /// As [`Back::dispatch`].
    fn dispatch_welcome(
        &mut self,
        front: &mut W::Front,
        owner: Owner,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault>;
    /// Looks at the start of the server's bytes. `front` is the head's owner or, when nothing is queued,
    /// the client that holds the lease; `None` when that client has gone. Bytes for it are appended to
    /// `to_client`, bytes for the server (a request that waited for a prepare) to `to_server`. Called
    /// again with the rest, also with an empty rest, until it returns `Incomplete`.
    ///
    /// # Errors
    /// The server's bytes break the protocol or a bound; its connection ends.
    fn handle_reply(
        &mut self,
        front: Option<&mut W::Front>,
        input: &[u8],
        to_client: &mut Vec<u8>,
        to_server: &mut Vec<u8>,
    ) -> Result<Step, Fault>;
    /// Whose request is at the head.
    fn head(&self) -> Option<Owner>;
    /// Requests in the queue.
    fn queued(&self) -> usize;
    /// Bytes of requests that wait here until what goes ahead of them is confirmed. They count as bytes that
    /// the server has not taken yet.
    fn held_bytes(&self) -> usize;
    /// Whose request stands at this place; 0 is the head.
    fn owner_at(&self, place: usize) -> Option<Owner>;
    /// The request at the head goes on only when its client sends more (data of a COPY, a file).
    fn awaits_client(&self) -> bool;
    /// Where the server is after all replies that have arrived.
    fn boundary(&self) -> Boundary;
    /// The boundary is not known before its client ends what it has begun (PostgreSQL: a COPY that has
    /// swallowed its Sync).
    fn awaits_end(&self) -> bool;
    /// The owner has gone: its replies are dropped. A part of a request that it never ended is ended for
    /// it (Sync, CopyFail, an empty LOCAL INFILE), appended to `out`.
    fn forget(&mut self, owner: Owner, out: &mut Vec<u8>);
    /// A whole request of `owner` of whose reply nothing has come will run elsewhere: its reply here is
    /// dropped, and `front` is as it was before its dispatch, ready for the next one.
    fn recall(&mut self, front: &mut W::Front, owner: Owner, out: &mut Vec<u8>);
    /// Queues a ROLLBACK of Weir's own.
    fn rollback(&mut self, out: &mut Vec<u8>);
    /// Queues a full reset of Weir's own (DISCARD ALL, COM_RESET_CONNECTION).
    fn reset(&mut self, out: &mut Vec<u8>);
    /// Queues the cheapest question that proves the server answers.
    fn check(&mut self, out: &mut Vec<u8>);
    /// What is known of the catalogue of its database, from now on.
    fn know(&mut self, knowledge: &Arc<Knowledge>);
    /// Queues a question about the catalogue ([`weir_sql::catalogue`]). False: this wing knows no catalogue,
    /// and nothing was queued.
    fn ask_catalogue(&mut self, reading: Reading, out: &mut Vec<u8>) -> bool;
    /// The answer to it, once its request is done.
    fn take_catalogue(&mut self) -> Option<Answer>;
    /// Something ran here of which it is not known what it left: a reset comes before anybody else.
    fn wants_reset(&self) -> bool;
    /// What the server works on, as far as is known, is the head's own request and nothing that Weir has put
    /// in front of it.
    fn is_cancellable(&self) -> bool;
    /// The client whose reply is being passed on has got the beginning of a message and not its end: nothing
    /// but the rest can be said to it.
    fn is_mid_message(&self) -> bool;
    /// Idle, nothing owed, no part of a message read, and no request of Weir's own has failed.
    fn is_reusable(&self) -> bool;
    /// Statements prepared here for clients that had prepared them elsewhere, since it was asked last.
    fn take_injected_prepares(&mut self) -> u32;
    /// Nothing can make this server usable again, not even waiting for what it owes: close it.
    fn is_broken(&self) -> bool;
    /// Since its login began something has changed that its session does not see (accounts, global settings):
    /// it is not for new work.
    fn is_outdated(&self) -> bool;
    /// How the server greeted Weir, if clients are greeted (MySQL; PostgreSQL: None).
    fn server_greeting(&self) -> Option<&Arc<ServerGreeting>>;
    /// How to cancel what runs here.
    fn cancel_plan(&self) -> CancelPlan;
    /// The number by which the database calls this connection, if KILL takes such numbers.
    fn connection_number(&self) -> Option<u64>;
    /// Says goodbye, unless that would be read as something else.
    fn quit(&mut self, out: &mut Vec<u8>);
}

/// What the clients of one pool are told at the end of their login, by the settings they named. A client
/// whose settings no server has confirmed yet takes a place in the queue first.
pub trait Welcomes<W: Wing>: Default + Clone {
    /// A server has logged in: what it said is the ground truth. Forgets what a different server said.
    fn observe(&mut self, back: &mut W::Back);
    /// Ends the login of `front` if its settings are known to be good; false when a server must be asked
    /// first (`dispatch_welcome`).
    fn greet(&self, front: &mut W::Front, out: &mut Vec<u8>) -> bool;
    /// `dispatch_welcome` of `front` was done on `back`. True: remembered, `greet` will now succeed.
    /// False: the server refused the settings; its error has gone to the client, close it.
    fn record(&mut self, front: &mut W::Front, back: &W::Back) -> bool;
    /// A server has logged in since the last change that makes others [`Back::is_outdated`].
    fn is_current(&self) -> bool;
    /// Answers a request with `Needs::prepares` from what servers of this pool have said of the same
    /// statement. False: a server must be asked, and nothing has changed.
    fn answer(&self, front: &mut W::Front, request: &[u8], out: &mut Vec<u8>) -> bool;
}
