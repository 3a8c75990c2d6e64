//! Every bound on what a peer can make Weir keep, in one place.
//!
//! Over a bound Weir refuses or closes, counts and logs; it never grows. A bound that an operator may
//! move is a setting in `config` with this value as its default or its ceiling.

/// Bytes one read takes from a socket into the worker's scratch buffer. 256 kB measured best for large
/// rows (design.md, section 2); small replies are not affected, the buffer is shared by all clients.
pub const SCRATCH_BYTES: usize = 256 * 1024;

/// Bytes of one request kept until it is whole. A longer request is sent in parts on a server leased to
/// its client.
pub const REQUEST_GATHER_BYTES: usize = 64 * 1024;

/// Bytes of one text of MySQL's kept until it is whole, because it may ask for what Weir puts in.
pub const QUERY_GATHER_BYTES: usize = 1024 * 1024;

/// Bytes of requests a client may have waiting in Weir before Weir stops reading from it.
pub const CLIENT_INPUT_BYTES: usize = 128 * 1024;

/// Bytes of reply Weir holds for a client that reads slowly before it stops reading from the server.
pub const CLIENT_OUTPUT_BYTES: usize = 256 * 1024;

/// Bytes of request Weir holds for a server that reads slowly before it stops reading from the client.
pub const SERVER_OUTPUT_BYTES: usize = 256 * 1024;

/// Bytes of all messages of a login. PostgreSQL's own bound on a startup packet is 10,000
/// (`MAX_STARTUP_PACKET_LENGTH`); MySQL's handshake response with 64 kB of connection attributes is the
/// largest a server accepts.
pub const LOGIN_BYTES: usize = 80 * 1024;

/// Bytes of a PROXY header with all its extensions. Addresses take 232 at most; a balancer that ended TLS may
/// add what it knows of the client's certificate, which is some kB.
pub const PROXY_HEADER_BYTES: usize = 16 * 1024;

/// Logins of clients that may wait for slow work (PBKDF2, RSA, handshakes) at a time, in the whole process.
/// One takes up to a millisecond of a crypto thread, so the last one waits some seconds; who is behind would
/// have given up, and its work would hold up the next ones.
pub const LOGIN_JOBS: usize = 8_192;

/// Databases that are asked for passwords at a time, each by a thread and a connection (auth_query).
/// Strangers choose the database where `*` is one.
pub const ASKED_DATABASES: usize = 64;

/// Users of one database whose last answer is remembered. Strangers choose the names.
pub const ASKED_USERS: usize = 10_000;

/// Bytes of a server's message that must be read whole to be understood (errors, parameter status,
/// prepare replies, column definitions). Rows are never gathered.
pub const SERVER_GATHER_BYTES: usize = 1024 * 1024;

/// Capacity a buffer may keep after it was emptied. A larger one is given back.
pub const BUFFER_KEEP_BYTES: usize = 16 * 1024;

/// Statements one client may hold prepared.
pub const CLIENT_PREPARED: usize = 10_000;
/// Statements of a client that are prepared on a server in front of a setting or a variable that ties the
/// client to it.
pub const PREPARED_ALONG: usize = 64;
/// Bytes of the texts of these. They are kept to be prepared again on other servers.
pub const CLIENT_PREPARED_BYTES: usize = 16 * 1024 * 1024;
/// Bytes of the texts of the statements kept prepared on one server; those used least recently leave.
pub const SERVER_PREPARED_BYTES: usize = 4 * 1024 * 1024;

/// Readings of one text that a server keeps prepared, when its types have changed in between. Clients that
/// prepared it before are refused by PostgreSQL sooner or later, so that more than a few are never in use.
pub const STATEMENT_VERSIONS: usize = 4;

/// Requests one client may have queued on servers at a time (it pipelines without reading).
pub const CLIENT_PIPELINE: usize = 1_024;

/// Session settings Weir carries for one client, and the bytes of their names and values.
pub const CLIENT_SETTINGS: usize = 128;
/// See [`CLIENT_SETTINGS`].
pub const CLIENT_SETTINGS_BYTES: usize = 16 * 1024;

/// PostgreSQL: settings that a client has set in one transaction and that its server is asked for. Who sets
/// more keeps its server.
pub const SETTINGS_ASKED: usize = 64;

/// MySQL: user variables that go along with a client. Who has more keeps its server.
pub const USER_VARIABLES: usize = 64;
/// Bytes of the value of one of them.
pub const USER_VARIABLE_BYTES: usize = 4 * 1024;
/// Bytes of all of them, as they are written to be set again.
pub const USER_VARIABLES_BYTES: usize = 16 * 1024;

/// Users of pools that are logged in as another one whose own names a worker keeps for its log.
pub const LOGGED_NAMES: usize = 1024;

/// Clients of the administration console at a time, in the whole process.
pub const CONSOLES: usize = 128;

/// Bytes of one statement of the console.
pub const CONSOLE_STATEMENT_BYTES: usize = 8 * 1024;

/// Rows that one statement of the console shows of clients, servers and the like. A client's row is some 300
/// bytes.
pub const CONSOLE_ROWS: usize = 250_000;

/// Bytes of all answers of the console that their clients have not taken yet.
pub const CONSOLE_ANSWERS_BYTES: usize = 256 * 1024 * 1024;

/// Long lists that are being made for the console at a time; the next ones wait.
pub const CONSOLE_LISTS: usize = 2;

/// Clients and servers that a worker looks at for the console in one turn, some 0.1 us each, or 1 us where
/// each becomes a row.
pub const CONSOLE_LOOKS: usize = 1024;

/// Bytes of a statement that the console shows.
pub const SHOWN_STATEMENT_BYTES: usize = 200;

/// Bytes of a name that the console shows.
pub const CONSOLE_NAME_BYTES: usize = 128;
