//! Reads the fuzzer's bytes as a script.

/// The bytes that are left. At their end every choice is 0 and every message is empty.
pub struct Script<'a> {
    rest: &'a [u8],
}

impl<'a> Script<'a> {
    /// The whole script.
    pub fn new(bytes: &'a [u8]) -> Self {
        Script { rest: bytes }
    }

    /// There is nothing left.
    pub fn is_over(&self) -> bool {
        self.rest.is_empty()
    }

    /// One choice.
    pub fn choice(&mut self) -> u8 {
        let Some((&first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        first
    }

    /// Up to `len` bytes as they stand.
    pub fn raw(&mut self, len: usize) -> &'a [u8] {
        let (head, rest) = self.rest.split_at(len.min(self.rest.len()));
        self.rest = rest;
        head
    }

    /// What a peer says next: one of the messages it knows, perhaps with a byte of it changed, or raw bytes.
    pub fn saying(&mut self, known: &[Vec<u8>]) -> Vec<u8> {
        let choice = self.choice();
        let Some(message) = known.get(usize::from(choice & 0x3f) % known.len().max(1)) else {
            return self.raw(usize::from(choice)).to_vec();
        };
        match choice >> 6 {
            0 | 1 => message.clone(),
            2 => {
                let mut message = message.clone();
                let at = usize::from(self.choice());
                let byte = self.choice();
                if let Some(changed) = message.get_mut(at) {
                    *changed = byte;
                }
                message
            }
            _ => self.raw(usize::from(choice & 0x3f)).to_vec(),
        }
    }
}
