//! A queue of bytes: appended at the back, consumed from the front.
//!
//! Owns: the pending input or output of one connection. Must not know: what the bytes mean.
//!
//! Invariants: an empty buffer that was never written to owns no memory; an emptied buffer owns at most
//! [`KEEP_BYTES`]; consumed bytes are never seen again; moving the rest to the front costs less than the
//! consuming that made it necessary, so a byte is copied a constant number of times on average.

/// What an emptied buffer keeps, in bytes, so that a busy connection does not allocate for each message.
/// [`Buffer::release`] gives this back too.
pub const KEEP_BYTES: usize = 4096;

/// The bytes did not fit within the limit. Nothing was appended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

impl std::fmt::Display for Full {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the buffer is full")
    }
}

impl std::error::Error for Full {}

/// A queue of bytes in one allocation.
#[derive(Debug, Default)]
pub struct Buffer {
    /// `bytes[..start]` has been consumed.
    bytes: Vec<u8>,
    start: usize,
}

// 100,000 clients have several each.
const _: () = assert!(size_of::<Buffer>() <= 4 * size_of::<usize>());

impl Buffer {
    /// An empty buffer. Allocates nothing.
    pub const fn new() -> Buffer {
        Buffer { bytes: Vec::new(), start: 0 }
    }

    /// The bytes that are waiting, oldest first.
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// The bytes that are waiting, for changing them in place.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.start..).unwrap_or_default()
    }

    /// How many bytes wait.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Whether none wait.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory that the buffer holds.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// How many bytes may be appended until `limit` bytes wait.
    pub fn room(&self, limit: usize) -> usize {
        limit.saturating_sub(self.len())
    }

    /// Puts bytes behind those that wait.
    pub fn append(&mut self, bytes: &[u8]) {
        self.make_room(bytes.len());
        self.bytes.extend_from_slice(bytes);
    }

    /// Puts bytes behind those that wait, if no more than `limit` bytes wait then; else changes nothing.
    ///
    /// # Errors
    /// [`Full`] when more than `limit` bytes would wait.
    pub fn append_within(&mut self, bytes: &[u8], limit: usize) -> Result<(), Full> {
        if bytes.len() > self.room(limit) {
            return Err(Full);
        }
        self.append(bytes);
        Ok(())
    }

    /// Lets `write` put bytes behind those that wait, by a function that writes to a `Vec`. `write` must only
    /// append. Gives its result back.
    pub fn append_with<R>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        self.make_room(0);
        let before = self.bytes.len();
        let result = write(&mut self.bytes);
        debug_assert!(self.bytes.len() >= before, "append_with may only append");
        // A writer that truncated has thrown away waiting bytes; it must not make `start` point outside.
        self.start = self.start.min(self.bytes.len());
        result
    }

    /// Takes `count` bytes from the front (all of them, if fewer wait). An emptied buffer gives back what it
    /// holds above [`KEEP_BYTES`].
    pub fn consume(&mut self, count: usize) {
        self.start = self.start.saturating_add(count).min(self.bytes.len());
        if self.start == self.bytes.len() {
            self.clear();
        }
    }

    /// Throws all bytes away; memory above [`KEEP_BYTES`] is given back.
    pub fn clear(&mut self) {
        self.start = 0;
        if self.bytes.capacity() > KEEP_BYTES {
            self.bytes = Vec::new();
        } else {
            self.bytes.clear();
        }
    }

    /// Gives all memory back if nothing waits: for connections that go idle.
    pub fn release(&mut self) {
        if self.is_empty() {
            *self = Buffer::new();
        }
    }

    /// Moves the rest to the front when that is cheaper than growing: only if as much was consumed as is
    /// left (so the copy is paid for) and either half the buffer is waste or the bytes would not fit.
    fn make_room(&mut self, more: usize) {
        let left = self.len();
        if self.start == 0 || self.start < left {
            return;
        }
        let fits = more <= self.bytes.capacity() - self.bytes.len();
        if !fits || self.start >= KEEP_BYTES {
            self.bytes.copy_within(self.start.., 0);
            self.bytes.truncate(left);
            self.start = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn owns_nothing_until_written_to() {
        let mut buffer = Buffer::new();
        assert_eq!(buffer.capacity(), 0);
        buffer.consume(10);
        buffer.append(b"");
        assert_eq!(buffer.capacity(), 0);
        assert_eq!(buffer.as_slice(), b"");
    }

    #[test]
    fn an_emptied_buffer_gives_large_memory_back() {
        let mut buffer = Buffer::new();
        buffer.append(&vec![7; 1 << 20]);
        buffer.consume((1 << 20) - 1);
        assert_eq!(buffer.as_slice(), [7]);
        buffer.consume(1);
        assert!(buffer.capacity() <= KEEP_BYTES);
        buffer.append(b"small");
        buffer.consume(5);
        assert!(buffer.capacity() > 0, "a small allocation is kept for the next message");
        buffer.release();
        assert_eq!(buffer.capacity(), 0);
    }

    #[test]
    fn release_keeps_waiting_bytes() {
        let mut buffer = Buffer::new();
        buffer.append(b"wait");
        buffer.release();
        assert_eq!(buffer.as_slice(), b"wait");
    }

    #[test]
    fn the_limit_is_exact() {
        let mut buffer = Buffer::new();
        assert_eq!(buffer.append_within(b"12345", 5), Ok(()));
        assert_eq!(buffer.append_within(b"6", 5), Err(Full));
        assert_eq!(buffer.append_within(b"", 4), Ok(()), "nothing always fits");
        buffer.consume(2);
        assert_eq!(buffer.room(5), 2);
        assert_eq!(buffer.append_within(b"67", 5), Ok(()));
        assert_eq!(buffer.as_slice(), b"34567");
    }

    #[test]
    fn a_stream_through_a_small_buffer_stays_small() {
        let mut buffer = Buffer::new();
        for _ in 0..10_000 {
            buffer.append(&[1; 700]);
            buffer.consume(690);
            if buffer.len() > 1000 {
                buffer.consume(buffer.len() - 10);
            }
            assert!(buffer.capacity() < 32 * 1024, "grew to {}", buffer.capacity());
        }
    }

    #[derive(Debug, Clone)]
    enum Act {
        Append(Vec<u8>),
        Within(Vec<u8>, usize),
        With(Vec<u8>),
        Consume(usize),
        Clear,
        Release,
    }

    fn act() -> impl Strategy<Value = Act> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..6000);
        prop_oneof![
            4 => bytes().prop_map(Act::Append),
            2 => (bytes(), 0usize..20_000).prop_map(|(b, n)| Act::Within(b, n)),
            2 => bytes().prop_map(Act::With),
            6 => (0usize..8000).prop_map(Act::Consume),
            1 => Just(Act::Clear),
            1 => Just(Act::Release),
        ]
    }

    proptest! {
        #[test]
        fn equals_a_plain_queue(acts in prop::collection::vec(act(), 1..60)) {
            let mut buffer = Buffer::new();
            let mut model: VecDeque<u8> = VecDeque::new();
            for act in acts {
                match act {
                    Act::Append(b) => { buffer.append(&b); model.extend(b); }
                    Act::Within(b, limit) => {
                        let fits = b.is_empty() || model.len() + b.len() <= limit;
                        let done = buffer.append_within(&b, limit);
                        prop_assert_eq!(done.is_ok(), fits);
                        if fits { model.extend(b); }
                    }
                    Act::With(b) => { buffer.append_with(|out| out.extend_from_slice(&b)); model.extend(b); }
                    Act::Consume(n) => { buffer.consume(n); model.drain(..n.min(model.len())); }
                    Act::Clear => { buffer.clear(); model.clear(); }
                    Act::Release => buffer.release(),
                }
                prop_assert_eq!(buffer.len(), model.len());
                prop_assert!(buffer.as_slice().iter().eq(model.iter()));
                prop_assert!(!buffer.is_empty() || buffer.capacity() <= KEEP_BYTES);
            }
        }
    }
}
