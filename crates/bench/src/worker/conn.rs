//! One client's connection: small, for there may be 100,000.

use crate::client::Protocol;
use crate::statement::Row;
use crate::workloads::Shape;
use weir_net::Net;
use weir_tls::Stream;

pub(super) type Socket = <weir_net::Kernel as Net>::Socket;

/// What a connection awaits.
pub(super) enum Stage<L> {
    /// There is no connection.
    Absent,
    /// The end of the connect.
    Connecting,
    /// The end of the TLS handshake, which began then.
    Securing(Box<L>, u64),
    /// The end of the login.
    LoggingIn(Box<L>),
    /// The replies to the statements that are sent once behind the login; this one was sent.
    Greeting(u8),
    /// The next event.
    Idle,
    /// A reply.
    Busy,
    /// The server's end of the stream after a goodbye.
    Leaving,
}

impl<L> Stage<L> {
    pub(super) fn is_opening(&self) -> bool {
        matches!(self, Stage::Connecting | Stage::Securing(..) | Stage::LoggingIn(_) | Stage::Greeting(_))
    }

    pub(super) fn is_busy(&self) -> bool {
        matches!(self, Stage::Busy)
    }

    /// Logged in.
    pub(super) fn is_connected(&self) -> bool {
        matches!(self, Stage::Idle | Stage::Busy)
    }
}

/// One client.
pub(super) struct Conn<P: Protocol> {
    pub(super) socket: Option<Socket>,
    /// What lies over the socket.
    pub(super) tls: Option<Box<Stream>>,
    pub(super) stage: Stage<P::Login>,
    pub(super) session: P::Session,
    /// What has come of a message that is not whole. Empty, and without memory, between queries.
    pub(super) input: Vec<u8>,
    /// What the socket had no room for, encrypted if there is TLS.
    pub(super) output: Vec<u8>,
    /// Number of the client in the plan.
    pub(super) client: u32,
    /// Counts connections of this client, so that events of a former one are known.
    pub(super) generation: u32,
    /// Counts events of this client.
    pub(super) event: u32,
    /// Events that are due and have not begun.
    pub(super) owed: u32,
    pub(super) step: u16,
    /// Connects that failed before the start.
    pub(super) tries: u8,
    /// The reply under way must have a row and has none yet.
    pub(super) needs_row: bool,
    /// The query under way has failed: its error is counted.
    pub(super) failed: bool,
    /// It failed by an ignored error: the event is to begin again.
    pub(super) again: bool,
    /// What is under way is the ROLLBACK of a failed event.
    pub(super) rolling_back: bool,
    /// The client stands in the list of free ones.
    pub(super) listed: bool,
    /// Class of the statement under way.
    pub(super) class: u16,
    /// Rows that this event has heard. Empty, and without memory, between events.
    pub(super) heard: Vec<Row>,
    /// The client was connected before.
    pub(super) was_connected: bool,
    /// When the present stage began.
    pub(super) since_ns: u64,
    /// When the present event began: when it was due, if the client was not free then.
    pub(super) begun_ns: u64,
    /// When the oldest owed event was due.
    pub(super) due_ns: u64,
    /// Time between two dues.
    pub(super) period_ns: u64,
}

impl<P: Protocol> Conn<P> {
    pub(super) fn new(client: u32) -> Self {
        Conn {
            socket: None,
            tls: None,
            stage: Stage::Absent,
            session: P::Session::default(),
            input: Vec::new(),
            output: Vec::new(),
            client,
            generation: 0,
            event: 0,
            owed: 0,
            step: 0,
            tries: 0,
            needs_row: false,
            failed: false,
            again: false,
            rolling_back: false,
            listed: false,
            class: 0,
            heard: Vec::new(),
            was_connected: false,
            since_ns: 0,
            begun_ns: 0,
            due_ns: 0,
            period_ns: 0,
        }
    }

    /// The next event can begin at once.
    pub(super) fn can_begin(&self, shape: Shape) -> bool {
        match shape {
            Shape::Queries => matches!(self.stage, Stage::Idle),
            Shape::Connects => matches!(self.stage, Stage::Absent),
            Shape::Silent => false,
        }
    }
}
