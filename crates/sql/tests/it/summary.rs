//! A class in one line, for tables of statements.

use weir_sql::{CallKind, Class, Clears, Dialect, Kill, Locks, Scope, Transaction, Uses, classify};

const USES: &[(Uses, &str)] = &[
    (Uses::TRANSACTION, "transaction"),
    (Uses::CURRVAL, "currval"),
    (Uses::LASTVAL, "lastval"),
    (Uses::NEXTVAL, "nextval"),
    (Uses::SETVAL, "setval"),
    (Uses::CONNECTION_ID, "connection_id"),
    (Uses::LAST_INSERT_ID, "last_insert_id"),
    (Uses::LAST_INSERT_ID_SET, "last_insert_id_set"),
    (Uses::FOUND_ROWS, "found_rows"),
    (Uses::ROW_COUNT, "row_count"),
    (Uses::WARNINGS, "warnings"),
    (Uses::DIAGNOSTICS, "diagnostics"),
    (Uses::CALC_FOUND_ROWS, "calc_found_rows"),
    (Uses::USER_VARIABLE_READ, "@read"),
    (Uses::USER_VARIABLE_WRITE, "@write"),
    (Uses::SYSTEM_VARIABLE, "@@"),
    (Uses::LOAD_LOCAL, "load_local"),
    (Uses::EXECUTABLE_COMMENT, "/*!"),
    (Uses::BLOCK, "block"),
    (Uses::COPY_IN, "copy_in"),
    (Uses::COPY_OUT, "copy_out"),
    (Uses::CURSOR, "cursor"),
    (Uses::WITH_HOLD, "with_hold"),
    (Uses::UNKNOWN_FUNCTION, "unknown()"),
    (Uses::EXPLAIN_CONNECTION, "explain_connection"),
    (Uses::PROCESS_LIST, "processlist"),
    (Uses::OVERFLOW, "overflow"),
    (Uses::SLEEP, "sleep"),
    (Uses::SQL_PREPARE, "prepare"),
    (Uses::ROW_LOCK, "row_lock"),
    (Uses::ROLE, "role"),
    (Uses::WITH_WRITES, "with_writes"),
];

const LOCKS: &[(Locks, &str)] = &[
    (Locks::TABLES, "tables"),
    (Locks::INSTANCE, "instance"),
    (Locks::NAMED, "named"),
    (Locks::BACKUP, "backup"),
    (Locks::BACKUP_LOCK, "backup_lock"),
    (Locks::ADVISORY, "advisory"),
    (Locks::XA, "xa"),
    (Locks::PG_BACKUP, "pg_backup"),
];

const CLEARS: &[(Clears, &str)] = &[
    (Clears::DISCARD_ALL, "discard_all"),
    (Clears::RESET_ALL, "reset_all"),
    (Clears::UNLISTEN_ALL, "unlisten_all"),
    (Clears::DEALLOCATE_ALL, "deallocate_all"),
    (Clears::CLOSE_ALL, "close_all"),
    (Clears::DISCARD_TEMP, "discard_temp"),
    (Clears::DISCARD_PLANS, "discard_plans"),
    (Clears::DISCARD_SEQUENCES, "discard_sequences"),
];

fn transaction(transaction: Transaction) -> String {
    let mut words = match transaction {
        Transaction::Begin { plain, snapshot } => {
            vec!["<begin", if plain { "" } else { " options" }, if snapshot { " snapshot" } else { "" }]
        }
        Transaction::Commit { chain, release } => {
            vec!["<commit", if chain { " chain" } else { "" }, if release { " release" } else { "" }]
        }
        Transaction::Rollback { chain, release } => {
            vec!["<rollback", if chain { " chain" } else { "" }, if release { " release" } else { "" }]
        }
        Transaction::Savepoint => vec!["<savepoint"],
        Transaction::RollbackTo => vec!["<rollback_to"],
        Transaction::Release => vec!["<release"],
        Transaction::PrepareTwoPhase => vec!["<prepare_transaction"],
        Transaction::FinishTwoPhase => vec!["<finish_prepared"],
        Transaction::SetTransaction => vec!["<set_transaction"],
        Transaction::Xa => vec!["<xa"],
    };
    words.push(">");
    words.concat()
}

fn set_target(class: &Class, text: &str, out: &mut Vec<String>) {
    let Some(set) = class.set() else { return };
    let mut words = Vec::new();
    for one in &set.assignments {
        let scope = match one.scope {
            Scope::Session => "",
            Scope::Transaction => "local ",
            Scope::Global => "global ",
        };
        let value = String::from_utf8_lossy(one.value.of(text.as_bytes()).unwrap_or(b"?")).into_owned();
        let value = if one.default { "DEFAULT".to_owned() } else { value };
        let doubt = if one.constant { "" } else { "~" };
        let toggle = match one.toggle {
            Some(true) => "(on)",
            Some(false) => "(off)",
            None => "",
        };
        words.push(format!("{scope}{}={doubt}{value}{toggle}", one.name));
    }
    words.extend(set.user_variables.iter().map(|name| format!("@{name}")));
    if !set.complete {
        words.push("...".to_owned());
    }
    out.push(format!("{{{}}}", words.join(", ")));
}

/// Verb, count if not 1, `share`, what is special, in a fixed order.
pub fn summary(class: &Class, text: &str) -> String {
    let mut out = vec![format!("{:?}", class.verb).to_lowercase()];
    if class.statements != 1 {
        out.push(format!("x{}", class.statements));
    }
    for (flag, word) in [(class.shareable, "share"), (class.ddl, "ddl"), (class.doubtful, "doubtful")] {
        if flag {
            out.push(word.to_owned());
        }
    }
    out.extend(class.transaction.map(transaction));
    out.extend(class.pins.iter().map(|pin| format!("+{}", pin.label())));
    out.extend(class.releases.iter().map(|pin| format!("-{}", pin.label())));
    out.extend(
        CLEARS.iter().filter(|(flag, _)| class.clears.contains(*flag)).map(|(_, word)| format!("!{word}")),
    );
    out.extend(
        LOCKS.iter().filter(|(flag, _)| class.takes.contains(*flag)).map(|(_, word)| format!("takes {word}")),
    );
    out.extend(
        LOCKS.iter().filter(|(flag, _)| class.frees.contains(*flag)).map(|(_, word)| format!("frees {word}")),
    );
    out.extend(
        USES.iter().filter(|(flag, _)| class.uses.contains(*flag)).map(|(_, word)| (*word).to_owned()),
    );
    set_target(class, text, &mut out);
    for call in class.calls() {
        let name = match call.kind {
            CallKind::ConnectionId => "connection_id",
            CallKind::LastInsertId => "last_insert_id",
            CallKind::RowCount => "row_count",
            CallKind::FoundRows => "found_rows",
            CallKind::PseudoThreadId => "pseudo_thread_id",
            CallKind::Identity => "identity",
            CallKind::BackendPid => "backend_pid",
        };
        let span = String::from_utf8_lossy(call.span.of(text.as_bytes()).unwrap_or(b"?")).into_owned();
        out.push(format!("{}{name}[{span}]", if call.bare { "bare " } else { "" }));
    }
    match class.kill() {
        Some(Kill::Id { id, query_only }) => {
            out.push(format!("kill {id}{}", if query_only { " query" } else { "" }))
        }
        Some(Kill::Parameter { query_only }) => {
            out.push(format!("kill parameter{}", if query_only { " query" } else { "" }));
        }
        Some(Kill::QueryId) => out.push("kill query id".to_owned()),
        Some(Kill::Other) => out.push("kill ?".to_owned()),
        None => {}
    }
    out.extend(class.name().map(|name| format!("'{name}'")));
    out.join(" ")
}

/// Checks a table of statements; all wrong rows are shown at once.
pub fn check(dialect: Dialect, table: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (text, expected) in table {
        let found = summary(&classify(dialect, text.as_bytes()), text);
        if found != *expected {
            wrong.push(format!("{text}\n    expected {expected}\n    found    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), table.len(), wrong.join("\n"));
}
