//! The identity of a session: `session_authorization` and `role`, two settings that determine which rights
//! the session has over the others.
//!
//! Owns: their names, and their place among the settings that a server is sent. Must not know: how a server
//! is asked for them (`follow.rs`), queues.
//!
//! Invariants: whatever a client has set is set on another server by the user that logged in there; the
//! client's role comes last, and nothing of the client is sent before the server has accepted it.

use crate::effects::Effects;
use crate::session_state::{Change, Settings};

/// The user that others are measured by, and who acts in that user's place. A new session authorization takes
/// the role away.
pub(crate) const AUTHORIZATION: &str = "session_authorization";

/// See [`AUTHORIZATION`].
pub(crate) const ROLE: &str = "role";

/// The value of [`ROLE`] where there is none.
pub(crate) const NO_ROLE: &[u8] = b"none";

/// In the order in which they are set.
pub(crate) const WHO: [&str; 2] = [AUTHORIZATION, ROLE];

/// This setting says who a session acts as.
pub(crate) fn is_who(name: &str) -> bool {
    WHO.contains(&name)
}

/// Anybody may give these any value, so it does not matter who does.
fn is_anybodys(name: &str) -> bool {
    const ANYBODYS: [&str; 7] = [
        "application_name",
        "client_encoding",
        "datestyle",
        "intervalstyle",
        "search_path",
        "standard_conforming_strings",
        "timezone",
    ];
    ANYBODYS.contains(&name)
}

/// A server must be waited for when it is brought this: it may be refused by now.
pub(crate) fn may_be_refused(changes: &[Change<'_>]) -> bool {
    changes.iter().any(|change| {
        change.name == FIXED_BY_TEMPORARY
            || is_who(change.name) && change.value.is_some_and(|value| value != NO_ROLE)
    })
}

/// A server that has had a temporary table refuses to change it.
pub(crate) const FIXED_BY_TEMPORARY: &str = "temp_buffers";

/// The changes in an order in which each of them is allowed: who acts there steps back, all else is set, and
/// who is to act there comes last. `applied` is what the server has, `wanted` what it gets.
pub(crate) fn in_order<'a>(
    changes: Vec<Change<'a>>,
    applied: &Settings,
    wanted: &'a Settings,
) -> Vec<Change<'a>> {
    let changes_who = changes.iter().any(|change| is_who(change.name));
    let needs_rights = changes.iter().any(|change| !is_who(change.name) && !is_anybodys(change.name));
    if !changes_who && !(needs_rights && (applied.is_somebody() || wanted.is_somebody())) {
        return changes;
    }
    let back = |name| Change { name, value: None };
    let mut ordered: Vec<_> =
        WHO.iter().filter(|name| applied.get(name).is_some()).map(|&n| back(n)).collect();
    ordered.extend(changes.into_iter().filter(|change| !is_who(change.name)));
    let comes = WHO.iter().filter_map(|&name| Some(Change { name, value: Some(wanted.get(name)?) }));
    ordered.extend(comes);
    ordered
}

/// Who acts behind a text, where the server tells of the user that logged in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Who {
    #[default]
    AsTold,
    /// Whom its client has named at its start.
    OfTheStart,
}

impl Effects {
    /// What it said last of who acts. None: nothing.
    pub(crate) fn says_who(&self) -> Option<Who> {
        let last = self.touched.as_deref().and_then(|touched| touched.who_is_reset);
        let is_reset = match last.filter(|_| self.names.is_none()) {
            Some(is_reset) => is_reset,
            None => self.resets_who(),
        };
        (is_reset || self.names_who()).then_some(if is_reset { Who::OfTheStart } else { Who::AsTold })
    }

    /// It may change who acts, for the session, and says by name what it changes.
    pub(crate) fn names_who(&self) -> bool {
        match (&self.names, self.touched.as_deref()) {
            (Some(names), _) => names.iter().any(|set| !set.local && is_who(&set.name)),
            (None, Some(touched)) => !touched.sets.is_any() && touched.sets.iter().any(is_who),
            (None, None) => false,
        }
    }

    /// It goes back to who acted at the beginning.
    pub(crate) fn resets_who(&self) -> bool {
        self.names.iter().flatten().any(|set| set.reset && !set.local && is_who(&set.name))
            || self
                .touched
                .as_deref()
                .is_some_and(|touched| WHO.iter().any(|who| touched.resets.contains(who)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session_state::{Reported, difference};

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        Settings::from_pairs(pairs.iter().map(|(n, v)| ((*n).to_owned(), v.as_bytes().to_vec()))).unwrap()
    }

    fn order(applied: &[(&str, &str)], wanted: &[(&str, &str)]) -> String {
        let (applied, wanted) = (settings(applied), settings(wanted));
        let base = Reported::default();
        let changes = difference(&applied, &wanted, &base);
        let told = |change: &Change<'_>| match change.value {
            Some(value) => format!("{}={}", change.name, String::from_utf8_lossy(value)),
            None => format!("-{}", change.name),
        };
        changes.iter().map(told).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_role_comes_last_and_goes_first() {
        assert_eq!(order(&[], &[("role", "a"), ("work_mem", "1MB")]), "work_mem=1MB role=a");
        assert_eq!(order(&[("role", "a"), ("work_mem", "1MB")], &[]), "-role -work_mem");
        assert_eq!(order(&[("role", "a")], &[("role", "b")]), "-role role=b");
        assert_eq!(
            order(&[("role", "a")], &[("role", "a"), ("work_mem", "1MB")]),
            "-role work_mem=1MB role=a",
            "it may have been set by somebody else"
        );
        assert_eq!(
            order(
                &[("role", "a"), ("session_authorization", "x")],
                &[("role", "b"), ("session_authorization", "y"), ("zero", "0")]
            ),
            "-session_authorization -role zero=0 session_authorization=y role=b"
        );
    }

    #[test]
    fn a_new_session_authorization_brings_the_role_again() {
        assert_eq!(
            order(&[("role", "a")], &[("role", "a"), ("session_authorization", "x")]),
            "-role session_authorization=x role=a"
        );
    }

    #[test]
    fn what_anybody_may_set_leaves_the_role_as_it_is() {
        assert_eq!(order(&[("role", "a")], &[("role", "a"), ("search_path", "b")]), "search_path=b");
        assert_eq!(order(&[("role", "a")], &[("role", "a")]), "");
    }

    #[test]
    fn only_a_role_is_waited_for() {
        let change = |name, value: Option<&'static str>| Change { name, value: value.map(str::as_bytes) };
        assert!(may_be_refused(&[change("work_mem", None), change("role", Some("a"))]));
        assert!(!may_be_refused(&[change("role", None), change("work_mem", Some("1MB"))]));
        assert!(!may_be_refused(&[change("role", Some("none"))]));
    }
}
