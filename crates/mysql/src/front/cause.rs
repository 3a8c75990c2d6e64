//! The statement that may have pinned a server, as shown to the operator.
//!
//! Must not know: which requests it is asked about.

use super::Front;
use crate::frame::HEADER_BYTES;
use crate::message::command::Command;
use crate::prepared::statement_id;
use weir_sql::without_values;

impl Front {
    /// The text of a request, without its values; of a prepared statement, that which was prepared.
    pub(super) fn words_that_pin(&self, request: &[u8], bytes: usize) -> Option<String> {
        let payload = request.get(HEADER_BYTES..)?;
        let shown = |text: &[u8]| without_values(self.dialect(), text, bytes);
        match self.request.command {
            Command::Query | Command::StmtPrepare => payload.get(1..).map(shown),
            Command::StmtExecute => {
                let number = statement_id(payload).ok()?;
                let statement = self.statements.as_deref()?.get(number)?;
                Some(shown(&statement.text.text))
            }
            _ => None,
        }
    }
}
