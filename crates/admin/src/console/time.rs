//! Times as the console shows them.

use std::time::{SystemTime, UNIX_EPOCH};

/// Turns moments of the process's clock into those of the calendar.
#[derive(Debug, Clone, Copy)]
pub struct Calendar {
    /// Milliseconds since 1970 at the beginning of that clock.
    offset_ms: i64,
}

impl Calendar {
    /// `clock_ns`: what that clock says now.
    pub fn new(clock_ns: u64) -> Calendar {
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
        Calendar { offset_ms: now_ms - (clock_ns / 1_000_000) as i64 }
    }

    /// A moment of that clock, in PgBouncer's form.
    pub fn show(&self, clock_ms: u64) -> String {
        of_seconds((self.offset_ms + clock_ms as i64) / 1_000)
    }
}

/// `2026-11-23 17:25:02 UTC`.
fn of_seconds(seconds: i64) -> String {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Howard Hinnant's civil_from_days: years that begin in March, in eras of 400 years.
    let shifted = days + 719_468;
    let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_days_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (951_868_799, "2000-02-29 23:59:59 UTC"),
            (1_772_323_199, "2026-02-28 23:59:59 UTC"),
            (1_772_323_200, "2026-03-01 00:00:00 UTC"),
            (1_798_761_599, "2026-12-31 23:59:59 UTC"),
        ] {
            assert_eq!(of_seconds(seconds), text);
        }
    }
}
