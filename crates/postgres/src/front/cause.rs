//! The statement that may have pinned a server, as shown to the operator.
//!
//! Must not know: which requests it is asked about.

use super::Front;
use crate::frame::{ClientTag, body, client_header};
use crate::message::query::{read_bind, read_parse, read_query};
use weir_sql::without_values;

impl Front {
    /// The first text of a request that may pin, without its values.
    pub(super) fn words_that_pin(&self, request: &[u8], bytes: usize) -> Option<String> {
        let judge = self.judge();
        let mut rest = request;
        let mut any = None;
        while let Ok(Some(header)) = client_header(rest) {
            let message = rest.get(..header.total).unwrap_or(rest);
            rest = rest.get(header.total..).unwrap_or_default();
            let text: Vec<u8> = match header.tag {
                ClientTag::Query => read_query(body(message)).ok()?.to_vec(),
                ClientTag::Parse => read_parse(body(message)).ok()?.text.to_vec(),
                ClientTag::Bind => {
                    let bind = read_bind(body(message)).ok()?;
                    let Some(known) = self.prepared.as_deref().and_then(|p| p.get(bind.statement)) else {
                        continue;
                    };
                    known.content().split(|&byte| byte == 0).next().unwrap_or_default().to_vec()
                }
                ClientTag::FunctionCall => return Some("FunctionCall".to_owned()),
                _ => continue,
            };
            let words = without_values(judge.dialect, &text, bytes);
            if !judge.text(&text).0.pins.is_empty() {
                return Some(words);
            }
            any.get_or_insert(words);
        }
        any
    }
}
