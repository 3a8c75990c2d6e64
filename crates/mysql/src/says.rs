//! What a statement's text asks about the statement before it, and what it leaves for later questions.
//!
//! Owns: recognising SHOW WARNINGS and similar statements, where a text asks for counts, and whether it may
//! set FOUND_ROWS() or clear warnings. Must not know: the answers (`front/last.rs`, `warnings.rs`), and
//! replies.
//!
//! Invariant: an ambiguous text counts as doing either.

use crate::session_state::Flavour;
use crate::words::{Piece, Words};
use weir_sql::{Class, Span, Uses, Verb};

/// What SHOW wants of the warnings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// SHOW ERRORS.
    pub errors: bool,
    /// LIMIT: rows to leave out, and rows to show.
    pub skip: u64,
    pub most: u64,
}

/// `SHOW WARNINGS` and `SHOW ERRORS`, with or without LIMIT.
pub(crate) fn wanted(text: &[u8]) -> Option<Wanted> {
    let mut words = Words::new(text);
    let is = |piece: Option<Piece<'_>>, wanted: &[u8]| piece.is_some_and(|it| it.is(wanted));
    if !is(words.next(), b"SHOW") {
        return None;
    }
    let what = words.next()?;
    let errors = what.is(b"ERRORS");
    if !errors && !what.is(b"WARNINGS") {
        return None;
    }
    let mut wanted = Wanted { errors, skip: 0, most: u64::MAX };
    let mut next = words.next();
    if is(next, b"LIMIT") {
        wanted.most = words.next()?.number()?;
        next = words.next();
        let comma = is(next, b",");
        if comma || is(next, b"OFFSET") {
            wanted.skip = words.next()?.number()?;
            if comma {
                std::mem::swap(&mut wanted.skip, &mut wanted.most);
            }
            next = words.next();
        }
    }
    while is(next, b";") {
        next = words.next();
    }
    next.is_none().then_some(wanted)
}

/// MariaDB: the first statement asks for FOUND_ROWS() where its own parts change that before they ask: behind
/// UNION and its like, or beside WITH.
pub(crate) fn found_moves(class: &Class, text: &[u8], flavour: Flavour) -> bool {
    if flavour != Flavour::MariaDb || !class.uses.contains(Uses::FOUND_ROWS) {
        return false;
    }
    let end = if class.first_end == 0 { text.len() } else { class.first_end as usize };
    let parts: [&[u8]; 4] = [b"UNION", b"INTERSECT", b"EXCEPT", b"WITH"];
    Words::new(text.get(..end).unwrap_or(text)).any(|piece| parts.iter().any(|part| piece.is(part)))
}

/// `SHOW COUNT(*) WARNINGS` or `SHOW COUNT(*) ERRORS`; true for the latter.
pub(crate) fn show_count(text: &[u8]) -> Option<bool> {
    let mut words = Words::new(text);
    for word in [&b"SHOW"[..], b"COUNT", b"(", b"*", b")"] {
        words.next().filter(|piece| piece.is(word))?;
    }
    let what = words.next()?;
    let errors = what.is(b"ERRORS");
    let ends = words.all(|piece| piece.is(b";"));
    (ends && (errors || what.is(b"WARNINGS"))).then_some(errors)
}

/// What SHOW, DESCRIBE or EXPLAIN makes of FOUND_ROWS().
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Shows {
    /// The number of its rows: the server makes a SELECT of it.
    Rows,
    /// What it was.
    Nothing,
    /// MySQL, EXPLAIN that runs nothing: what a statement before it has left in store.
    Stored,
    /// It is not known.
    #[default]
    Other,
}

/// What a text of this class makes of FOUND_ROWS().
pub(crate) fn shows(class: &Class, text: &[u8], flavour: Flavour) -> Shows {
    let verb = class.verb;
    if !matches!(verb, Verb::Show | Verb::Explain) {
        return Shows::Other;
    }
    let mut words = Words::new(text).skip(1);
    let Some(what) = words.next() else { return Shows::Other };
    let any = |what: &Piece<'_>, list: &[&[u8]]| list.iter().any(|word| what.is(word));
    if verb == Verb::Explain {
        let statements: [&[u8]; 13] = [
            b"SELECT",
            b"INSERT",
            b"REPLACE",
            b"UPDATE",
            b"DELETE",
            b"WITH",
            b"TABLE",
            b"VALUES",
            b"FORMAT",
            b"EXTENDED",
            b"PARTITIONS",
            b"ANALYZE",
            b"FOR",
        ];
        let is_name = what.bytes.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'`');
        return match is_name && !any(&what, &statements) {
            true => Shows::Rows,
            false if flavour == Flavour::MySql && runs_nothing(class, text) => Shows::Stored,
            false => Shows::Other,
        };
    }
    shown(what, words, flavour)
}

/// What SHOW makes of FOUND_ROWS(): of its second word, and what follows.
fn shown<'t>(mut what: Piece<'t>, mut words: impl Iterator<Item = Piece<'t>>, flavour: Flavour) -> Shows {
    let any = |what: &Piece<'_>, list: &[&[u8]]| list.iter().any(|word| what.is(word));
    if any(&what, &[b"FULL", b"SESSION", b"GLOBAL", b"EXTENDED"]) {
        match words.next() {
            Some(next) => what = next,
            None => return Shows::Other,
        }
    }
    let rows: [&[u8]; 22] = [
        b"TABLES",
        b"COLUMNS",
        b"FIELDS",
        b"INDEX",
        b"INDEXES",
        b"KEYS",
        b"VARIABLES",
        b"STATUS",
        b"DATABASES",
        b"SCHEMAS",
        b"TABLE",
        b"COLLATION",
        b"CHARACTER",
        b"CHARSET",
        b"ENGINES",
        b"TRIGGERS",
        b"EVENTS",
        b"PLUGINS",
        b"OPEN",
        b"FUNCTION",
        b"PROCEDURE",
        b"COUNT",
    ];
    let nothing: [&[u8]; 6] = [b"WARNINGS", b"ERRORS", b"CREATE", b"GRANTS", b"PRIVILEGES", b"BINARY"];
    if any(&what, &rows) || what.is(b"PROCESSLIST") && flavour == Flavour::MySql {
        Shows::Rows
    } else if any(&what, &nothing) || what.is(b"PROCESSLIST") {
        Shows::Nothing
    } else {
        Shows::Other
    }
}

/// EXPLAIN of a statement without subqueries and functions of users, which making its plan might run.
fn runs_nothing(class: &Class, text: &[u8]) -> bool {
    let code = Uses::UNKNOWN_FUNCTION | Uses::USER_FUNCTION | Uses::CODE_SELECTS | Uses::BLOCK;
    let mut selects = 0;
    !class.uses.intersects(code)
        && Words::new(text).all(|piece| {
            selects += u32::from(piece.is(b"SELECT"));
            selects < 2 && !piece.is(b"ANALYZE") && !piece.is(b"FOR")
        })
}

/// The rows that LIMIT leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Skipped {
    /// So many: FOUND_ROWS() is that and the rows that came, if any came.
    Known(u32),
    /// A parameter says it, behind which so many others stand.
    Parameter { behind: u8 },
    /// Nothing, or nothing that matters.
    #[default]
    Unsaid,
    /// It is said in a way that is not understood, or FOUND_ROWS() has nothing to do with it.
    Other,
}

/// What a SELECT with an offset, or with UNION and LIMIT, makes of FOUND_ROWS().
pub(crate) fn skipped(text: &[u8], flavour: Flavour) -> Skipped {
    let mut words = Words::new(text);
    let (mut depth, mut unites) = (0_u32, false);
    loop {
        match words.next() {
            None => return Skipped::Other,
            Some(piece) if piece.is(b"(") => depth += 1,
            Some(piece) if piece.is(b")") => depth = depth.saturating_sub(1),
            Some(piece) if [&b"UNION"[..], b"EXCEPT", b"INTERSECT"].iter().any(|word| piece.is(word)) => {
                unites |= depth == 0;
            }
            Some(piece) if depth == 0 && piece.is(b"LIMIT") => break,
            Some(_) => {}
        }
    }
    let (first, mut next) = (words.next(), words.next());
    let mut behind = 0;
    let offset = match next {
        Some(comma) if comma.is(b",") => {
            behind = u8::from(words.next().is_some_and(|piece| piece.is(b"?")));
            next = words.next();
            first
        }
        Some(word) if word.is(b"OFFSET") => {
            let second = words.next();
            next = words.next();
            second
        }
        Some(_) | None => None,
    };
    while next.is_some_and(|piece| piece.is(b";")) {
        next = words.next();
    }
    // On MariaDB LIMIT behind UNION is no part of what is found.
    if next.is_some() || unites && flavour == Flavour::MariaDb {
        return Skipped::Other;
    }
    match offset {
        Some(offset) if offset.is(b"?") => Skipped::Parameter { behind },
        Some(offset) => {
            offset.number().and_then(|n| u32::try_from(n).ok()).map_or(Skipped::Other, Skipped::Known)
        }
        None if first.is_some_and(|first| first.number().is_some()) => Skipped::Known(0),
        None => Skipped::Other,
    }
}

/// The variables that a text asks for may be trackers of the session: not where each SHOW VARIABLES says LIKE
/// with other names.
pub(crate) fn may_show_trackers(text: &[u8]) -> bool {
    const TRACKER: &[u8] = b"session_track";
    let of_others = |piece: Piece<'_>| match piece.bytes {
        [quote @ (b'\'' | b'"'), pattern @ .., end] if quote == end && !pattern.contains(&b'\\') => {
            let fixed = pattern.split(|byte| matches!(byte, b'%' | b'_')).next().unwrap_or_default();
            let common = fixed.len().min(TRACKER.len());
            !fixed.is_empty()
                && !fixed
                    .get(..common)
                    .unwrap_or_default()
                    .eq_ignore_ascii_case(TRACKER.get(..common).unwrap_or_default())
        }
        _ => false,
    };
    let mut words = Words::new(text);
    let mut others = false;
    while let Some(piece) = words.next() {
        if piece.is(b"VARIABLES") {
            others = words.next().is_some_and(|like| like.is(b"LIKE")) && words.next().is_some_and(of_others);
            if !others {
                return true;
            }
        }
        let tells: [&[u8]; 4] =
            [b"SESSION_VARIABLES", b"SYSTEM_VARIABLES", b"VARIABLES_BY_THREAD", b"VARIABLES_INFO"];
        if tells.iter().any(|word| piece.is(word))
            || piece.bytes.windows(TRACKER.len()).any(|it| it.eq_ignore_ascii_case(TRACKER))
        {
            return true;
        }
    }
    !others
}

/// What the words of a text say beyond its class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Says(u32);

impl Says {
    /// Its first statement is empty: the server refuses all of it.
    pub(crate) const BEGINS_WITH_NONE: Says = Says(1);
    /// Its first statement asks for warnings, or is RESIGNAL, which adds to them.
    pub(crate) const HEAD_ASKS: Says = Says(1 << 1);
    /// GET DIAGNOSTICS with ROW_COUNT.
    pub(crate) const COUNTS: Says = Says(1 << 2);
    /// GET DIAGNOSTICS with RETURNED_SQLSTATE.
    pub(crate) const STATES: Says = Says(1 << 6);
    /// GET DIAGNOSTICS of what no condition has that SIGNAL raises.
    pub(crate) const ORIGINS: Says = Says(1 << 7);
    /// Of several statements: one that is no SELECT may set FOUND_ROWS(), or may leave it.
    pub(crate) const MAY_SET: Says = Says(1 << 3);
    /// One sets it.
    pub(crate) const SELECTS: Says = Says(1 << 4);
    /// The last one is a SELECT, and nothing stands behind it.
    pub(crate) const ENDS_WITH_SELECT: Says = Says(1 << 5);
    /// One changes rows, or calls a procedure.
    pub(crate) const CHANGES_ROWS: Says = Says(1 << 8);
    /// SET or CREATE selects something.
    pub(crate) const SELECTS_BESIDES: Says = Says(1 << 9);

    /// The last one is GET DIAGNOSTICS, and nothing stands behind it.
    pub(crate) const ENDS_WITH_GET: Says = Says(1 << 14);
    /// Where the number stands that [`Says::gets`] tells.
    const GETS: u32 = 18;
    /// One that breaks may have something in store for FOUND_ROWS(): an UPDATE, or rows selected besides.
    pub(crate) const BREAKS_LATE: Says = Says(1 << 15);

    /// Its first statement is a SELECT that asks for `@@warning_count` or `@@error_count`.
    pub(crate) const HEAD_COUNTS: Says = Says(1 << 16);
    /// Nothing behind that asks for warnings.
    pub(crate) const ONLY_HEAD_COUNTS: Says = Says(1 << 17);

    /// It may have texts listed for SHOW PROFILES.
    pub(crate) const PROFILES: Says = Says(1 << 24);
    /// Of several statements: one may set `last_insert_id`, or what makes others ask for it.
    pub(crate) const SETS_INSERT_ID: Says = Says(1 << 25);
    /// It may set the role.
    pub(crate) const SETS_ROLE: Says = Says(1 << 23);
    /// See [`found_moves`].
    pub(crate) const FOUND_MOVES: Says = Says(1 << 22);

    /// Where the number stands that [`Says::finder`] tells.
    const FINDER: u32 = 10;
    /// The largest it may be, and any above that.
    const MOST_BEFORE: u32 = 0xF;

    /// Statements in front of the first that sets FOUND_ROWS(), 15 for more; of a text where one does.
    pub(crate) fn finder(self) -> u16 {
        (self.0 >> Says::FINDER & Says::MOST_BEFORE) as u16
    }

    /// So many GET DIAGNOSTICS stand at its end, up to 15; of a text that ends with one.
    pub(crate) fn gets(self) -> u32 {
        self.0 >> Says::GETS & Says::MOST_BEFORE
    }

    /// It says this.
    pub(crate) fn has(self, other: Says) -> bool {
        self.0 & other.0 != 0
    }

    /// It says this, too, if that is so.
    fn with(self, other: Says, so: bool) -> Says {
        if so { Says(self.0 | other.0) } else { self }
    }

    /// What a text of this class says.
    pub(crate) fn of(class: &Class, text: &[u8], flavour: Flavour) -> Says {
        let mut says = Says::default();
        if class.uses.intersects(Uses::WARNINGS | Uses::DIAGNOSTICS) {
            let end = if class.first_end == 0 { text.len() } else { class.first_end as usize };
            let head = text.get(..end).unwrap_or(text);
            let unread = class.verb == Verb::Show && class.uses.contains(Uses::EXECUTABLE_COMMENT);
            let resignals = class.verb == Verb::Server
                && Words::new(head).next().is_some_and(|word| word.is(b"RESIGNAL"));
            let asks = class.verb == Verb::Get || wanted(head).is_some() || show_count(head).is_some();
            let asks = asks || resignals;
            let counts =
                class.uses.contains(Uses::DIAGNOSTICS) && Words::new(text).any(|it| it.is(b"ROW_COUNT"));
            says = says.with(Says::HEAD_ASKS, asks || unread).with(Says::COUNTS, counts);
            let selects = class.verb == Verb::Select && class.statements > 1;
            let head_counts = selects && !counts_in(head).is_empty();
            says = says.with(Says::HEAD_COUNTS, head_counts);
            says = says.with(Says::ONLY_HEAD_COUNTS, head_counts && asks_nothing(text.get(end..)));
            if class.uses.contains(Uses::DIAGNOSTICS) {
                let origins = flavour == Flavour::MySql && asks_for_origins(text);
                says = says.with(Says::STATES, asks_for_states(text));
                says = says.with(Says::ORIGINS, origins);
            }
            let is_none =
                begins_with_none(text) || class.verb == Verb::Get && crate::warnings::asks_wrongly(head);
            says = says.with(Says::BEGINS_WITH_NONE, is_none);
        }
        if !class.pins.is_empty() {
            let names = |word: &[u8]| text.windows(word.len()).any(|it| it.eq_ignore_ascii_case(word));
            says = says.with(Says::SETS_ROLE, names(b"role"));
            says = says.with(Says::PROFILES, flavour == Flavour::MariaDb && names(b"profiling"));
        }
        says = says.with(Says::FOUND_MOVES, found_moves(class, text, flavour));
        // To a server, a comment behind a statement is one more.
        if class.statements > 1 || !is_all_of(class, text) { says.of_several(text, flavour) } else { says }
    }

    fn of_several(mut self, text: &[u8], flavour: Flavour) -> Says {
        let silent: [&[u8]; 17] = [
            b"INSERT",
            b"REPLACE",
            b"DELETE",
            b"SET",
            b"BEGIN",
            b"START",
            b"COMMIT",
            b"ROLLBACK",
            b"SAVEPOINT",
            b"RELEASE",
            b"USE",
            b"CREATE",
            b"ALTER",
            b"DROP",
            b"TRUNCATE",
            b"FLUSH",
            b"RESIGNAL",
        ];
        let names: [&[u8]; 3] = [b"last_insert_id", b"identity", b"sql_auto_is_null"];
        let (mut begins, mut is_select, mut is_quiet, mut is_get) = (true, false, false, false);
        // Behind DELETE; in its statement; between UPDATE and its SET.
        let (mut is_delete, mut deletes, mut is_update) = (false, false, false);
        let (mut statements, mut gets) = (0_u32, 0_u32);
        // `CREATE TABLE` and its like have one of their own.
        let mut own_table = false;
        for piece in Words::new(text) {
            if piece.is(b";") {
                begins = true;
                continue;
            }
            // In backquotes as well.
            let word = unquoted(piece.bytes);
            self = self.with(Says::SETS_INSERT_ID, names.iter().any(|name| name.eq_ignore_ascii_case(word)));
            let select = piece.is(b"SELECT");
            if begins {
                (is_select, is_quiet) = (select, piece.is(b"SET") || piece.is(b"CREATE"));
                (is_get, deletes) = (piece.is(b"GET"), piece.is(b"DELETE"));
                let of_tables: [&[u8]; 4] = [b"CREATE", b"ALTER", b"DROP", b"TRUNCATE"];
                own_table = of_tables.iter().any(|word| piece.is(word));
                gets = if is_get { gets + 1 } else { 0 };
                // MySQL counts what they matched.
                let counts = piece.is(b"UPDATE") || piece.is(b"DO");
                let sets = select || counts && flavour == Flavour::MySql;
                let late = piece.is(b"UPDATE") || piece.is(b"WITH");
                self = self.with(Says::BREAKS_LATE, late);
                let quiet = sets || counts || silent.iter().any(|word| piece.is(word));
                let changes = [&b"INSERT"[..], b"REPLACE", b"DELETE", b"LOAD", b"CALL", b"WITH"];
                let changes = changes.iter().any(|word| piece.is(word));
                if sets && !self.has(Says::SELECTS) {
                    self.0 |= Says::MOST_BEFORE.min(statements) << Says::FINDER;
                }
                statements = statements.saturating_add(1);
                self = self.with(Says::SELECTS, sets).with(Says::MAY_SET, !quiet);
                self = self.with(Says::CHANGES_ROWS, changes);
                if changes || sets {
                    // What SET has selected in front of it is found now.
                    self.0 &= !Says::SELECTS_BESIDES.0;
                }
            } else {
                // MySQL's other forms of a query.
                let table = piece.is(b"TABLE") && !std::mem::take(&mut own_table);
                let query = select || flavour == Flavour::MySql && (table || piece.is(b"ROW"));
                self = self.with(Says::MAY_SET, query && !is_select);
                self = self.with(Says::SELECTS_BESIDES, query && is_quiet);
                // A DELETE from several tables, an UPDATE of them: they are read like those of a SELECT.
                let joins = piece.is(b"JOIN") || piece.is(b"USING");
                let several = joins || is_delete && !piece.is(b"FROM") || is_update && piece.is(b",");
                self = self.with(Says::BREAKS_LATE, select || joins || is_delete && !piece.is(b"FROM"));
                let finds = deletes || !is_select && flavour == Flavour::MariaDb;
                self = self.with(Says::MAY_SET, several && finds);
            }
            is_delete = begins && piece.is(b"DELETE");
            is_update = begins && piece.is(b"UPDATE") || !begins && is_update && !piece.is(b"SET");
            begins = false;
        }
        let ends = !begins && !text.trim_ascii_end().ends_with(b"*/");
        self.0 |= Says::MOST_BEFORE.min(gets) << Says::GETS;
        self.with(Says::ENDS_WITH_SELECT, ends && is_select).with(Says::ENDS_WITH_GET, ends && is_get)
    }
}

/// The text is its first statement. A comment behind it is another one to servers, which they answer by an
/// OK.
pub(crate) fn is_all_of(class: &Class, text: &[u8]) -> bool {
    let behind = text.get(class.first_end as usize..).unwrap_or_default();
    // They cut this off at the end of a text.
    class.first_end == 0 || behind.iter().all(|byte| *byte == b';' || byte.is_ascii_whitespace())
}

/// A statement that changes something selects rows besides: it has a subquery, or is about several tables.
pub(crate) fn selects(class: &Class, text: &[u8]) -> bool {
    /// Behind them a statement is full of values, and the only query to come is in parentheses.
    const HEAD_BYTES: usize = 4 * 1024;
    let verb = class.verb;
    let (text, is_long) = text.get(..HEAD_BYTES).map_or((text, false), |head| (head, true));
    let words = || Words::new(text).skip(1);
    let one_table = |piece: &Piece<'_>| piece.is(b"FROM");
    let plain = [&b"LOW_PRIORITY"[..], b"QUICK", b"IGNORE"];
    let first = words().find(|piece| !plain.iter().any(|word| piece.is(word)));
    let several = match verb {
        Verb::Delete => !first.as_ref().is_some_and(one_table),
        Verb::Update => words().take_while(|piece| !piece.is(b"SET")).any(|piece| piece.is(b",")),
        _ => false,
    };
    // The SELECT of a view or a routine does not run when that is made.
    if verb == Verb::Create && !words().take(3).any(|piece| piece.is(b"TABLE")) {
        return false;
    }
    if several || is_long && class.uses.contains(Uses::SUBQUERY) {
        return true;
    }
    if !may_have_a_query(text) {
        return false;
    }
    // `CREATE TABLE t TABLE u`.
    let mut own_table = verb == Verb::Create;
    words().any(|piece| {
        let table = piece.is(b"TABLE") && !std::mem::take(&mut own_table);
        let query = table || [&b"SELECT"[..], b"ROW", b"JOIN"].iter().any(|word| piece.is(word));
        query || verb == Verb::Delete && piece.is(b"USING")
    })
}

/// One of the words that queries have stands in it, be it in a string.
fn may_have_a_query(text: &[u8]) -> bool {
    (0..text.len()).any(|at| {
        let rest = text.get(at..).unwrap_or_default();
        let word: &[u8] = match rest.first().map_or(0, u8::to_ascii_lowercase) {
            b's' => b"select",
            b't' => b"table",
            b'r' => b"row",
            b'j' => b"join",
            b'u' => b"using",
            _ => return false,
        };
        rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
    })
}

/// LIMIT stands in it, wherever.
pub(crate) fn limits(text: &[u8]) -> bool {
    Words::new(text).any(|piece| piece.is(b"LIMIT"))
}

/// A function stands in it that makes one row of many.
pub(crate) fn aggregates(text: &[u8]) -> bool {
    let names: [&[u8]; 18] = [
        b"COUNT",
        b"MAX",
        b"MIN",
        b"SUM",
        b"AVG",
        b"GROUP_CONCAT",
        b"JSON_ARRAYAGG",
        b"JSON_OBJECTAGG",
        b"BIT_AND",
        b"BIT_OR",
        b"BIT_XOR",
        b"STD",
        b"STDDEV",
        b"STDDEV_POP",
        b"STDDEV_SAMP",
        b"VARIANCE",
        b"VAR_POP",
        b"VAR_SAMP",
    ];
    let mut last_is_one = false;
    Words::new(text).any(|piece| {
        let calls = last_is_one && piece.is(b"(");
        last_is_one = names.iter().any(|name| piece.is(name));
        calls
    })
}

/// A place where a text asks for @@warning_count or @@error_count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CountIn {
    pub span: Span,
    pub errors: bool,
    /// It is a whole item of a select list, so that its text names the column.
    pub bare: bool,
}

/// All statements of the text ask for warnings or errors, which leaves these as they are.
pub(crate) fn only_asks(text: &[u8]) -> bool {
    let mut words = Words::new(text).peekable();
    let mut begins = true;
    while let Some(word) = words.next() {
        if word.is(b";") {
            begins = true;
        } else if std::mem::take(&mut begins) {
            let next = words.peek();
            let of_them = [b"WARNINGS".as_slice(), b"ERRORS", b"COUNT"];
            let shows = word.is(b"SHOW") && next.is_some_and(|next| of_them.iter().any(|it| next.is(it)));
            if !shows && !word.is(b"GET") {
                return false;
            }
        }
    }
    true
}

/// These statements have none of the words that ask for warnings.
pub(crate) fn asks_nothing(statements: Option<&[u8]>) -> bool {
    let words: [&[u8]; 5] = [b"SHOW", b"GET", b"warning_count", b"error_count", b"EXECUTE"];
    let asks = |piece: Piece<'_>| words.iter().any(|word| piece.is(word));
    !Words::new(statements.unwrap_or_default()).any(asks)
}

/// MariaDB: a statement at the head of a text of several uses a table, or is a SHOW that makes one of what it
/// shows. Before it stand only such as ask for no warnings: SELECT, SET, DO, USE and transaction control,
/// without system variables.
pub(crate) fn head_opens_a_table(text: &[u8]) -> bool {
    let writes: [&[u8]; 4] = [b"INSERT", b"REPLACE", b"UPDATE", b"DELETE"];
    let asks_nothing: [&[u8]; 8] =
        [b"SELECT", b"SET", b"DO", b"USE", b"START", b"COMMIT", b"ROLLBACK", b"SAVEPOINT"];
    let mut start = 0;
    let ends = Words::new(text).filter(|piece| piece.is(b";")).map(|piece| piece.start());
    for end in ends.chain([text.len()]) {
        let statement = text.get(start..end).unwrap_or_default();
        let mut words = Words::new(statement);
        let Some(first) = words.next() else { return false };
        let is_one_of = |list: &[&[u8]]| list.iter().any(|word| first.is(word));
        if first.is(b"SHOW") {
            return shows_a_table(words);
        }
        if is_one_of(&writes) || is_one_of(&asks_nothing) && names_a_table(statement) {
            return true;
        }
        if !is_one_of(&asks_nothing) || statement.windows(2).any(|pair| pair == b"@@") {
            return false;
        }
        start = end + 1;
    }
    false
}

/// MariaDB: SHOW of what stands behind it makes a table of what it shows.
pub(crate) fn shows_a_table<'t>(mut words: impl Iterator<Item = Piece<'t>>) -> bool {
    let Some(what) = words.next() else { return false };
    !what.is(b"COUNT") && shown(what, words, Flavour::MariaDb) == Shows::Rows
}

/// All those places.
pub(crate) fn counts_in(text: &[u8]) -> Vec<CountIn> {
    let pieces: Vec<Piece<'_>> = Words::new(text).collect();
    let piece = |at: usize| pieces.get(at);
    let mut found = Vec::new();
    for (at, first) in pieces.iter().enumerate() {
        if !(first.is(b"@") && piece(at + 1).is_some_and(|it| it.is(b"@"))) {
            continue;
        }
        let scoped = piece(at + 2).is_some_and(|it| it.is(b"SESSION") || it.is(b"LOCAL"));
        let name_at = if scoped { at + 4 } else { at + 2 };
        let Some(name) = piece(name_at) else { continue };
        // In quotes as well.
        let is = |wanted: &[u8]| unquoted(name.bytes).eq_ignore_ascii_case(wanted);
        let errors = is(b"ERROR_COUNT");
        if !errors && !is(b"WARNING_COUNT") {
            continue;
        }
        let begins = at.checked_sub(1).and_then(piece).is_some_and(|it| it.is(b"SELECT") || it.is(b","));
        let ends = piece(name_at + 1).is_none_or(|it| {
            [&b","[..], b";", b"FROM", b"LIMIT", b"WHERE", b"INTO"].iter().any(|word| it.is(word))
        });
        let start = first.start();
        let end = name.start() + name.bytes.len();
        let (Ok(start), Ok(end)) = (u32::try_from(start), u32::try_from(end)) else { continue };
        found.push(CountIn { span: Span { start, end }, errors, bare: begins && ends });
    }
    found
}

/// The message of ER_NO_SUCH_TABLE (`Table 'shop.t' doesn't exist`) or of ER_TABLE_NOT_LOCKED (which names no
/// schema) is about a table of this text, which stands in this schema. In doubt it is about one of a trigger
/// or a function.
pub(crate) fn names_missing(text: &[u8], own: Option<&str>, message: &[u8]) -> bool {
    let Some(name) = message.split(|byte| *byte == b'\'').nth(1) else { return false };
    let (schema, table) = match name.iter().position(|byte| *byte == b'.') {
        Some(dot) => (Some(&name[..dot]), &name[dot + 1..]),
        None => (None, name),
    };
    let in_own = schema.is_none_or(|schema| own.is_some_and(|own| own.as_bytes() == schema));
    let pieces: Vec<Piece<'_>> = Words::new(text).collect();
    let is = |at: Option<usize>, name: &[u8]| {
        at.and_then(|at| pieces.get(at)).is_some_and(|piece| unquoted(piece.bytes).eq_ignore_ascii_case(name))
    };
    (0..pieces.len()).any(|at| {
        let before = at.checked_sub(1);
        let dotted = is(before, b".");
        let first = if dotted { at.checked_sub(3) } else { before };
        let begins = [&b"FROM"[..], b"JOIN", b"INTO", b"UPDATE"].iter().any(|word| is(first, word));
        let is_there = |schema| is(at.checked_sub(2), schema);
        begins && is(Some(at), table) && if dotted { schema.is_none_or(is_there) } else { in_own }
    })
}

/// A name without its quotes.
fn unquoted(name: &[u8]) -> &[u8] {
    match name {
        [b'`', name @ .., b'`'] | [b'"', name @ .., b'"'] => name,
        name => name,
    }
}

/// Its first statement is empty: both servers refuse the whole text.
pub(crate) fn begins_with_none(text: &[u8]) -> bool {
    Words::new(text).next().is_some_and(|piece| piece.is(b";"))
}

/// CREATE, ALTER or DROP of a schema: it opens no table.
pub(crate) fn is_about_a_schema(text: &[u8]) -> bool {
    let mut words = Words::new(text).skip(1).skip_while(|piece| piece.is(b"OR") || piece.is(b"REPLACE"));
    words.next().is_some_and(|piece| piece.is(b"DATABASE") || piece.is(b"SCHEMA"))
}

/// FROM stands in it, with something else than DUAL behind it, and not as in `EXTRACT(YEAR FROM x)`.
pub(crate) fn names_a_table(text: &[u8]) -> bool {
    let functions: [&[u8]; 5] = [b"EXTRACT", b"TRIM", b"SUBSTRING", b"SUBSTR", b"MID"];
    let mut words = Words::new(text).peekable();
    // Of each parenthesis that is open: it is one of those functions'.
    let mut open = Vec::new();
    let mut is_function = false;
    while let Some(piece) = words.next() {
        let own = open.last() == Some(&true);
        if piece.is(b"FROM") && !own && !words.peek().is_some_and(|next| next.is(b"DUAL")) {
            return true;
        }
        if piece.is(b"(") {
            open.push(is_function);
        } else if piece.is(b")") {
            open.pop();
        }
        is_function = functions.iter().any(|name| piece.is(name));
    }
    false
}

/// DESCRIBE with the name of a table behind it, and no statement.
pub(crate) fn describes_a_table(text: &[u8]) -> bool {
    const STATEMENTS: [&[u8]; 15] = [
        b"SELECT",
        b"INSERT",
        b"REPLACE",
        b"UPDATE",
        b"DELETE",
        b"WITH",
        b"VALUES",
        b"(",
        b"EXTENDED",
        b"PARTITIONS",
        b"FORMAT",
        b"FOR",
        b"ANALYZE",
        b"TABLE",
        b"ALTER",
    ];
    let mut words = Words::new(text);
    let begins = |first: Piece<'_>| [&b"DESC"[..], b"DESCRIBE", b"EXPLAIN"].iter().any(|word| first.is(word));
    words.next().is_some_and(begins)
        && words.next().is_some_and(|next| !STATEMENTS.iter().any(|word| next.is(word)))
}

/// EXPLAIN or ANALYZE of what writes: it opens the table.
pub(crate) fn explains_a_write(text: &[u8]) -> bool {
    const READS: [&[u8]; 4] = [b"SELECT", b"WITH", b"(", b"VALUES"];
    const WRITES: [&[u8]; 4] = [b"INSERT", b"REPLACE", b"UPDATE", b"DELETE"];
    let is_in = |words: &[&[u8]], piece: &Piece<'_>| words.iter().any(|word| piece.is(word));
    let mut words = Words::new(text).skip(1);
    words
        .find(|piece| is_in(&READS, piece) || is_in(&WRITES, piece))
        .is_some_and(|piece| is_in(&WRITES, &piece))
}

/// GET DIAGNOSTICS in the text asks for a condition's SQLSTATE.
fn asks_for_states(text: &[u8]) -> bool {
    Words::new(text).any(|piece| piece.is(b"RETURNED_SQLSTATE"))
}

/// It asks for what only the server itself says of its conditions: MySQL does.
fn asks_for_origins(text: &[u8]) -> bool {
    Words::new(text).any(|piece| piece.is(b"CLASS_ORIGIN") || piece.is(b"SUBCLASS_ORIGIN"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_sql::{Dialect, classify};

    #[test]
    fn what_show_wants() {
        let all = Wanted { errors: false, skip: 0, most: u64::MAX };
        for text in [
            &b"SHOW WARNINGS"[..],
            b"  show\n warnings ; ",
            b"Show/**/Warnings;",
            b"/* mine */ SHOW WARNINGS -- so",
            b"# x\nshow warnings",
        ] {
            assert_eq!(wanted(text), Some(all), "{}", String::from_utf8_lossy(text));
        }
        assert_eq!(wanted(b"SHOW ERRORS"), Some(Wanted { errors: true, ..all }));
        assert_eq!(wanted(b"SHOW WARNINGS LIMIT 1"), Some(Wanted { most: 1, ..all }));
        assert_eq!(wanted(b"SHOW WARNINGS LIMIT 3, 1"), Some(Wanted { skip: 3, most: 1, ..all }));
        assert_eq!(wanted(b"SHOW WARNINGS LIMIT 1 OFFSET 3;"), Some(Wanted { skip: 3, most: 1, ..all }));
        for text in [
            &b"SHOW COUNT(*) WARNINGS"[..],
            b"SHOW",
            b"",
            b"SHOW WARNINGS; SELECT 1",
            b"SHOW WARNINGS LIMIT @a",
        ] {
            assert_eq!(wanted(text), None);
        }
    }

    #[test]
    fn variables_that_are_no_trackers() {
        for text in ["SHOW VARIABLES LIKE 'time_zone'", "show session variables like \"wait%\"; SELECT 1"] {
            assert!(!may_show_trackers(text.as_bytes()), "{text}");
        }
        for text in [
            "SHOW VARIABLES",
            "SHOW VARIABLES LIKE '%'",
            "SHOW VARIABLES LIKE 'se%'",
            "SHOW VARIABLES LIKE 'session_track_schema'",
            "SHOW VARIABLES LIKE 'x'; SHOW VARIABLES",
            "SHOW VARIABLES LIKE 'x'; SELECT @@session_track_schema",
            "SHOW VARIABLES WHERE variable_name = 'x'",
            "SHOW VARIABLES LIKE 'x' /*! ; SHOW VARIABLES */",
            "SELECT @@session_track_schema",
        ] {
            let executable = text.contains("/*!");
            assert!(may_show_trackers(text.as_bytes()) || executable, "{text}");
        }
    }

    #[test]
    fn rows_that_limit_leaves_out() {
        let of = |text: &str| skipped(text.as_bytes(), Flavour::MariaDb);
        for (text, expected) in [
            ("SELECT i FROM t LIMIT 3, 4", Skipped::Known(3)),
            ("select (select 1 limit 5, 6) from t limit 4 offset 3;", Skipped::Known(3)),
            ("SELECT i FROM t LIMIT ?, ?", Skipped::Parameter { behind: 1 }),
            ("SELECT i FROM t LIMIT ? OFFSET ?", Skipped::Parameter { behind: 0 }),
            ("SELECT i FROM t LIMIT 3, 4 ROWS EXAMINED 5", Skipped::Other),
            ("SELECT 'limit 1' FROM t LIMIT 3, 4 # LIMIT 1", Skipped::Known(3)),
            ("SELECT 1 UNION SELECT 2 LIMIT 3, 4", Skipped::Other),
            ("SELECT i FROM t OFFSET 3 ROWS", Skipped::Other),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
        assert_eq!(skipped(b"SELECT 1 UNION SELECT 2 LIMIT 3", Flavour::MySql), Skipped::Known(0));
    }

    #[test]
    fn what_several_statements_find() {
        let of = |text: &str, flavour| {
            let says = Says::default().of_several(text.as_bytes(), flavour);
            [Says::MAY_SET, Says::SELECTS, Says::ENDS_WITH_SELECT].map(|it| says.has(it))
        };
        for flavour in [Flavour::MySql, Flavour::MariaDb] {
            assert_eq!(of("INSERT INTO t VALUES (1); SELECT id FROM t", flavour), [false, true, true]);
            assert_eq!(of("SELECT (SELECT 1); COMMIT", flavour), [false, true, false]);
            assert_eq!(of("SELECT 1; SELECT 2; /* so */", flavour), [false, true, false]);
            assert_eq!(of("SET @a = 1; INSERT INTO t SELECT 1", flavour), [true, false, false]);
            assert_eq!(of("SHOW TABLES; SELECT 1", flavour), [true, true, true]);
        }
        assert_eq!(of("BEGIN; UPDATE t SET a = 1", Flavour::MySql), [false, true, false]);
        assert_eq!(of("BEGIN; UPDATE t SET a = 1", Flavour::MariaDb), [false, false, false]);
    }

    #[test]
    fn statements_in_front_of_the_first_that_sets_found_rows() {
        let of = |text: &str| Says::default().of_several(text.as_bytes(), Flavour::MySql).finder();
        assert_eq!(of("SELECT 1; SELECT 2"), 0);
        assert_eq!(of("INSERT INTO t VALUES (1); COMMIT; DO 1; SELECT 2"), 2);
        assert_eq!(of(&format!("{}SELECT 1", "COMMIT; ".repeat(40))), 15);
    }

    #[test]
    fn what_several_statements_have_in_store() {
        let of = |text: &str| {
            let says = Says::default().of_several(text.as_bytes(), Flavour::MySql);
            [Says::CHANGES_ROWS, Says::SELECTS_BESIDES].map(|it| says.has(it))
        };
        assert_eq!(of("SET @a = (SELECT 1); COMMIT"), [false, true]);
        assert_eq!(of("CREATE TABLE d AS SELECT 1; SET @b = 2"), [false, true]);
        assert_eq!(of("SET @a = (SELECT 1); DELETE FROM t"), [true, false]);
        assert_eq!(of("INSERT INTO t SELECT 1; COMMIT"), [true, false]);
    }

    #[test]
    fn what_has_something_in_store_where_it_breaks() {
        let of =
            |text: &str| Says::default().of_several(text.as_bytes(), Flavour::MySql).has(Says::BREAKS_LATE);
        for text in [
            "SELECT 1; UPDATE t SET a = 1",
            "SELECT 1; INSERT INTO t SELECT 1",
            "DELETE t FROM t, u; COMMIT",
            "DELETE QUICK FROM t; COMMIT",
            "DELETE FROM t USING t, u; COMMIT",
            "SELECT (SELECT 1); COMMIT",
            "WITH a AS (TABLE t) DELETE FROM u; COMMIT",
        ] {
            assert!(of(text), "{text}");
        }
        for text in ["SELECT FOUND_ROWS(); INSERT INTO t VALUES (1)", "DELETE FROM t; SELECT 1"] {
            assert!(!of(text), "{text}");
        }
    }

    #[test]
    fn what_changes_rows_may_select_besides() {
        let of = |text: &str| selects(&classify(Dialect::MYSQL, text.as_bytes()), text.as_bytes());
        for text in [
            "UPDATE t, u SET t.a = 1",
            "UPDATE t JOIN u SET t.a = 1",
            "UPDATE t SET a = (SELECT 1)",
            "DELETE t FROM t, u",
            "DELETE FROM t USING t, u",
            "INSERT INTO t TABLE u",
            "INSERT INTO t VALUES ROW(1)",
            "CREATE TABLE t TABLE u",
            "SET @a = (TABLE u)",
        ] {
            assert!(of(text), "{text}");
            let long = format!("{text} /* {} */", "x".repeat(5_000));
            assert!(of(&long), "with a long end: {text}");
        }
        for text in [
            "UPDATE t SET a = 1, b = 2",
            "DELETE FROM t WHERE a = 1",
            "INSERT INTO t VALUES ('table', 'row')",
            "CREATE TABLE t (a int)",
            "CREATE VIEW v AS SELECT 1",
        ] {
            assert!(!of(text), "{text}");
        }
        let list = "1, ".repeat(3_000);
        assert!(of(&format!("DELETE FROM t WHERE a IN ({list} 1) AND b IN (SELECT 1)")));
        assert!(!of(&format!("DELETE FROM t WHERE a IN ({list} 1)")));
    }

    #[test]
    fn places_that_ask_for_counts() {
        let text = b"SELECT @@warning_count, '@@warning_count', 1+@@session.error_count FROM t";
        let found = counts_in(text);
        let seen: Vec<_> = found.iter().map(|it| (it.span.of(text).unwrap(), it.errors, it.bare)).collect();
        assert_eq!(seen, [(&b"@@warning_count"[..], false, true), (b"@@session.error_count", true, false)]);
    }

    #[test]
    fn tables_of_a_text() {
        for text in [&b"SELECT 1 FROM t"[..], b"select 'x' from(select 1) t", b"SET @a = (SELECT i FROM t)"] {
            assert!(names_a_table(text));
        }
        for text in [&b"SELECT 1 FROM DUAL"[..], b"SELECT 'from t'", b"SELECT `from` /* from t */", b"DO 0"] {
            assert!(!names_a_table(text));
        }
    }

    #[test]
    fn a_count_in_quotes_is_found_beside_a_plain_one() {
        let text = b"SELECT @@`warning_count`, @@\"error_count\", @@session.`Warning_Count`";
        let found = counts_in(text);
        let of = |it: &CountIn| &text[it.span.start as usize..it.span.end as usize];
        assert_eq!(found.len(), 3);
        assert_eq!(of(&found[0]), b"@@`warning_count`");
        assert!(found[0].bare && !found[0].errors && found[1].errors && found[2].bare);
    }

    #[test]
    fn which_table_is_missing() {
        let message = b"Table 'shop.w' doesn't exist";
        let own = |text: &str, schema| names_missing(text.as_bytes(), schema, message);
        for text in
            ["INSERT INTO w VALUES (?)", "SELECT ? FROM `W`", "UPDATE w SET a = ?", "SELECT ? FROM shop.w"]
        {
            assert!(own(text, Some("shop")), "{text}");
        }
        assert!(own("SELECT ? FROM shop.w", Some("other")) && !own("SELECT ? FROM w", Some("other")));
        assert!(
            !own("INSERT INTO t (w) VALUES (?)", Some("shop")) && !own("SELECT ? FROM t.w", Some("shop"))
        );
        assert!(!names_missing(b"SELECT ? FROM w", Some("shop"), b"No such table"));
        let locked = |text: &str| {
            names_missing(text.as_bytes(), Some("shop"), b"Table 'w' was not locked with LOCK TABLES")
        };
        assert!(locked("INSERT INTO w VALUES (?)") && locked("SELECT ? FROM other.w") && !locked("DO ?"));
    }

    #[test]
    fn what_explain_is_about() {
        for text in [
            "EXPLAIN INSERT INTO w (a) SELECT 1",
            "desc update w set a = 1",
            "EXPLAIN FORMAT=JSON DELETE FROM w",
        ] {
            assert!(explains_a_write(text.as_bytes()), "{text}");
        }
        for text in [
            "EXPLAIN SELECT REPLACE(a, 'x', 'y') FROM w",
            "EXPLAIN (SELECT 1)",
            "DESC w",
            "EXPLAIN WITH x AS (SELECT 1) SELECT 1",
        ] {
            assert!(!explains_a_write(text.as_bytes()), "{text}");
        }
    }
}
