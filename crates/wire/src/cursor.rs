//! The checked cursor: the only way bytes from a peer become numbers and strings.
//!
//! Invariant: no method panics and none reads past the slice it was given.

/// The bytes end before the value does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Short;

/// Reads values from the front of a slice.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A cursor at the start of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    /// What is not read yet.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Nothing is left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next `n` bytes.
    ///
    /// # Errors
    /// [`Short`] when fewer than `n` bytes are left.
    #[inline]
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], Short> {
        let (head, tail) = self.rest.split_at_checked(n).ok_or(Short)?;
        self.rest = tail;
        Ok(head)
    }

    /// The next `N` bytes as an array.
    ///
    /// # Errors
    /// [`Short`] when fewer than `N` bytes are left.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Short> {
        let (head, tail) = self.rest.split_first_chunk::<N>().ok_or(Short)?;
        self.rest = tail;
        Ok(*head)
    }

    /// One byte.
    ///
    /// # Errors
    /// [`Short`] when nothing is left.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, Short> {
        Ok(self.array::<1>()?[0])
    }

    /// Two bytes, most significant first (PostgreSQL).
    ///
    /// # Errors
    /// [`Short`] when fewer than 2 bytes are left.
    #[inline]
    pub fn u16_be(&mut self) -> Result<u16, Short> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    /// Four bytes, most significant first (PostgreSQL).
    ///
    /// # Errors
    /// [`Short`] when fewer than 4 bytes are left.
    #[inline]
    pub fn u32_be(&mut self) -> Result<u32, Short> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// Two bytes, least significant first (MySQL).
    ///
    /// # Errors
    /// [`Short`] when fewer than 2 bytes are left.
    #[inline]
    pub fn u16_le(&mut self) -> Result<u16, Short> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// Three bytes, least significant first (MySQL).
    ///
    /// # Errors
    /// [`Short`] when fewer than 3 bytes are left.
    #[inline]
    pub fn u24_le(&mut self) -> Result<u32, Short> {
        let [a, b, c] = self.array()?;
        Ok(u32::from_le_bytes([a, b, c, 0]))
    }

    /// Four bytes, least significant first (MySQL).
    ///
    /// # Errors
    /// [`Short`] when fewer than 4 bytes are left.
    #[inline]
    pub fn u32_le(&mut self) -> Result<u32, Short> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Eight bytes, least significant first (MySQL).
    ///
    /// # Errors
    /// [`Short`] when fewer than 8 bytes are left.
    #[inline]
    pub fn u64_le(&mut self) -> Result<u64, Short> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// The bytes before the next NUL; the NUL is consumed too.
    ///
    /// # Errors
    /// [`Short`] when no NUL is left.
    #[inline]
    pub fn cstr(&mut self) -> Result<&'a [u8], Short> {
        let end = self.rest.iter().position(|&b| b == 0).ok_or(Short)?;
        let text = self.take(end)?;
        self.take(1)?;
        Ok(text)
    }

    /// Everything that is left.
    #[inline]
    pub fn take_rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }
}
