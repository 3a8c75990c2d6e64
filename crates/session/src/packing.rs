//! A transport of a protocol's own, between TLS and its messages.

use weir_wire::Fault;

/// Both directions of a connection whose bytes are packed (MySQL's compressed protocol).
pub trait Packing: Send {
    /// Unpacks from the start of `input` into `buf`. Returns how many bytes were used and made. Without
    /// either, more input is needed.
    ///
    /// # Errors
    /// The peer's bytes are nothing packed; its connection ends.
    fn unpack(&mut self, input: &[u8], buf: &mut [u8]) -> Result<(usize, usize), Fault>;
    /// There is more to be made of what was used.
    fn is_holding(&self) -> bool;
    /// Appends these bytes, packed.
    fn pack(&mut self, plain: &[u8], out: &mut Vec<u8>);
}
