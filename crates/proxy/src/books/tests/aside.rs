//! Servers that clients keep for long.

use super::*;

#[test]
fn a_server_set_aside_leaves_its_place_to_another_one_until_its_client_gives_it_back() {
    let (mut house, [one, other]) = with_servers();
    let shared = |house: &House| house.pool().entry.shared.inside_and_outside();
    let clients = [0, 1].map(|at| house.clients.keys()[at]);
    assert!(house.books().set_aside(clients[0]).is_err(), "it has no server");
    for (server, client) in [one, other].into_iter().zip(clients) {
        house.books().lease(server, client).expect("it is free");
        assert!(house.books().set_aside(client).is_err(), "nothing pins it");
        house.books().pin(client, Pins::from(Pin::SessionLock));
        assert_eq!(house.books().set_aside(client), Ok(true));
        assert_eq!(house.books().set_aside(client), Ok(false), "it is already");
    }
    assert_eq!((shared(&house), post(&house, one).is_aside()), ((0, 2), true));
    assert_eq!(house.books().release(clients[0]), Some(one));
    assert_eq!((shared(&house), post(&house, one).is_aside()), ((1, 1), false));
    house.books().close(other);
    assert_eq!((shared(&house), house.pool().aside()), ((1, 0), 0));
}
