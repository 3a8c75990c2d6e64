//! Requests of Weir's own: ROLLBACK, full reset, check, quit.
//!
//! Found on MariaDB 10.11 and MySQL 9.7: COM_RESET_CONNECTION rolls back, drops temporary tables, user
//! variables, prepared statements and locks, restores settings and trackers to the server's defaults and
//! keeps the schema; the charset becomes the login's on MariaDB and the server's default on MySQL, so it
//! counts as unknown afterwards and is set for the next client. `character_set_database` becomes the server's
//! default until a schema is entered, be it the same one again: behind a reset of Weir's it always is.
//! `init_connect` is not run again: a server that has one is closed instead. Roles stay as `SET ROLE` has
//! left them, on MariaDB behind COM_CHANGE_USER, too: a server that acts by another role than at its login is
//! closed. MariaDB keeps the list of SHOW PROFILES, too, and MySQL what the optimizer has traced last.

use crate::back::Back;
use crate::frame;
use crate::message::Command;
use crate::queue::Entry;
use crate::session_state::put_query;
use weir_wire::INTERNAL;

impl Back {
    /// Queues a ROLLBACK of Weir's own.
    pub(crate) fn rollback(&mut self, out: &mut Vec<u8>) {
        put_query(out, "ROLLBACK");
        self.push(Entry::sent(INTERNAL, Command::Query));
    }

    /// Queues a full reset of Weir's own.
    pub(crate) fn reset(&mut self, out: &mut Vec<u8>) {
        self.surprises = self.knowledge.surprises();
        put_reset(&self.setup_behind_reset, out);
        let mut entry = Entry::sent(INTERNAL, Command::ResetConnection);
        entry.setup_owed = true;
        self.push(entry);
    }

    /// Queues the cheapest question that proves the server answers.
    pub(crate) fn check(&mut self, out: &mut Vec<u8>) {
        put_command(out, Command::Ping);
        self.push(Entry::sent(INTERNAL, Command::Ping));
    }

    /// Says goodbye, unless that would be read as something else.
    pub(crate) fn quit(&mut self, out: &mut Vec<u8>) {
        // Behind half a command it would be read as the rest of that command, and in the middle of a
        // COM_CHANGE_USER as a wrong password.
        if !self.broken && !self.is_logging_in() {
            put_command(out, Command::Quit);
        }
    }
}

/// Appends COM_RESET_CONNECTION and the `setup` behind it: two replies.
pub(crate) fn put_reset(setup: &str, out: &mut Vec<u8>) {
    put_command(out, Command::ResetConnection);
    put_query(out, setup);
}

/// Appends a command without arguments.
pub(crate) fn put_command(out: &mut Vec<u8>, command: Command) {
    frame::put(out, 0, |out| out.push(command as u8));
}
