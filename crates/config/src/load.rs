//! From the arguments of a command to a snapshot.

use crate::build::{Loaded, build};
use crate::draft::Draft;
use crate::entry::Entry;
use crate::pgbouncer::read_ini;
use crate::problem::{Place, Problem, Problems, read};
use crate::registry::Key;
use crate::snapshot::Snapshot;
use crate::toml_file::read_toml;
use crate::url::DatabaseUrl;
use crate::values::{Flavour, Value};
use crate::{Protocol, Realm};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where settings come from: a file or URLs, and arguments that go before both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// weir.toml or pgbouncer.ini.
    pub file: Option<PathBuf>,
    /// Database URLs.
    pub urls: Vec<String>,
    /// Addresses to listen on, for the protocol of the only database there is.
    pub listen: Vec<String>,
    /// Settings, later ones first served.
    pub settings: Vec<SetArgument>,
}

/// One setting of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetArgument {
    /// What the user typed, for messages: `--pool-size`, `--set`.
    pub argument: String,
    /// `section.key`.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl SetArgument {
    /// A setting that came from `argument`.
    pub fn new(argument: &str, name: &str, value: &str) -> SetArgument {
        SetArgument { argument: argument.to_owned(), name: name.to_owned(), value: value.to_owned() }
    }
}

impl Sources {
    /// These URLs and nothing else.
    pub fn urls<S: AsRef<str>>(urls: &[S]) -> Sources {
        Sources { urls: urls.iter().map(|url| url.as_ref().to_owned()).collect(), ..Sources::default() }
    }

    /// This file and nothing else.
    pub fn file(file: impl Into<PathBuf>) -> Sources {
        Sources { file: Some(file.into()), ..Sources::default() }
    }

    /// With one more setting, as `--set name=value` gives it.
    pub fn with(mut self, name: &str, value: &str) -> Sources {
        self.settings.push(SetArgument::new("--set", name, value));
        self
    }
}

/// Reads everything. Blocks on files and, for listen addresses that are names, on the resolver.
///
/// # Errors
/// Every problem of the configuration, in the order of the files, with file, line and column where there are
/// any. No message contains a password.
pub fn load(sources: &Sources) -> Result<Loaded, Problems> {
    match &sources.file {
        Some(file) => {
            let mut draft = Draft::new(Flavour::Weir, None);
            match read(file, None, &mut draft.findings) {
                Some(text) => load_text(file, &text, sources),
                None => Err(Problems(draft.findings.problems)),
            }
        }
        None => finish(Draft::new(Flavour::Weir, None), false, sources),
    }
}

/// Like [`load`], with the content of `file` given. The name tells the form: `.toml` is weir.toml, `.ini`
/// is pgbouncer.ini, else a line `[pgbouncer]` does.
///
/// # Errors
/// As [`load`].
pub fn load_text(file: &Path, text: &str, sources: &Sources) -> Result<Loaded, Problems> {
    let shared: Arc<Path> = file.into();
    let flavour = flavour_of(file, text);
    let draft = match flavour {
        Flavour::Weir => {
            let mut draft = Draft::new(flavour, file.parent().map(Path::to_owned));
            read_toml(&shared, text, &mut draft);
            draft
        }
        Flavour::Pgbouncer => {
            let mut draft = Draft::new(flavour, None);
            read_ini(&shared, text, &mut draft);
            draft
        }
    };
    finish(draft, true, sources)
}

/// What a file is.
pub fn flavour_of(file: &Path, text: &str) -> Flavour {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("toml") => Flavour::Weir,
        Some("ini") => Flavour::Pgbouncer,
        _ if text.lines().any(|line| line.trim() == "[pgbouncer]") => Flavour::Pgbouncer,
        _ => Flavour::Weir,
    }
}

fn finish(mut draft: Draft, has_file: bool, sources: &Sources) -> Result<Loaded, Problems> {
    let problem = |text: &str| Err(Problems(vec![Problem { place: None, text: text.to_owned() }]));
    if has_file && !sources.urls.is_empty() {
        return problem(
            "give a configuration file or URLs, not both; a file has its URLs in [databases.NAME]",
        );
    }
    if !has_file && sources.urls.is_empty() {
        return problem(
            "nothing to serve: give a database URL such as postgres://user:password@host:5432/database, or --config FILE",
        );
    }
    for (number, url) in sources.urls.iter().enumerate() {
        add_url(&mut draft, number, url);
    }
    for argument in &sources.settings {
        let shown = if argument.argument == "--set" {
            format!("--set {}", argument.name)
        } else {
            argument.argument.clone()
        };
        draft.set_argument(&shown, &argument.name, &argument.value);
    }
    listen(&mut draft, &sources.listen);
    build(draft)
}

fn add_url(draft: &mut Draft, number: usize, url: &str) {
    let place = Place::Argument(format!("URL {}", number + 1));
    let protocol = match DatabaseUrl::parse(url) {
        Ok(parsed) => parsed.protocol,
        Err(text) => return draft.findings.problem(place, text),
    };
    let mut entry = Entry::new(place.clone());
    entry.from_url = Some(protocol);
    entry.fields.insert("url", (Value::Text(url.to_owned()), place));
    draft.databases.insert(format!("URL {}", number + 1), entry);
}

/// `--listen`: for the one protocol there is a database of.
fn listen(draft: &mut Draft, addresses: &[String]) {
    if addresses.is_empty() {
        return;
    }
    let place = Place::Argument("--listen".to_owned());
    let mut protocols: Vec<Protocol> = draft
        .databases
        .values()
        .map(|entry| match entry.text("url") {
            Some(url) => DatabaseUrl::parse(url).map_or(Protocol::Postgres, |url| url.protocol),
            None => Protocol::Postgres,
        })
        .collect();
    protocols.sort();
    protocols.dedup();
    let key = match protocols.as_slice() {
        [Protocol::Postgres] => Key::PostgresListen,
        [Protocol::Mysql] => Key::MysqlListen,
        _ => {
            let text = "there are databases of two protocols: say --set postgres.listen=... and --set mysql.listen=...";
            return draft.findings.problem(place, text);
        }
    };
    draft.set(key, Value::List(addresses.to_vec()), place);
}

impl Snapshot {
    /// Takes over from `old` what is the same in both: so a reload keeps the keys that were derived from
    /// passwords, and a pool can be recognised by its database's address in memory.
    pub fn keep_from(&mut self, old: &Snapshot) {
        keep_realm(&mut self.postgres, &old.postgres);
        keep_realm(&mut self.mysql, &old.mysql);
    }
}

fn keep_realm(new: &mut Realm, old: &Realm) {
    for (name, user) in &mut new.users {
        if let Some(before) = old.users.get(name).filter(|before| *before == user) {
            *user = before.clone();
        }
    }
    for (name, database) in &mut new.databases {
        if let Some(before) = old.databases.get(name).filter(|before| *before == database) {
            *database = before.clone();
        }
    }
    if let (Some(fallback), Some(before)) = (&mut new.fallback, &old.fallback)
        && fallback == before
    {
        *fallback = before.clone();
    }
}
