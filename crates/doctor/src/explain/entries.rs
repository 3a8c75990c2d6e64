//! All entries, from the files of their kinds.

use super::{Entry, application, database, pooler, system, weir};

/// All of them. The order decides between two that fit a text equally well: the more frequent first.
pub fn all() -> impl Iterator<Item = &'static Entry> {
    system::ENTRIES
        .iter()
        .chain(database::ENTRIES)
        .chain(pooler::ENTRIES)
        .chain(application::ENTRIES)
        .chain(weir::ENTRIES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::CHECKS;
    use crate::explain::find;
    use std::collections::BTreeSet;

    #[test]
    fn every_message_is_recognised_as_itself() {
        for entry in all() {
            for message in entry.messages {
                let found = find(message);
                assert_eq!(found.first().map(|found| found.id), Some(entry.id), "{message}");
            }
        }
    }

    #[test]
    fn entries_are_whole() {
        let mut ids = BTreeSet::new();
        let checks: BTreeSet<_> = CHECKS.iter().map(|(id, _, _)| *id).collect();
        for entry in all() {
            assert!(ids.insert(entry.id), "{} twice", entry.id);
            assert!(!entry.messages.is_empty() && !entry.cures.is_empty(), "{}", entry.id);
            assert!(!entry.symptom.is_empty() && !entry.cause.is_empty(), "{}", entry.id);
            for check in entry.checks {
                let of_database = check.starts_with("pg_") || check.starts_with("my_");
                assert!(of_database || checks.contains(check), "{}: no check {check}", entry.id);
            }
        }
    }
}
