//! Pending bytes: read and not yet processed, or written and not yet accepted by the kernel.
//!
//! Owns nothing while it is empty: an idle client has no buffer.

use weir_wire::limits::BUFFER_KEEP_BYTES;

/// A byte queue over a `Vec`, so that the wings can append to it.
#[derive(Debug, Default)]
pub struct Pending {
    bytes: Vec<u8>,
    start: u32,
}

impl Pending {
    /// Nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == self.start as usize
    }

    /// Bytes that wait.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len() - self.start as usize
    }

    /// What waits.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[self.start as usize..]
    }

    /// Adds to the end.
    pub fn append(&mut self, bytes: &[u8]) {
        self.make_room();
        self.bytes.extend_from_slice(bytes);
    }

    /// The vector behind it, to append to. What is already there must not be touched.
    pub fn tail_mut(&mut self) -> &mut Vec<u8> {
        self.make_room();
        &mut self.bytes
    }

    /// Takes from the front. An emptied large buffer is given back.
    pub fn consume(&mut self, n: usize) {
        debug_assert!(n <= self.len());
        let n = n.min(self.len());
        if n == self.len() {
            self.clear();
        } else {
            self.start += n as u32;
        }
    }

    /// Takes everything away.
    pub fn clear(&mut self) {
        if self.bytes.capacity() > BUFFER_KEEP_BYTES {
            self.bytes = Vec::new();
        } else {
            self.bytes.clear();
        }
        self.start = 0;
    }

    /// Gives the memory back if nothing waits.
    pub fn release_if_empty(&mut self) {
        if self.is_empty() {
            *self = Pending::default();
        }
    }

    /// Bytes of memory held.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Moves what waits to the front once half of the vector is spent. The start also has to stay far
    /// from `u32::MAX`; bounded buffers never get near.
    fn make_room(&mut self) {
        let start = self.start as usize;
        if start > 0 && start >= self.bytes.len() - start {
            self.bytes.drain(..start);
            self.start = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_leave_in_the_order_they_came() {
        let mut pending = Pending::default();
        pending.append(b"abcdef");
        pending.consume(2);
        pending.append(b"gh");
        pending.tail_mut().extend_from_slice(b"i");
        assert_eq!(pending.as_slice(), b"cdefghi");
        pending.consume(7);
        assert!(pending.is_empty());
    }

    #[test]
    fn a_large_buffer_is_given_back_when_it_is_empty() {
        let mut pending = Pending::default();
        pending.append(&vec![0; BUFFER_KEEP_BYTES * 4]);
        pending.consume(BUFFER_KEEP_BYTES * 4);
        assert_eq!(pending.capacity(), 0);
    }
}
