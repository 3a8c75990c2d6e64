//! Networks that clients come from.
//!
//! Owns: their text form, and which addresses belong to one. Must not know: what is allowed to whom.

use std::fmt;
use std::net::IpAddr;

/// Where a connection may come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// Addresses that agree with this one in the first bits.
    Ip {
        /// The address; the bits behind the prefix are zero.
        base: IpAddr,
        /// Bits that count.
        prefix: u8,
    },
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
        let width = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match bits {
            None => width,
            Some(bits) => bits
                .parse()
                .ok()
                .filter(|&prefix: &u8| prefix <= width && bits.bytes().all(|byte| byte.is_ascii_digit()))
                .ok_or_else(|| format!("has {bits} where a number of bits up to {width} must be"))?,
        };
        let network = Network::of(address, prefix);
        if network.base() != Some(address) {
            // Somebody who writes so may mean the one host or the whole network.
            return Err(format!(
                "has bits of its address behind the first {prefix}; {network} is that network"
            ));
        }
        Ok(network)
    }

    /// The network of this address.
    pub(crate) fn of(address: IpAddr, prefix: u8) -> Network {
        let base = match address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0);
                IpAddr::from((u32::from(v4) & mask).to_be_bytes())
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(prefix.min(128))).unwrap_or(0);
                IpAddr::from((u128::from(v6) & mask).to_be_bytes())
            }
        };
        Network::Ip { base, prefix }
    }

    fn base(&self) -> Option<IpAddr> {
        match self {
            Network::Ip { base, .. } => Some(*base),
            Network::Unix => None,
        }
    }

    /// This address belongs to it. An IPv4 address that came by IPv6 is the IPv4 address.
    pub fn has(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        match self {
            Network::Ip { base, prefix } => {
                base.is_ipv4() == address.is_ipv4() && Network::of(address, *prefix).base() == Some(*base)
            }
            Network::Unix => false,
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Network::Ip { base, prefix } => write!(f, "{base}/{prefix}"),
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
