//! The supported protocols.

/// A database protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// PostgreSQL 3.0 and 3.2.
    Postgres,
    /// MySQL and MariaDB.
    Mysql,
}

impl Protocol {
    /// Both of them, in the order of their numbers.
    pub const ALL: [Protocol; 2] = [Protocol::Postgres, Protocol::Mysql];

    /// Their names.
    pub const NAMES: [&'static str; 2] = [Protocol::Postgres.name(), Protocol::Mysql.name()];

    /// Its place in a table with a row for each protocol, as [`Protocol::ALL`] is.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The `protocol` label in metrics, the section of weir.toml.
    pub const fn name(self) -> &'static str {
        match self {
            Protocol::Postgres => "postgres",
            Protocol::Mysql => "mysql",
        }
    }

    /// The port a server of this protocol listens on when nobody says otherwise.
    pub const fn server_port(self) -> u16 {
        match self {
            Protocol::Postgres => 5432,
            Protocol::Mysql => 3306,
        }
    }

    /// The port Weir listens on when nobody says otherwise.
    pub const fn listen_port(self) -> u16 {
        match self {
            Protocol::Postgres => 6432,
            Protocol::Mysql => 6033,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_protocol_stands_at_its_index() {
        for (index, protocol) in Protocol::ALL.into_iter().enumerate() {
            assert_eq!(protocol.index(), index);
        }
    }
}
