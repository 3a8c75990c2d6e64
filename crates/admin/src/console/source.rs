//! What HTTP shows of the console: its tables, and the figures of this moment.

use super::registry::COMMANDS;
use super::{Console, Refusal, show};
use crate::http::{DatabaseNow, Held, Source};
use crate::live::{Asked, Live, State};
use std::pin::Pin;
use weir_config::Token;

impl Source for Console {
    fn live(&self, asked: &Asked, details: bool) -> Live {
        let decrees = self.proxy.decrees();
        let mut pulse = self.pulse();
        pulse.ask(&self.proxy);
        let mut live = pulse.document(asked, &self.snapshot(), &decrees, self.proxy.clock_ns(), details);
        self.version.clone_into(&mut live.version);
        if decrees.all_paused {
            live.state = State::Paused;
        }
        live
    }

    fn databases(&self) -> Vec<DatabaseNow> {
        let (decrees, snapshot) = (self.proxy.decrees(), self.snapshot());
        let mut pulse = self.pulse();
        pulse.look(&self.proxy.pools());
        let states = pulse.states(&snapshot, &decrees).into_iter();
        states
            .map(|(state, protocol, name)| DatabaseNow {
                state,
                protocol: protocol.name(),
                name: name.to_owned(),
            })
            .collect()
    }

    fn tables(&self) -> Vec<&'static str> {
        let shows = COMMANDS.iter().filter(|row| row.name != show::HELP);
        shows.filter_map(|row| row.name.strip_prefix("show ")).collect()
    }

    fn table(&self, name: &'static str) -> Pin<Box<dyn Future<Output = Result<Held, String>> + Send + '_>> {
        Box::pin(async move {
            let table = self.whole_table(&format!("show {name}")).await.map_err(|Refusal(text)| text)?;
            let kb = u32::try_from(table.bytes() / 1024).unwrap_or(u32::MAX);
            match self.room.clone().try_acquire_many_owned(kb) {
                Ok(room) => Ok((table, Box::new(room) as Box<dyn Send>)),
                Err(_) => Err("too many long answers are not read yet".to_owned()),
            }
        })
    }

    fn token(&self) -> Option<Token> {
        self.snapshot().http_token.clone()
    }
}
