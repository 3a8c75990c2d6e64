//! How what runs on a server is cancelled: `KILL QUERY` on a second connection of the same user.
//!
//! KILL reaches whatever the server runs at that moment, so the proxy keeps the server from changing
//! hands until it is done.

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
