//! Who asks what, of those who wait in a pool.
//!
//! Owns: a table of hashes, in which whoever joins the queue finds somebody who may ask the same. Must not
//! know: what is asked. What is found may be out of date, or ask something else: whoever looks compares.

use crate::ids::Key;

/// Places of the table. Two questions of one place take it from each other, which costs no more than that one
/// of them is sent once more.
const PLACES: usize = 1024;

/// The table. It takes its memory when somebody waits for the first time.
#[derive(Debug, Default)]
pub struct Questions {
    places: Vec<Option<(u64, Key)>>,
}

impl Questions {
    /// Who was here last with a question of this hash.
    pub fn look(&self, hash: u64) -> Option<Key> {
        let place = self.places.get(place_of(hash)).copied().flatten();
        place.filter(|(of, _)| *of == hash).map(|(_, client)| client)
    }

    /// A client waits with a question of this hash.
    pub fn put(&mut self, hash: u64, client: Key) {
        if self.places.is_empty() {
            self.places.resize(PLACES, None);
        }
        if let Some(place) = self.places.get_mut(place_of(hash)) {
            *place = Some((hash, client));
        }
    }
}

/// The high bits: the hash ends with a multiplication, which spreads upwards.
fn place_of(hash: u64) -> usize {
    (hash >> 32) as usize % PLACES
}

/// A hash of a request, and of a number that tells who asks apart. Whoever finds the same one compares the
/// bytes.
pub fn hash_of(request: &[u8], asks_under: u64) -> u64 {
    // An odd constant with well spread bits (2^64 divided by the golden ratio).
    const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut hash = asks_under ^ request.len() as u64;
    let mut mix = |value: u64| hash = (hash.rotate_left(29) ^ value).wrapping_mul(SPREAD);
    let (chunks, rest) = request.as_chunks::<8>();
    chunks.iter().for_each(|chunk| mix(u64::from_le_bytes(*chunk)));
    let mut last = [0; 8];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    mix(u64::from_le_bytes(last));
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Arena;

    #[test]
    fn whoever_asked_last_is_found_by_the_hash_and_by_no_other() {
        let mut clients = Arena::default();
        let (one, other) = (clients.insert(()), clients.insert(()));
        let mut questions = Questions::default();
        let (a, b) = (hash_of(b"SELECT 1", 0), hash_of(b"SELECT 2", 0));
        assert_ne!(a, b);
        assert_eq!(questions.look(a), None);
        questions.put(a, one);
        assert_eq!((questions.look(a), questions.look(b)), (Some(one), None));
        questions.put(a, other);
        assert_eq!(questions.look(a), Some(other));
        // Another question of the same place.
        questions.put(a ^ 1, one);
        assert_eq!((questions.look(a), questions.look(a ^ 1)), (None, Some(one)));
    }

    #[test]
    fn requests_that_differ_in_any_byte_or_in_length_have_different_hashes() {
        let text = b"SELECT * FROM accounts WHERE id = 12345";
        let mut seen = vec![hash_of(text, 0), hash_of(text, 1)];
        for at in 0..text.len() {
            let mut other = text.to_vec();
            other[at] ^= 1;
            seen.push(hash_of(&other, 0));
            seen.push(hash_of(&text[..at], 0));
        }
        let all = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), all);
    }
}
