//! Commands (MySQL protocol, "Command Phase").

macro_rules! commands {
    ($($(#[doc = $doc:literal])* $name:ident = $code:literal,)*) => {
        /// The first byte of a request.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Command { $($(#[doc = $doc])* $name = $code,)* }
        impl Command {
            /// The command of this code; `None` for codes that no server knows.
            pub fn from_code(code: u8) -> Option<Command> {
                match code { $($code => Some(Command::$name),)* _ => None }
            }
        }
    };
}

commands! {
    /// Internal to servers.
    Sleep = 0x00,
    /// Goodbye.
    Quit = 0x01,
    /// Chooses the default schema.
    InitDb = 0x02,
    /// A text of statements.
    Query = 0x03,
    /// Columns of a table.
    FieldList = 0x04,
    /// Removed in MySQL 8.
    CreateDb = 0x05,
    /// Removed in MySQL 8.
    DropDb = 0x06,
    /// FLUSH by bits. Removed in MySQL 9.
    Refresh = 0x07,
    /// Stops the server.
    Shutdown = 0x08,
    /// A line of text about the server.
    Statistics = 0x09,
    /// SHOW PROCESSLIST. Removed in MySQL 9.
    ProcessInfo = 0x0A,
    /// Internal to servers.
    Connect = 0x0B,
    /// KILL.
    ProcessKill = 0x0C,
    /// Dumps debug information to the server's log.
    Debug = 0x0D,
    /// Are you there?
    Ping = 0x0E,
    /// Internal to servers.
    Time = 0x0F,
    /// Internal to servers.
    DelayedInsert = 0x10,
    /// Logs in again on the same connection.
    ChangeUser = 0x11,
    /// A replica asks for the binary log.
    BinlogDump = 0x12,
    /// Removed.
    TableDump = 0x13,
    /// Internal to servers.
    ConnectOut = 0x14,
    /// A replica says who it is.
    RegisterReplica = 0x15,
    /// Prepares a statement.
    StmtPrepare = 0x16,
    /// Runs a prepared statement.
    StmtExecute = 0x17,
    /// A piece of a parameter. Has no reply.
    StmtSendLongData = 0x18,
    /// Forgets a prepared statement. Has no reply.
    StmtClose = 0x19,
    /// Drops long data and closes the cursor of a statement.
    StmtReset = 0x1A,
    /// Multi-statements on or off.
    SetOption = 0x1B,
    /// Rows of a cursor.
    StmtFetch = 0x1C,
    /// Internal to servers.
    Daemon = 0x1D,
    /// A replica asks for the binary log by GTID.
    BinlogDumpGtid = 0x1E,
    /// Resets the session without a login.
    ResetConnection = 0x1F,
    /// MySQL's clone plugin.
    Clone = 0x20,
    /// MySQL's group replication.
    SubscribeGroupReplication = 0x21,
    /// MariaDB: runs a statement for many rows of parameters. Not offered.
    StmtBulkExecute = 0xFA,
}
