//! The two wings as the hall sees them: the machines of a protocol ([`weir_session`]), its pools and its
//! mail.

use crate::context::Shared;
use crate::mail::{Mail, WingMail};
use crate::pool::Registry;
use weir_net::Net;
use weir_session::Machines;

pub use weir_mysql::MySql;
pub use weir_postgres::Postgres;
pub use weir_session::{Accept, Back, Connect, Console, Front, Tally, Welcomes};

/// One database protocol.
pub trait Wing: Machines {
    /// Addresses a message to this wing's hall.
    fn mail<N: Net>(mail: WingMail<Self, N>) -> Mail<N>;
    /// The pools of this protocol.
    fn registry<N: Net>(shared: &Shared<N>) -> &Registry<Self::Welcomes>;
}

impl Wing for Postgres {
    fn mail<N: Net>(mail: WingMail<Self, N>) -> Mail<N> {
        Mail::Postgres(mail)
    }

    fn registry<N: Net>(shared: &Shared<N>) -> &Registry<Self::Welcomes> {
        &shared.postgres
    }
}

impl Wing for MySql {
    fn mail<N: Net>(mail: WingMail<Self, N>) -> Mail<N> {
        Mail::MySql(mail)
    }

    fn registry<N: Net>(shared: &Shared<N>) -> &Registry<Self::Welcomes> {
        &shared.mysql
    }
}
