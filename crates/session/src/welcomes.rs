//! What clients are told after login.

use crate::{Back, Front};

/// What the clients of one pool are told at the end of their login, by the settings they named. A client
/// whose settings no server has confirmed yet takes a place in the queue first.
pub trait Welcomes: Default + Clone + Send + Sync {
    /// The clients.
    type Front: Front;
    /// Their servers.
    type Back: Back<Front = Self::Front>;
    /// A server has logged in: what it said is the ground truth. Forgets what a different server said.
    fn observe(&mut self, back: &mut Self::Back);
    /// Ends the login of `front` if its settings are known to be good; false when a server must be asked
    /// first (`dispatch_welcome`).
    fn greet(&self, front: &mut Self::Front, out: &mut Vec<u8>) -> bool;
    /// `dispatch_welcome` of `front` was done on `back`. True: remembered, `greet` will now succeed.
    /// False: the server refused the settings; its error has gone to the client, close it.
    fn record(&mut self, front: &mut Self::Front, back: &Self::Back) -> bool;
    /// A server has logged in since the last change that makes others [`Back::is_outdated`].
    fn is_current(&self) -> bool;
    /// Answers a request with `Needs::prepares` from what servers of this pool have said of the same
    /// statement, and one with `Needs::late` where they let BEGIN wait. False: a server must be asked, and
    /// nothing has changed.
    fn answer(&self, front: &mut Self::Front, request: &[u8], out: &mut Vec<u8>) -> bool;
}
