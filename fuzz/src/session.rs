//! Two clients and one server that send anything, joined as the proxy joins them: by a lease while the
//! transaction lasts, and behind each other where a request may be shared.

use crate::login::{accept_params, back, front};
use crate::peers::Peers;
use crate::script::Script;
use weir_session::AuthMethod;
use weir_session::login::KillOutcome;
use weir_proxy::wing::{Accept, Back, Front, Welcomes};
use weir_wire::{Boundary, Fault, FaultKind, Found, INTERNAL, Needs, Owner, Step, limits};

struct Client<W: Peers> {
    front: W::Front,
    input: Vec<u8>,
    /// Requests it has on the server.
    inflight: usize,
    part_open: bool,
    /// A request that was found and waits for the server: its length, whether it is whole, its needs. It is
    /// not looked for again.
    pending: Option<(usize, bool, Needs)>,
    /// The number the server's queue knows it by; a new client in its place has a new one.
    owner: Owner,
}

struct Session<W: Peers> {
    clients: Vec<Client<W>>,
    back: W::Back,
    server_input: Vec<u8>,
    /// Who has the lease.
    holder: Option<usize>,
    /// All that is queued may have company.
    all_shareable: bool,
    to_server: Vec<u8>,
    next_owner: Owner,
}

/// Plays the script.
pub fn run<W: Peers>(data: &[u8]) {
    let mut script = Script::new(data);
    let mut session = Session::<W>::new().expect("both logins and the greeting succeed");
    let (requests, replies) = (W::client_messages(), W::server_messages());
    while !script.is_over() {
        let choice = script.choice();
        let goes_on = match choice % 16 {
            0..=4 => session.client_says(0, &script.saying(&requests)),
            5..=7 => session.client_says(1, &script.saying(&requests)),
            8..=12 => session.server_says(&script.saying(&replies)),
            13 => session.client_leaves(usize::from(choice >> 4) % 2),
            14 => session.weir_asks(choice >> 4),
            _ => session.refused(usize::from(choice >> 4) % 2),
        };
        if !goes_on {
            break;
        }
    }
    session.end();
}

impl<W: Peers> Session<W> {
    fn new() -> Option<Self> {
        let mut clients: Vec<Client<W>> = Vec::new();
        for owner in 1..=2 {
            clients.push(Client {
                front: front::<W>()?,
                input: Vec::new(),
                inflight: 0,
                part_open: false,
                pending: None,
                owner,
            });
        }
        let back = back::<W>(clients[0].front.pool_variant())?;
        let mut session = Session {
            clients,
            back,
            server_input: Vec::new(),
            holder: None,
            all_shareable: true,
            to_server: Vec::new(),
            next_owner: 3,
        };
        (session.greet(0) && session.greet(1)).then_some(session)
    }

    /// Ends a client's login. The server grants what the client asks for.
    fn greet(&mut self, who: usize) -> bool {
        let client = &mut self.clients[who];
        let mut welcomes = W::Welcomes::default();
        welcomes.observe(&mut self.back);
        if welcomes.greet(&mut client.front, &mut Vec::new()) {
            return true;
        }
        if self.holder.is_some() || self.back.queued() > 0 || !self.server_input.is_empty() {
            return false;
        }
        let asked = self.back.dispatch_welcome(&mut client.front, client.owner, &mut self.to_server);
        let mut input = Vec::new();
        for _ in 0..if asked.is_ok() { 16 } else { 0 } {
            let front = Some(&mut client.front);
            match self.back.handle_reply(front, &input, &mut Vec::new(), &mut self.to_server) {
                Ok(Step::Forward(len) | Step::Consumed(len)) => drop(input.drain(..len)),
                Ok(Step::Incomplete) => input.extend_from_slice(&W::granted()),
                Ok(Step::Done { .. }) => {
                    return welcomes.record(&mut client.front, &self.back)
                        && welcomes.greet(&mut client.front, &mut Vec::new());
                }
                Err(_) => return false,
            }
        }
        false
    }

    fn client_says(&mut self, who: usize, bytes: &[u8]) -> bool {
        self.clients[who].input.extend_from_slice(bytes);
        self.pump_clients()
    }

    fn server_says(&mut self, bytes: &[u8]) -> bool {
        // A server that says something unasked ends its connection in the proxy, too.
        self.server_input.extend_from_slice(bytes);
        self.pump_server() && self.pump_clients()
    }

    fn pump_clients(&mut self) -> bool {
        (0..self.clients.len()).all(|who| self.pump_client(who)) && self.pump_server()
    }

    /// Looks for requests of a client until there are none or they must wait.
    fn pump_client(&mut self, who: usize) -> bool {
        loop {
            let client = &mut self.clients[who];
            if client.input.is_empty() || client.inflight >= limits::CLIENT_PIPELINE {
                return true;
            }
            let given = client.input.len();
            let mut out = Vec::new();
            let (len, whole, needs) = match client.pending.take() {
                Some(pending) => pending,
                None => match client.front.find(&client.input, &mut out) {
                    Ok(Found::Incomplete) => return true,
                    Ok(Found::Goodbye) => return self.client_leaves(who),
                    Ok(Found::Request { len, needs }) => (len, true, needs),
                    Ok(Found::Part { len, needs }) => {
                        assert!(needs.lease);
                        (len, false, needs)
                    }
                    Ok(Found::Drop { len } | Found::Answered { len }) => {
                        assert!(len > 0 && len <= given, "{len} of {given}");
                        client.input.drain(..len);
                        continue;
                    }
                    Ok(Found::Kill { len, .. }) => {
                        client.front.killed(KillOutcome::NoSuchThread, &mut out);
                        client.input.drain(..len);
                        continue;
                    }
                    Ok(Found::Login { len }) => {
                        // The session is over, whatever comes of it.
                        let params = accept_params(AuthMethod::Native);
                        let _ = W::Accept::again(params, &client.front, &client.input[..len]);
                        return self.client_leaves(who);
                    }
                    Err(fault) => {
                        client.front.fatal(&fault, &mut out);
                        return self.client_leaves(who);
                    }
                },
            };
            assert!(len > 0 && len <= given, "{len} of {given}");
            match self.send(who, len, needs, whole) {
                Sent::Yes => drop(self.clients[who].input.drain(..len)),
                Sent::MustWait => {
                    self.clients[who].pending = Some((len, whole, needs));
                    return true;
                }
                Sent::Failed => return false,
            }
        }
    }

    fn send(&mut self, who: usize, len: usize, needs: Needs, whole: bool) -> Sent {
        let client = &mut self.clients[who];
        assert!(len <= client.input.len());
        let request = &client.input[..len];
        if needs.continues {
            if self.holder == Some(who) {
                client.part_open = !whole;
                let sent = self.back.extend(&mut client.front, request, whole, &mut self.to_server);
                return if sent.is_ok() { Sent::Yes } else { Sent::Failed };
            }
            return Sent::Yes;
        }
        let queued = self.back.queued();
        if self.holder.is_none() && queued == 0 {
            self.holder = Some(who);
            self.all_shareable = true;
        }
        let company = needs.shareable && whole && self.all_shareable && queued > 0;
        if self.holder != Some(who) && !company {
            return Sent::MustWait;
        }
        self.all_shareable &= needs.shareable;
        let sent = self.back.dispatch(&mut client.front, client.owner, request, whole, &mut self.to_server);
        client.inflight += 1;
        client.part_open = !whole;
        if sent.is_ok() { Sent::Yes } else { Sent::Failed }
    }

    fn place_of(&self, owner: Option<Owner>) -> Option<usize> {
        self.clients.iter().position(|client| Some(client.owner) == owner)
    }

    /// Looks at the server's bytes until there is nothing to be done with them.
    fn pump_server(&mut self) -> bool {
        let mut steps_left = 64 + 4 * self.server_input.len() + 64 * self.back.queued();
        loop {
            assert!(steps_left > 0, "no end of steps");
            steps_left -= 1;
            let head = self.back.head();
            let who = match head {
                Some(_) => self.place_of(head),
                None => self.holder,
            };
            let queued = self.back.queued();
            let mut to_client = Vec::new();
            let front = who.map(|who| &mut self.clients[who].front);
            let step = self.back.handle_reply(front, &self.server_input, &mut to_client, &mut self.to_server);
            match step {
                Ok(Step::Forward(len) | Step::Consumed(len)) => {
                    assert!(len <= self.server_input.len());
                    self.server_input.drain(..len);
                }
                Ok(Step::Done { owner, boundary }) => {
                    assert_eq!(Some(owner), head, "done is the head's");
                    assert_eq!(self.back.queued() + 1, queued);
                    assert_eq!(self.back.boundary(), boundary);
                    self.done(owner, boundary);
                }
                Ok(Step::Incomplete) => return self.server_input.len() <= limits::SERVER_GATHER_BYTES,
                Err(_) => return false,
            }
        }
    }

    fn done(&mut self, owner: Owner, boundary: Boundary) {
        if owner != INTERNAL
            && let Some(who) = self.place_of(Some(owner))
        {
            let client = &mut self.clients[who];
            assert!(client.inflight > 0, "answered more often than asked");
            client.inflight -= 1;
        }
        let Some(holder) = self.holder else { return };
        let client = &self.clients[holder];
        let free = boundary == Boundary::Idle && self.back.queued() == 0 && !client.part_open;
        if free && client.front.pins().is_empty() {
            self.holder = None;
        }
    }

    /// A client is gone; another one takes its place.
    fn client_leaves(&mut self, who: usize) -> bool {
        let Some(front) = front::<W>() else { return false };
        let owner = self.clients[who].owner;
        self.back.forget(owner, &mut self.to_server);
        self.clients[who] = Client {
            front,
            input: Vec::new(),
            inflight: 0,
            part_open: false,
            pending: None,
            owner: self.next_owner,
        };
        self.next_owner += 1;
        if self.holder == Some(who) {
            self.holder = None;
            if self.back.boundary() != Boundary::Idle || self.back.queued() > 0 {
                self.back.rollback(&mut self.to_server);
            }
        }
        self.pump_server() && self.greet(who)
    }

    /// Weir's own requests, when nobody has the server.
    fn weir_asks(&mut self, what: u8) -> bool {
        let _ = (self.back.cancel_plan(), self.back.is_reusable());
        if self.holder.is_some() || self.back.queued() > 0 {
            return true;
        }
        match what % 3 {
            0 => self.back.rollback(&mut self.to_server),
            1 => self.back.reset(&mut self.to_server),
            _ => self.back.check(&mut self.to_server),
        }
        self.all_shareable = false;
        assert_eq!(self.back.head(), Some(INTERNAL));
        self.pump_server()
    }

    /// A client's waiting request is refused.
    fn refused(&mut self, who: usize) -> bool {
        let client = &mut self.clients[who];
        if let Some((len, _, _)) = client.pending.take() {
            let request: Vec<u8> = client.input.drain(..len).collect();
            client.front.reject(&Fault::from(FaultKind::QueryWaitTimeout), &request, &mut Vec::new());
        }
        true
    }

    fn end(mut self) {
        let mut out = Vec::new();
        for client in &mut self.clients {
            client.front.fatal(&Fault::from(FaultKind::ServerLost), &mut out);
        }
        self.back.quit(&mut self.to_server);
    }
}

enum Sent {
    Yes,
    MustWait,
    Failed,
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_proxy::wing::{MySql, Postgres};

    #[test]
    fn postgres_is_served_to_the_end_of_a_request() {
        let mut session = Session::<Postgres>::new().expect("both logins and the greeting succeed");
        let (requests, replies) = (Postgres::client_messages(), Postgres::server_messages());
        assert!(session.client_says(0, &requests[0]));
        assert_eq!(session.holder, Some(0));
        assert!(!session.to_server.is_empty());
        assert!(session.server_says(&replies[3]));
        assert!(session.server_says(&replies[0]));
        assert_eq!((session.holder, session.back.queued()), (None, 0));
    }

    #[test]
    fn mysql_is_served_to_the_end_of_a_request() {
        let mut session = Session::<MySql>::new().expect("both logins and the greeting succeed");
        let (requests, replies) = (MySql::client_messages(), MySql::server_messages());
        assert!(session.client_says(0, &requests[0]));
        assert_eq!(session.holder, Some(0));
        assert!(!session.to_server.is_empty());
        assert!(session.server_says(&replies[0]));
        assert_eq!((session.holder, session.back.queued()), (None, 0));
    }
}
