//! TLS with clients, from the configuration: which certificate is shown, and what a reload keeps of it.

use crate::settings::ClientTls;
use weir_auth::login::TlsOffer;
use weir_config::{Protocol, Snapshot};
use weir_tls::{Acceptor, Identity, SslMode, TlsError, self_made};

/// What was made from a configuration.
#[derive(Default)]
pub(crate) struct FrontTls {
    config: weir_config::ClientTls,
    /// The certificate that was made here, if one was.
    made: Option<Identity>,
    pub(crate) tls: ClientTls,
}

impl FrontTls {
    /// By this configuration. What is the same in `before` stays: tickets go on to be good, and a certificate that was made
    /// is not made anew.
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
            (None, _) => {
                let file = config.self_made_file.as_deref();
                let fresh = self_made(&config.names, file)?;
                let kept = file
                    .map_or("nowhere: the next start makes another".into(), |file| file.to_string_lossy());
                if fresh.is_new {
                    tracing::info!("made a certificate for {}, kept in {kept}", config.names.join(", "));
                }
                made.insert(fresh.identity).clone()
            }
        };
        let mut acceptors = [None, None];
        for (slot, protocol) in acceptors.iter_mut().zip(Protocol::ALL) {
            *slot = Some(Acceptor::new(&config.settings(protocol, identity.clone()))?);
        }
        let offer = if config.mode.is_required() { TlsOffer::Required } else { TlsOffer::Offered };
        Ok(FrontTls { config, made, tls: ClientTls { offer, acceptors } })
    }
}
