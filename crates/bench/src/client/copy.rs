//! PostgreSQL's COPY ... FROM STDIN on a blocking connection ("COPY Operations" in the protocol's flow).

use super::blocking::{ClientError, Session};
use super::postgres::Postgres;
use super::{Piece, Protocol};

/// Type byte and length of a message.
const HEADER_BYTES: usize = 5;

impl Session<Postgres> {
    /// Sends rows until `more` says false. It appends to what it is given; true: send that and ask again.
    ///
    /// # Errors
    /// The server refuses the statement or a row, or the connection is lost.
    pub fn copy_in(
        &mut self,
        text: &str,
        more: &mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<(), ClientError> {
        let mut output = Vec::new();
        Postgres::begin_text(&mut self.session, text.as_bytes(), &mut output);
        self.send(&output)?;
        self.await_copy_start()?;
        let mut rows = Vec::new();
        while more(&mut rows) {
            output.clear();
            output.push(b'd');
            // Chunks are far below 2 GB.
            output.extend_from_slice(&(rows.len() as u32 + 4).to_be_bytes());
            output.extend_from_slice(&rows);
            rows.clear();
            self.send(&output)?;
        }
        self.send(b"c\0\0\0\x04")?;
        self.finish()
    }

    /// Until CopyInResponse. Anything else is read to its end and is the error.
    fn await_copy_start(&mut self) -> Result<(), ClientError> {
        loop {
            match self.input().first_chunk::<HEADER_BYTES>() {
                Some([b'G', len @ ..]) => {
                    let whole = 1 + u32::from_be_bytes(*len) as usize;
                    while self.input().len() < whole {
                        self.receive()?;
                    }
                    self.drop_input(whole);
                    return Ok(());
                }
                // A notice may come first.
                Some([b'N' | b'S', ..]) => {
                    let input = self.input().to_vec();
                    match Postgres::next(&mut self.session, &input) {
                        Piece::Pass(n) => self.drop_input(n),
                        _ => self.receive()?,
                    }
                }
                Some(_) => {
                    self.finish()?;
                    return Err(ClientError::own("the server did not take the COPY"));
                }
                None => self.receive()?,
            }
        }
    }
}
