//! The administration console, as seen by a client of either protocol.

use weir_wire::console::{Answer, Heard, Progress};

/// A client of the console: what it asks, and what it is told, in its protocol's bytes.
pub trait Console {
    /// Ends the login of a client of the console. `version` is what it is told as that of its server.
    fn console_greet(&mut self, version: &str, out: &mut Vec<u8>);
    /// Last words to a client that is not let in: to the console, or to a database that takes nobody now.
    fn console_refuse(&mut self, text: &str, out: &mut Vec<u8>);
    /// Last words to a client in its session.
    fn console_farewell(&mut self, text: &str, out: &mut Vec<u8>);
    /// Looks at the start of the bytes of a client of the console.
    fn console_find(&mut self, input: &[u8], out: &mut Vec<u8>) -> Heard;
    /// Puts an answer of the console into bytes, of rows about `most` at a time. True: all of it.
    fn console_put(
        &mut self,
        answer: &Answer,
        progress: &mut Progress,
        most: usize,
        out: &mut Vec<u8>,
    ) -> bool;
}
