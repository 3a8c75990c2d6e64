//! Hints for the optimiser, `/*+ ... */`: which variables SET_VAR sets.
//!
//! Invariant: SET_VAR and the word behind it are all that is looked at, in strings, too: in doubt a variable
//! counts as one that is not taken back.

use super::{Lexer, State};

/// Where a hint is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Hint {
    /// Anywhere else.
    #[default]
    Elsewhere,
    /// Behind SET_VAR: the next word names a variable.
    Variable,
}

/// Variables that MySQL gives back the value they had, once the statement is over. It does not so with
/// `timestamp`, which is the moment's from then on, nor with `insert_id`; `sql_auto_is_null` asks for
/// LAST_INSERT_ID(). Those that no hint sets (9.7) are not among them either.
const GIVEN_BACK: [&str; 46] = [
    "auto_increment_increment",
    "auto_increment_offset",
    "bulk_insert_buffer_size",
    "cte_max_recursion_depth",
    "default_table_encryption",
    "default_tmp_storage_engine",
    "div_precision_increment",
    "end_markers_in_json",
    "eq_range_index_dive_limit",
    "explain_json_format_version",
    "foreign_key_checks",
    "group_concat_max_len",
    "internal_tmp_mem_storage_engine",
    "join_buffer_size",
    "lock_wait_timeout",
    "max_error_count",
    "max_execution_time",
    "max_heap_table_size",
    "max_join_size",
    "max_length_for_sort_data",
    "max_points_in_geometry",
    "max_seeks_for_key",
    "max_sort_length",
    "optimizer_prune_level",
    "optimizer_search_depth",
    "optimizer_switch",
    "range_alloc_block_size",
    "range_optimizer_max_mem_size",
    "read_buffer_size",
    "read_rnd_buffer_size",
    "secondary_engine_cost_threshold",
    "select_into_buffer_size",
    "select_into_disk_sync",
    "select_into_disk_sync_delay",
    "show_create_table_skip_secondary_engine",
    "sort_buffer_size",
    "sql_big_selects",
    "sql_buffer_result",
    "sql_mode",
    "sql_require_primary_key",
    "sql_safe_updates",
    "sql_select_limit",
    "time_zone",
    "tmp_table_size",
    "unique_checks",
    "use_secondary_engine",
];

impl Lexer {
    pub(super) fn begin_hint(&mut self) {
        self.hint_quote = false;
        self.hinted = true;
        self.hint = Hint::Elsewhere;
        self.carried = 0;
        self.state = State::Hint;
    }

    pub(super) fn hint(&mut self, bytes: &[u8], mut at: usize) -> usize {
        while let Some(&byte) = bytes.get(at) {
            at += 1;
            if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..) {
                if let Some(free) = self.carry.get_mut(self.carried as usize) {
                    *free = byte;
                }
                self.carried += 1;
                continue;
            }
            self.end_hint_word();
            match byte {
                b'\'' | b'"' | b'`' => self.hint_quote = !self.hint_quote,
                b'*' => {
                    self.state = State::HintStar;
                    break;
                }
                _ => {}
            }
        }
        at
    }

    fn end_hint_word(&mut self) {
        let len = std::mem::take(&mut self.carried) as usize;
        if len == 0 {
            return;
        }
        // One that is cut is none of those.
        let word = self.carry.get(..len).unwrap_or_default();
        let behind = std::mem::take(&mut self.hint) == Hint::Variable;
        if word.eq_ignore_ascii_case(b"set_var") {
            self.hint = Hint::Variable;
        } else if behind {
            // MySQL takes some letters for others, such as a dotless i.
            let is_given_back = GIVEN_BACK.iter().any(|name| name.as_bytes().eq_ignore_ascii_case(word));
            self.lent_stays |= !self.mariadb && !is_given_back;
        }
    }

    pub(super) fn hint_star(&mut self, bytes: &[u8], at: usize) -> usize {
        match bytes[at] {
            b'*' => at + 1,
            b'/' => {
                // In a hint's quotes the end may not be one.
                if self.hint_quote {
                    self.doubtful = true;
                }
                self.state = State::Code;
                at + 1
            }
            _ => {
                self.state = State::Hint;
                at
            }
        }
    }
}
