//! A logged-in server.

use crate::Front;
use crate::listen::{Channels, Mark};
use crate::login::{CancelPlan, ServerGreeting};
use std::sync::Arc;
use weir_sql::catalogue::{Answer, Knowledge, Reading};
use weir_wire::{Boundary, ErrorCode, Fault, Owner, Step};

/// What became of an answer that was repeated for another client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeated {
    /// The client is as behind its own request, and gets the answer.
    Answered,
    /// What it asks is something else to a server. The client is as before.
    Asks,
    /// It would have been told something else, which cannot be: nothing is known of the client any more.
    Torn,
}

/// What is to be counted of the requests that a server has answered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Statements that were prepared here for clients that had prepared them elsewhere.
    pub prepares: u32,
    /// Commands that brought clients' settings or schema here.
    pub settings: u32,
    /// Rows that clients were given, or that they changed, as far as replies say it.
    pub rows: u64,
    /// What a client was told last that had failed.
    pub error: Option<ErrorCode>,
}

/// The server's end: a queue of requests, what is owed for each, and where the boundary is.
pub trait Back: Send {
    /// Its clients.
    type Front: Front;
    /// Puts a request of `front` at the end of the queue and appends to `out` what makes it run here: the
    /// difference of settings, statements to prepare, the request itself with names of its own. With
    /// `whole` false it is the first part of a request and `extend` follows.
    ///
    /// # Errors
    /// The request cannot run: it breaks the protocol or a bound; its client ends.
    fn dispatch(
        &mut self,
        front: &mut Self::Front,
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
        front: &mut Self::Front,
        bytes: &[u8],
        whole: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault>;
    /// Puts the check of a client's login settings at the end of the queue (see
    /// [`Welcomes`](crate::Welcomes)).
    ///
    /// # Errors
    /// As [`Back::dispatch`].
    fn dispatch_welcome(
        &mut self,
        front: &mut Self::Front,
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
        front: Option<&mut Self::Front>,
        input: &[u8],
        to_client: &mut Vec<u8>,
        to_server: &mut Vec<u8>,
    ) -> Result<Step, Fault>;
    /// What comes from the server next belongs to the answer to the head's own request.
    fn answers_head(&self) -> bool;
    /// These bytes of the server, the whole answer to a request, are rows and nothing else: no error, no
    /// warning, nothing about the session.
    fn is_plain_answer(&self, answer: &[u8]) -> bool;
    /// A server that leads nowhere, to which no client has been, and that speaks as this one does. For
    /// [`Back::repeat`].
    fn echo(&self) -> Self
    where
        Self: Sized;
    /// Of an echo: it is in the state of this client.
    fn be_as(&mut self, front: &Self::Front);
    /// Of an echo: answers the request that `front` has found last with what a server has answered to the
    /// same. `answer` are the server's bytes, `said` what another client has got for them. The front goes
    /// through all that it would go through with the server: where it asks another question, or would be told
    /// something else, it is not answered.
    fn repeat(
        &mut self,
        front: &mut Self::Front,
        owner: Owner,
        request: &[u8],
        (answer, said): (&[u8], &[u8]),
    ) -> Repeated
    where
        Self: Sized,
    {
        let repeated = self.go_through(front, owner, request, answer, said);
        if repeated != Repeated::Answered {
            *self = self.echo();
        }
        repeated
    }
    /// Does what [`Back::repeat`] says, and leaves the echo as it is then.
    fn go_through(
        &mut self,
        front: &mut Self::Front,
        owner: Owner,
        request: &[u8],
        answer: &[u8],
        said: &[u8],
    ) -> Repeated {
        self.be_as(front);
        let (mut asked, mut told, mut asks) = (Vec::new(), Vec::new(), Vec::new());
        let sent = self.dispatch(front, owner, request, true, &mut asked);
        if sent.is_err() || asked != request || self.queued() != 1 {
            self.recall(front, owner, &mut asks);
            return if sent.is_ok() { Repeated::Asks } else { Repeated::Torn };
        }
        let mut used = 0;
        loop {
            let rest = answer.get(used..).unwrap_or_default();
            match self.handle_reply(Some(front), rest, &mut told, &mut asks) {
                Ok(Step::Forward(len)) => {
                    told.extend_from_slice(rest.get(..len).unwrap_or_default());
                    used += len;
                }
                Ok(Step::Consumed(len)) => used += len,
                Ok(Step::Done { boundary, .. }) => {
                    let is_same = boundary == Boundary::Idle
                        && used == answer.len()
                        && told == said
                        && asks.is_empty()
                        && front.pins().is_empty();
                    return if is_same { Repeated::Answered } else { Repeated::Torn };
                }
                Ok(Step::Incomplete) | Err(_) => return Repeated::Torn,
            }
            if !asks.is_empty() || used > answer.len() {
                return Repeated::Torn;
            }
        }
    }
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
    fn recall(&mut self, front: &mut Self::Front, owner: Owner, out: &mut Vec<u8>);
    /// Queues a ROLLBACK of Weir's own.
    fn rollback(&mut self, out: &mut Vec<u8>);
    /// Queues a full reset of Weir's own (DISCARD ALL, COM_RESET_CONNECTION).
    fn reset(&mut self, out: &mut Vec<u8>);
    /// Queues the cheapest question that proves the server answers.
    fn check(&mut self, out: &mut Vec<u8>);
    /// Queues what Weir must know of a server before anybody gets it. False: nothing.
    fn introduce(&mut self, _out: &mut Vec<u8>) -> bool {
        false
    }
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
    /// in front of it. `patient`: the server has had time for what takes none; if it has not come to the
    /// request, it waits for a lock that the request needs, or does not tell how far it is.
    fn is_cancellable(&self, patient: bool) -> bool;
    /// The client whose reply is being passed on has got the beginning of a message and not its end: nothing
    /// but the rest can be said to it.
    fn is_mid_message(&self) -> bool;
    /// Idle, nothing owed, no part of a message read, and no request of Weir's own has failed.
    fn is_reusable(&self) -> bool;
    /// What is to be counted since this was asked last.
    fn take_tally(&mut self) -> Tally;
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
    /// The database's own number of this connection; 0: it has told none.
    fn console_pid(&self) -> u64;
    /// It can run what the client was found to ask for last (`Needs::choosy`). MySQL's all can.
    fn suits(&self, _front: &Self::Front) -> bool {
        true
    }
    /// It is the one of [`Front::has_favourite`].
    fn is_favourite(&self, _front: &Self::Front) -> bool {
        true
    }
    /// The client of [`Front::is_kept_in_case`] has not asked, and no longer keeps this server for that.
    fn let_go(&mut self, _front: &mut Self::Front) {}
    /// Queues the question on which channels this client listens here ([`Front::only_listens`]). False: its
    /// server has more to do, or another connection would tell it other things; nothing was queued.
    fn ask_channels(&mut self, _front: &mut Self::Front, _owner: Owner, _out: &mut Vec<u8>) -> bool {
        false
    }
    /// The answer, once that request is done. `None`: there is none.
    fn take_channels(&mut self) -> Option<Channels> {
        None
    }
    /// Another connection listens on these channels from the mark on: queues what makes this server stop
    /// there. When the request is done nothing ties the client to the server.
    fn part(
        &mut self,
        _front: &mut Self::Front,
        _owner: Owner,
        _channels: Channels,
        _mark: Mark,
        _out: &mut Vec<u8>,
    ) {
    }
    /// Queues what makes this server listen for a client again, from a mark on.
    fn come_home(&mut self, _front: &mut Self::Front, _owner: Owner, _out: &mut Vec<u8>) {}
    /// That request is done, and the other connection has told all in front of the mark. `before`: what of
    /// that the client has not got yet. What may be told to the client now is appended to `out`.
    fn is_home(&mut self, _front: &mut Self::Front, _before: Vec<u8>, _out: &mut Vec<u8>) {}
    /// It is for one client only: others never get it.
    fn is_reserved(&self) -> bool {
        false
    }
    /// No reset brings it back to what a new server is: it is closed instead. What the client of a reserved
    /// one has there is not brought twice.
    fn is_never_reset(&self) -> bool {
        self.is_reserved()
    }
}
