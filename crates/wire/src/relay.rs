//! What the two ends of a session tell the proxy about bytes.
//!
//! A *front* reads a client's bytes and finds where requests begin and end ([`Found`]). A *back* takes whole
//! requests or parts of one for its server and reads the server's bytes ([`Step`]): forward n, consume n, or
//! the request at the head of its queue is done.

/// Who a queued request belongs to. Given by the proxy, opaque to the wings.
pub type Owner = u64;

/// The owner of requests Weir makes for itself (reset, rollback, check): their replies go nowhere.
pub const INTERNAL: Owner = 0;

/// Where a reply left the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Boundary {
    /// No transaction is open.
    Idle,
    /// In a transaction.
    InTransaction,
    /// In a transaction that failed and must be rolled back.
    Failed,
}

/// What a request needs of its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs {
    /// It only reads, provably leaves no trace on its server and may stand behind other clients' requests
    /// there: whole, one statement, outside a transaction, recognised entirely by the lexer.
    pub shareable: bool,
    /// Of a shareable request: its answer is the same for every client with the same settings that asks the
    /// same, byte for byte, before it begins to run; and nothing but the answer is left by it.
    pub alike: bool,
    /// More of the same request will come from the client: the server must be leased to it.
    pub lease: bool,
    /// These bytes continue the request at the end of this client's queue (further parts of a long
    /// request; COPY and LOCAL INFILE data and their end, also when the request itself was whole): the
    /// proxy calls `extend` and not `dispatch`, and counts no new request.
    pub continues: bool,
    /// Of a shareable request: the same number for the same statement with other values, so that it can be
    /// known how long it takes.
    pub fingerprint: u32,
    /// It shows numbers of the database's own connections, by which its client may ask for an end of what
    /// they run.
    pub lists: bool,
    /// It does nothing but prepare a statement, outside a transaction and with nothing of its client's under
    /// way: what servers have said of the same statement may answer it.
    pub prepares: bool,
    /// It is a lone BEGIN, or the end of a transaction that no server knows of yet: it may be answered
    /// without a server.
    pub late: bool,
    /// Not any server will do: the wing says which one does, and as what a new one must be opened.
    pub choosy: bool,
    /// Its client's channels are listened to elsewhere, and must be its server's own before this runs there.
    pub home: bool,
}

/// What a front found at the start of a client's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Nothing that can be acted on yet; call again when more bytes have arrived behind these.
    Incomplete,
    /// `bytes[..len]` is one whole request, or the end of one of which parts were found before.
    Request {
        /// Bytes of the request.
        len: usize,
        /// What it needs.
        needs: Needs,
    },
    /// `bytes[..len]` belongs to a request that cannot be waited for: longer than the gather bound, ended
    /// by Flush, or data of a COPY or LOCAL INFILE. `needs.lease` is always set.
    Part {
        /// Bytes that can be sent on now.
        len: usize,
        /// What it needs.
        needs: Needs,
    },
    /// `bytes[..len]` is to be dropped: nobody waits for it (COPY data after the server's error).
    Drop {
        /// Bytes to drop.
        len: usize,
    },
    /// `bytes[..len]` was a request that the front answered itself; the answer is in `out`.
    Answered {
        /// Bytes of the request.
        len: usize,
    },
    /// `bytes[..len]` asks to end another client or its request (MySQL KILL). The proxy does it and
    /// calls the front's `killed` with the outcome, which writes the answer, or `pass_on`.
    Kill {
        /// Bytes of the request.
        len: usize,
        /// Weir's own id of the target, or the number of a connection of the database's.
        target: u32,
        /// End its running request only, not the client.
        query_only: bool,
    },
    /// `bytes[..len]` begins a login on top of this session, of the same user or another (MySQL
    /// COM_CHANGE_USER). The proxy gives them to a login machine; the session is over when that login is
    /// through.
    Login {
        /// Bytes of the request.
        len: usize,
    },
    /// The client says goodbye (Terminate, COM_QUIT).
    Goodbye,
}

/// What a back did with the start of a server's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Send `input[..n]` unchanged to the head's owner, after whatever was appended to `to_client`.
    Forward(usize),
    /// `input[..n]` is dealt with; what the owner must see of it was appended to `to_client`.
    Consumed(usize),
    /// The head request is answered whole (its bytes were consumed by the steps before) and has left the
    /// queue. `boundary` is where it left the server.
    Done {
        /// Whose request it was.
        owner: Owner,
        /// Where the server is now.
        boundary: Boundary,
    },
    /// Nothing can be done until more bytes have arrived behind these.
    Incomplete,
}

macro_rules! pins {
    ($($(#[doc = $doc:literal])* $name:ident $label:literal,)*) => {
        /// Why a lease outlives the boundary.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Pin { $($(#[doc = $doc])* $name,)* }
        impl Pin {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Pin] = &[$(Pin::$name,)*];
            /// The value of the `reason` label in metrics, logs and SHOW.
            pub fn label(self) -> &'static str { match self { $(Pin::$name => $label,)* } }
        }
    };
}

pins! {
    /// `SET`, `RESET`, `set_config` of a setting that is not followed.
    Setting "setting",
    /// A temporary table, view or sequence.
    TemporaryTable "temporary_table",
    /// A lock that outlives its transaction: advisory lock, GET_LOCK, LOCK TABLES, LOCK INSTANCE.
    SessionLock "session_lock",
    /// A cursor declared WITH HOLD, HANDLER OPEN, or a MySQL statement with an open cursor.
    Cursor "cursor",
    /// `LISTEN`.
    Listen "listen",
    /// `PREPARE` in SQL.
    SqlPrepare "sql_prepare",
    /// `currval`, `lastval`, `LAST_INSERT_ID`, `FOUND_ROWS`, warnings: the next request may ask about the
    /// last one.
    LastResult "last_result",
    /// MySQL user variables.
    UserVariable "user_variable",
    /// `LOAD` and other changes of the server process.
    Load "load",
    /// More prepared statements or long data than Weir carries.
    Prepared "prepared",
    /// A replication connection.
    Replication "replication",
    /// A statement the lexer does not know and that may leave anything behind.
    Unrecognised "unrecognised",
    /// Code of the database's users ran of which it is not known what it leaves behind: a function, a
    /// trigger, a view, DO, CALL.
    Code "code",
    /// A sequence of MariaDB's was drawn from: what LASTVAL() gives is this session's.
    Sequence "sequence",
}

/// A set of [`Pin`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pins(u32);

impl Pins {
    /// No reason.
    pub const NONE: Pins = Pins(0);
    /// Adds a reason.
    #[inline]
    pub fn insert(&mut self, pin: Pin) {
        self.0 |= 1 << pin as u32;
    }
    /// Takes a reason away.
    #[inline]
    pub fn remove(&mut self, pin: Pin) {
        self.0 &= !(1 << pin as u32);
    }
    /// Adds all reasons of another set.
    #[inline]
    pub fn union(&mut self, other: Pins) {
        self.0 |= other.0;
    }
    /// The reason is in the set.
    #[inline]
    pub fn contains(self, pin: Pin) -> bool {
        self.0 & (1 << pin as u32) != 0
    }
    /// There is no reason.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// The reasons, lowest number first.
    pub fn iter(self) -> impl Iterator<Item = Pin> {
        let mut left = self.0;
        // By bits, not by asking for each: there is none nearly always.
        std::iter::from_fn(move || {
            let pin = *Pin::ALL.get(left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(pin)
        })
    }
}

impl From<Pin> for Pins {
    fn from(pin: Pin) -> Self {
        Pins(1 << pin as u32)
    }
}

/// What an operator has decided of the reasons for pins, beyond that they pin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PinPolicies {
    /// A client that is pinned is logged.
    pub warned: Pins,
    /// A statement that would pin is refused, where its text says so.
    pub refused: Pins,
    /// They are no reason: what is left behind meets the next client.
    pub passed: Pins,
}

/// Bits of each set of [`PinPolicies`] in one number.
const POLICY_BITS: u32 = 20;
const _: () = assert!(Pin::ALL.len() <= POLICY_BITS as usize);

impl PinPolicies {
    /// Nothing is decided.
    #[inline]
    pub fn is_default(self) -> bool {
        self == PinPolicies::default()
    }
    /// The first of these reasons that is refused.
    pub fn refuses(self, pins: Pins) -> Option<Pin> {
        Pins(self.refused.0 & pins.0).iter().next()
    }
    /// Those of these reasons that are logged: a refused one pins where the text did not say so.
    pub fn tells(self, pins: Pins) -> Pins {
        Pins((self.warned.0 | self.refused.0) & pins.0)
    }
    /// What is left of these reasons.
    pub fn without_passed(self, pins: Pins) -> Pins {
        Pins(pins.0 & !self.passed.0)
    }
    /// What `other` says of these reasons, and this of all others.
    pub fn replaced(self, reasons: Pins, other: PinPolicies) -> PinPolicies {
        let join = |own: Pins, other: Pins| Pins(own.0 & !reasons.0 | other.0 & reasons.0);
        PinPolicies {
            warned: join(self.warned, other.warned),
            refused: join(self.refused, other.refused),
            passed: join(self.passed, other.passed),
        }
    }
    /// The same where nothing can be passed on to other clients.
    pub fn warning_of_passed(self) -> PinPolicies {
        let mut warned = self.warned;
        warned.union(self.passed);
        PinPolicies { warned, passed: Pins::NONE, ..self }
    }
    /// As one number.
    pub fn pack(self) -> u64 {
        let [warned, refused, passed] =
            [self.warned, self.refused, self.passed].map(|pins| u64::from(pins.0));
        warned | refused << POLICY_BITS | passed << (2 * POLICY_BITS)
    }
    /// From what [`PinPolicies::pack`] gave.
    pub fn unpack(packed: u64) -> PinPolicies {
        let set = |n: u32| Pins((packed >> (n * POLICY_BITS)) as u32 & ((1 << POLICY_BITS) - 1));
        PinPolicies { warned: set(0), refused: set(1), passed: set(2) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_survive_packing_and_say_what_is_decided() {
        let policies = PinPolicies {
            warned: Pin::Listen.into(),
            refused: Pin::ALL.iter().rev().take(2).fold(Pins::NONE, |mut pins, &pin| {
                pins.insert(pin);
                pins
            }),
            passed: Pin::SessionLock.into(),
        };
        assert_eq!(PinPolicies::unpack(policies.pack()), policies);
        assert!(PinPolicies::unpack(0).is_default() && !policies.is_default());
        let mut pins = Pins::from(Pin::SessionLock);
        pins.insert(Pin::Code);
        assert_eq!(policies.refuses(pins), Some(Pin::Code));
        assert_eq!(policies.refuses(Pin::Setting.into()), None);
        assert_eq!(policies.tells(pins), Pin::Code.into());
        assert_eq!(policies.without_passed(pins), Pin::Code.into());
        let less =
            policies.replaced(pins, PinPolicies { warned: Pin::Code.into(), ..PinPolicies::default() });
        assert_eq!((less.refuses(pins), less.without_passed(pins)), (None, pins));
        assert_eq!(less.tells(pins), Pin::Code.into());
        assert!(less.warned.contains(Pin::Listen) && less.refuses(Pin::Sequence.into()).is_some());
    }
}
