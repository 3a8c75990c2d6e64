//! Clients behind one address: a load balancer, NAT, or one machine for a test.
//!
//! The limit is that of the clients' machine, so it is judged by this machine's own numbers.

use crate::cure::Cure;
use crate::finding::Finding;
use crate::numbers::count;
use crate::probe::{Probe, sockets};
use crate::question::Program;

const ID: &str = "source_addresses";

pub fn check(probe: &Probe<'_>) -> Finding {
    let range = match sockets::port_range(probe.root) {
        Ok(range) => range,
        Err(error) => return Finding::unread(ID, sockets::RANGE_FILE, &error),
    };
    let ports = sockets::usable_ports(&range, &sockets::reserved_ports(probe.root));
    if probe.ask.program == Program::Bench {
        return bench(probe, ports);
    }
    let clients = probe.ask.clients;
    if clients <= ports {
        return Finding::ok(
            ID,
            format!("{} clients may come from one address: it has {} ports", count(clients), count(ports)),
        )
        .read(sockets::RANGE_FILE, format!("{} {}", range.start(), range.end()));
    }
    let addresses = clients.div_ceil(ports.max(1));
    let words = format!(
        "{} clients take {addresses} source addresses with ports as this machine has: mind load balancers, NAT, test machines",
        count(clients)
    );
    Finding::warn(ID, words)
        .read(sockets::RANGE_FILE, format!("{} {}", range.start(), range.end()))
        .breaks_at(ports, "clients that share an address", "Cannot assign requested address (99)")
        .breaks_at(ports, "HAProxy", "Connect() failed for backend X: no free ports.")
        .cure(Cure::advice(format!(
            "let clients come from {addresses} addresses, or let Weir listen on several ports or addresses (listen takes a list)"
        )))
}

fn bench(probe: &Probe<'_>, ports: u64) -> Finding {
    let addresses = match sockets::local_addresses(probe.root) {
        Ok(addresses) => addresses,
        Err(error) => return Finding::unread(ID, "/proc/net/fib_trie", &error),
    };
    let list: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    let shown = if list.is_empty() { "none".to_owned() } else { list.join(", ") };
    let room = ports * addresses.len() as u64;
    Finding::ok(
        ID,
        format!("to another machine {} connections fit from {} addresses here", count(room), addresses.len()),
    )
    .read("/proc/net/fib_trie", format!("addresses: {shown}"))
}
