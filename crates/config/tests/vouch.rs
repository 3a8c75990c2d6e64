//! Logins that somebody else vouches for: who is asked, which password the servers get, and what is wrong
//! with the options.

use std::path::Path;
use weir_auth::{Secret, SecretKind};
use weir_config::{Learnt, Origin, Protocol, Snapshot, Sources, Voucher, load_text};
use weir_session::{AuthMethod, Login};

fn loaded(name: &str, text: &str) -> weir_config::Loaded {
    load_text(Path::new(name), text, &Sources::default()).unwrap_or_else(|problems| panic!("{problems}"))
}

fn problems(name: &str, text: &str) -> String {
    load_text(Path::new(name), text, &Sources::default()).err().map(|p| p.to_string()).unwrap_or_default()
}

fn login(user: &str) -> Login {
    Login { user: user.into(), database: Some("app".into()), replication: false }
}

fn ini(settings: &str) -> String {
    format!("[databases]\napp = host=127.0.0.1\n[pgbouncer]\nunix_socket_dir = /tmp\n{settings}\n")
}

fn toml(postgres: &str, rest: &str) -> String {
    format!("[postgres]\n{postgres}\n[databases.app]\nurl = \"postgres://127.0.0.1/app\"\n{rest}\n")
}

const LDAP: &str = r#"ldapserver=a ldapprefix="uid=" ldapsuffix=",dc=x""#;

fn admitted(snapshot: &Snapshot, user: &str) -> AuthMethod {
    let from = Origin { local: true, ..Origin::default() };
    let admission = snapshot.admit(Protocol::Postgres, &login(user), from, None);
    assert!(admission.secret.is_none());
    admission.method
}

/// The password that servers get whose client has come in with `theirs`.
fn server_password(snapshot: &Snapshot, user: &str) -> String {
    let learnt = Learnt::vouched(Secret::plain("theirs"), 1);
    let route = snapshot.route(Protocol::Postgres, &login(user), Some(&learnt)).unwrap();
    assert_eq!(route.server_user, user);
    match route.server_secret.as_deref().map(Secret::kind) {
        Some(SecretKind::Plain(password)) => password.to_string(),
        Some(_) => "a hash".to_owned(),
        None => "none".to_owned(),
    }
}

#[test]
fn anybody_whom_the_directory_knows_may_come() {
    for text in [
        ini(&format!("auth_type = ldap\nauth_ldap_options = {LDAP}")),
        toml(&format!("auth_type = \"ldap\"\nauth_ldap_options = '{LDAP}'"), ""),
        toml(&format!("auth_type = \"ldap\"\nauth_ldap_options = '{LDAP}'"), "[users.ann]\npool_size = 3\n"),
    ] {
        let name = if text.starts_with("[databases]") { "p.ini" } else { "w.toml" };
        let loaded = loaded(name, &text);
        assert_eq!(loaded.warnings, [], "{text}");
        let snapshot = loaded.snapshot;
        for user in ["ann", "nobody"] {
            assert_eq!(admitted(&snapshot, user), AuthMethod::Ldap);
            let asked = snapshot.voucher(Protocol::Postgres, &login(user), Origin::default());
            let Some(Voucher::Ldap { options, tls: None }) = asked else { panic!("{asked:?}") };
            assert_eq!(options.name_of(user), Some(format!("uid={user},dc=x")));
            assert_eq!(server_password(&snapshot, user), "theirs");
        }
        assert!(snapshot.description().join("\n").contains("postgres users of an LDAP server"));
    }
    let pam = loaded("p.ini", &ini("auth_type = pam")).snapshot;
    let asked = pam.voucher(Protocol::Postgres, &login("ann"), Origin::default());
    let Some(Voucher::Pam(service)) = asked else { panic!("{asked:?}") };
    assert_eq!((service.name.as_str(), service.use_hostname), ("pgbouncer", false));
    let pam = loaded("w.toml", &toml("auth_type = \"pam\"\npam_service = \"db\"", "")).snapshot;
    let asked = pam.voucher(Protocol::Postgres, &login("ann"), Origin::default());
    assert!(matches!(&asked, Some(Voucher::Pam(service)) if service.name == "db"), "{asked:?}");
    assert!(pam.voucher(Protocol::Mysql, &login("ann"), Origin::default()).is_none());
}

/// Whoever names a user in a URL without a password trusts this machine; whoever asks a directory does not.
#[test]
fn a_url_without_a_password_lets_nobody_past_the_directory() {
    let text = format!(
        "[postgres]\nauth_type = \"ldap\"\nauth_ldap_options = '{LDAP}'\n[databases.app]\nurl = \"postgres://ann@127.0.0.1/app\"\n"
    );
    assert_eq!(admitted(&loaded("w.toml", &text).snapshot, "ann"), AuthMethod::Ldap);
}

#[test]
fn servers_get_the_password_of_users_and_else_the_clients() {
    let folder = std::env::temp_dir().join(format!("weir-vouch-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let list = folder.join("users.txt");
    std::fs::write(&list, "\"ann\" \"of the file\"\n\"bob\" \"md5ABCDEF00112233445566778899aabbcc\"\n")
        .unwrap();
    let auth_file = format!("auth_file = \"{}\"\n", list.display());
    let ldap = format!("auth_type = \"ldap\"\nauth_ldap_options = '{LDAP}'\n");
    let users = "[users.bob]\npassword = \"of users\"\n[users.carol]\npassword = \"md5ABCDEF00112233445566778899aabbcc\"\n";
    let snapshot = loaded("w.toml", &toml(&format!("{ldap}{auth_file}"), users)).snapshot;
    for (user, wanted) in [("ann", "theirs"), ("bob", "of users"), ("carol", "theirs"), ("dora", "theirs")] {
        assert_eq!(server_password(&snapshot, user), wanted, "{user}");
    }
    let kept = |user: &str| !snapshot.postgres.overrules(&Learnt::vouched(Secret::plain("x"), 1), user);
    assert!(kept("ann") && !kept("bob"), "a password that is not needed is not kept");
    // As PgBouncer.
    let of_file =
        ini(&format!("auth_type = ldap\nauth_ldap_options = {LDAP}\nauth_file = {}", list.display()));
    assert_eq!(server_password(&loaded("p.ini", &of_file).snapshot, "ann"), "theirs");
    // A reload to another method: what was vouched for once counts no more.
    let md5 = loaded("w.toml", &toml(&auth_file, users)).snapshot;
    assert_eq!(server_password(&md5, "ann"), "of the file");
    assert_eq!(server_password(&md5, "dora"), "none");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_database_with_its_own_user_keeps_it() {
    let text = format!(
        "[postgres]\nauth_type = \"ldap\"\nauth_ldap_options = '{LDAP}'\n[databases.app]\nurl = \"postgres://app:pw@127.0.0.1/app\"\n"
    );
    let snapshot = loaded("w.toml", &text).snapshot;
    let learnt = Learnt::vouched(Secret::plain("theirs"), 1);
    let route = snapshot.route(Protocol::Postgres, &login("ann"), Some(&learnt)).unwrap();
    assert_eq!(route.server_user, "app");
    assert!(route.server_secret.is_some_and(|secret| secret.is_same(&Secret::plain("pw"))));
}

#[test]
fn lines_ask_whom_they_name() {
    let folder = std::env::temp_dir().join(format!("weir-vouch-hba-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let hba = folder.join("hba.conf");
    std::fs::write(
        &hba,
        "host all ann all ldap ldapserver=one ldapprefix=\"cn=\"\nhost all bob all ldap\nhost all carol all pam\n\
         host all asker all scram-sha-256\nhost all all all scram-sha-256\n",
    )
    .unwrap();
    let text = format!(
        "auth_type = hba\nauth_hba_file = {}\nauth_ldap_options = ldapserver=two ldapprefix=\"uid=\"\nauth_user = asker",
        hba.display()
    );
    let loaded = loaded("p.ini", &ini(&text));
    assert!(!loaded.warnings.iter().any(|warning| warning.to_string().contains("no effect")));
    let snapshot = loaded.snapshot;
    let from = Origin { address: Some([10, 0, 0, 1].into()), ..Origin::default() };
    let host = |user: &str| match snapshot.voucher(Protocol::Postgres, &login(user), from) {
        Some(Voucher::Ldap { options, .. }) => options.hosts[0].0.clone(),
        Some(Voucher::Pam(service)) => service.name,
        None => "nobody".to_owned(),
    };
    for (user, whom, asks_database) in [
        ("ann", "one", false),
        ("bob", "two", false),
        ("carol", "pgbouncer", false),
        ("dora", "nobody", true),
    ] {
        assert_eq!(host(user), whom);
        assert_eq!(snapshot.asked(Protocol::Postgres, &login(user), from).is_some(), asks_database, "{user}");
    }
    // From elsewhere no line fits: nobody is asked.
    let unix = Origin { unix: true, ..Origin::default() };
    assert!(snapshot.voucher(Protocol::Postgres, &login("ann"), unix).is_none());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_is_wrong_is_told_with_its_place_and_without_passwords() {
    for (text, wanted) in [
        (ini("auth_type = ldap"), "p.ini:5:1: auth_type = ldap needs auth_ldap_options"),
        (
            ini("auth_type = ldap\nauth_ldap_options = ldapserver=a"),
            "p.ini:6:1: auth_ldap_options: ldapbasedn, ldapprefix or ldapsuffix is missing: which entry is the user's?",
        ),
        // Also where it is not used.
        (
            ini("auth_ldap_options = ldapserver=a ldapbasedn=dc=x ldapbindpasswd=hunter2"),
            "p.ini:5:1: auth_ldap_options: ldapbindpasswd needs ldapbinddn",
        ),
        (
            ini("auth_ldap_options = ldapserver=a ldapbindpasswd=my hunter2"),
            "p.ini:5:1: auth_ldap_options: an LDAP option is NAME=VALUE; a VALUE with spaces or commas needs double quotes",
        ),
        (
            ini("auth_type = pam\npostgres.pam_service = ../x"),
            "p.ini:6:1: postgres.pam_service must be the name of a file in /etc/pam.d, not `../x`",
        ),
    ] {
        assert_eq!(problems("p.ini", &text), wanted);
    }
    assert_eq!(
        problems("w.toml", &toml("auth_type = \"ldap\"\nauth_ldap_options = \"ldapserver=a ldapurl=x\"", "")),
        "w.toml:3:1: postgres.auth_ldap_options: ldapurl must be ldap://HOST/BASEDN?ATTRIBUTE?SCOPE?FILTER"
    );
    let tls = "auth_type = \"ldap\"\nauth_ldap_ca_file = \"/nowhere/ca.pem\"\nauth_ldap_options = 'ldapserver=a ldaptls=1 ldapprefix=x'";
    let told = problems("w.toml", &toml(tls, ""));
    assert!(told.starts_with("w.toml:3:1: ") && told.contains("/nowhere/ca.pem"), "{told}");
}

#[test]
fn what_will_hardly_do_is_a_warning() {
    let told = |text: &str| -> Vec<String> {
        loaded("p.ini", text).warnings.iter().map(ToString::to_string).collect()
    };
    let asker = told(&ini(&format!("auth_type = ldap\nauth_user = asker\nauth_ldap_options = {LDAP}")));
    assert!(
        asker.iter().any(|w| w == "p.ini:6:1: auth_user has no effect: the LDAP server knows the users"),
        "{asker:?}"
    );
    let pam = told(&ini("auth_type = pam\npostgres.pam_service = weir-no-such-service"));
    let is_there = Path::new("/etc/pam.d").is_dir();
    assert_eq!(
        pam.iter().any(|w| w.contains("PAM has no service `weir-no-such-service`")),
        is_there,
        "{pam:?}"
    );
}

#[test]
fn tls_verifies_by_the_ca_that_is_named() {
    let folder = std::env::temp_dir().join(format!("weir-vouch-ca-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let ca = folder.join("ca.pem");
    let made = weir_tls::self_made(&["ca.example".to_owned()], None).unwrap();
    std::fs::write(&ca, made.identity.chain).unwrap();
    for options in ["ldapserver=a ldaptls=1 ldapprefix=x", "ldapserver=a ldapscheme=ldaps ldapprefix=x"] {
        let text = format!(
            "auth_type = \"ldap\"\nauth_ldap_ca_file = \"{}\"\nauth_ldap_options = '{options}'",
            ca.display()
        );
        let snapshot = loaded("w.toml", &toml(&text, "")).snapshot;
        let asked = snapshot.voucher(Protocol::Postgres, &login("ann"), Origin::default());
        assert!(matches!(asked, Some(Voucher::Ldap { tls: Some(_), .. })), "{options}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn nobody_sees_the_options() {
    let options = "ldapserver=a ldapbasedn=dc=x ldapbinddn=cn=f ldapbindpasswd=hunter2";
    let snapshot =
        loaded("p.ini", &ini(&format!("auth_type = ldap\nauth_ldap_options = {options}"))).snapshot;
    let shown = snapshot.values.rows().into_iter().find(|row| row.key == "auth_ldap_options").unwrap();
    assert!(!shown.value.contains("ldap"), "{}", shown.value);
    assert!(!format!("{snapshot:?}").contains("hunter2"));
    let after = loaded("p.ini", &ini(&format!("auth_type = ldap\nauth_ldap_options = {options}3"))).snapshot;
    let difference = weir_config::diff(&snapshot, &after);
    assert!(!difference.is_empty() && !difference.to_string().contains("hunter"), "{difference}");
}
