//! Server status flags (MySQL protocol, `SERVER_STATUS_flags_enum`).

/// A transaction is open.
pub const IN_TRANS: u16 = 0x0001;
/// autocommit is on.
pub const AUTOCOMMIT: u16 = 0x0002;
/// Another result follows.
pub const MORE_RESULTS: u16 = 0x0008;
/// A cursor is open; its rows are fetched.
pub const CURSOR_EXISTS: u16 = 0x0040;
/// The cursor has no more rows.
pub const LAST_ROW_SENT: u16 = 0x0080;
/// The default schema was dropped.
pub const DB_DROPPED: u16 = 0x0100;
/// A backslash in a string is an ordinary character.
pub const NO_BACKSLASH_ESCAPES: u16 = 0x0200;
/// The row holds OUT parameters.
pub const PS_OUT_PARAMS: u16 = 0x1000;
/// The transaction is READ ONLY.
pub const IN_TRANS_READONLY: u16 = 0x2000;
/// Session state changes follow in this OK packet.
pub const STATE_CHANGED: u16 = 0x4000;

/// What describes one reply and not the session.
pub const OF_THE_REPLY: u16 = MORE_RESULTS
    | CURSOR_EXISTS
    | LAST_ROW_SENT
    | DB_DROPPED
    | PS_OUT_PARAMS
    | STATE_CHANGED
    | 0x0010
    | 0x0020;
