//! Networks of clients.
//!
//! Owns: their text form, and which addresses belong to one. Must not know: what is allowed to whom.

use ipnet::IpNet;
use std::fmt;
use std::net::IpAddr;

/// Where a connection may come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Addresses of this network; no bit is set behind its prefix.
    Ip(IpNet),
    /// Unix sockets.
    Unix,
}

impl Network {
    /// `ADDRESS`, `ADDRESS/BITS`, or `unix`.
    ///
    /// # Errors
    /// What the text must be, as the end of a sentence.
    pub fn parse(text: &str) -> Result<Network, String> {
        const FORM: &str = "must be an address, ADDRESS/BITS or unix";
        if text == "unix" {
            return Ok(Network::Unix);
        }
        let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let address: IpAddr = address.parse().map_err(|_| FORM.to_owned())?;
        let Some(bits) = bits else { return Ok(Network::Ip(address.into())) };
        let network: IpNet = text.parse().map_err(|_| {
            let width = if address.is_ipv4() { 32 } else { 128 };
            format!("has {bits} where a number of bits up to {width} must be")
        })?;
        let whole = network.trunc();
        if whole != network {
            // Somebody who writes so may mean the one host or the whole network.
            let prefix = network.prefix_len();
            return Err(format!(
                "has bits of its address behind the first {prefix}; {whole} is that network"
            ));
        }
        Ok(Network::Ip(network))
    }

    /// This address belongs to it. An IPv4 address that came by IPv6 is the IPv4 address.
    pub fn has(&self, address: IpAddr) -> bool {
        match self {
            Network::Ip(network) => network.contains(&address.to_canonical()),
            Network::Unix => false,
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Network::Ip(network) => network.fmt(f),
            Network::Unix => f.write_str("unix"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_have_their_addresses() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("10.0.0.0/8", "::ffff:10.1.2.3", "::10.1.2.3"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.6"),
            ("0.0.0.0/0", "203.0.113.9", "2001:db8::1"),
            ("::/0", "2001:db8::1", "203.0.113.9"),
            ("2001:db8::/33", "2001:db8:7fff::1", "2001:db8:8000::1"),
            ("::1", "::1", "::2"),
        ] {
            let network = Network::parse(network).unwrap();
            assert!(network.has(inside.parse().unwrap()), "{network} has {inside}");
            assert!(!network.has(outside.parse().unwrap()), "{network} has not {outside}");
        }
        assert_eq!(Network::parse("unix"), Ok(Network::Unix));
    }

    #[test]
    fn what_is_no_network_is_told() {
        for (text, wanted) in [
            ("", "must be an address"),
            ("lb.example.com", "must be an address"),
            ("10.0.0.0/33", "up to 32"),
            ("10.0.0.0/+8", "up to 32"),
            ("::/129", "up to 128"),
            ("10.0.0.1/8", "10.0.0.0/8 is that network"),
        ] {
            assert!(Network::parse(text).is_err_and(|e| e.contains(wanted)), "{text}");
        }
    }
}
