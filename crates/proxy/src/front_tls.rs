//! TLS with clients, from the configuration: which certificate is presented, and what survives a reload.

use crate::settings::ClientTls;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use weir_config::Snapshot;
use weir_session::Protocol;
use weir_session::login::TlsOffer;
use weir_tls::{Acceptor, Identity, SelfMade, SslMode, TlsError, self_made};

/// What was made from a configuration.
#[derive(Default)]
pub(crate) struct FrontTls {
    config: weir_config::ClientTls,
    /// The certificate that was made here, if one was.
    made: Option<Identity>,
    pub(crate) tls: ClientTls,
}

impl FrontTls {
    /// By this configuration. What is the same in `before` stays: tickets go on to be good, and a certificate
    /// that was made is not made anew.
    pub(crate) fn new(snapshot: &Snapshot, before: &FrontTls) -> Result<FrontTls, TlsError> {
        let config = snapshot.client_tls.clone();
        if config == before.config {
            return Ok(FrontTls { config, made: before.made.clone(), tls: before.tls.clone() });
        }
        if config.mode == SslMode::Disable {
            return Ok(FrontTls::default());
        }
        let mut made = None;
        let identity = match (&config.identity, &before.made) {
            (Some(given), _) => given.clone(),
            (None, Some(kept)) if before.config.self_made_file == config.self_made_file => {
                made.insert(kept.clone()).clone()
            }
            (None, _) => made.insert(own_certificate(&config)?).clone(),
        };
        let mut acceptors = [None, None];
        for protocol in Protocol::ALL {
            acceptors[protocol.index()] = Some(Acceptor::new(&config.settings(protocol, identity.clone()))?);
        }
        let offer = if config.mode.is_required() { TlsOffer::Required } else { TlsOffer::Offered };
        Ok(FrontTls { config, made, tls: ClientTls { offer, acceptors } })
    }
}

/// The certificate that Weir makes for itself: from where the operator says it is kept, or else from the
/// first place that will do.
fn own_certificate(config: &weir_config::ClientTls) -> Result<Identity, TlsError> {
    let said = |fresh: SelfMade, kept: &str| {
        if fresh.is_new {
            tracing::info!("made a certificate for {}, kept in {kept}", config.names.join(", "));
        }
        fresh.identity
    };
    if let Some(file) = &config.self_made_file {
        return self_made(&config.names, Some(file)).map(|fresh| said(fresh, &file.to_string_lossy()));
    }
    let mut why = None;
    for file in &config.state_files {
        let folder = file.parent().map_or(Ok(()), private_folder);
        match folder
            .map_err(|error| error.to_string())
            .and_then(|()| self_made(&config.names, Some(file)).map_err(|error| error.to_string()))
        {
            Ok(fresh) => return Ok(said(fresh, &file.to_string_lossy())),
            Err(error) => why = why.or(Some(format!("{}: {error}", file.display()))),
        }
    }
    // A machine's name may be one that no certificate can have.
    let fresh = self_made(&config.names, None).or_else(|_| self_made(&["localhost".to_owned()], None))?;
    let why = why.unwrap_or_else(|| "there is no state directory".to_owned());
    Ok(said(
        fresh,
        &format!("memory only: the next start makes another ({why}); tls.client.self_made_file says where"),
    ))
}

/// Makes a directory that is not there, for nobody else to look into.
fn private_folder(folder: &Path) -> std::io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}
