//! What a text does with settings of PostgreSQL, by name: sets, resets, defines, reads.
//!
//! A lone RESET or SET is not listed as a reset: its names are in [`crate::SetTarget`], and nothing follows
//! it that could see its effect.

use weir_wire::Pin;

use super::steps::may_say_temporary;
use super::{Mode, Recogniser};
use crate::class::{Clears, Scope, Touched, Uses, Verb};
use crate::token::{Kind, Token};

/// How far the arguments of `set_config` or `current_setting` have been read.
#[derive(Debug, Clone, Default)]
pub(super) struct Arguments {
    /// The name, if it is a plain literal.
    name: Option<String>,
    /// Commas so far.
    place: u8,
    /// Tokens of this argument, up to 255.
    tokens: u8,
    /// The second argument is one literal.
    is_literal: bool,
    /// It may say `pg_temp`.
    is_temporary: bool,
}

/// This setting says who a session acts as.
fn is_who(name: &str) -> bool {
    matches!(name, "role" | "session_authorization")
}

impl Recogniser {
    pub(super) fn touched(&mut self) -> &mut Touched {
        self.details().touched.get_or_insert_default()
    }

    /// A token among the arguments of `set_config`.
    pub(super) fn setting_argument(&mut self, token: &Token<'_>) {
        let arguments = &mut self.now.arguments;
        if token.kind == Kind::Comma {
            arguments.place = arguments.place.saturating_add(1);
            arguments.tokens = 0;
            return;
        }
        arguments.tokens = arguments.tokens.saturating_add(1);
        let literal = plain_literal(token).filter(|_| arguments.tokens == 1);
        match arguments.place {
            0 => arguments.name = literal.map(str::to_ascii_lowercase),
            1 => {
                arguments.is_literal = arguments.tokens == 1 && token.kind == Kind::Str;
                arguments.is_temporary |= !arguments.is_literal || may_say_temporary(token);
            }
            _ => {}
        }
    }

    /// The end of a call of `set_config`. `is_local`: its value ends with the transaction. True: it names its
    /// setting.
    pub(super) fn end_set_config(&mut self, is_local: bool) -> bool {
        let Arguments { name, is_literal, is_temporary, .. } = std::mem::take(&mut self.now.arguments);
        let is_path = name.as_deref().is_none_or(|name| name == "search_path");
        if is_path && is_temporary {
            self.uses(Uses::TEMPORARY_PATH);
        }
        let is_named = name.is_some();
        let touched = self.touched();
        match name {
            Some(name) => {
                if !is_literal {
                    touched.resets.add(&name);
                }
                if name.contains('.') {
                    touched.tells.add(&name);
                }
                if !is_local {
                    touched.sets.add(&name);
                    if is_who(&name) {
                        touched.who_is_reset = is_literal.then_some(false);
                    }
                }
                touched.gives.add(&name);
                if name == "seed" {
                    self.uses(Uses::SEED);
                }
            }
            None => self.touches_any(),
        }
        is_named
    }

    /// It may do anything with any setting.
    pub(super) fn touches_any(&mut self) {
        let touched = self.touched();
        touched.resets.add_any();
        touched.tells.add_any();
        touched.sets.add_any();
        touched.gives.add_any();
        self.uses(Uses::TEMPORARY_PATH);
    }

    /// The token behind `current_setting(`, or the one behind that.
    pub(super) fn asked_setting(&mut self, token: &Token<'_>) {
        if !self.now.asks_setting {
            return;
        }
        if self.now.last.kind == Kind::Open {
            self.now.arguments.name = plain_literal(token).map(str::to_ascii_lowercase);
            return;
        }
        self.now.asks_setting = false;
        let ends = matches!(token.kind, Kind::Comma | Kind::Close);
        match self.now.arguments.name.take().filter(|_| ends) {
            Some(name) if !name.contains('.') => {}
            Some(name) => self.touched().reads.add(&name),
            None => self.touched().reads.add_any(),
        }
    }

    /// A token of SHOW.
    pub(super) fn shown(&mut self, token: &Token<'_>) {
        if self.mysql || token.kind == Kind::Word && self.now.tokens == 1 {
            return;
        }
        let part = match token.kind {
            Kind::Dot => Some(".".to_owned()),
            _ => self.name_of(token),
        };
        match part {
            Some(part) => self.now.arguments.name.get_or_insert_default().push_str(&part),
            None => self.touched().reads.add_any(),
        }
    }

    /// SET or RESET ends: what its names are put back to, and which are made known.
    pub(super) fn set_touches(&mut self) {
        if self.mysql {
            return;
        }
        let Some(set) = self.details().set.as_ref() else { return };
        let mut touched = Touched::default();
        for one in &set.assignments {
            let to = if one.default { &mut touched.resets } else { &mut touched.gives };
            to.add(&one.name);
            if one.name.contains('.') {
                touched.tells.add(&one.name);
            }
            if one.scope == Scope::Session {
                touched.sets.add(&one.name);
                if is_who(&one.name) {
                    touched.who_is_reset = Some(one.default);
                }
            }
        }
        if !set.complete {
            touched.sets.add_any();
            touched.gives.add_any();
        }
        let seeds = set.assignments.iter().any(|one| one.name == "seed" && !one.default);
        if seeds {
            self.uses(Uses::SEED);
        }
        if !touched.is_empty() {
            self.touched().add_all(&touched);
        }
    }

    /// `ALTER ... SET name.part`: the server knows such a name from then on.
    pub(super) fn defined_setting(&mut self, token: &Token<'_>) {
        let stores = matches!(self.now.verb, Verb::Alter | Verb::Create);
        if self.mysql || !stores || token.kind != Kind::Dot || self.now.before.word != crate::words::Word::Set
        {
            return;
        }
        if self.now.before.kind == Kind::Word {
            self.touched().tells.add_any();
        }
    }

    /// A statement of a text ends.
    pub(super) fn end_touched(&mut self) {
        if self.mysql {
            return;
        }
        if self.now.mode == Mode::Show
            && let Some(name) = self.now.arguments.name.take().filter(|name| name.contains('.'))
        {
            self.touched().reads.add(&name);
        }
        if self.now.settings_view && self.now.settings_source {
            self.uses(Uses::SETTING_SOURCE);
        }
        if self.now.verb == Verb::Rollback
            && let Some(touched) = self.details().touched.as_mut()
            && touched.who_is_reset == Some(true)
        {
            // That is undone, and the server tells of what was before.
            touched.who_is_reset = Some(false);
        }
        if std::mem::take(&mut self.cleared) {
            self.touched().resets.add_any();
        }
        self.cleared = self.class.clears.intersects(Clears::RESET_ALL | Clears::DISCARD_ALL);
    }

    /// The text is at its end.
    pub(super) fn finish_touched(&mut self) {
        let class = &mut self.class;
        let Some(details) = class.details.as_deref_mut() else { return };
        let lone = class.statements == 1 && details.set.as_ref().is_some_and(|set| set.complete);
        if let Some(touched) = details.touched.as_deref_mut()
            && lone
            && matches!(class.verb, Verb::Set | Verb::Reset)
        {
            touched.resets = crate::SettingNames::default();
        }
        details.touched.take_if(|touched| touched.is_empty());
    }

    /// A name that may be the column in which `pg_settings` says where a setting comes from, or what RESET
    /// makes of it.
    #[inline]
    pub(super) fn may_be_source(&mut self, name: &[u8]) {
        self.now.settings_source |= match name.len() {
            6 => name.eq_ignore_ascii_case(b"source"),
            9 => name.eq_ignore_ascii_case(b"reset_val"),
            // What the view is made of.
            20 if name.eq_ignore_ascii_case(b"pg_show_all_settings") => {
                self.now.settings_view = true;
                true
            }
            _ => false,
        };
    }

    /// A word that stands for the view of all settings.
    pub(super) fn mentions_settings(&mut self) {
        self.now.settings_view = true;
        if self.now.updates {
            // An update of this view sets settings, or puts them back.
            self.pin(Pin::Setting);
            self.uses(Uses::ROLE);
            self.touches_any();
        }
    }
}

/// A literal that says what it says however it is read.
fn plain_literal<'a>(token: &Token<'a>) -> Option<&'a str> {
    let is_plain = |byte: &u8| byte.is_ascii() && !matches!(byte, b'\\' | b'\'');
    let plain = token.kind == Kind::Str && !token.is_cut() && token.text.iter().all(is_plain);
    std::str::from_utf8(token.text).ok().filter(|_| plain)
}
