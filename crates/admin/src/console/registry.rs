//! The table of console commands. The parser, SHOW HELP and the manual's reference read it.

/// Who may give a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// `admin_users` and `stats_users`.
    All,
    /// `admin_users`.
    Admins,
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// `show pools`, in lower case.
    pub name: &'static str,
    /// What follows, as the help writes it.
    pub argument: &'static str,
    /// Who may.
    pub who: Who,
    /// PgBouncer has it, too.
    pub pgbouncer: bool,
    /// What it does, in one sentence.
    pub text: &'static str,
}

macro_rules! rows {
    ($($who:ident $of:ident $name:literal $argument:literal $text:literal;)*) => {
        &[$(Row { name: $name, argument: $argument, who: Who::$who, pgbouncer: rows!(@$of), text: $text },)*]
    };
    (@both) => { true };
    (@weir) => { false };
}

/// All commands.
pub static COMMANDS: &[Row] = rows! {
    All both "show help" "" "The console's commands.";
    All both "show version" "" "The version of PgBouncer that the console is compatible with, and Weir's version.";
    All both "show config" "" "Each setting: its value, its default, and whether RELOAD and SET can change it.";
    All both "show databases" "" "Each database: its address, its limits, and whether it is paused or disabled.";
    All both "show pools" "" "Each pool (database and user): its clients and servers by state, and the current longest wait.";
    All both "show clients" "" "Each client.";
    All both "show servers" "" "Each server connection.";
    All both "show sockets" "" "Connections of clients and servers, including those that are logging in.";
    All both "show active_sockets" "" "Connections with a request in progress.";
    All both "show lists" "" "Numbers of databases, users, pools, clients and servers.";
    All both "show users" "" "Each user: limits, servers and clients.";
    All both "show stats" "" "Each database: totals since the start, and averages over stats_period.";
    All both "show stats_totals" "" "Totals since the start.";
    All both "show stats_averages" "" "Averages over stats_period.";
    All both "show totals" "" "Totals and averages of all databases together.";
    All both "show mem" "" "Memory of clients, servers and pools, without buffers.";
    All both "show dns_hosts" "" "Hosts that are looked up by name, and their addresses.";
    All both "show dns_zones" "" "Always empty: Weir does not watch zones.";
    All both "show state" "" "Whether Weir is paused.";
    All both "show peers" "" "Always empty: Weir has no peers.";
    All both "show peer_pools" "" "Always empty: Weir has no peers.";
    All weir "show pins" "" "Each client that keeps its server beyond its transaction: the reason, since when, and the statement that caused it.";
    All weir "show queue" "" "Each client that waits for a server, longest wait first.";
    All weir "show statements" "" "Each statement of each pool, without its values: calls, errors, rows, and how long its requests took, most time first.";
    All weir "show limits" "" "Each limit on clients and servers, and how much of it is used.";
    Admins both "set" "key = value" "Changes a setting until the next RELOAD.";
    Admins both "reload" "" "Reads the configuration again.";
    Admins both "pause" "[db]" "Closes each server as soon as its client releases it, and answers when all are closed. Requests wait until RESUME.";
    Admins both "resume" "[db]" "Ends PAUSE and KILL.";
    Admins both "disable" "db" "Refuses new clients of the database.";
    Admins both "enable" "db" "Accepts new clients of the database again.";
    Admins both "reconnect" "[db]" "Replaces each server as soon as its client releases it.";
    Admins both "kill" "[db]" "Closes all clients and servers at once and leaves the database paused.";
    Admins both "kill_client" "id" "Closes one client of the protocol that the console connection uses.";
    Admins both "wait_close" "[db]" "Answers when all servers that RECONNECT or RELOAD replaces are closed.";
    Admins both "shutdown" "[wait_for_servers|wait_for_clients]" "Stops at once. wait_for_servers: refuses new clients and stops when transactions have ended, after drain_timeout at most. wait_for_clients: refuses new clients and stops when all clients have disconnected.";
};

/// The row of a command.
pub fn find(name: &str) -> Option<&'static Row> {
    COMMANDS.iter().find(|row| row.name == name)
}

/// The text of SHOW HELP.
pub fn help() -> &'static str {
    static TEXT: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    TEXT.get_or_init(|| {
        let mut text = String::from("\n");
        let shown: Vec<_> = COMMANDS.iter().filter_map(|row| row.name.strip_prefix("show ")).collect();
        for some in shown.chunks(6) {
            text.push_str(&format!("\tSHOW {}\n", some.join("|").to_uppercase()));
        }
        let others = COMMANDS.iter().filter(|row| !row.name.starts_with("show "));
        let lines: Vec<_> = others
            .map(|row| format!("\t{} {}", row.name.to_uppercase(), row.argument).trim_end().to_owned())
            .collect();
        text.push_str(&lines.join("\n"));
        text
    })
}

/// The reference of the manual: a table in Markdown.
pub fn reference() -> String {
    let mut text = String::from("| command | who | does |\n|---|---|---|\n");
    for row in COMMANDS {
        let who = match row.who {
            Who::All => "all",
            Who::Admins => "admins",
        };
        let own = if row.pgbouncer { "" } else { " (Weir's own)" };
        let name = format!("{} {}", row.name.to_uppercase(), row.argument);
        // In a table a bar ends a cell.
        let name = name.trim_end().replace('|', "\\|");
        text.push_str(&format!("| `{name}`{own} | {who} | {} |\n", row.text));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_there_once() {
        for row in COMMANDS {
            assert_eq!(COMMANDS.iter().filter(|other| other.name == row.name).count(), 1, "{}", row.name);
            assert!(row.text.ends_with('.') && row.name == row.name.to_lowercase());
        }
        assert!(help().contains("PAUSE [db]") && help().contains("PINS") && reference().contains("`RELOAD`"));
    }
}
