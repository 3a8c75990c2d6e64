//! The default maximum number of clients.
//!
//! Owns: the calculation, for when no number is configured. Must not know: how the memory of a machine is
//! read.

use weir_net::tables::{TablePlan, growing_within};

/// What a client is reckoned to need: its end of a TCP connection in the kernel (3.5 kB), its session (0.5
/// kB), TLS (10 kB where it is used), and some room for what is on its way.
const CLIENT_BYTES: u64 = 16 * 1024;

/// Of all memory so much is for clients, in hundredths.
const SHARE: u64 = 75;

/// More than this nobody has had; the setting has the same bound.
const MOST: u64 = 16_000_000;

/// How many clients may be there, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    /// So many.
    pub clients: usize,
    /// A sentence for the log.
    pub text: String,
}

impl Room {
    /// A number that was set.
    pub(crate) fn set(clients: usize) -> Room {
        Room { clients, text: format!("room for {clients} clients (limits.max_client_conn)") }
    }

    /// What the machine holds: with `memory` bytes of memory, if that is known; `limit` open files for each
    /// descriptor table, of which there may be several if `split` says so; besides `servers`.
    pub(crate) fn of_machine(
        memory: Option<u64>,
        limit: u64,
        split: std::io::Result<()>,
        servers: u64,
        workers: usize,
        most_workers: usize,
    ) -> Room {
        let by_memory = memory.map(|bytes| (bytes / 100).saturating_mul(SHARE) / CLIENT_BYTES);
        let wanted = by_memory.unwrap_or(MOST).clamp(1, MOST);
        let plan = growing_within(limit, split, wanted, servers, workers, most_workers);
        let by_files = clients_of(&plan, servers);
        let (clients, why) = match (memory, by_memory) {
            _ if by_files < wanted => (by_files, format!("the limit of {limit} open files decides")),
            (Some(bytes), Some(by_memory)) if by_memory <= MOST => {
                (wanted, format!("memory decides: {} MB", bytes >> 20))
            }
            _ => (wanted, "the most that Weir counts".to_owned()),
        };
        let clients = usize::try_from(clients).unwrap_or(usize::MAX);
        let text = format!("room for {clients} clients: {why}; limits.max_client_conn sets another number");
        Room { clients, text }
    }
}

/// Clients that fit beside so many servers.
pub(crate) fn clients_of(plan: &TablePlan, servers: u64) -> u64 {
    // Where everything is too small, some of both.
    plan.capacity.saturating_sub(servers.min(plan.capacity / 2)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1 << 30;

    fn room(memory: Option<u64>, limit: u64) -> Room {
        Room::of_machine(memory, limit, Ok(()), 100, 2, 64)
    }

    #[test]
    fn the_scarcer_of_memory_and_open_files_decides() {
        let small = room(Some(GB / 2), 1 << 20);
        assert_eq!(small.clients, 24_575);
        assert!(small.text.contains("memory decides: 512 MB"), "{}", small.text);
        let large = room(Some(24 * GB), 20_000);
        assert_eq!(large.clients, 1_179_647, "several tables hold more than the memory");
        let few_files = room(Some(64 * GB), 20_000);
        assert!((1_200_000..1_280_000).contains(&few_files.clients), "{few_files:?}");
        assert!(few_files.text.contains("the limit of 20000 open files decides"), "{}", few_files.text);
        let one_table = Room::of_machine(
            Some(64 * GB),
            20_000,
            Err(std::io::ErrorKind::PermissionDenied.into()),
            100,
            2,
            64,
        );
        assert!((19_000..20_000).contains(&one_table.clients), "{one_table:?}");
    }

    #[test]
    fn there_is_always_room_for_somebody() {
        assert_eq!(room(Some(0), 1024).clients, 1);
        assert!(room(None, 100).clients >= 1);
        assert!(room(None, 0).clients >= 1);
        assert_eq!(room(Some(u64::MAX), u64::from(u32::MAX)).clients, MOST as usize);
        assert_eq!(room(None, u64::from(u32::MAX)).clients, MOST as usize);
    }
}
