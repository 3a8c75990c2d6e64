//! Messages that are not gathered: those that are too long, COPY data, and what follows a rejected request.
//!
//! Owns: handing them out in parts. Must not know: what whole requests mean.
//!
//! Invariant: nothing of them is kept except the lexer of a long Query.

use super::find::part;
use super::scan::{Batch, Long, LongText, Tail};
use super::{Asks, Front};
use crate::effects::{Draws, Effects};
use crate::frame::{ClientTag, HEADER_BYTES, client_header};
use crate::message::reply::put_ready;
use std::sync::Arc;
use weir_sql::Scanner;
use weir_wire::limits::REQUEST_GATHER_BYTES;
use weir_wire::{Fault, Found, Needs};

impl Front {
    /// A message that is too long to be gathered, alone at the start of the input.
    pub(super) fn begin_long(&mut self, tag: ClientTag, total: usize, input: &[u8]) -> Result<Found, Fault> {
        // Enough is waited for that the names in front of a Parse or Bind are there.
        let have = input.len().min(total);
        if have < REQUEST_GATHER_BYTES {
            return Ok(Found::Incomplete);
        }
        if !matches!(tag, ClientTag::FunctionCall) && self.must_wait(tag != ClientTag::Query) {
            return Ok(Found::Incomplete);
        }
        if tag == ClientTag::Query && self.names_under_way && !self.scan.open {
            // What it does is known at its end.
            return Ok(Found::Incomplete);
        }
        self.under_way_is_shareable = false;
        self.runs_nothing = false;
        // What it does is known at its end only.
        (self.draws, self.runs_code) = (Draws::Outright, true);
        self.scan.set_left(total);
        match tag {
            ClientTag::Query => {
                self.asks = self.asks.max(Asks::Perhaps);
                let mut scanner = Scanner::new(self.dialect);
                let edition = self.knowledge.edition();
                let state = self.knowledge.proof().map_or(0, |proof| scanner.watch(proof));
                self.scan.scanner = Some(Box::new(LongText { scanner, state, edition }));
                self.scan.long = Long::Request;
            }
            ClientTag::FunctionCall => self.scan.long = Long::Request,
            ClientTag::Parse
            | ClientTag::Bind
            | ClientTag::Describe
            | ClientTag::Execute
            | ClientTag::Close
            | ClientTag::Sync
            | ClientTag::Flush
            | ClientTag::CopyData
            | ClientTag::CopyDone
            | ClientTag::CopyFail
            | ClientTag::Terminate => self.scan.long = Long::Batch,
        }
        let text = input.get(HEADER_BYTES..have).unwrap_or_default();
        Ok(self.hand_out(have, text))
    }

    pub(super) fn continue_long(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Found, Fault> {
        let len = input.len().min(self.scan.left());
        if len == 0 {
            return Ok(Found::Incomplete);
        }
        let found = self.hand_out(len, input.get(..len).unwrap_or_default());
        if self.scan.left() == 0 && self.scan.long == Long::Rejected {
            put_ready(out, self.boundary);
            return Ok(Found::Answered { len });
        }
        Ok(found)
    }

    /// `len` more bytes of the long message go out; `text` is what of them a lexer may read.
    fn hand_out(&mut self, len: usize, text: &[u8]) -> Found {
        self.scan.set_left(self.scan.left() - len);
        let ended = self.scan.left() == 0;
        match self.scan.long {
            Long::Drop | Long::Rejected => Found::Drop { len },
            Long::Copy => part(len, true),
            Long::Batch => part(len, std::mem::replace(&mut self.scan.open, true)),
            Long::Request => {
                if let Some(long) = self.scan.scanner.as_deref_mut() {
                    // The last byte of a Query is its NUL.
                    let visible = text.len() - usize::from(ended && !text.is_empty());
                    long.scanner.feed(text.get(..visible).unwrap_or_default());
                }
                let continues = std::mem::replace(&mut self.scan.open, !ended);
                if !ended {
                    return part(len, continues);
                }
                if let Some(long) = self.scan.scanner.take() {
                    let LongText { scanner, state, edition } = *long;
                    let mut effects = Effects::of_class(&scanner.finish());
                    if edition != self.knowledge.edition() {
                        effects = Arc::new(Effects { doubtful: true, ..Effects::clone(&effects) });
                    }
                    self.dialect_under_way |= self.may_change_dialect(&effects);
                    self.names_under_way |= effects.deallocates.is_some() || effects.drops_all_statements();
                    self.scan.resetting = effects.resets_settings() && !self.startup.is_empty();
                    self.texts.push(effects, state);
                }
                self.scan.batch = Batch::EMPTY;
                Found::Request { len, needs: Needs { continues, ..Needs::default() } }
            }
        }
    }

    /// CopyData, CopyDone or CopyFail at the start of the input. A server that is not in copy-in mode ignores
    /// them, so they are sent on while a request is under way and dropped when nobody waits for them.
    pub(super) fn copy_message(&mut self, tag: ClientTag, input: &[u8]) -> Result<Found, Fault> {
        let wanted = (self.copy_in || self.outstanding > 0 || self.scan.open) && !self.scan.discarding;
        let mut len = 0;
        // As many whole messages of data as there are, and the beginning of the last.
        while let Some(header) = client_header(input.get(len..).unwrap_or_default())? {
            if header.tag != ClientTag::CopyData {
                break;
            }
            let have = (input.len() - len).min(header.total);
            len += have;
            if have < header.total {
                self.scan.set_left(header.total - have);
                self.scan.long = if wanted { Long::Copy } else { Long::Drop };
                break;
            }
        }
        if len == 0 {
            let total = client_header(input)?.map_or(usize::MAX, |header| header.total);
            if input.len() < total || tag == ClientTag::CopyData {
                return Ok(Found::Incomplete);
            }
            let taken = std::mem::take(&mut self.copy_in);
            if wanted && self.scan.tail == Tail::MayCome {
                self.scan.tail = if taken { Tail::Known } else { Tail::Guess };
            }
            len = total;
        }
        Ok(if wanted { part(len, true) } else { Found::Drop { len } })
    }

    /// Drops messages behind a rejected part up to the Sync that ends its batch.
    pub(super) fn discard(
        &mut self,
        tag: ClientTag,
        total: usize,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Found, Fault> {
        if tag != ClientTag::Sync {
            let len = input.len().min(total);
            self.scan.set_left(total - len);
            self.scan.long = Long::Drop;
            return Ok(Found::Drop { len });
        }
        if input.len() < total {
            return Ok(Found::Incomplete);
        }
        self.scan.discarding = false;
        put_ready(out, self.boundary);
        Ok(Found::Answered { len: total })
    }
}
