//! Local addresses and ports.
//!
//! One pair of local address and target has as many connections as the system has ephemeral ports (28,232 by
//! default). On loopback all of 127.0.0.0/8 is available, so clients are spread over 127.0.0.x; elsewhere the
//! user names the addresses.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use weir_net::Target;

/// Share of a port range that one address uses before the next one is taken. A range that is nearly full
/// makes the kernel search long for a free port, and closed connections keep theirs for a while.
const PORTS_USED: f64 = 0.5;

/// Local addresses that are tried on loopback at most: 127.0.0.2 to 127.0.0.251.
const LOOPBACK_SOURCES: u32 = 250;

/// The ports connections are given: first and last, from /proc; Linux's default where there is no /proc.
pub fn port_range() -> (u16, u16) {
    fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|text| parse_range(&text))
        .unwrap_or((32_768, 60_999))
}

fn parse_range(text: &str) -> Option<(u16, u16)> {
    let mut words = text.split_whitespace();
    let (first, last) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    (first <= last).then_some((first, last))
}

/// The server is on this machine.
pub fn is_here(target: &Target) -> bool {
    match target {
        Target::Tcp(address) => address.ip().is_loopback(),
        Target::Unix(_) => true,
    }
}

/// Where connections to one target come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sources {
    /// Empty: the system chooses.
    addresses: Vec<IpAddr>,
}

impl Sources {
    /// Sources for `connections` to `target`, from these addresses if there are any. An error says that
    /// the ports cannot suffice.
    ///
    /// # Errors
    /// These addresses, or all of the machine's, have too few ports for so many connections.
    pub fn choose(
        target: &Target,
        connections: u32,
        given: &[IpAddr],
        ports: (u16, u16),
    ) -> Result<Sources, String> {
        let Target::Tcp(address) = target else { return Ok(Sources { addresses: Vec::new() }) };
        let range = u32::from(ports.1 - ports.0) + 1;
        if !given.is_empty() {
            let usable: Vec<_> =
                given.iter().copied().filter(|ip| ip.is_ipv4() == address.is_ipv4()).collect();
            return enough(usable.len() as u32, connections, range)
                .then_some(Sources { addresses: usable })
                .ok_or_else(|| too_few(connections, given.len(), range));
        }
        let comfortable = (f64::from(range) * PORTS_USED) as u32;
        if connections <= comfortable.max(1) {
            return Ok(Sources { addresses: Vec::new() });
        }
        match address.ip() {
            IpAddr::V4(ip) if ip.is_loopback() => {
                let needed = connections.div_ceil(comfortable.max(1)).min(LOOPBACK_SOURCES);
                let addresses: Vec<_> =
                    (0..needed).map(|n| IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2 + n as u8))).collect();
                enough(needed, connections, range)
                    .then_some(Sources { addresses })
                    .ok_or_else(|| too_few(connections, needed as usize, range))
            }
            IpAddr::V4(_) | IpAddr::V6(_) => enough(1, connections, range)
                .then_some(Sources { addresses: Vec::new() })
                .ok_or_else(|| too_few(connections, 1, range)),
        }
    }

    /// The source of one client; `None`: the system's choice.
    pub fn of(&self, client: u32) -> Option<IpAddr> {
        let n = u32::try_from(self.addresses.len()).ok().filter(|&n| n > 0)?;
        self.addresses.get((client % n) as usize).copied()
    }

    /// How many addresses are spread over; 0: the system's choice.
    pub fn len(&self) -> usize {
        self.addresses.len()
    }

    /// The system chooses.
    pub fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }
}

fn enough(addresses: u32, connections: u32, range: u32) -> bool {
    u64::from(addresses) * u64::from(range) >= u64::from(connections)
}

fn too_few(connections: u32, addresses: usize, range: u32) -> String {
    format!(
        "{connections} connections to one address need more local ports than {addresses} source address(es) \
         with {range} each have: name more with --source, or widen net.ipv4.ip_local_port_range"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORTS: (u16, u16) = (32_768, 60_999);

    fn tcp(text: &str) -> Target {
        Target::Tcp(text.parse().unwrap())
    }

    #[test]
    fn few_connections_leave_it_to_the_system() {
        let sources = Sources::choose(&tcp("127.0.0.1:1"), 14_000, &[], PORTS).unwrap();
        assert!(sources.is_empty() && sources.of(5).is_none());
    }

    #[test]
    fn loopback_is_spread() {
        let sources = Sources::choose(&tcp("127.0.0.1:1"), 100_000, &[], PORTS).unwrap();
        assert_eq!(sources.len(), 8);
        assert_eq!(sources.of(0), Some("127.0.0.2".parse().unwrap()));
        assert_eq!(sources.of(9), Some("127.0.0.3".parse().unwrap()));
    }

    #[test]
    fn elsewhere_addresses_must_be_named() {
        assert!(Sources::choose(&tcp("10.0.0.1:1"), 20_000, &[], PORTS).unwrap().is_empty());
        assert!(Sources::choose(&tcp("10.0.0.1:1"), 30_000, &[], PORTS).is_err());
        let given = ["10.0.0.2".parse().unwrap(), "10.0.0.3".parse().unwrap(), "::1".parse().unwrap()];
        assert_eq!(Sources::choose(&tcp("10.0.0.1:1"), 50_000, &given, PORTS).unwrap().len(), 2);
        assert!(Sources::choose(&tcp("10.0.0.1:1"), 60_000, &given, PORTS).is_err());
    }

    #[test]
    fn unix_needs_no_ports() {
        assert!(Sources::choose(&Target::Unix("/s".into()), 1_000_000, &[], PORTS).unwrap().is_empty());
    }

    #[test]
    fn ranges() {
        assert_eq!(parse_range("32768\t60999\n"), Some((32_768, 60_999)));
        assert_eq!(parse_range("9 8"), None);
        assert_eq!(parse_range(""), None);
    }
}
