//! The table of metrics: name, unit, kind, labels and help, and derived from it the cells that workers write,
//! the totals that readers get, and the rows of the exposition.
//!
//! To add a metric: one line here, and its `inc` where the event happens.

use crate::cell::{Counter, Gauge};
use weir_wire::{FaultKind, Pin};

/// Counter or gauge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows. The exposition adds `_total` to its name.
    Counter,
    /// Grows and shrinks.
    Gauge,
}

/// Metrics of one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family {
    /// The name, without unit and `_total`.
    pub name: &'static str,
    /// `bytes` or nothing: the end of the name.
    pub unit: Option<&'static str>,
    /// What it is.
    pub kind: Kind,
    /// What it says, in a sentence.
    pub help: &'static str,
}

/// A label that a row has beside those of its block.
pub type ExtraLabel = Option<(&'static str, &'static str)>;

macro_rules! cells {
    (
        $(#[$doc:meta])* $cells:ident, $totals:ident;
        $($family_kind:ident $metric:literal $($unit:ident)?, $help:literal {
            $($(#[$field_doc:meta])* $field:ident $($label:literal = $label_value:literal)?;)+
        })*
        ; by {
            $($(#[$array_doc:meta])* $array:ident: $of:ident, $array_metric:literal, $array_label:literal, $array_help:literal;)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug)]
        #[repr(align(128))]
        pub struct $cells {
            $($($(#[$field_doc])* pub $field: $family_kind,)+)*
            $($array: [Counter; $of::ALL.len()],)*
        }

        impl Default for $cells {
            fn default() -> Self {
                $cells {
                    $($($field: $family_kind::default(),)+)*
                    $($array: std::array::from_fn(|_| Counter::default()),)*
                }
            }
        }

        impl $cells {
            $($(#[$array_doc])* #[inline] pub fn $array(&self, of: $of) -> &Counter { &self.$array[of as usize] })*

            /// Adds what is in the cells to `totals`.
            pub fn add_to(&self, totals: &mut $totals) {
                $($(totals.$field += number(self.$field.get());)+)*
                $(for (total, cell) in totals.$array.iter_mut().zip(&self.$array) { *total += number(cell.get()); })*
            }
        }

        #[doc = concat!("The sum of several [`", stringify!($cells), "`] at one moment.")]
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $totals {
            $($($(#[$field_doc])* pub $field: i64,)+)*
            $($array: [i64; $of::ALL.len()],)*
        }

        impl Default for $totals {
            fn default() -> Self {
                $totals { $($($field: 0,)+)* $($array: [0; $of::ALL.len()],)* }
            }
        }

        impl $totals {
            /// All families, in the order of the exposition.
            pub const FAMILIES: &'static [Family] = &[
                $(Family { name: $metric, unit: cells!(@unit $($unit)?), kind: Kind::$family_kind, help: $help },)*
                $(Family { name: $array_metric, unit: None, kind: Kind::Counter, help: $array_help },)*
            ];

            $($(#[$array_doc])* pub fn $array(&self, of: $of) -> i64 { self.$array[of as usize] })*

            /// Calls `row` with the number of the family, the row's own label and its value.
            pub fn rows(&self, row: &mut dyn FnMut(usize, ExtraLabel, i64)) {
                let mut family = 0;
                $(
                    $(row(family, cells!(@label $($label = $label_value)?), self.$field);)+
                    family += 1;
                )*
                $(
                    for of in $of::ALL { row(family, Some(($array_label, of.label())), self.$array[*of as usize]); }
                    family += 1;
                )*
                debug_assert_eq!(family, Self::FAMILIES.len());
            }
        }
    };
    (@unit) => { None };
    (@unit $unit:ident) => { Some(stringify!($unit)) };
    (@label) => { None };
    (@label $label:literal = $value:literal) => { Some(($label, $value)) };
}

cells! {
    /// What one worker counts for one protocol, whatever the pool.
    WingCells, WingTotals;
    Gauge "weir_client_connections", "Connected clients, including those that are logging in." {
        /// Clients connected now.
        client_connections;
    }
    Gauge "weir_client_logins_pending", "Clients that are logging in now." {
        /// Clients that are logging in now.
        client_logins_pending;
    }
    Counter "weir_client_accepts", "Connections accepted from clients." {
        /// Connections accepted.
        client_accepts;
    }
    Counter "weir_client_logins", "Completed logins of clients, by outcome." {
        /// Logins that succeeded.
        logins_ok "outcome" = "ok";
        /// Logins that failed, for whatever reason.
        logins_failed "outcome" = "failed";
    }
    Counter "weir_client_refusals_held", "Refused logins whose refusal was delayed, because several from the same address or for the same user had failed." {
        /// Refusals that were held back.
        refusals_held;
    }
    Counter "weir_client_received" bytes, "Bytes received from clients." {
        /// Bytes received from clients.
        client_received_bytes;
    }
    Counter "weir_client_sent" bytes, "Bytes sent to clients." {
        /// Bytes sent to clients.
        client_sent_bytes;
    }
    Counter "weir_accept_backoffs", "Times a worker paused accepting connections because the system had no descriptors or memory left." {
        /// Times accepting was paused.
        accept_backoffs;
    }
    Counter "weir_cancels", "Cancel requests of clients, by outcome." {
        /// Sent on to the server that ran the request.
        cancels_sent "outcome" = "sent";
        /// The request was still waiting and left the queue.
        cancels_dequeued "outcome" = "dequeued";
        /// Nothing of that client was running.
        cancels_idle "outcome" = "idle";
        /// No client has that number and secret.
        cancels_unknown "outcome" = "unknown";
    }
    ; by {
        /// Faults of this kind.
        faults: FaultKind, "weir_faults", "kind", "Errors, by kind.";
    }
}

cells! {
    /// What one worker counts for one pool.
    PoolCells, PoolTotals;
    Counter "weir_requests", "Requests answered by a server." {
        /// Requests answered.
        requests;
    }
    Gauge "weir_waiting_clients", "Clients that are waiting for a server." {
        /// Clients that wait now.
        waiting_clients;
    }
    Gauge "weir_empty_transactions", "Clients in a transaction that has sent no request yet and holds no server connection." {
        /// Empty transactions now.
        empty_transactions;
    }
    Gauge "weir_listening_clients", "Clients that listen (LISTEN) and hold no server connection: one connection listens for all of a pool." {
        /// Clients for whom another connection listens now.
        listening_clients;
    }
    Gauge "weir_pool_size", "Current size of a pool: maximum number of server connections." {
        /// The limit, as one worker has told it.
        pool_size;
    }
    Gauge "weir_pinned_pool_servers", "Pinned server connections of a pool beyond weir_pool_size (pinned_pool_size), updated twice a second." {
        /// Servers outside the limit, as one worker has told it.
        pinned_pool_servers;
    }
    Gauge "weir_server_connections", "Server connections, by state." {
        /// Connecting or logging in.
        servers_connecting "state" = "connecting";
        /// Free.
        servers_idle "state" = "idle";
        /// Lent to a client, or with requests in its queue.
        servers_active "state" = "active";
        /// Being rolled back, reset or checked.
        servers_cleaning "state" = "cleaning";
    }
    Gauge "weir_pinned_servers", "Server connections that a client keeps beyond its transaction." {
        /// Servers pinned now.
        pinned_servers;
    }
    Counter "weir_server_connects", "Attempts to connect and log in to a server, by outcome." {
        /// Connected and logged in.
        server_connects_ok "outcome" = "ok";
        /// Refused, timed out, or the login failed.
        server_connects_failed "outcome" = "failed";
    }
    Counter "weir_server_closes", "Server connections that were closed." {
        /// Server connections that have ended.
        server_closes;
    }
    Counter "weir_leases", "Times a client got a server." {
        /// Times a server was lent.
        leases;
    }
    Counter "weir_shared_requests", "Requests sent on one server behind requests of other clients." {
        /// Requests sent to a shared server.
        shared_requests;
    }
    Counter "weir_shared_answers", "Reads that were not sent, because the answer to an identical one that waited at the same moment was theirs, too." {
        /// Answers given to more than the one whose request was sent.
        shared_answers;
    }
    Counter "weir_late_heads", "Times a slow request got its shared server exclusively and the requests behind it moved to other servers." {
        /// Slow heads of shared servers.
        late_heads;
    }
    Counter "weir_repeated_requests", "Reads that were moved from a shared server to another one and sent again." {
        /// Reads asked again.
        repeated_requests;
    }
    Counter "weir_server_handovers", "Server connections received from another worker." {
        /// Servers received from another worker.
        server_handovers;
    }
    Counter "weir_catalogue_reads", "Times Weir read a database's catalogue: functions, views, triggers and policies." {
        /// Catalogues read.
        catalogue_reads;
    }
    Counter "weir_server_resets", "Times Weir reset the session of a server." {
        /// Resets sent.
        server_resets;
    }
    Counter "weir_server_rollbacks", "Transactions that Weir rolled back because their client had disconnected." {
        /// Rollbacks sent.
        server_rollbacks;
    }
    Counter "weir_injected_prepares", "Statements that Weir prepared on a server because their client had prepared them on another one." {
        /// Statements prepared on a client's behalf.
        injected_prepares;
    }
    Counter "weir_injected_settings", "Commands that Weir sent ahead of requests to give a server their client's settings or schema." {
        /// Commands sent on a client's behalf.
        injected_settings;
    }
    Counter "weir_server_checks", "Checks of idle servers before use." {
        /// Checks sent.
        server_checks;
    }
    Counter "weir_server_received" bytes, "Bytes received from servers." {
        /// Bytes received from servers.
        server_received_bytes;
    }
    Counter "weir_server_sent" bytes, "Bytes sent to servers." {
        /// Bytes sent to servers.
        server_sent_bytes;
    }
    ; by {
        /// Pins for this reason.
        pins: Pin, "weir_pins", "reason", "Times a client kept its server beyond the transaction, by reason.";
    }
}

impl PoolCells {
    /// Weir has prepared statements and set settings on a server because their client's session moved.
    pub fn note_injected(&self, prepares: u32, settings: u32) {
        self.injected_prepares.add(prepares.into());
        self.injected_settings.add(settings.into());
    }
}

fn number(value: impl TryInto<i64>) -> i64 {
    value.try_into().unwrap_or(i64::MAX)
}
