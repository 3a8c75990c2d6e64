//! SHA-256, for names that must not collide even when a client tries.

use aws_lc_rs::digest;

/// SHA-256 of the parts, one behind the other.
pub fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut context = digest::Context::new(&digest::SHA256);
    for part in parts {
        context.update(part);
    }
    let mut out = [0; 32];
    out.copy_from_slice(context.finish().as_ref());
    out
}
