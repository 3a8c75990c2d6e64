use super::*;
use crate::PamService;
use crate::problem::Findings;
use crate::vouch::General;
use std::net::IpAddr;
use std::path::Path;

const IDENTS: &str = "ops ann app\nops root all\n";

fn parse(text: &str) -> (Hba, Findings) {
    let mut findings = Findings::default();
    let idents = Some((Path::new("ident.conf").into(), IDENTS.to_owned()));
    let general = General { pam_service: "weir".to_owned(), ..General::default() };
    let hba = read_hba(&Path::new("hba.conf").into(), text, idents, &general, &mut findings);
    (hba, findings)
}

fn from(address: &str) -> Origin<'static> {
    match address {
        "unix" => Origin { unix: true, local: true, ..Origin::default() },
        _ => Origin { address: Some(address.parse::<IpAddr>().unwrap()), ..Origin::default() },
    }
}

/// The line that decides, and how.
fn decided(hba: &Hba, from: Origin<'_>, database: &str, user: &str) -> String {
    let line = |rule: &Rule| match rule.place() {
        Place::File { line, .. } => line.to_string(),
        Place::Argument(_) => String::new(),
    };
    match hba.decide(from, database, user) {
        Decision::By(rule, method) => format!("{} {method:?}", line(rule)),
        Decision::Rejected(rule) => format!("{} reject", line(rule)),
        Decision::WithoutCertificate(rule) => format!("{} no certificate", line(rule)),
        Decision::NoLine => "none".to_owned(),
    }
}

#[test]
fn the_first_line_that_fits_decides() {
    let text = "# who may come\n\
                local   all             all                          peer map=ops\n\
                hostssl \"all\"           all   0.0.0.0/0              cert\n\
                host    sameuser        all   10.0.0.0/8             scram-sha-256\n\
                host    a,b, \"c d\"      ann,/^app[0-9]+$  10.1.0.0 255.255.0.0  md5 # why\n\
                hostnossl all           bob   ::1/128                reject\n\
                host    replication     all   all                    trust\n\
                host    all             all   all  \\\n    password\n";
    let (hba, findings) = parse(text);
    assert!(findings.problems.is_empty(), "{:?}", findings.problems);
    let tls = |address| Origin { tls: true, ..from(address) };
    for (origin, database, user, wanted) in [
        (from("unix"), "x", "y", "2 Peer"),
        (tls("10.9.9.9"), "all", "y", "3 Cert"),
        (from("10.9.9.9"), "all", "y", "8 Plain"),
        (tls("10.9.9.9"), "x", "y", "8 Plain"),
        (from("10.9.9.9"), "y", "y", "4 ScramSha256"),
        (from("::ffff:10.1.2.3"), "c d", "app12", "5 Md5"),
        (from("10.1.2.3"), "b", "ann", "5 Md5"),
        (from("10.1.2.3"), "b", "app", "8 Plain"),
        (from("10.2.2.3"), "b", "ann", "8 Plain"),
        (from("::1"), "x", "bob", "6 reject"),
        (tls("::1"), "x", "bob", "8 Plain"),
        (Origin::default(), "x", "bob", "8 Plain"),
    ] {
        assert_eq!(decided(&hba, origin, database, user), wanted, "{origin:?} {database} {user}");
    }
    let (hba, _) = parse("host all all 127.0.0.1/32 trust\n");
    assert_eq!(decided(&hba, from("127.0.0.2"), "x", "y"), "none");
    assert_eq!(decided(&hba, Origin::default(), "x", "y"), "none", "no address is known");
    assert_eq!(decided(&Hba::default(), from("unix"), "x", "y"), "none");
}

#[test]
fn certificates_that_a_line_asks_for() {
    let text = "hostssl all app all scram-sha-256 clientcert=verify-full\n\
                hostssl all mapped all scram-sha-256 clientcert=verify-full map=ops\n\
                hostssl all all all md5 clientcert=verify-ca\n";
    let (hba, findings) = parse(text);
    assert!(findings.problems.is_empty(), "{:?}", findings.problems);
    let shown = |certificate| Origin { tls: true, certificate, ..from("10.0.0.1") };
    for (certificate, user, wanted) in [
        (None, "app", "1 no certificate"),
        (Some("bob"), "app", "1 no certificate"),
        (Some("app"), "app", "1 ScramSha256"),
        (Some("root"), "mapped", "2 ScramSha256"),
        (Some("mapped"), "mapped", "2 no certificate"),
        (Some("anybody"), "x", "3 Md5"),
        (None, "x", "3 no certificate"),
    ] {
        assert_eq!(decided(&hba, shown(certificate), "d", user), wanted, "{certificate:?} {user}");
    }
}

#[test]
fn what_this_machine_is_in() {
    let (hba, findings) = parse("host all all samehost trust\nhost all all samenet md5\n");
    assert!(findings.problems.is_empty(), "{:?}", findings.problems);
    assert_eq!(decided(&hba, from("127.0.0.1"), "x", "y"), "1 Trust");
    assert_eq!(decided(&hba, from("127.9.9.9"), "x", "y"), "2 Md5");
    assert_eq!(decided(&hba, from("203.0.113.77"), "x", "y"), "none");
}

#[test]
fn a_line_that_cannot_be_kept_is_told_with_its_place() {
    for (line, wanted) in [
        ("hosts all all all trust", "unknown type `hosts`"),
        ("host", "ends before its databases"),
        ("host all", "ends before its users"),
        ("host all all", "ends before its address"),
        ("host all all all", "ends before its method"),
        ("local all all", "ends before its method"),
        ("host all all 10.0.0.1/8 trust", "10.0.0.0/8 is that network"),
        ("host all all 10.0.0.0/33 trust", "up to 32"),
        ("host all all 10.0.0.0 255.0.255.0 trust", "is no mask"),
        ("host all all 10.0.0.0 trust", "is no mask"),
        ("host all all 10.0.0.1 255.0.0.0 trust", "10.0.0.0/8 is that network"),
        ("host all all db.example.com trust", "host names are not looked up"),
        ("host all all all radius", "method `radius`: not supported yet; use"),
        ("host all all all ldap", "method `ldap` needs options such as ldapserver, or auth_ldap_options"),
        ("host all all all ldap ldapserver=x", "ldapbasedn, ldapprefix or ldapsuffix is missing"),
        ("host all all all ldap ldapserver=x ldapbasedn=\"dc=x\" ldapsearchfilter=(a", "ldapsearchfilter "),
        ("host all all all ldap ldapserver=x ldapbindpasswd=my secret", "needs double quotes"),
        ("host all all all ldap ldapserver=x pamservice=y", "an LDAP option is NAME=VALUE"),
        ("host all all all ldap map=ops", "map= is for peer and cert"),
        ("host all all all md5 ldapserver=x", "ldapserver= is for method ldap, not for md5"),
        ("host all all all pam pamservice=../x", "pamservice must be the name of a file in /etc/pam.d"),
        ("host all all all pam pam_use_hostname=yes", "pam_use_hostname must be 1 or 0"),
        ("host all all all pam ldapserver=x", "method pam has pamservice and pam_use_hostname"),
        ("host all all all gss", "method `gss`: not supported"),
        ("host all all all peer", "write local"),
        ("host all all all ident", "asks no ident servers"),
        ("local all all cert", "use peer"),
        ("host all all all crypt", "methods are trust"),
        ("host all all all md5 map=ops", "map= is for peer and cert"),
        ("local all all peer map=none", "ident.conf has no such map"),
        ("local all all peer ops", "options are NAME=VALUE"),
        ("host all all all md5 clientcert=verify-ca", "for lines of type hostssl"),
        ("hostssl all all all md5 clientcert=1", "must be verify-ca or verify-full"),
        ("host all all all md5 pamservice=x", "pamservice= is for method pam, not for md5"),
        ("host all all all md5 radiusservers=x", "unknown option `radiusservers`"),
        ("host samerole all all md5", "name the users"),
        ("host all +staff all md5", "name the users"),
        ("host all @nowhere all md5", "cannot read nowhere"),
        ("host all /( all md5", "regular expression `(`"),
        ("host all \"open all md5", "has no end"),
        ("host all all all trust,md5", "one method must stand"),
        ("host,local all all all trust", "one type must stand"),
        ("include", "needs the name of one file"),
        ("include_all x", "unknown type `include_all`"),
        ("include nowhere.conf", "nowhere.conf"),
        ("include_dir nowhere", "cannot read nowhere"),
    ] {
        let (hba, findings) = parse(&format!("\n{line}\n"));
        let told = findings.problems.first().map(ToString::to_string).unwrap_or_default();
        assert!(told.starts_with("hba.conf:2:1: ") && told.contains(wanted), "{line}: {told}");
        assert!(hba.rules.is_empty() && !told.contains("secret"), "{line}: {told}");
    }
}

#[test]
fn lines_that_ask_somebody_else() {
    let text = "host a all all ldap ldapserver=one ldapport=1389 ldapprefix=\"uid=\" ldapsuffix=\",dc=x\"\n\
                hostssl b all all ldap ldapurl=\"ldaps://two/dc=x?uid?sub\" clientcert=verify-ca\n\
                local all all pam\n\
                host all all all pam pamservice=db pam_use_hostname=1\n";
    let (hba, findings) = parse(text);
    assert!(findings.problems.is_empty(), "{:?}", findings.problems);
    assert_eq!(decided(&hba, from("10.0.0.1"), "a", "x"), "1 Ldap");
    let authorities: Vec<_> = hba.authorities().collect();
    let (Authority::Ldap(one), Authority::Ldap(two)) = (authorities[0], authorities[1]) else {
        panic!("{authorities:?}")
    };
    assert_eq!((one.hosts[0].1, one.name_of("ann").as_deref()), (1389, Some("uid=ann,dc=x")));
    assert_eq!(two.hosts, [("two".to_owned(), 636)]);
    let pam = |name: &str, use_hostname| Authority::Pam(PamService { name: name.to_owned(), use_hostname });
    assert_eq!(authorities[2..], [&pam("weir", false), &pam("db", true)]);
}

#[test]
fn files_that_it_names() {
    let folder = std::env::temp_dir().join(format!("weir-hba-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("more")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).unwrap();
    write("users", "ann, bob\n# nobody\ncarol @others\n");
    write("others", "dora");
    write("more/2.conf", "host two all all md5\n");
    write("more/1.conf", "host one all all trust\n");
    write("more/.3.conf", "hosts\n");
    write("more/4.txt", "hosts\n");
    write("loop.conf", "include loop.conf\n");
    let read = |text: &str| {
        let mut findings = Findings::default();
        let general = General::default();
        let hba = read_hba(&folder.join("hba.conf").into(), text, None, &general, &mut findings);
        (hba, findings.problems)
    };
    let (hba, problems) =
        read("local x @users trust\ninclude_dir more\ninclude_if_exists nowhere.conf\nlocal y all reject\n");
    assert_eq!(problems, []);
    for user in ["ann", "bob", "carol", "dora"] {
        assert_eq!(decided(&hba, from("unix"), "x", user), "1 Trust", "{user}");
    }
    assert_eq!(decided(&hba, from("unix"), "x", "nobody"), "none");
    assert_eq!(decided(&hba, from("10.0.0.1"), "one", "x"), "1 Trust");
    assert_eq!(decided(&hba, from("10.0.0.1"), "two", "x"), "1 Md5");
    assert_eq!(decided(&hba, from("unix"), "y", "x"), "4 reject");
    let (_, problems) = read("include loop.conf\n");
    assert!(problems.iter().any(|problem| problem.text.contains("10 deep")), "{problems:?}");
    std::fs::remove_dir_all(&folder).unwrap();
}
