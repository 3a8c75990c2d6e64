//! What is decided of reasons for pins: in general ([pins]), for a database and for a user.
//!
//! Owns: the words, and which of the three counts. Must not know: what a reason means.

use crate::draft::Draft;
use crate::entry::Entry;
use crate::registry::{Key, SETTINGS, Setting, by_full_name};
use crate::values::{Value, Values, parse_text};
use weir_wire::{Pin, PinPolicies, Pins};

/// What a database or a user decides in the place of the general settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnPins {
    /// Reasons it says anything of.
    named: Pins,
    policies: PinPolicies,
}

impl OwnPins {
    /// What was decided before, but for what is decided here.
    pub(crate) fn over(self, before: PinPolicies) -> PinPolicies {
        before.replaced(self.named, self.policies)
    }
}

fn reason_of(setting: &Setting) -> Option<Pin> {
    Pin::ALL.iter().copied().find(|pin| setting.section == "pins" && pin.label() == setting.name)
}

fn decide(policies: &mut PinPolicies, pin: Pin, word: &str) {
    match word {
        "warn" => policies.warned.insert(pin),
        "error" => policies.refused.insert(pin),
        "pass" => policies.passed.insert(pin),
        _ => {}
    }
}

/// The general settings.
pub(crate) fn in_general(values: &Values) -> PinPolicies {
    let mut policies = PinPolicies::default();
    for setting in SETTINGS {
        let Some(pin) = reason_of(setting) else { continue };
        let word = values.text(setting.key);
        decide(&mut policies, pin, if word == "default" { values.text(Key::PinsDefault) } else { word });
    }
    policies
}

/// Those of a database or a user: `pins = ["session_lock = error"]`.
pub(crate) fn of_entry(draft: &mut Draft, entry: &Entry) -> OwnPins {
    let mut own = OwnPins::default();
    let Some((Value::List(items), place)) = entry.fields.get("pins") else { return own };
    for item in items {
        match read(item) {
            Ok((pin, word)) => {
                own.named.insert(pin);
                decide(&mut own.policies, pin, word);
            }
            Err(text) => draft.findings.problem(Some(place.clone()), text),
        }
    }
    own
}

fn read(item: &str) -> Result<(Pin, &str), String> {
    let (reason, word) =
        item.split_once('=').map_or((item, ""), |(reason, word)| (reason.trim(), word.trim()));
    let setting = by_full_name(&format!("pins.{reason}"));
    let Some((setting, pin)) = setting.and_then(|setting| Some((setting, reason_of(setting)?))) else {
        let known: Vec<&str> = Pin::ALL.iter().map(|pin| pin.label()).collect();
        return Err(format!(
            "pins must be a list such as [\"session_lock = warn\"], not `{item}`; the reasons are {}",
            known.join(", ")
        ));
    };
    parse_text(setting.kind, word).map_err(|error| format!("pins: {reason} {error}"))?;
    if word == "default" {
        return Err(format!("pins: {reason} is default if it is not named"));
    }
    Ok((pin, word))
}
