//! The columns of SHOW WARNINGS.
//!
//! Owns: their definitions, and how the character set of results changes them. Must not know: rows.

use crate::message::lenenc;
use crate::session_state::{Charset, Flavour, Slot, State};
use weir_wire::Reader;

/// Characters of a level, and of a message.
const LEVEL: u32 = 7;
const MESSAGE: u32 = 512;

/// The columns of SHOW WARNINGS, perhaps with MariaDB's extended metadata, of which there are none.
pub(super) fn columns(flavour: Flavour, extended: bool) -> Vec<Box<[u8]>> {
    // Digits of a code, and the decimals of a string.
    let (digits, none) = match flavour {
        Flavour::MySql => (5, 31),
        Flavour::MariaDb => (4, 39),
    };
    // Collation utf8mb4_general_ci or binary; VAR_STRING, LONG, VAR_STRING; NOT NULL.
    let texts = 253_u8;
    [
        ("Level", 45_u8, LEVEL * 4, texts, 1_u16, none),
        ("Code", 63, digits, 3, 0x00A1, 0),
        ("Message", 45, MESSAGE * 4, texts, 1, none),
    ]
    .map(|(name, collation, width, kind, flags, decimals)| {
        let mut out = Vec::new();
        for text in ["def", "", "", "", name, ""] {
            lenenc::put_string(&mut out, text.as_bytes());
        }
        if extended {
            out.push(0);
        }
        out.extend_from_slice(&[0x0C, collation, 0]);
        out.extend_from_slice(&width.to_le_bytes());
        out.push(kind);
        out.extend_from_slice(&flags.to_le_bytes());
        out.extend_from_slice(&[decimals, 0, 0]);
        out.into()
    })
    .into()
}

/// A character set of results: the collation that columns name, and the bytes of its longest character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Results {
    collation: u16,
    width: u32,
}

/// What a client has set, or has named at its login; `None` where it is not known how columns are shown with
/// that.
pub(super) fn results_of(state: &State, flavour: Flavour) -> Option<Results> {
    let Some(literal) = state.setting(Slot::CharsetResults).or_else(|| state.setting(Slot::Names)) else {
        let (collation, width) = match state.charset {
            Charset::Collation(collation @ (45 | 255)) => (collation, 4),
            Charset::Collation(33) => (33, 3),
            Charset::Collation(collation @ (8 | 11)) => (collation, 1),
            Charset::Collation(_) | Charset::ServerDefault => return None,
        };
        return Some(Results { collation, width });
    };
    if literal.to_ascii_lowercase().contains("collate") {
        return None;
    }
    let (collation, width) = match literal.trim_matches('\'').to_ascii_lowercase().as_str() {
        "utf8mb4" if flavour == Flavour::MySql => (255, 4),
        "utf8mb4" => (45, 4),
        "utf8" | "utf8mb3" => (33, 3),
        "latin1" => (8, 1),
        "ascii" => (11, 1),
        _ => return None,
    };
    Some(Results { collation, width })
}

impl Results {
    /// The definition of the column at this place, as with this character set. Its last 13 bytes have fixed
    /// places.
    pub(super) fn show(self, at: usize, column: &mut [u8]) {
        let characters = match at {
            0 => LEVEL,
            2 => MESSAGE,
            _ => return,
        };
        if let Some([0x0C, low, high, width @ .., _, _, _, _, _, _]) = column.last_chunk_mut::<13>() {
            [*low, *high] = self.collation.to_le_bytes();
            *width = (characters * self.width).to_le_bytes();
        }
    }
}

/// All characters of the row are the same in any character set that results may have.
pub(super) fn is_ascii(row: &[u8]) -> bool {
    let mut r = Reader::new(row);
    [(); 3].iter().all(|()| lenenc::string(&mut r).is_ok_and(<[u8]>::is_ascii))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_name_the_character_set_of_results() {
        assert_eq!(results_of(&State::new(46, true), Flavour::MariaDb), None);
        let mut state = State::new(8, true);
        assert_eq!(results_of(&state, Flavour::MySql), Some(Results { collation: 8, width: 1 }));
        assert!(state.apply(vec![(Slot::Names, "'latin1'".into())]));
        let mut all = columns(Flavour::MariaDb, false);
        let latin1 = results_of(&state, Flavour::MariaDb).unwrap();
        all.iter_mut().enumerate().for_each(|(at, column)| latin1.show(at, column));
        assert!(all[0].ends_with(&[0x0C, 8, 0, 7, 0, 0, 0, 253, 1, 0, 39, 0, 0]));
        assert!(all[1].ends_with(&[0x0C, 63, 0, 4, 0, 0, 0, 3, 0xA1, 0, 0, 0, 0]));
        assert!(all[2].ends_with(&[0x0C, 8, 0, 0, 2, 0, 0, 253, 1, 0, 39, 0, 0]));
        assert!(state.apply(vec![(Slot::CharsetResults, "'utf8mb4'".into())]));
        all.iter_mut().enumerate().for_each(|(at, column)| {
            results_of(&state, Flavour::MariaDb).unwrap().show(at, column);
        });
        assert_eq!(all, columns(Flavour::MariaDb, false));
    }
}
