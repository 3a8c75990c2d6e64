//! Cancels the request that runs on a server: `KILL QUERY` on a second connection of the same user.
//!
//! KILL hits whatever the server runs at that moment, so the proxy keeps the server assigned to the same
//! client until the KILL is done.

use crate::back::Back;
use crate::session_state::put_query;
use weir_session::login::CancelPlan;

impl Back {
    /// Log in a second time, send this, wait for one answer.
    pub(crate) fn cancel_plan(&self) -> CancelPlan {
        let mut out = Vec::new();
        put_query(&mut out, &format!("KILL QUERY {}", self.server_id()));
        CancelPlan::AfterLogin(out)
    }

    /// The number that the process list shows.
    pub(crate) fn connection_number(&self) -> Option<u64> {
        Some(self.server_id())
    }
}
