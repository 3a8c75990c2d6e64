//! Random bytes of the operating system.
//!
//! Owns: the call. Must not know: what the bytes are for (salts, nonces, cancel keys).

use std::io;

/// Fills `bytes` from the system's generator, which is fit for cryptography. Never blocks once the system has
/// been seeded at boot.
///
/// # Errors
/// The system has no such generator or forbids it.
pub fn fill(bytes: &mut [u8]) -> io::Result<()> {
    getrandom::fill(bytes).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    #[test]
    fn fills_all_of_it_differently_each_time() {
        let (mut first, mut second) = ([0; 64], [0; 64]);
        super::fill(&mut first).expect("random bytes");
        super::fill(&mut second).expect("random bytes");
        assert_ne!(first, second);
        assert_ne!(first[32..], [0; 32]);
        super::fill(&mut []).expect("no bytes are fine");
    }
}
