use super::*;
use crate::testing::{back, front, receive, s};

fn modes_of(text: &str) -> Option<String> {
    match Control::of(text.as_bytes())? {
        Control::Begin(modes) | Control::Start(modes) => Some(modes.text()),
        Control::Commit | Control::Rollback => None,
    }
}

#[test]
fn a_plain_begin_is_read_with_its_modes() {
    for (text, means) in [
        ("begin", "BEGIN"),
        (" BEGIN ; ", "BEGIN"),
        ("begin work", "BEGIN"),
        ("Begin Transaction;", "BEGIN"),
        ("START\n TRANSACTION", "BEGIN"),
        ("/* a */ /*b*/begin/* c */; /* d */", "BEGIN"),
        ("begin isolation level repeatable read", "BEGIN ISOLATION LEVEL REPEATABLE READ"),
        ("BEGIN READ ONLY, DEFERRABLE", "BEGIN READ ONLY DEFERRABLE"),
        ("BEGIN TRANSACTION READ WRITE NOT DEFERRABLE", "BEGIN READ WRITE NOT DEFERRABLE"),
        (
            "START TRANSACTION READ ONLY,ISOLATION LEVEL SERIALIZABLE",
            "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY",
        ),
        ("begin isolation level read committed", "BEGIN ISOLATION LEVEL READ COMMITTED"),
        ("begin isolation level read uncommitted", "BEGIN ISOLATION LEVEL READ UNCOMMITTED"),
    ] {
        assert_eq!(modes_of(text).as_deref(), Some(means), "{text}");
    }
}

#[test]
fn what_ends_a_transaction_is_read() {
    for text in ["commit", "END;", "commit work", "end transaction"] {
        assert_eq!(Control::of(text.as_bytes()), Some(Control::Commit), "{text}");
    }
    for text in ["rollback", "ABORT", "rollback work ;", "abort transaction"] {
        assert_eq!(Control::of(text.as_bytes()), Some(Control::Rollback), "{text}");
    }
}

#[test]
fn what_is_not_plain_is_left_to_a_server() {
    for text in [
        "",
        ";",
        "begin;;",
        "begin; select 1",
        "begin -- now",
        "/* x /* y */ */ begin",
        "begin /* x /* y */ */",
        "begin /* x",
        "begin */",
        "/*/ begin",
        "begin /*/",
        "begin -- /* x */",
        "-- /*\nbegin */",
        "begin work work",
        "begin transaction work",
        "start",
        "start work",
        "begin ,read only",
        "begin read only,",
        "begin read",
        "begin read only read only",
        "begin isolation level",
        "begin isolation level snapshot",
        "begin not",
        "beginread only",
        "begin readonly",
        "commit and chain",
        "commit and no chain",
        "rollback and chain",
        "rollback to a",
        "rollback prepared 'x'",
        "commit prepared 'x'",
        "commit;commit",
        "prepare transaction 'x'",
        "begin\u{a0}",
    ] {
        assert_eq!(Control::of(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn only_a_primary_takes_what_one_in_recovery_refuses() {
    let facts = Facts::default();
    let modes = |text: &str| match Control::of(text.as_bytes()) {
        Some(Control::Begin(modes) | Control::Start(modes)) => modes,
        other => panic!("{other:?}"),
    };
    assert!(!facts.lets_wait(modes("begin")));
    facts.note(Facts::LETS_WAIT);
    assert!(facts.lets_wait(modes("begin read only")));
    assert!(!facts.lets_wait(modes("begin read write")));
    assert!(!facts.lets_wait(modes("begin isolation level serializable")));
    facts.note(Facts::IS_PRIMARY);
    assert!(!facts.lets_wait(modes("begin")));
    facts.note(Facts::LETS_WAIT | Facts::IS_PRIMARY);
    assert!(facts.lets_wait(modes("begin isolation level serializable, read write")));
}

/// Modes of one kind are told from each other though a byte holds all.
#[test]
fn each_combination_of_modes_is_said_as_it_was_read() {
    let mut said = std::collections::HashSet::new();
    let isolation = ["", " ISOLATION LEVEL SERIALIZABLE", " ISOLATION LEVEL REPEATABLE READ"]
        .into_iter()
        .chain([" ISOLATION LEVEL READ COMMITTED", " ISOLATION LEVEL READ UNCOMMITTED"]);
    for isolation in isolation {
        for access in ["", " READ ONLY", " READ WRITE"] {
            for deferrable in ["", " DEFERRABLE", " NOT DEFERRABLE"] {
                let text = format!("BEGIN{isolation}{access}{deferrable}");
                assert_eq!(modes_of(&text).as_ref(), Some(&text));
                said.insert(text);
            }
        }
    }
    assert_eq!(said.len(), 45);
    assert_eq!(std::mem::size_of::<Late>(), 2);
}

#[test]
fn where_a_server_itself_names_pg_temp_in_its_path_new_tables_are_temporary() {
    let f = front(1);
    let of =
        |text: &str| crate::effects::Effects::of_text(weir_sql::Dialect::POSTGRES, text.as_bytes(), None).0;
    let (creates, reads) = (of("CREATE TABLE t (a int)"), of("SELECT 1"));
    let introduced = |rows: &[Vec<u8>]| {
        let mut b = back();
        assert!(b.introduce(&mut Vec::new()) && !b.makes_temporary(&f, &creates));
        receive(
            &mut b,
            None,
            &[s::row_description(), rows.concat(), s::complete("SELECT 1"), s::idle()].concat(),
        );
        b
    };
    let b = introduced(&[s::row(b"1"), s::row(b"8")]);
    assert!(b.makes_temporary(&f, &creates) && !b.makes_temporary(&f, &reads));
    assert!(!introduced(&[s::row(b"1"), s::row(b"4")]).makes_temporary(&f, &creates));
}
