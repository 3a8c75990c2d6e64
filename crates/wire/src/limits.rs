//! Every bound on what a peer can make Weir keep, in one place.
//!
//! Beyond a bound Weir refuses or closes, counts and logs; it never grows. A bound that an operator may
//! change is a setting in `config` with this value as its default or its maximum. Defined elsewhere: sizes
//! that a protocol fixes, and what `tls` keeps of an incomplete message, since it does not depend on this
//! crate.

/// Bytes one read takes from a socket into the worker's scratch buffer. 256 kB measured best for large
/// rows; small replies are not affected, the buffer is shared by all clients.
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

/// Logins that ask one LDAP server at a time, each by a thread and a connection; the next ones wait.
pub const LDAP_QUESTIONS: usize = 32;

/// Logins that ask PAM at a time, each by a process; the next ones wait.
pub const PAM_QUESTIONS: usize = 8;

/// Pools whose clients are listened for, each by a thread and a connection. Clients of others keep their
/// servers.
pub const LISTENING_POOLS: usize = 64;

/// Channels of one client that is listened for; who has more keeps its server.
pub const LISTEN_CHANNELS: usize = 1_000;

/// Bytes of notifications that wait in Weir for a client that is in a transaction or does not read.
pub const NOTIFICATION_BYTES: usize = 1024 * 1024;

/// Users of one database whose last answer is remembered. Strangers choose the names.
pub const ASKED_USERS: usize = 10_000;

/// Connections over `max_client_conn` at a time, so that those who log in can be told why they are refused.
/// Beyond, the oldest that has said nothing is closed unheard, or else the newest.
pub const REFUSED_CONNECTIONS: usize = 128;

/// Addresses and names whose wrong passwords a worker tells apart.
pub const REFUSED_ADDRESSES: usize = 1_024;

/// Sets of SCRAM keys kept for one secret: one for Weir's own salt, the others for servers that use different
/// salts for the same user.
pub const SCRAM_KEYS: usize = 8;

/// Bytes of a server's public key in PEM that are read: RSA-8192 needs 1,400.
pub const PUBLIC_KEY_BYTES: usize = 4 * 1024;

/// HTTP connections served at a time; the next ones wait in the kernel's queue. A monitoring system needs two
/// or three, and somebody who opens thousands must not take the descriptors of database clients.
pub const HTTP_CONNECTIONS: usize = 128;

/// Bytes of the head of an HTTP request. Browsers send some hundreds.
pub const HTTP_HEADER_BYTES: usize = 16 * 1024;

/// Headers of an HTTP request.
pub const HTTP_HEADERS: usize = 64;

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
/// MySQL: bytes that a zstd packer may refer back to, and that are kept while its packet is half there; as a
/// power of two: those of a whole packet.
pub const ZSTD_WINDOW_LOG: u32 = 24;
/// Bytes of the texts of the statements kept prepared on one server; those used least recently leave.
pub const SERVER_PREPARED_BYTES: usize = 4 * 1024 * 1024;

/// Readings of one text that a server keeps prepared, when its types have changed in between. Clients that
/// prepared it before are refused by PostgreSQL sooner or later, so that more than a few are never in use.
pub const STATEMENT_VERSIONS: usize = 4;

/// Requests one client may have queued on servers at a time (it pipelines without reading).
pub const CLIENT_PIPELINE: usize = 1_024;

/// Assignments that are listed of one SET; more make the list incomplete.
pub const TEXT_ASSIGNMENTS: usize = 64;
/// SETs at the head of a text that are listed.
pub const TEXT_HEADS: usize = 4;
/// Calls of a text that are listed; of one with more it is known that there are.
pub const TEXT_CALLS: usize = 32;
/// Texts of which one worker remembers for each protocol what they are, whatever numbers stand in them.
pub const REMEMBERED_TEXTS: usize = 256;
/// Bytes of the longest of them.
pub const REMEMBERED_TEXT_BYTES: usize = 512;
/// Names of settings that are kept of one text; with more it may be any.
pub const TEXT_SETTINGS: usize = 64;

/// Bytes of all names and texts of one database's catalogue that are looked at; beyond that nothing is
/// trusted. A database with 5,000 functions of 2 kB has 10 MB.
pub const CATALOGUE_BYTES: usize = 256 * 1024 * 1024;

/// Words, calls and assignments that are kept of one piece of the database's code; one with more counts as
/// unknown.
pub const CODE_FACTS: usize = 8_192;

/// Bytes of a string that code runs; a longer one counts as unknown.
pub const DYNAMIC_SQL_BYTES: usize = 65_536;

/// How often one piece of code runs the string of a variable; beyond that they count as unknown.
pub const STRINGS_RUN: usize = 64;

/// Words that are noted of one piece of code.
pub const CODE_NAMES: usize = 8_192;

/// Session settings Weir carries for one client, and the bytes of their names and values.
pub const CLIENT_SETTINGS: usize = 128;
/// See [`CLIENT_SETTINGS`].
pub const CLIENT_SETTINGS_BYTES: usize = 16 * 1024;

/// PostgreSQL: settings that a client has set in one transaction and that its server is asked for. Who sets
/// more keeps its server.
pub const SETTINGS_ASKED: usize = 64;

/// PostgreSQL: parameters a server may report; PostgreSQL 18 has 16 and extensions add few.
pub const REPORTED_PARAMETERS: usize = 128;

/// PostgreSQL: bytes of one reported value. `search_path` is the longest in practice.
pub const REPORTED_VALUE_BYTES: usize = 8 * 1024;

/// PostgreSQL: named portals with effects that are remembered of a client, each by itself.
pub const PORTALS: usize = 64;

/// PostgreSQL: plans of settings remembered as accepted by a server.
pub const PLANS_ACCEPTED: usize = 64;

/// PostgreSQL: sets of settings that clients of one pool began with; the oldest leaves.
pub const WELCOMES: usize = 256;

/// MySQL: user variables that go along with a client. Who has more keeps its server.
pub const USER_VARIABLES: usize = 64;
/// Bytes of the value of one of them.
pub const USER_VARIABLE_BYTES: usize = 4 * 1024;
/// Bytes of all of them, as they are written to be set again.
pub const USER_VARIABLES_BYTES: usize = 16 * 1024;

/// MySQL: bytes of warnings kept for one client. A longer list stays on its server, and the server with its
/// client.
pub const WARNINGS_BYTES: usize = 64 * 1024;

/// MySQL: rows that errors of commands can make of the list (max_error_count has 1,024 by default).
pub const WARNINGS_ROWS: usize = 1_024;

/// MySQL: with fewer conditions in the list max_error_count (64 on MariaDB) leaves room for one more.
pub const WARNINGS_WITH_ROOM: usize = 64;

/// MySQL: bytes of a request that is kept until it is answered; a longer one is not kept.
pub const REQUEST_TEXT_BYTES: usize = 4 * 1024;

/// MySQL: bytes of such texts that are over, before they are taken away.
pub const REQUEST_TEXTS_OVER_BYTES: usize = 16 * 1024;

/// MySQL: bytes of a result looked at ahead to see whether it holds OUT parameters.
pub const OUT_PARAMS_BYTES: usize = 64 * 1024;

/// MySQL: bytes of long data kept for one client; more of it goes to a pinned server as it comes.
pub const LONG_DATA_BYTES: usize = 256 * 1024;

/// MySQL: bytes of an execution kept as an example of its statement; a longer one is not kept.
pub const EXECUTION_BYTES: usize = 1024;

/// MySQL: names of one kind (temporary tables, locks) that are kept for a client; with more it keeps its
/// server.
pub const HELD_NAMES: usize = 64;

/// MySQL: bytes of a text that is read for what it holds; a longer one is not understood.
pub const HELD_TEXT_BYTES: usize = 16 * 1024;

/// MySQL: pairs of schema and charset remembered of one pool; beyond that all are asked for anew.
pub const GREETED_PAIRS: usize = 4_096;

/// Users of pools that are logged in as another one whose own names a worker keeps for its log.
pub const LOGGED_NAMES: usize = 1024;

/// Statements of one worker and pool that are known to be slow. An application has some hundreds of
/// statements; slow ones among them are few.
pub const SLOW_STATEMENTS: usize = 1_024;

/// Statements of one worker and pool remembered as answered, in pairs of places that a number can stand at:
/// 16 kB at most. One that is forgotten has a server to itself once more.
pub const SEEN_STATEMENTS: usize = 4_096;

/// Codes of servers' errors that a worker tells apart for each protocol in its metrics.
pub const ERROR_CODES: usize = 128;

/// Workers of one process: a client's number names its worker in 6 bits.
pub const WORKERS: usize = 64;

/// Messages that may wait for a worker. They are bounded by what they are about (servers, logins, cancel
/// requests); this is the bound on Weir's own mistakes.
pub const MAILBOX_MESSAGES: usize = 1 << 20;

/// Pools with names of their own in the metrics. A fallback database lets clients name new pools; the pools
/// beyond are counted together, so that no client can fill a monitoring system.
pub const NAMED_POOLS: usize = 1_000;

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

/// Bytes of a statement that the console shows as the cause of a pin, and the log as slow.
pub const SHOWN_STATEMENT_BYTES: usize = 200;

/// Bytes of a statement of which figures are kept (`console.track_statements`).
pub const STATEMENT_WORDS_BYTES: usize = 1_000;

/// Bytes of a name that the console shows.
pub const CONSOLE_NAME_BYTES: usize = 128;

/// Bytes of the error by which a server has refused to prepare a statement under its client's own name, kept
/// until the client uses the name. Of a longer one the client is told that the statement is not there.
pub const KEPT_REFUSAL_BYTES: usize = 2048;

/// Bytes of an answer that several clients wait for. Beyond it each asks by itself: large answers cost more
/// to keep and to send than to ask for again. It is kept twice, as the server has said it and as a client was
/// told it, for each request under way for which others wait.
pub const SHARED_ANSWER_BYTES: usize = 64 * 1024;

/// Names of PostgreSQL statements, beyond the 63 bytes that a server keeps, that a client's errors are to
/// show as it wrote them. Others are shown as the server has them.
pub const LONG_NAMES: usize = 64;

/// Bytes of such a name.
pub const LONG_NAME_BYTES: usize = 1024;
