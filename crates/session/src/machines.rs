//! The five machines of a protocol, and that they belong together.

use crate::{Accept, Back, Connect, Front, Protocol, Welcomes};

/// The machines of one protocol. The wings have the same plan of files; this is the plan as the compiler
/// checks it.
pub trait Machines: Sized + 'static {
    /// Which protocol.
    const PROTOCOL: Protocol;
    /// Its backs can be asked for the catalogue of their database.
    const HAS_CATALOGUE: bool;
    /// Behind a change of tables alone its clients may go on for a while before the catalogue is read again.
    /// Not where what the unread leaves costs a server its prepared statements, which may be the only ones
    /// that know what a client has bound.
    const RESTS_BEHIND_TABLES: bool;
    /// With it they are asked what becomes of the account that they have logged in with.
    const ASKS_ACCOUNTS: bool;
    /// Login, we are the server.
    type Accept: Accept<Front = Self::Front>;
    /// Login, we are the client.
    type Connect: Connect<Back = Self::Back>;
    /// A logged-in client.
    type Front: Front;
    /// A logged-in server.
    type Back: Back<Front = Self::Front>;
    /// What clients of one pool are greeted with.
    type Welcomes: Welcomes<Front = Self::Front, Back = Self::Back>;
}
