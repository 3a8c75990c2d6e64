//! Settings: from a URL, weir.toml or pgbouncer.ini to one immutable [`Snapshot`].
//!
//! Owns: the table of settings ([`registry`]), the parsers, the snapshot that the proxy uses, the difference
//! between two snapshots, and the look-up of a client's user and database in one. Must not know: what a
//! setting does; sockets, except to resolve names ([`resolve()`]).
//!
//! Invariants: a snapshot never changes; a file with an unknown key or an invalid value gives no snapshot but
//! an error that names file, line and column; no message contains a password.
#![forbid(unsafe_code)]
#![warn(clippy::missing_errors_doc)]

mod asking;
mod build;
pub mod console;
pub mod convert;
mod describe;
mod diff;
mod draft;
pub mod entry;
pub mod fate;
mod hba;
mod ident;
mod ini;
mod listen;
mod load;
mod network;
mod pgbouncer;
mod pins;
mod problem;
mod realms;
pub mod reference;
pub mod registry;
mod resolve;
mod route;
mod secrets;
mod snapshot;
mod tls;
mod token;
mod toml_file;
mod url;
mod userlist;
mod values;
mod vouch;

pub use asking::{Asked, Learnt};
pub use build::Loaded;
pub use diff::{ChangedSetting, Difference, diff};
pub use hba::Hba;
pub use ident::IdentMap;
pub use load::{SetArgument, Sources, flavour_of, load, load_text};
pub use network::Network;
pub use pins::OwnPins;
pub use problem::{Place, Problem, Problems, Warning, WarningKind};
pub use registry::{Change, Key, SETTINGS, Setting, setting};
pub use resolve::resolve;
pub use route::{Origin, Route};
pub use secrets::{percent_encoded, url_with_password};
pub use snapshot::{
    Asking, Auth, Database, ForcedUser, Limits, ListenAt, Listener, Log, PoolMode, Realm, Server, Snapshot,
    Tcp, Timeouts, User,
};
pub use tls::{ClientTls, ServerTls, secured, tls_wishes, trust_of_url};
pub use token::Token;
pub use url::{DatabaseUrl, UrlTls};
pub use values::{ConfigRow, Flavour, Hidden, Value, Values};
pub use vouch::{PamService, Voucher};
pub use weir_session::Protocol;
