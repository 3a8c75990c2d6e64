//! Numbers formatted for people.

/// `100000` as `100,000`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Bytes in the largest unit that leaves a number of two digits or more: `640 MB`, `24 GB`.
pub fn bytes(n: u64) -> String {
    let units = [("TB", 40), ("GB", 30), ("MB", 20), ("kB", 10)];
    for (unit, shift) in units {
        if n >> shift >= 10 {
            return format!("{} {unit}", count(n >> shift));
        }
        if n >> shift >= 1 {
            return format!("{:.1} {unit}", n as f64 / (1u64 << shift) as f64);
        }
    }
    format!("{n} bytes")
}

/// Seconds as `45 s`, `10 min`, `8 h`, `5 days`.
pub fn seconds(s: f64) -> String {
    let trim = |value: f64, unit: &str| {
        let text =
            if value >= 10.0 || value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") };
        format!("{text} {unit}")
    };
    match s {
        s if s < 0.001 => trim(s * 1e6, "us"),
        s if s < 1.0 => trim(s * 1e3, "ms"),
        s if s < 120.0 => trim(s, "s"),
        s if s < 7200.0 => trim(s / 60.0, "min"),
        s if s < 172_800.0 => trim(s / 3600.0, "h"),
        s => trim(s / 86_400.0, "days"),
    }
}

/// A number of things: `1 server`, `2 servers`.
pub fn things(n: u64, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{} {many}", count(n)) }
}

/// The smallest power of two that is at least `n`, and at least `floor`.
pub fn round_up(n: u64, floor: u64) -> u64 {
    n.max(floor).checked_next_power_of_two().unwrap_or(u64::MAX)
}

/// Numbers of a file as they stand there.
pub fn listed(numbers: &[u64]) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_people_read_them() {
        assert_eq!((count(0), count(999), count(1000)), ("0".into(), "999".into(), "1,000".into()));
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!((bytes(512), bytes(2048)), ("512 bytes".into(), "2.0 kB".into()));
        assert_eq!(bytes(700 << 20), "700 MB");
        assert_eq!(bytes(3 << 29), "1.5 GB");
        assert_eq!((seconds(0.0057), seconds(45.0)), ("5.7 ms".into(), "45 s".into()));
        assert_eq!((seconds(7200.0), seconds(28_800.0)), ("2 h".into(), "8 h".into()));
        assert_eq!((seconds(0.00007), seconds(432_000.0)), ("70 us".into(), "5 days".into()));
        assert_eq!(things(1, "server", "servers"), "1 server");
        assert_eq!(round_up(100_001, 1024), 131_072);
    }
}
