use super::*;
use proptest::prelude::{ProptestConfig, any, proptest};

fn exchange(server_secret: Option<Arc<Secret>>, client_secret: &Arc<Secret>) -> Result<u32, ScramError> {
    let mut jobs = 0;
    let (client, first) = ClientExpectFirst::begin(&[1; 32], ClientBinding::Unsupported);
    let (server, server_first) =
        ServerExpectFinal::begin("u", server_secret, &[2; 32], &first, ServerBinding::NotOffered)?;
    let challenge = client.challenge(&server_first)?;
    let keys = match challenge.keys(client_secret)? {
        Ok(keys) => keys,
        Err(job) => {
            jobs += 1;
            job.run().into_scram_keys().ok_or(ScramError::NoKeys)?
        }
    };
    let (client, last) = challenge.answer(&keys);
    let mut verdict = server.verify(&last)?;
    if let Verdict::Work(job) = verdict {
        jobs += 1;
        job.run();
        verdict = server.verify(&last)?;
    }
    let Verdict::Verified(server_last) = verdict else { panic!("asked for work twice") };
    client.verify(&server_last)?;
    Ok(jobs)
}

/// RFC 7677 section 3, with its nonces put in place of ours.
#[test]
fn rfc_7677_vector() {
    let client = ClientExpectFirst { nonce: "rOprNGfwEbeRWgbNEkqO".into(), bound: (*b"n,,").into() };
    let server_first =
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
    let mut challenge = client.challenge(server_first).unwrap();
    // The RFC's client names its user; PostgreSQL's does not.
    let with_user: &[u8] = b"n=user,r=rOprNGfwEbeRWgbNEkqO,";
    challenge.auth_message = [with_user, server_first, b",", &challenge.without_proof].concat();
    let secret = Arc::new(Secret::plain("pencil"));
    let job = challenge.keys(&secret).unwrap().unwrap_err();
    let keys = job.run().into_scram_keys().unwrap();
    let (client, last) = challenge.answer(&keys);
    assert_eq!(
        String::from_utf8(last).unwrap(),
        "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    );
    assert_eq!(client.verify(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="), Ok(()));
}

#[test]
fn pbkdf2_runs_once_per_secret_and_side() {
    let server = Arc::new(Secret::plain("pw"));
    let client = Arc::new(Secret::plain("pw"));
    assert_eq!(exchange(Some(server.clone()), &client), Ok(2));
    assert_eq!(exchange(Some(server), &client), Ok(0));
}

#[test]
fn wrong_password_and_unknown_user_fail_at_the_same_message() {
    let client = Arc::new(Secret::plain("guess"));
    assert_eq!(exchange(Some(Arc::new(Secret::plain("pw"))), &client), Err(ScramError::Refused));
    assert_eq!(exchange(None, &client), Err(ScramError::Refused));
    let md5 = Arc::new(Secret::from_userlist("md54d45974e13472b5a0be3533de4666414"));
    assert_eq!(exchange(Some(md5), &client), Err(ScramError::Refused));
}

#[test]
fn the_salt_of_a_user_without_one_never_changes() {
    let first = b"n,,n=,r=abc";
    let salt = |user, secret, nonce: u8| {
        let (state, _) =
            ServerExpectFinal::begin(user, secret, &[nonce; 32], first, ServerBinding::NotOffered).unwrap();
        state.salt
    };
    assert_eq!(salt("ghost", None, 1), salt("ghost", None, 2));
    assert_eq!(salt("ghost", None, 3), salt("ghost", Some(Arc::new(Secret::plain("x"))), 4));
    assert_ne!(salt("ghost", None, 1), salt("other", None, 1));
}

#[test]
fn a_login_makes_the_same_work_whether_its_user_exists_or_not() {
    // PBKDF2 in front of the verdict, and what the first message shows of the secret.
    let probe = |user: &str, secret: Option<&Arc<Secret>>| {
        let (state, _) = ServerExpectFinal::begin(
            user,
            secret.cloned(),
            &[7; 32],
            b"n,,n=,r=abc",
            ServerBinding::NotOffered,
        )
        .unwrap();
        let proof = BASE64.encode([9; KEY_BYTES]);
        let last = format!("c=biws,r={},p={proof}", std::str::from_utf8(&state.nonce).unwrap());
        let works = match state.verify(last.as_bytes()) {
            Ok(Verdict::Work(_)) => true,
            Err(ScramError::Refused) => false,
            other => panic!("{other:?}"),
        };
        (works, state.iterations, state.salt)
    };
    let clear = Arc::new(Secret::plain("pw"));
    assert!(probe("clear", Some(&clear)).0, "the reason for this test");
    derive_ahead("clear", &clear, &[1; 32]);
    let (works, iterations, salt) = probe("clear", Some(&clear));
    let (nobody, nobodys, other) = probe("nobody", None);
    assert_eq!((works, iterations, salt.len()), (nobody, nobodys, other.len()));
    // As a user of whom a verifier is known.
    let keys = ScramKeys::derive("pw", b"a salt of its own", 9_000);
    let text = ScramVerifier::text_of(&keys, b"a salt of its own", 9_000);
    let verifier = ScramVerifier::parse(&text).unwrap();
    let known = Arc::new(Secret::from_userlist(&text));
    let decoy = |name| Arc::new(verifier.decoy(name));
    let (works, iterations, salt) = probe("known", Some(&known));
    let (nobody, nobodys, other) = probe("nobody", Some(&decoy("nobody")));
    assert_eq!((works, iterations, salt.len()), (nobody, nobodys, other.len()));
    assert_eq!(other, probe("nobody", Some(&decoy("nobody"))).2, "always the same");
    assert_ne!(other, probe("noone", Some(&decoy("noone"))).2);
    assert_eq!(exchange(Some(decoy("nobody")), &Arc::new(Secret::plain("pw"))), Err(ScramError::Refused));
}

#[test]
fn a_verifier_lets_in_and_then_lets_weir_log_in() {
    let keys = ScramKeys::derive("pw", b"saltsalt", 4096);
    let text = ScramVerifier::text_of(&keys, b"saltsalt", 4096);
    let verifier = Arc::new(Secret::from_userlist(&text));
    // Before any client proved itself, a verifier is no key.
    let server = Arc::new(Secret::from_userlist(&text));
    assert_eq!(exchange(Some(server.clone()), &verifier), Err(ScramError::NoKeys));
    assert_eq!(exchange(Some(verifier.clone()), &Arc::new(Secret::plain("pw"))), Ok(1));
    // Now it is.
    assert_eq!(exchange(Some(server), &verifier), Ok(0));
    assert!(keys.matches(&ScramVerifier::parse(&text).unwrap()));
    assert!(!ScramKeys::derive("pv", b"saltsalt", 4096).matches(&ScramVerifier::parse(&text).unwrap()));
}

#[test]
fn malformed_client_messages() {
    for bad in [
        &b""[..],
        b"n",
        b"n,,",
        b"n,,n=",
        b"n,,r=abc",
        b"n,,n=,r=",
        b"n,,n=,r=a b",
        b"n,a=admin,n=,r=abc",
        b"p=tls-server-end-point,,n=,r=abc",
        b"n,,m=ext,n=,r=abc",
    ] {
        let result = ServerExpectFinal::begin("u", None, &[0; 32], bad, ServerBinding::NotOffered);
        assert!(matches!(result, Err(ScramError::Malformed(_))), "{bad:?}");
    }
    let (state, _) =
        ServerExpectFinal::begin("u", None, &[0; 32], b"y,,n=,r=abc", ServerBinding::NotOffered).unwrap();
    for bad in [&b""[..], b"c=biws", b"c=eSws", b"c=eSws,r=abc,p=", b"c=eSws,r=,p=AAAA", b",p="] {
        assert!(matches!(state.verify(bad), Err(ScramError::Malformed(_))), "{bad:?}");
    }
    // The header must be the one the client began with: "y" is not "n".
    let nonce = String::from_utf8(state.nonce.to_vec()).unwrap();
    let swapped = format!("c=biws,r={nonce},p={}", BASE64.encode([0; 32]));
    assert!(matches!(state.verify(swapped.as_bytes()), Err(ScramError::Malformed(_))));
    // And the nonce that of this login: not one that is as long.
    let other = nonce.chars().rev().collect::<String>();
    let of_another = format!("c=eSws,r={other},p={}", BASE64.encode([0; 32]));
    assert!(matches!(
        state.verify(of_another.as_bytes()),
        Err(ScramError::Malformed("nonce does not match"))
    ));
}

#[test]
fn malformed_server_messages() {
    for bad in [
        "",
        "r=",
        "r=NONCE",
        "r=NONCEx",
        "r=NONCEx,s=!!,i=4096",
        "r=NONCEx,s=AAAA",
        "r=NONCEx,s=AAAA,i=0",
        "r=NONCEx,s=AAAA,i=-1",
        "r=NONCEx,s=AAAA,i=99999999999",
        "r=NONCEx,s=AAAA,i=2147483647",
        "r=NONCEx,s=AAAA,i=1000001",
        "e=other-error",
    ] {
        let (state, _) = ClientExpectFirst::begin(&[7; 32], ClientBinding::Unsupported);
        let text = bad.replace("NONCE", &state.nonce);
        assert!(matches!(state.challenge(text.as_bytes()), Err(ScramError::Malformed(_))), "{bad}");
    }
}

#[test]
fn a_server_that_does_not_know_the_password_is_refused() {
    let (state, _) = ClientExpectFirst::begin(&[7; 32], ClientBinding::Unsupported);
    let first = format!("r={}srv,s=AAAA,i=1", state.nonce);
    let challenge = state.challenge(first.as_bytes()).unwrap();
    let (last, _) = challenge.answer(&ScramKeys::derive("pw", &[0, 0, 0], 1));
    let wrong = format!("v={}", BASE64.encode([0; 32]));
    assert_eq!(last.verify(wrong.as_bytes()), Err(ScramError::Refused));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn no_bytes_panic(first in any::<Vec<u8>>(), last in any::<Vec<u8>>()) {
        let _ = ServerExpectFinal::begin("u", None, &[0; 32], &first, ServerBinding::NotOffered);
        let _ = ServerExpectFinal::begin("u", None, &[0; 32], &[b"n,,n=,r=", &first[..]].concat(), ServerBinding::NotOffered);
        let (state, _) = ServerExpectFinal::begin("u", None, &[0; 32], b"n,,n=,r=abc", ServerBinding::NotOffered).unwrap();
        let _ = state.verify(&last);
        let _ = state.verify(&[b"c=biws,r=", &*state.nonce, b",", &last].concat());
        let (client, _) = ClientExpectFirst::begin(&[0; 32], ClientBinding::NotOffered);
        let _ = client.challenge(&last);
        let _ = ScramVerifier::parse(&String::from_utf8_lossy(&last));
    }
}

#[test]
fn channel_binding_holds_only_when_both_see_the_same_certificate() {
    use ClientBinding::{Bound, NotOffered, Unsupported};
    let secret = Arc::new(Secret::plain("pw"));
    let try_it = |client: ClientBinding<'_>, server: ServerBinding<'_>| {
        let (client, first) = ClientExpectFirst::begin(&[1; 32], client);
        let (server, server_first) =
            ServerExpectFinal::begin("u", Some(secret.clone()), &[2; 32], &first, server)?;
        let challenge = client.challenge(&server_first)?;
        let keys = match challenge.keys(&secret)? {
            Ok(keys) => keys,
            Err(job) => job.run().into_scram_keys().ok_or(ScramError::NoKeys)?,
        };
        let (client, last) = challenge.answer(&keys);
        let mut verdict = server.verify(&last)?;
        if let Verdict::Work(job) = verdict {
            job.run();
            verdict = server.verify(&last)?;
        }
        let Verdict::Verified(server_last) = verdict else { panic!("asked for work twice") };
        client.verify(&server_last)
    };
    assert_eq!(try_it(Bound(b"certificate"), ServerBinding::Chosen(b"certificate")), Ok(()));
    assert_eq!(try_it(Unsupported, ServerBinding::NotChosen), Ok(()));
    assert_eq!(try_it(NotOffered, ServerBinding::NotOffered), Ok(()));
    for (client, server) in [
        (Bound(b"certificate"), ServerBinding::Chosen(b"another")),
        (Bound(b"certificate"), ServerBinding::NotOffered),
        (Bound(b"certificate"), ServerBinding::NotChosen),
        (Unsupported, ServerBinding::Chosen(b"certificate")),
        // Somebody has taken the offer away.
        (NotOffered, ServerBinding::NotChosen),
    ] {
        assert!(matches!(try_it(client, server), Err(ScramError::Malformed(_))), "{client:?} {server:?}");
    }
}
