//! The two wings as the hall sees them: each method of the plan is the wing's own method of that name.

use super::{Accept, Back, Connect, Front, Welcomes, Wing};
use crate::context::Shared;
use crate::mail::{Mail, WingMail};
use crate::pool::Registry;
use std::sync::Arc;
use weir_auth::JobDone;
use weir_auth::login::{
    AcceptParams, AcceptStep, Admission, CancelPlan, ConnectParams, ConnectStep, KillOutcome, Secured,
    ServerGreeting,
};
use weir_net::Net;
use weir_session::Protocol;
use weir_sql::catalogue::{Answer, Knowledge, Reading};
use weir_wire::console::{Heard, Progress};
use weir_wire::{Boundary, Fault, Found, Owner, Pins, Step};

macro_rules! adapter {
    ($(#[$doc:meta])* $wing:ident, $protocol:ident, $catalogue:literal, $room:ident, $registry:ident $(, $own:item)*) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $wing;

        impl Wing for $wing {
            const PROTOCOL: Protocol = Protocol::$protocol;
            const HAS_CATALOGUE: bool = $catalogue;
            // PostgreSQL's fingerprint of the catalogue comes with the account.
            const ASKS_ACCOUNTS: bool = matches!(Protocol::$protocol, Protocol::Postgres);
            fn mail<N: Net>(mail: WingMail<Self, N>) -> Mail<N> {
                Mail::$wing(mail)
            }
            fn console_greet(front: &mut $room::Front, version: &str, out: &mut Vec<u8>) {
                front.console_greet(version, out);
            }
            fn console_refuse(front: &mut $room::Front, text: &str, out: &mut Vec<u8>) {
                front.console_refuse(text, out);
            }
            fn console_pid(back: &$room::Back) -> u64 {
                back.console_pid()
            }
            fn console_farewell(front: &mut $room::Front, text: &str, out: &mut Vec<u8>) {
                front.console_farewell(text, out);
            }
            fn console_find(front: &mut $room::Front, input: &[u8], out: &mut Vec<u8>) -> Heard {
                front.console_find(input, out)
            }
            fn console_put(
                front: &mut $room::Front,
                answer: &weir_wire::console::Answer,
                progress: &mut Progress,
                most: usize,
                out: &mut Vec<u8>,
            ) -> bool {
                front.console_put(answer, progress, most, out)
            }
            $($own)*
            type Accept = $room::Accept;
            type Connect = $room::Connect;
            type Front = $room::Front;
            type Back = $room::Back;
            type Welcomes = $room::Welcomes;
            fn registry<N: Net>(shared: &Shared<N>) -> &Registry<Self::Welcomes> {
                &shared.$registry
            }
        }

        impl Accept<$wing> for $room::Accept {
            fn new(params: AcceptParams) -> Self {
                $room::Accept::new(params)
            }
            fn again(
                params: AcceptParams,
                front: &$room::Front,
                request: &[u8],
            ) -> Result<(Self, AcceptStep), Fault> {
                $room::Accept::again(params, front, request)
            }
            fn start(&mut self, out: &mut Vec<u8>) {
                self.start(out);
            }
            fn handle_input(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(usize, AcceptStep), Fault> {
                self.handle_input(input, out)
            }
            fn handle_lookup(&mut self, admission: Admission, out: &mut Vec<u8>) -> Result<AcceptStep, Fault> {
                self.handle_lookup(admission, out)
            }
            fn handle_job(&mut self, done: JobDone, out: &mut Vec<u8>) -> Result<AcceptStep, Fault> {
                self.handle_job(done, out)
            }
            fn handle_secured(&mut self, secured: Arc<Secured>) -> Result<(), Fault> {
                self.handle_secured(secured)
            }
            fn refuse(&self, fault: &Fault, out: &mut Vec<u8>) {
                self.refuse(fault, out);
            }
            fn into_front(self) -> $room::Front {
                self.into_front()
            }
        }

        impl Connect<$wing> for $room::Connect {
            fn new(params: ConnectParams) -> Self {
                $room::Connect::new(params)
            }
            fn start(&mut self, out: &mut Vec<u8>) {
                self.start(out);
            }
            fn handle_input(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<(usize, ConnectStep), Fault> {
                self.handle_input(input, out)
            }
            fn handle_job(&mut self, done: JobDone, out: &mut Vec<u8>) -> Result<ConnectStep, Fault> {
                self.handle_job(done, out)
            }
            fn handle_secured(&mut self, secured: Arc<Secured>, out: &mut Vec<u8>) -> Result<(), Fault> {
                self.handle_secured(secured, out)
            }
            fn is_transport_refused(&self) -> bool {
                self.is_transport_refused()
            }
            fn rejection(&self) -> Option<&[u8]> {
                self.rejection()
            }
            fn into_back(self) -> $room::Back {
                self.into_back()
            }
        }

        impl Front<$wing> for $room::Front {
            fn id(&self) -> u32 {
                self.id()
            }
            fn schema(&self) -> Option<&str> {
                self.schema()
            }
            fn application_name(&self) -> Option<std::borrow::Cow<'_, str>> {
                self.application_name()
            }
            fn find(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Found, Fault> {
                self.find(input, out)
            }
            fn know(&mut self, knowledge: &Arc<Knowledge>) {
                self.know(knowledge);
            }
            fn is_proven(&self) -> bool {
                self.is_proven()
            }
            fn pool_variant(&self) -> u32 {
                self.pool_variant()
            }
            fn is_part_open(&self) -> bool {
                self.is_part_open()
            }
            fn is_mid_message(&self, kept: usize) -> bool {
                self.is_mid_message(kept)
            }
            fn is_between_messages(&self, kept: usize) -> bool {
                self.is_between_messages(kept)
            }
            fn is_told_the_end(&self) -> bool {
                self.is_told_the_end()
            }
            fn hasten(&mut self) {
                self.hasten();
            }
            fn pins(&self) -> Pins {
                self.pins()
            }
            fn reject(&mut self, fault: &Fault, request: &[u8], out: &mut Vec<u8>) {
                self.reject(fault, request, out);
            }
            fn fatal(&mut self, fault: &Fault, out: &mut Vec<u8>) {
                self.fatal(fault, out);
            }
            fn fatal_rejection(&mut self, rejection: &[u8], out: &mut Vec<u8>) {
                self.fatal_rejection(rejection, out);
            }
            fn login_refused(&mut self) -> bool {
                self.login_refused()
            }
            fn killed(&mut self, outcome: KillOutcome, out: &mut Vec<u8>) -> Vec<u8> {
                self.killed(outcome, out)
            }
            fn idle_ms(&self) -> u64 {
                self.idle_ms()
            }
            fn pass_on(&mut self) -> Vec<u8> {
                self.pass_on()
            }
            fn take_kill(&mut self) -> Option<(u32, bool)> {
                self.take_kill()
            }
            fn is_cancel_secret(&self, secret: &[u8]) -> bool {
                self.is_cancel_secret(secret)
            }
        }

        impl Back<$wing> for $room::Back {
            fn dispatch(
                &mut self,
                front: &mut $room::Front,
                owner: Owner,
                request: &[u8],
                whole: bool,
                out: &mut Vec<u8>,
            ) -> Result<(), Fault> {
                self.dispatch(front, owner, request, whole, out)
            }
            fn extend(
                &mut self,
                front: &mut $room::Front,
                bytes: &[u8],
                whole: bool,
                out: &mut Vec<u8>,
            ) -> Result<(), Fault> {
                self.extend(front, bytes, whole, out)
            }
            fn dispatch_welcome(
                &mut self,
                front: &mut $room::Front,
                owner: Owner,
                out: &mut Vec<u8>,
            ) -> Result<(), Fault> {
                self.dispatch_welcome(front, owner, out)
            }
            fn handle_reply(
                &mut self,
                front: Option<&mut $room::Front>,
                input: &[u8],
                to_client: &mut Vec<u8>,
                to_server: &mut Vec<u8>,
            ) -> Result<Step, Fault> {
                self.handle_reply(front, input, to_client, to_server)
            }
            fn head(&self) -> Option<Owner> {
                self.head()
            }
            fn held_bytes(&self) -> usize {
                self.held_bytes()
            }
            fn queued(&self) -> usize {
                self.queued()
            }
            fn awaits_client(&self) -> bool {
                self.awaits_client()
            }
            fn awaits_end(&self) -> bool {
                self.awaits_end()
            }
            fn boundary(&self) -> Boundary {
                self.boundary()
            }
            fn forget(&mut self, owner: Owner, out: &mut Vec<u8>) {
                self.forget(owner, out);
            }
            fn recall(&mut self, front: &mut $room::Front, owner: Owner, out: &mut Vec<u8>) {
                self.recall(front, owner, out);
            }
            fn owner_at(&self, place: usize) -> Option<Owner> {
                self.owner_at(place)
            }
            fn rollback(&mut self, out: &mut Vec<u8>) {
                self.rollback(out);
            }
            fn reset(&mut self, out: &mut Vec<u8>) {
                self.reset(out);
            }
            fn check(&mut self, out: &mut Vec<u8>) {
                self.check(out);
            }
            fn know(&mut self, knowledge: &Arc<Knowledge>) {
                self.know(knowledge);
            }
            fn ask_catalogue(&mut self, reading: Reading, out: &mut Vec<u8>) -> bool {
                self.ask_catalogue(reading, out)
            }
            fn take_catalogue(&mut self) -> Option<Answer> {
                self.take_catalogue()
            }
            fn wants_reset(&self) -> bool {
                self.wants_reset()
            }
            fn is_cancellable(&self) -> bool {
                self.is_cancellable()
            }
            fn is_mid_message(&self) -> bool {
                self.is_mid_message()
            }
            fn is_reusable(&self) -> bool {
                self.is_reusable()
            }
            fn take_injected_prepares(&mut self) -> u32 {
                self.take_injected_prepares()
            }
            fn is_broken(&self) -> bool {
                self.is_broken()
            }
            fn is_outdated(&self) -> bool {
                self.is_outdated()
            }
            fn server_greeting(&self) -> Option<&Arc<ServerGreeting>> {
                self.server_greeting()
            }
            fn cancel_plan(&self) -> CancelPlan {
                self.cancel_plan()
            }
            fn connection_number(&self) -> Option<u64> {
                self.connection_number()
            }
            fn quit(&mut self, out: &mut Vec<u8>) {
                self.quit(out);
            }
        }

        impl Welcomes<$wing> for $room::Welcomes {
            fn observe(&mut self, back: &mut $room::Back) {
                self.observe(back);
            }
            fn greet(&self, front: &mut $room::Front, out: &mut Vec<u8>) -> bool {
                self.greet(front, out)
            }
            fn record(&mut self, front: &mut $room::Front, back: &$room::Back) -> bool {
                self.record(front, back)
            }
            fn is_current(&self) -> bool {
                self.is_current()
            }
            fn answer(&self, front: &mut $room::Front, request: &[u8], out: &mut Vec<u8>) -> bool {
                self.answer(front, request, out)
            }
        }
    };
}

adapter!(
    /// PostgreSQL.
    Postgres,
    Postgres,
    true,
    weir_postgres,
    postgres,
    fn suits(back: &weir_postgres::Back, front: &weir_postgres::Front) -> bool {
        back.suits(front)
    },
    fn has_favourite(front: &weir_postgres::Front) -> bool {
        front.has_favourite()
    },
    fn is_favourite(back: &weir_postgres::Back, front: &weir_postgres::Front) -> bool {
        back.is_favourite(front)
    },
    fn is_kept_in_case(front: &weir_postgres::Front) -> bool {
        front.is_kept_in_case()
    },
    fn let_go(front: &mut weir_postgres::Front, back: &mut weir_postgres::Back) {
        back.let_go(front);
    },
    fn is_reserved(back: &weir_postgres::Back) -> bool {
        back.is_reserved()
    },
    fn startup_of(front: &weir_postgres::Front) -> Option<Vec<(String, String)>> {
        front.startup_parameters()
    }
);
adapter!(
    /// MySQL and MariaDB.
    MySql,
    Mysql,
    true,
    weir_mysql,
    mysql,
    fn set_schema(front: &mut weir_mysql::Front, schema: &str) {
        front.set_schema(Some(schema));
    }
);
