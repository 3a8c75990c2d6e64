//! Valid messages of each protocol, from which the scripts are built.

use weir_proxy::wing::{MySql, Postgres, Wing};

/// The words of one protocol.
pub trait Peers: Wing {
    /// What a client says to log in. The first is enough by itself when no proof is asked for.
    fn client_login() -> Vec<Vec<u8>>;
    /// What a server says when it lets Weir in without a password, in order.
    fn server_login() -> Vec<Vec<u8>>;
    /// What a server says when it does as it was told.
    fn granted() -> Vec<u8>;
    /// What a client says in its session.
    fn client_messages() -> Vec<Vec<u8>>;
    /// What a server says in a session.
    fn server_messages() -> Vec<Vec<u8>>;
}

/// A PostgreSQL message.
fn pg(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut message = vec![kind];
    message.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    message.extend_from_slice(body);
    message
}

/// A PostgreSQL startup packet.
fn startup(code: u32, body: &[u8]) -> Vec<u8> {
    let mut packet = (body.len() as u32 + 8).to_be_bytes().to_vec();
    packet.extend_from_slice(&code.to_be_bytes());
    packet.extend_from_slice(body);
    packet
}

impl Peers for Postgres {
    fn client_login() -> Vec<Vec<u8>> {
        vec![
            startup(196_608, b"user\0app\0database\0app\0application_name\0fuzz\0\0"),
            startup(196_610, b"user\0app\0_pq_.x\0y\0options\0-c search_path=a\0\0"),
            startup(196_608, b"user\0app\0replication\0true\0\0"),
            startup(80_877_103, b""),
            startup(80_877_104, b""),
            startup(80_877_102, b"\0\0\0\x07keykeykeykey"),
            pg(b'p', b"secret\0"),
            pg(b'p', b"SCRAM-SHA-256\0\0\0\0\x20n,,n=,r=rOprNGfwEbeRWgbNEkqO"),
            pg(b'p', b"c=biws,r=rOprNGfwEbeRWgbNEkqO,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="),
            pg(b'X', b""),
        ]
    }

    fn server_login() -> Vec<Vec<u8>> {
        vec![
            pg(b'R', &[0, 0, 0, 0]),
            pg(b'S', b"server_version\x0016.2\0"),
            pg(b'S', b"client_encoding\0UTF8\0"),
            pg(b'S', b"standard_conforming_strings\0on\0"),
            pg(b'S', b"TimeZone\0UTC\0"),
            pg(b'S', b"application_name\0fuzz\0"),
            pg(b'K', b"\0\0\0\x09keyk"),
            pg(b'Z', b"I"),
        ]
    }

    fn granted() -> Vec<u8> {
        pg(b'Z', b"I")
    }

    fn client_messages() -> Vec<Vec<u8>> {
        let texts: &[&[u8]] = &[
            b"SELECT 1",
            b"BEGIN",
            b"COMMIT",
            b"ROLLBACK",
            b"SET search_path = a",
            b"SET TimeZone = 'UTC'",
            b"SELECT 1; SELECT 2",
            b"COPY t FROM STDIN",
            b"COPY t TO STDOUT",
            b"LISTEN a",
            b"DISCARD ALL",
            b"",
            b"RESET ALL",
            b"CREATE TEMP TABLE t (a int)",
            b"DEALLOCATE ALL",
            b"PREPARE a AS SELECT 1",
            b"DEALLOCATE a",
        ];
        let mut all: Vec<Vec<u8>> =
            texts.iter().map(|text| pg(b'Q', &[text, b"\0".as_slice()].concat())).collect();
        all.extend([
            pg(b'P', b"\0SELECT $1\0\0\0"),
            pg(b'P', b"a\0SELECT $1\0\0\x01\0\0\0\x17"),
            pg(b'P', b"a\0BEGIN\0\0\0"),
            pg(b'P', b"b\0SET TimeZone = 'UTC'\0\0\0"),
            pg(b'B', b"\0\0\0\0\0\0\0\0"),
            pg(b'B', b"\0a\0\0\0\0\x01\0\0\0\x01x\0\0"),
            pg(b'B', b"p\0b\0\0\0\0\0\0\0"),
            pg(b'D', b"S\0"),
            pg(b'D', b"Sa\0"),
            pg(b'D', b"P\0"),
            pg(b'E', b"\0\0\0\0\0"),
            pg(b'E', b"p\0\0\0\0\x01"),
            pg(b'C', b"Sa\0"),
            pg(b'C', b"P\0"),
            pg(b'H', b""),
            pg(b'S', b""),
            pg(b'S', b""),
            pg(b'd', b"1\n"),
            pg(b'c', b""),
            pg(b'f', b"no\0"),
            pg(b'F', b"\0\0\0\x01\0\0\0\0\0\0"),
            pg(b'X', b""),
        ]);
        all
    }

    fn server_messages() -> Vec<Vec<u8>> {
        vec![
            pg(b'Z', b"I"),
            pg(b'Z', b"T"),
            pg(b'Z', b"E"),
            pg(b'C', b"SELECT 1\0"),
            pg(b'C', b"BEGIN\0"),
            pg(b'C', b"COMMIT\0"),
            pg(b'C', b"SET\0"),
            pg(b'C', b"DISCARD ALL\0"),
            pg(b'E', b"SERROR\0C42601\0Mno\0\0"),
            pg(b'E', b"SFATAL\0C57P01\0Mno\0\0"),
            pg(b'E', b"SERROR\0C26000\0Mno\0\0"),
            pg(b'T', b"\0\x01a\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0"),
            pg(b'D', b"\0\x01\0\0\0\x011"),
            pg(b'1', b""),
            pg(b'2', b""),
            pg(b'3', b""),
            pg(b'n', b""),
            pg(b't', b"\0\x01\0\0\0\x17"),
            pg(b's', b""),
            pg(b'I', b""),
            pg(b'G', b"\0\0\x01\0\0"),
            pg(b'H', b"\0\0\x01\0\0"),
            pg(b'W', b"\0\0\x01\0\0"),
            pg(b'd', b"1\n"),
            pg(b'c', b""),
            pg(b'S', b"TimeZone\0UTC\0"),
            pg(b'S', b"search_path\0a\0"),
            pg(b'N', b"SNOTICE\0C00000\0Mhm\0\0"),
            pg(b'A', b"\0\0\0\x09a\0b\0"),
            pg(b'V', b"\xff\xff\xff\xff"),
            pg(b'v', b"\0\x03\0\0\0\0\0\x01_pq_.x\0"),
            pg(b'R', &[0, 0, 0, 3]),
            pg(b'R', &[0, 0, 0, 5, 1, 2, 3, 4]),
            pg(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0"),
            pg(b'R', b"\0\0\0\x0br=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"),
            pg(b'R', b"\0\0\0\x0cv=rmF9pqV8S7suAoZWja4dJRkFsKQ="),
        ]
    }
}

/// A MySQL packet.
fn my(sequence: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = (body.len() as u32).to_le_bytes()[..3].to_vec();
    packet.push(sequence);
    packet.extend_from_slice(body);
    packet
}

/// A MySQL command.
fn command(code: u8, body: &[u8]) -> Vec<u8> {
    my(0, &[&[code], body].concat())
}

/// CLIENT_LONG_PASSWORD, FOUND_ROWS no, CONNECT_WITH_DB, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION,
/// MULTI_STATEMENTS, MULTI_RESULTS, PLUGIN_AUTH: what most drivers ask for.
const CLIENT_CAPABILITIES: u32 = 0x000b_a209;
/// The same with SESSION_TRACK, DEPRECATE_EOF, LOCAL_FILES, CONNECT_ATTRS, PS_MULTI_RESULTS.
const CLIENT_CAPABILITIES_ALL: u32 = CLIENT_CAPABILITIES | 0x0194_0080;
/// What the server offers.
const SERVER_CAPABILITIES: u32 = 0x81bf_f7df;

fn handshake_response(capabilities: u32, rest: &[u8]) -> Vec<u8> {
    let mut body = capabilities.to_le_bytes().to_vec();
    body.extend_from_slice(&0x0100_0000u32.to_le_bytes());
    body.push(45);
    body.extend_from_slice(&[0; 23]);
    body.extend_from_slice(rest);
    my(1, &body)
}

fn greeting(plugin: &[u8]) -> Vec<u8> {
    let mut body = vec![10];
    body.extend_from_slice(b"8.0.36\0");
    body.extend_from_slice(&9u32.to_le_bytes());
    body.extend_from_slice(b"saltsalt\0");
    body.extend_from_slice(&SERVER_CAPABILITIES.to_le_bytes()[..2]);
    body.push(45);
    body.extend_from_slice(&[2, 0]);
    body.extend_from_slice(&SERVER_CAPABILITIES.to_le_bytes()[2..]);
    body.push(21);
    body.extend_from_slice(&[0; 10]);
    body.extend_from_slice(b"saltsaltsalt\0");
    body.extend_from_slice(plugin);
    body.push(0);
    my(0, &body)
}

/// OK: header, affected rows, insert id, status, warnings.
fn ok(sequence: u8, header: u8, status: u16, rest: &[u8]) -> Vec<u8> {
    let [low, high] = status.to_le_bytes();
    my(sequence, &[&[header, 0, 0, low, high, 0, 0], rest].concat())
}

/// A column definition of a row of one column.
fn column(sequence: u8) -> Vec<u8> {
    my(sequence, b"\x03def\0\0\0\x01a\0\x0c\x2d\0\x04\0\0\0\x03\0\0\0\0\0")
}

impl Peers for MySql {
    fn client_login() -> Vec<Vec<u8>> {
        vec![
            handshake_response(CLIENT_CAPABILITIES, b"app\0\0app\0mysql_native_password\0"),
            handshake_response(CLIENT_CAPABILITIES_ALL, b"app\0\0app\0caching_sha2_password\0\x04\x01a\x01b"),
            handshake_response(
                CLIENT_CAPABILITIES,
                b"app\0\x14aaaaaaaaaaaaaaaaaaaaapp\0mysql_native_password\0",
            ),
            handshake_response(CLIENT_CAPABILITIES | 0x800, b""),
            my(3, b"secret\0"),
            my(3, b"\x02"),
            my(3, b"aaaaaaaaaaaaaaaaaaaa"),
            my(5, &[7; 256]),
        ]
    }

    fn server_login() -> Vec<Vec<u8>> {
        // Behind the OK of the login Weir sets the session up: a SET, and a SELECT of one row. It has more
        // values than are asked for.
        let row = b"\x011".repeat(64);
        vec![
            greeting(b"mysql_native_password"),
            ok(2, 0, 2, b""),
            ok(1, 0, 2, b""),
            [my(1, b"\x01"), column(2), my(3, &row), ok(4, 0xfe, 2, b"")].concat(),
        ]
    }

    fn granted() -> Vec<u8> {
        ok(1, 0, 2, b"")
    }

    fn client_messages() -> Vec<Vec<u8>> {
        let texts: &[&[u8]] = &[
            b"SELECT 1",
            b"BEGIN",
            b"COMMIT",
            b"ROLLBACK",
            b"SET NAMES utf8mb4",
            b"SET autocommit=0",
            b"SELECT 1; SELECT 2",
            b"SELECT CONNECTION_ID()",
            b"SELECT LAST_INSERT_ID()",
            b"KILL 7",
            b"KILL QUERY 8",
            b"USE app",
            b"",
            b"LOAD DATA LOCAL INFILE 'x' INTO TABLE t",
            b"SET @a = 1",
            b"SELECT GET_LOCK('a', 1)",
            b"SHOW WARNINGS",
            b"CALL p()",
            b"SELECT @@pseudo_thread_id",
        ];
        let mut all: Vec<Vec<u8>> = texts.iter().map(|text| command(3, text)).collect();
        all.extend([
            command(1, b""),
            command(2, b"app"),
            command(4, b"t\0"),
            command(9, b""),
            command(12, &7u32.to_le_bytes()),
            command(14, b""),
            command(17, b"app\0\0app\0\x2d\0mysql_native_password\0"),
            command(22, b"SELECT ?"),
            command(22, b"SELECT 1"),
            command(23, b"\x01\0\0\0\0\x01\0\0\0\0\x01\x03\0\x01\0\0\0"),
            command(23, b"\x01\0\0\0\0\x01\0\0\0\0\0"),
            command(23, b"\x02\0\0\0\x01\x01\0\0\0"),
            command(24, b"\x01\0\0\0\0\0long"),
            command(25, b"\x01\0\0\0"),
            command(26, b"\x01\0\0\0"),
            command(27, b"\0\0"),
            command(28, b"\x02\0\0\0\x01\0\0\0"),
            command(31, b""),
            command(250, b"\x01\0\0\0\0\0"),
            my(2, b"file"),
            my(3, b""),
        ]);
        all
    }

    fn server_messages() -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for sequence in [1, 2] {
            all.extend([
                ok(sequence, 0, 2, b""),
                ok(sequence, 0, 3, b""),
                ok(sequence, 0, 2 | 8, b""),
                ok(sequence, 0, 0x4002, b"\0\x0b\0\x09\x08time_zone\0"),
                ok(sequence, 0, 0x4002, b"\0\x05\x01\x03\x02ap"),
                my(sequence, b"\xff\x28\x04#42000no"),
                my(sequence, b"\x01"),
                my(sequence, b"\xfbfile"),
                my(sequence, b"\0\x01\0\0\0\x01\0\x01\0\0\0\0"),
                my(sequence, b"\0\x02\0\0\0\0\0\0\0\0\0\0"),
            ]);
        }
        all.extend([
            column(2),
            column(3),
            my(3, b"\xfe\0\0\x02\0"),
            my(3, b"\x011"),
            my(4, b"\x011"),
            my(4, b"\xfe\0\0\x02\0"),
            my(5, b"\xfe\0\0\x02\0"),
            my(6, b"\xfe\0\0\x02\0"),
            ok(3, 0xfe, 2, b""),
            ok(4, 0xfe, 2, b""),
            ok(5, 0xfe, 2, b""),
            ok(5, 0xfe, 2 | 8, b""),
            ok(4, 0xfe, 2 | 64 | 128, b""),
            [my(1, b"\x01"), column(2), my(3, b"\x011"), ok(4, 0xfe, 2, b"")].concat(),
            [my(1, b"\0\x01\0\0\0\x01\0\x01\0\0\0\0"), column(2), column(3)].concat(),
            my(2, b"\xfemysql_native_password\0saltsaltsaltsaltsalt\0"),
            my(2, b"\xfecaching_sha2_password\0saltsaltsaltsaltsalt\0"),
            my(2, b"\x01\x03"),
            my(2, b"\x01\x04"),
            my(1, b"error"),
        ]);
        all
    }
}
