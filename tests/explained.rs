//! `weir doctor --explain` has an explanation for every error that Weir itself gives a client.

use weir_doctor::explain;
use weir_wire::FaultKind;

#[test]
fn every_error_that_a_client_gets_from_weir_is_explained() {
    let mut unexplained = Vec::new();
    for kind in FaultKind::ALL {
        let words = weir_postgres::error::words_of(*kind);
        let (errno, sqlstate, text) = weir_mysql::error::of(*kind);
        let told = [format!("FATAL:  {}", words.message), format!("ERROR {errno} ({sqlstate}): {text}")];
        unexplained.extend(told.into_iter().filter(|told| explain::find(told).is_empty()));
    }
    assert!(unexplained.is_empty(), "without an entry:\n{}", unexplained.join("\n"));
}
