//! Reads a database's catalogue with a request of Weir's own: its functions, views, triggers, policies,
//! defaults and operators, and a mark that distinguishes this state of the catalogue from others.
//!
//! Owns: the queries and how their rows are read. Must not know: when they are sent ([`weir_sql::catalogue`]
//! decides how long an answer is valid, the proxy has the clock), what the answer means for a text.
//!
//! Invariants: all names in the queries are qualified, so that no search_path affects what is read; they run
//! under the server's own settings; an incomplete answer proves nothing.

use crate::back::Back;
use crate::error::field;
use crate::message::query::put_query;
use crate::queue::{Internal, Kind, Owed};
use crate::session_state::{difference, put_queries};
use std::sync::Arc;
use weir_sql::Dialect;
use weir_sql::catalogue::{Answer, Builder, Function, Language, On, Reading, Volatility};
use weir_wire::{Boundary, INTERNAL, Reader};

/// The state of the catalogue in one row: how many rows of each kind users have made, and the transactions
/// that made them; of tables, views and indexes who has which name, for what is renamed keeps its code.
/// Whatever changes what code runs changes a row of these. 16384 is the first number that is not the
/// database's own (`FirstNormalObjectId`, access/transam.h).
macro_rules! fingerprint {
    () => {
        "SELECT 'z', pg_catalog.concat_ws(' ', \
            (SELECT pg_catalog.concat(pg_catalog.count(*), '/', pg_catalog.sum(xmin::pg_catalog.text::pg_catalog.int8)) FROM pg_catalog.pg_proc WHERE oid >= 16384), \
            (SELECT pg_catalog.concat(pg_catalog.count(*), '/', pg_catalog.sum(xmin::pg_catalog.text::pg_catalog.int8)) FROM pg_catalog.pg_rewrite WHERE oid >= 16384), \
            (SELECT pg_catalog.concat(pg_catalog.count(*), '/', pg_catalog.sum(xmin::pg_catalog.text::pg_catalog.int8)) FROM pg_catalog.pg_trigger WHERE oid >= 16384), \
            (SELECT pg_catalog.concat(pg_catalog.count(*), '/', pg_catalog.sum(xmin::pg_catalog.text::pg_catalog.int8)) FROM pg_catalog.pg_policy), \
            (SELECT pg_catalog.concat(pg_catalog.count(*), '/', pg_catalog.sum(xmin::pg_catalog.text::pg_catalog.int8)) FROM pg_catalog.pg_attrdef), \
            (SELECT pg_catalog.concat(pg_catalog.count(*), '/', pg_catalog.sum(xmin::pg_catalog.text::pg_catalog.int8)) FROM pg_catalog.pg_constraint WHERE oid >= 16384), \
            (SELECT pg_catalog.concat(pg_catalog.count(*), '/', pg_catalog.sum(xmin::pg_catalog.text::pg_catalog.int8)) FROM pg_catalog.pg_inherits), \
            (SELECT pg_catalog.concat(pg_catalog.count(*), '/', pg_catalog.sum(xmin::pg_catalog.text::pg_catalog.int8)) FROM pg_catalog.pg_operator WHERE oid >= 16384), \
            (SELECT pg_catalog.concat(pg_catalog.count(*), '/', pg_catalog.sum(xmin::pg_catalog.text::pg_catalog.int8)) FROM pg_catalog.pg_cast WHERE oid >= 16384), \
            (SELECT pg_catalog.concat(pg_catalog.count(*), '/', pg_catalog.sum(xmin::pg_catalog.text::pg_catalog.int8)) FROM pg_catalog.pg_event_trigger), \
            (SELECT pg_catalog.concat(pg_catalog.count(*), '/', pg_catalog.sum(xmin::pg_catalog.text::pg_catalog.int8)) FROM pg_catalog.pg_foreign_table), \
            (SELECT pg_catalog.concat(pg_catalog.count(*), '/', pg_catalog.sum(xmin::pg_catalog.text::pg_catalog.int8)) FROM pg_catalog.pg_sequence), \
            (SELECT pg_catalog.concat(pg_catalog.count(*), '/', pg_catalog.sum(xmin::pg_catalog.text::pg_catalog.int8)) FROM pg_catalog.pg_type WHERE oid >= 16384 AND typtype = 'd'), \
            (SELECT pg_catalog.concat(pg_catalog.count(*), '/', pg_catalog.sum(pg_catalog.hashtext(pg_catalog.concat_ws(' ', oid, relname))::pg_catalog.int8)) FROM pg_catalog.pg_class \
                WHERE oid >= 16384 AND relkind IN ('r', 'p', 'v', 'm', 'f') AND relpersistence <> 't'), \
            (SELECT pg_catalog.concat(pg_catalog.count(*), '/', pg_catalog.sum(i.xmin::pg_catalog.text::pg_catalog.int8), '/', \
                pg_catalog.sum(pg_catalog.hashtext(pg_catalog.concat_ws(' ', c.oid, c.relname))::pg_catalog.int8)) \
                FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid \
                WHERE i.indrelid >= 16384 AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL)), \
            (SELECT pg_catalog.concat(pg_catalog.count(*), '/', pg_catalog.sum(xmin::pg_catalog.text::pg_catalog.int8)) FROM pg_catalog.pg_amop WHERE oid >= 16384), \
            (SELECT pg_catalog.concat(pg_catalog.count(*), '/', pg_catalog.sum(xmin::pg_catalog.text::pg_catalog.int8)) FROM pg_catalog.pg_amproc WHERE oid >= 16384), \
            (SELECT pg_catalog.concat(pg_catalog.count(*), '/', pg_catalog.sum(xmin::pg_catalog.text::pg_catalog.int8)) FROM pg_catalog.pg_aggregate WHERE aggfnoid::pg_catalog.oid >= 16384), \
            (SELECT pg_catalog.concat(pg_catalog.count(*), '/', pg_catalog.sum(xmin::pg_catalog.text::pg_catalog.int8)) FROM pg_catalog.pg_range WHERE rngtypid >= 16384), \
            (SELECT pg_catalog.concat(pg_catalog.count(*), '/', pg_catalog.sum(xmin::pg_catalog.text::pg_catalog.int8)) FROM pg_catalog.pg_partitioned_table), \
            (SELECT pg_catalog.concat(pg_catalog.count(*), '/', pg_catalog.sum(xmin::pg_catalog.text::pg_catalog.int8)) FROM pg_catalog.pg_statistic_ext), \
            (SELECT pg_catalog.concat(pg_catalog.count(*), '/', pg_catalog.sum(xmin::pg_catalog.text::pg_catalog.int8)) FROM pg_catalog.pg_extension))"
    };
}

/// What a new session of the server's own role in its own database would begin with, and whether there may be
/// one. By the role's number, for its name may be another by now, or nobody's.
macro_rules! account {
    () => {
        ", (SELECT pg_catalog.concat_ws('/', r.rolname, r.rolcanlogin, r.rolsuper, r.rolconnlimit, pg_catalog.date_part('epoch', r.rolvaliduntil), \
                r.rolvaliduntil < pg_catalog.now(), pg_catalog.has_database_privilege(r.oid, d.oid, 'CONNECT'), d.datname, d.datallowconn, d.datconnlimit, \
                (SELECT pg_catalog.string_agg(pg_catalog.concat_ws('/', s.setdatabase, s.setrole, s.setconfig::pg_catalog.text), ' ' ORDER BY s.setdatabase, s.setrole) \
                 FROM pg_catalog.pg_db_role_setting s WHERE s.setdatabase IN (0, d.oid) AND s.setrole IN (0, r.oid))) \
            FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid()) a JOIN pg_catalog.pg_roles r ON r.oid = a.usesysid \
            JOIN pg_catalog.pg_database d ON d.oid = a.datid)"
    };
}

/// A number of many digits for what this session goes back to, in settings that decide how texts are read,
/// what plans hold, and what Weir expects of a server. A reload of the server's configuration changes it,
/// also where a client has set one of them to what it was.
macro_rules! defaults {
    () => {
        "(SELECT 10000000000 OPERATOR(pg_catalog.+) pg_catalog.hashtext(pg_catalog.string_agg(s.reset_val, '/' ORDER BY s.name)) FROM pg_catalog.pg_settings s \
            WHERE s.name OPERATOR(pg_catalog.=) ANY ('{DateStyle,IntervalStyle,TimeZone,array_nulls,backslash_quote,bytea_output,default_transaction_isolation,\
            default_transaction_read_only,extra_float_digits,idle_in_transaction_session_timeout,idle_session_timeout,quote_all_identifiers,\
            search_path,standard_conforming_strings,statement_timeout,transaction_timeout,xmlbinary}'))"
    };
}
pub(crate) use defaults;

/// Asks for the fingerprint, the account, and what the session goes back to.
pub const FINGERPRINT: &str = concat!(fingerprint!(), account!(), ", ", defaults!());

/// Begins a question that locks. What shows a definition locks what that mentions until its transaction ends,
/// so each of these is a transaction of its own, for no DDL of a client is to wait for the whole reading. One
/// that holds a table and waits for a view, when Weir has the view and waits for the table, must not be
/// chosen as the victim of that deadlock: Weir's wait is over long before `deadlock_timeout` (1 s), with an
/// error.
macro_rules! locking {
    () => {
        "; BEGIN; SET LOCAL lock_timeout = 10; "
    };
}

/// What locks most, first: where a lock is to be had later only, the rest need not be read again and again.
macro_rules! views {
    () => {
        concat!(
            locking!(),
            "SELECT 'v', c.relname, pg_catalog.pg_get_viewdef(c.oid) FROM pg_catalog.pg_class c WHERE c.oid >= 16384 AND c.relkind IN ('v', 'm'); COMMIT",
            locking!(),
            // The action; NULL where it is not certain at which DO it begins, behind a condition that may
            // have one in it.
            "SELECT 'u', u.relname, CASE WHEN u.said LIKE '% WHERE % DO % DO %' AND u.ev_qual <> '<>' THEN NULL \
                ELSE pg_catalog.regexp_replace(pg_catalog.regexp_replace(u.said, '^.*? DO ', ''), '^ *(ALSO |INSTEAD )? *[(]?', '') END, \
                CASE WHEN u.ev_qual <> '<>' THEN pg_catalog.substring(u.said, ' WHERE (.*?) DO ') END \
                FROM (SELECT c.relname, r.ev_qual::pg_catalog.text, pg_catalog.pg_get_ruledef(r.oid) AS said \
                FROM pg_catalog.pg_rewrite r JOIN pg_catalog.pg_class c ON c.oid = r.ev_class WHERE r.oid >= 16384 AND r.ev_type <> '1') u; COMMIT",
            locking!()
        )
    };
}

/// Functions of the database's own, which only a server of another version has otherwise.
const SYSTEM_FUNCTIONS: &str = " SELECT 's', proname, CASE WHEN pg_catalog.bool_and(provolatile = 'i') THEN 'i' END \
     FROM pg_catalog.pg_proc WHERE oid < 16384 GROUP BY proname;";

/// Everything behind the functions. The first column says what a row is.
macro_rules! the_rest {
    () => {
        " BEGIN; \
         SELECT 't', c.relname, p.proname, pg_catalog.substring(pg_catalog.pg_get_triggerdef(t.oid), ' WHEN (.*) EXECUTE ') \
            FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid WHERE NOT t.tgisinternal; COMMIT; \
         SELECT 'p', c.relname, pg_catalog.concat_ws(' , ', pg_catalog.pg_get_expr(p.polqual, p.polrelid), pg_catalog.pg_get_expr(p.polwithcheck, p.polrelid)) \
            FROM pg_catalog.pg_policy p JOIN pg_catalog.pg_class c ON c.oid = p.polrelid; \
         SELECT CASE WHEN w.said ~ '^nextval[(]''[^'']*''::regclass[)]$' THEN 'q' ELSE 'w' END, w.relname, w.said FROM (SELECT c.relname, pg_catalog.pg_get_expr(d.adbin, d.adrelid) AS said \
            FROM pg_catalog.pg_attrdef d JOIN pg_catalog.pg_class c ON c.oid = d.adrelid) w; \
         SELECT DISTINCT 'q', c.relname FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid WHERE a.attidentity <> ''; \
         SELECT 'b', y.typname, CASE WHEN y.said !~ '^nextval[(]''[^'']*''::regclass[)]$' THEN y.said END \
            FROM (SELECT typname, pg_catalog.pg_get_expr(typdefaultbin, 0) AS said FROM pg_catalog.pg_type \
            WHERE oid >= 16384 AND typtype = 'd' AND typdefaultbin IS NOT NULL) y; \
         SELECT 'h', p.proname, pg_catalog.pg_get_expr(p.proargdefaults, 0) FROM pg_catalog.pg_proc p WHERE p.oid >= 16384 AND p.proargdefaults IS NOT NULL; \
         SELECT 'w', c.relname, pg_catalog.pg_get_constraintdef(k.oid) FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class c ON c.oid = k.conrelid \
            WHERE k.oid >= 16384 AND k.contype = 'c'; \
         SELECT 'w', c.relname, pg_catalog.concat_ws(' , ', pg_catalog.pg_get_expr(i.indexprs, i.indrelid), pg_catalog.pg_get_expr(i.indpred, i.indrelid)) \
            FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = ANY (ARRAY[i.indrelid, i.indexrelid]) WHERE i.indexprs IS NOT NULL OR i.indpred IS NOT NULL; \
         SELECT 'w', c.relname, pg_catalog.pg_get_expr(k.partexprs, k.partrelid) \
            FROM pg_catalog.pg_partitioned_table k JOIN pg_catalog.pg_class c ON c.oid = k.partrelid WHERE k.partexprs IS NOT NULL; \
         SELECT 'r', f.relname, t.relname FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class f ON f.oid = k.confrelid \
            JOIN pg_catalog.pg_class t ON t.oid = k.conrelid WHERE k.contype = 'f' AND (k.confdeltype IN ('c', 'n', 'd') OR k.confupdtype IN ('c', 'n', 'd') \
            OR EXISTS (SELECT FROM pg_catalog.pg_trigger g WHERE NOT g.tgisinternal AND g.tgtype & 32 <> 0)); \
         SELECT 'i', f.relname, t.relname FROM pg_catalog.pg_inherits h JOIN pg_catalog.pg_class f ON f.oid = h.inhparent \
            JOIN pg_catalog.pg_class t ON t.oid = h.inhrelid; \
         SELECT 'x', c.relname FROM pg_catalog.pg_foreign_table f JOIN pg_catalog.pg_class c ON c.oid = f.ftrelid; \
         SELECT 'a', p.proname FROM pg_catalog.pg_proc p WHERE p.oid >= 16384 AND (p.oid IN (SELECT castfunc FROM pg_catalog.pg_cast) \
            OR p.oid IN (SELECT amproc FROM pg_catalog.pg_amproc) OR p.oid IN (SELECT rngsubdiff FROM pg_catalog.pg_range) \
            OR p.oid IN (SELECT rngcanonical FROM pg_catalog.pg_range) OR p.oid IN (SELECT o.oprcode FROM pg_catalog.pg_operator o \
            WHERE o.oprname IN ('=', '<>', '<', '>', '<=', '>=', '~~', '!~~', '~~*', '!~~*', '~', '!~', '~*', '!~*') \
            OR o.oid IN (SELECT amopopr FROM pg_catalog.pg_amop))) \
            UNION SELECT 'a', p.proname FROM pg_catalog.pg_proc p WHERE p.oid < 16384 AND p.provolatile = 'v' AND ( \
            p.oid IN (SELECT castfunc FROM pg_catalog.pg_cast WHERE oid >= 16384) OR p.oid IN (SELECT amproc FROM pg_catalog.pg_amproc WHERE oid >= 16384) \
            OR p.oid IN (SELECT rngsubdiff FROM pg_catalog.pg_range WHERE rngtypid >= 16384) OR p.oid IN (SELECT o.oprcode FROM pg_catalog.pg_operator o \
            WHERE o.oid >= 16384 AND (o.oprname IN ('=', '<>', '<', '>', '<=', '>=', '~~', '!~~', '~~*', '!~~*', '~', '!~', '~*', '!~*') \
            OR o.oid IN (SELECT amopopr FROM pg_catalog.pg_amop)))); \
         SELECT DISTINCT 'o', o.oprname, p.proname FROM pg_catalog.pg_operator o JOIN pg_catalog.pg_operator k \
            ON k.oid IN (o.oid, o.oprcom, o.oprnegate) JOIN pg_catalog.pg_proc p ON p.oid = k.oprcode \
            WHERE p.oid >= 16384 OR k.oid >= 16384 AND p.provolatile <> 'i' \
            UNION SELECT 'o', 'text||text', p.proname FROM pg_catalog.pg_operator o JOIN pg_catalog.pg_proc p ON p.oid = o.oprcode \
            WHERE o.oid >= 16384 AND o.oprname = '||' AND o.oprleft = 25 AND o.oprright = 25; \
         SELECT 'g', p.proname, s FROM pg_catalog.pg_proc p, pg_catalog.unnest(p.proconfig) s WHERE p.oid >= 16384; \
         SELECT 'd', pg_catalog.pg_get_constraintdef(k.oid) FROM pg_catalog.pg_constraint k WHERE k.oid >= 16384 AND k.contypid <> 0; \
         SELECT 'e', p.proname FROM pg_catalog.pg_event_trigger e JOIN pg_catalog.pg_proc p ON p.oid = e.evtfoid;"
    };
}

/// What ANALYZE computes of the columns, since PostgreSQL 14.
const STATISTICS: &str = " SELECT 'w', c.relname, pg_catalog.pg_get_expr(x.stxexprs, x.stxrelid) FROM pg_catalog.pg_statistic_ext x \
    JOIN pg_catalog.pg_class c ON c.oid = x.stxrelid WHERE x.stxexprs IS NOT NULL;";

/// Functions, with the body of a standard SQL function (since PostgreSQL 14) or without.
macro_rules! functions {
    ($body:literal) => {
        concat!(
            "SELECT 'f', p.proname, l.lanname, p.provolatile, e.extname, CASE WHEN p.prokind = 'a' THEN \
                COALESCE((SELECT pg_catalog.string_agg(pg_catalog.concat(q.oid::pg_catalog.regproc, '()'), ', ') FROM pg_catalog.pg_aggregate a JOIN pg_catalog.pg_proc q \
                 ON q.oid = ANY (ARRAY[a.aggtransfn, a.aggfinalfn, a.aggcombinefn, a.aggserialfn, a.aggdeserialfn, a.aggmtransfn, a.aggminvtransfn, a.aggmfinalfn]::pg_catalog.oid[]) \
                 WHERE a.aggfnoid = p.oid AND (q.oid >= 16384 OR q.provolatile <> 'i')), '') WHEN pg_catalog.length(p.prosrc) > 200000 THEN NULL ELSE ",
            $body,
            " END, p.prokind FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang \
                LEFT JOIN pg_catalog.pg_depend d ON d.classid = 1255 AND d.objid = p.oid AND d.deptype = 'e' \
                LEFT JOIN pg_catalog.pg_extension e ON d.refclassid = 3079 AND e.oid = d.refobjid WHERE p.oid >= 16384; COMMIT;"
        )
    };
}

/// Asks for everything but [`SYSTEM_FUNCTIONS`], the fingerprint first: what changes while the rest is read
/// is found by the next look.
pub const WHOLE: &str = concat!(
    fingerprint!(),
    account!(),
    ", ",
    defaults!(),
    views!(),
    functions!("pg_catalog.concat_ws(' ', NULLIF(p.prosrc, ''), pg_catalog.pg_get_function_sqlbody(p.oid))"),
    the_rest!()
);

/// The same before PostgreSQL 14.
pub const WHOLE_OLD: &str =
    concat!(fingerprint!(), account!(), ", ", defaults!(), views!(), functions!("p.prosrc"), the_rest!());

/// The first version with `pg_get_function_sqlbody`.
const SQL_BODIES: u32 = 14;

/// A question about the catalogue that is under way.
#[derive(Debug)]
pub(crate) struct Study {
    reading: Reading,
    /// What is collected, when everything is asked for.
    builder: Option<Builder>,
    fingerprint: Vec<u8>,
    /// It has ended.
    complete: bool,
    /// By an error.
    failed: bool,
    /// Something was locked.
    locked: bool,
}

/// `lock_not_available` and `deadlock_detected` (appendix A).
const LOCKED: [&[u8]; 2] = [b"55P03", b"40P01"];

impl Back {
    /// Queues a question about the catalogue: the whole of it when nothing is known, else whether it has
    /// changed. True: this wing has one.
    pub(crate) fn ask_catalogue(&mut self, reading: Reading, out: &mut Vec<u8>) -> bool {
        let whole = !reading.has_fingerprint();
        self.queue.push_entry(INTERNAL, Kind::Internal, false);
        let mut bytes = Vec::new();
        let previous = std::mem::take(&mut self.applied);
        let own = Arc::default();
        let changes = difference(&previous, &own, &self.base);
        if !changes.is_empty() {
            let queries = put_queries(&mut bytes, &changes);
            for n in 1..=queries {
                let (previous, brings) = (Arc::clone(&previous), Arc::clone(&own));
                self.queue.push(Owed::Settings { previous, brings, last: n == queries, only: queries == 1 });
            }
        }
        if self.boundary != Boundary::Idle {
            // The one before has failed.
            put_query(&mut bytes, b"ROLLBACK");
            self.queue.push(Owed::Internal(Internal::Quiet));
        }
        let version = self.reported.get("server_version").unwrap_or_default();
        let system = self.knowledge.last().and_then(|last| last.system_names(version));
        let more = if system.is_none() { SYSTEM_FUNCTIONS } else { "" };
        let builder = whole.then(|| {
            let mut builder = Builder::new(Dialect::POSTGRES);
            builder.of_version(version, system);
            builder
        });
        let text = match (whole, self.major_version() >= SQL_BODIES) {
            (false, _) => FINGERPRINT.to_owned(),
            (true, true) => [WHOLE, STATISTICS, more].concat(),
            (true, false) => [WHOLE_OLD, more].concat(),
        };
        put_query(&mut bytes, text.as_bytes());
        self.queue.push(Owed::Internal(Internal::Catalogue));
        if let Some(tail) = self.queue.tail_mut() {
            tail.ended = true;
        }
        self.unnamed = None;
        self.study = Some(Box::new(Study {
            reading,
            builder,
            fingerprint: Vec::new(),
            complete: false,
            failed: false,
            locked: false,
        }));
        self.write(&bytes, out);
        true
    }

    /// The answer, once the question is done.
    pub(crate) fn take_catalogue(&mut self) -> Option<Answer> {
        let study = self.study.take_if(|study| study.complete)?;
        let Study { reading, builder, fingerprint, failed, locked, .. } = *study;
        let catalogue = builder.map(Builder::finish);
        Some(Answer { reading, catalogue, fingerprint, failed, locked })
    }

    /// The question is refused with this error.
    pub(crate) fn catalogue_refused(&mut self, error: &[u8]) {
        if let Some(study) = self.study.as_deref_mut() {
            study.locked = field(error, b'C').is_some_and(|code| LOCKED.contains(&code));
        }
    }

    /// The question is answered, or refused.
    pub(crate) fn catalogue_done(&mut self, failed: bool) {
        let Some(study) = self.study.as_deref_mut() else { return };
        study.complete = true;
        study.failed = failed;
        if failed {
            let mut blind = Builder::new(Dialect::POSTGRES);
            blind.is_incomplete();
            study.builder = Some(blind);
        }
    }

    /// An answer is still read.
    #[inline]
    pub(crate) fn studies(&self) -> bool {
        self.study.is_some()
    }

    /// A row of the answer that is too long to be looked at.
    pub(crate) fn catalogue_row_too_long(&mut self) {
        if let Some(builder) = self.study.as_deref_mut().and_then(|study| study.builder.as_mut()) {
            builder.is_incomplete();
        }
    }

    /// A row of the answer, without its header.
    pub(crate) fn catalogue_row(&mut self, body: &[u8]) {
        let Some(study) = self.study.as_deref_mut() else { return };
        let mut columns: [Option<&[u8]>; COLUMNS] = [None; COLUMNS];
        let read = read_columns(body, &mut columns).is_ok();
        if columns[0] == Some(b"z") {
            study.fingerprint = columns[1].unwrap_or_default().to_vec();
            if self.knowledge.is_another_account(columns[2].unwrap_or_default()) {
                self.count_change();
            }
            let goes_back_to = columns[3].unwrap_or_default();
            let before = self.defaults.as_deref().unwrap_or(goes_back_to);
            if before != goes_back_to && !self.is_reloaded() {
                self.knowledge.note_reload();
                self.count_change();
                self.facts.forget();
            }
        } else if let Some(builder) = &mut study.builder
            && !(read && take_row(builder, &columns))
        {
            builder.is_incomplete();
        }
    }

    fn major_version(&self) -> u32 {
        let version = self.reported.get("server_version").unwrap_or_default();
        let digits = version.iter().take_while(|byte| byte.is_ascii_digit());
        digits.fold(0, |number, digit| number * 10 + u32::from(digit - b'0')).min(99)
    }
}

/// Columns of the widest row.
const COLUMNS: usize = 7;

/// DataRow (section 55.7): a count, then of each column its length and bytes; -1 is NULL.
fn read_columns<'a>(
    body: &'a [u8],
    columns: &mut [Option<&'a [u8]>; COLUMNS],
) -> Result<(), weir_wire::Short> {
    let mut cursor = Reader::new(body);
    let count = usize::from(cursor.u16_be()?);
    for column in columns.iter_mut().take(count) {
        let length = cursor.u32_be()?;
        *column = match length {
            u32::MAX => None,
            length => Some(cursor.take(length as usize)?),
        };
    }
    Ok(())
}

/// False when the row is not one that was asked for.
fn take_row(builder: &mut Builder, columns: &[Option<&[u8]>; COLUMNS]) -> bool {
    let [Some(kind), Some(name), third, fourth, extension, body, prokind] = *columns else { return false };
    let text = third.unwrap_or_default();
    match kind {
        b"f" => {
            let volatility = match fourth {
                Some(b"i") => Volatility::Immutable,
                Some(b"s") => Volatility::Stable,
                _ => Volatility::Volatile,
            };
            let language = match (body, prokind) {
                // Too long to be read here.
                (None, _) => Language::Other,
                // The functions that it is made of, each in a call.
                (_, Some(b"a")) => Language::Expression,
                _ => Language::of_postgres(text),
            };
            let (extension, body) = (extension.unwrap_or_default(), body.unwrap_or_default());
            builder.function(Function { name, language, volatility, extension, body });
        }
        b"s" => builder.system_function(name, text == b"i"),
        b"v" => builder.view(name, Language::Sql, text),
        b"u" => {
            if let Some(when) = fourth {
                builder.text_of(name, On::Write, Language::Expression, when);
            }
            match third {
                Some(action) if action.starts_with(b"NOTHING") => {}
                Some(action) => builder.text_of(name, On::Write, Language::Sql, action),
                None => builder.text_of(name, On::Write, Language::Other, b""),
            }
        }
        b"t" => {
            builder.trigger_of(name, text);
            if let Some(when) = fourth {
                builder.text_of(name, On::Write, Language::Expression, when);
            }
        }
        b"p" => builder.text_of(name, On::Read, Language::Expression, text),
        b"w" => builder.text_of(name, On::Write, Language::Expression, text),
        b"q" => builder.draws(name),
        b"b" if third.is_none() => builder.type_draws(),
        b"b" => builder.type_default(text),
        b"h" => builder.function_text(name, text),
        b"r" => builder.reaches(name, text),
        b"i" => {
            builder.reaches(name, text);
            builder.reaches(text, name);
            builder.reads(name, text);
        }
        b"x" => builder.foreign(name),
        b"a" => builder.ambient(name),
        b"o" => builder.operator(name, text),
        b"g" => builder.function_setting(name, text),
        b"d" => builder.ambient_text(name),
        b"e" => builder.event_trigger(name),
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effects::Effects;
    use weir_sql::catalogue::Knowledge;
    use weir_wire::{Pin, Pins};

    /// What a text leaves in a database of these rows, and of a function that takes a session lock.
    fn pins(rows: &[&[Option<&str>]], text: &str) -> Pins {
        let mut builder = Builder::new(Dialect::POSTGRES);
        let body = "begin perform pg_advisory_lock(1); return 1; end";
        let locks = [Some("f"), Some("locks"), Some("plpgsql"), Some("v"), None, Some(body), Some("f")];
        for row in [&locks[..]].iter().chain(rows) {
            let mut columns: [Option<&[u8]>; COLUMNS] = [None; COLUMNS];
            for (to, from) in columns.iter_mut().zip(*row) {
                *to = from.map(str::as_bytes);
            }
            assert!(take_row(&mut builder, &columns));
        }
        let knowledge = Knowledge::settled(builder.finish());
        Effects::of_text(Dialect::POSTGRES, text.as_bytes(), knowledge.proof()).0.pins
    }

    #[test]
    fn code_of_a_function_with_a_date_style_of_its_own_is_read_under_that() {
        let otherwise = |setting: &str| {
            let mut builder = Builder::new(Dialect::POSTGRES);
            let mut row: [Option<&[u8]>; COLUMNS] = [None; COLUMNS];
            row[..3].copy_from_slice(&[Some(b"g"), Some(b"f"), Some(setting.as_bytes())]);
            assert!(take_row(&mut builder, &row));
            let knowledge = Knowledge::settled(builder.finish());
            Effects::of_text(Dialect::POSTGRES, b"select f()", knowledge.proof()).0.reads_otherwise
        };
        assert!(otherwise("DateStyle=SQL, DMY") && otherwise("TimeZone=UTC"));
        assert!(!otherwise("search_path=public") && !otherwise("work_mem=64MB"));
    }

    #[test]
    fn the_first_function_of_an_aggregate_is_read() {
        let of = |body| [Some("f"), Some("total"), Some("internal"), Some("i"), None, Some(body), Some("a")];
        assert_eq!(pins(&[&of("locks()")], "select total(a) from t"), Pin::SessionLock.into());
        assert!(pins(&[&of("")], "select total(a) from t").is_empty());
    }

    #[test]
    fn the_condition_of_a_rule_is_read() {
        let rule = |action, when| [Some("u"), Some("ru"), action, when];
        let text = "insert into ru values (1)";
        let when = rule(Some("NOTHING;"), Some("locks()"));
        assert_eq!(pins(&[&when], text), Pin::SessionLock.into());
        assert!(pins(&[&rule(Some("NOTHING;"), None)], text).is_empty());
        assert_eq!(pins(&[&rule(Some("SELECT locks();"), None)], text), Pin::SessionLock.into());
        assert!(pins(&[&rule(None, Some("(new.a = ' "))], text).contains(Pin::Code));
    }

    #[test]
    fn what_a_rule_writes_is_written() {
        let trigger = [Some("t"), Some("rt"), Some("locks")];
        for action in ["UPDATE rt SET id = new.id;", " SELECT 1;\n UPDATE rt SET id = new.id;\n);"] {
            let rule = [Some("u"), Some("ru"), Some(action)];
            let left = pins(&[&trigger, &rule], "insert into ru values (1)");
            assert_eq!(left, Pin::SessionLock.into(), "{action}");
        }
        // The server sends it like this.
        assert!(WHOLE.contains("'^.*? DO ', ''), '^ *(ALSO |INSTEAD )? *[(]?', '')"));
    }

    #[test]
    fn defaults_of_types_and_arguments_are_read() {
        let default = |said| [Some("b"), Some("dl"), said];
        assert_eq!(pins(&[&default(Some("locks()"))], "insert into t values (1)"), Pin::SessionLock.into());
        assert!(pins(&[&default(Some("locks()"))], "select a from t").is_empty());
        assert!(pins(&[&default(None)], "insert into t values (1)").is_empty());
        let of = [Some("f"), Some("id_of"), Some("sql"), Some("v"), None, Some("select $1"), Some("f")];
        let argument = [Some("h"), Some("id_of"), Some("locks(), 5")];
        assert_eq!(pins(&[&of, &argument], "select id_of()"), Pin::SessionLock.into());
    }

    #[test]
    fn whatever_changes_what_code_runs_changes_the_fingerprint() {
        for catalogue in [
            "pg_index i",
            "pg_amop",
            "pg_amproc",
            "pg_aggregate",
            "pg_range",
            "pg_partitioned_table",
            "pg_statistic_ext",
            "hashtext(pg_catalog.concat_ws(' ', oid, relname))",
        ] {
            assert!(FINGERPRINT.contains(&format!("pg_catalog.{catalogue}")), "{catalogue}");
        }
    }
}
