//! Asks PAM, in a process of its own: this program once more (`weir pam-helper`).
//!
//! Owns: the process, what goes to it and comes back, and its end. Must not know: PAM (`weir_net::pam`).
//!
//! Invariants: a process has one question at a time; one that does not answer in time is killed, with
//! whatever a module was waiting for; it ends by itself when Weir does.
//!
//! Why a process: PAM's modules are other people's libraries, which block for as long as they like. A thread
//! could not be stopped, some modules may not be called by several threads, and one that crashes would end
//! all of Weir's sessions.

use super::{Refusal, Vouching};
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use weir_config::PamService;
use weir_net::pam::{Answer, Pam};
use weir_wire::Reader;
use zeroize::Zeroizing;

/// Bytes of a question or of an answer at most.
const FRAME_BYTES: usize = 16 * 1024;

/// The first byte of an answer.
const TAKEN: u8 = b'y';
const REFUSED: u8 = b'n';
const UNANSWERED: u8 = b'?';

/// A place for a process.
#[derive(Default)]
pub(super) struct Helper {
    process: Option<Process>,
}

struct Process {
    child: Child,
    line: UnixStream,
}

impl Drop for Process {
    fn drop(&mut self) {
        weir_net::pam::end(self.child.id());
        let _ = self.child.wait();
    }
}

impl Helper {
    /// Asks whether the password is right.
    ///
    /// # Errors
    /// It is not, or nobody has said so before `until`.
    pub(super) fn ask(
        &mut self,
        service: &PamService,
        vouching: &Vouching,
        until: Instant,
    ) -> Result<(), Refusal> {
        let question = question(service, vouching);
        // One that has been idle may have ended since.
        let used = self.process.is_some();
        let answer = match self.exchange(&question, until) {
            Err(error) if used && error.kind() != io::ErrorKind::TimedOut => self.exchange(&question, until),
            answer => answer,
        };
        match answer.map(|answer| (answer.first().copied(), text_of(&answer))) {
            Ok((Some(TAKEN), _)) => Ok(()),
            Ok((Some(REFUSED), why)) => Err(Refusal::Wrong(format!("service {}: {why}", service.name))),
            Ok((_, why)) => Err(Refusal::Unanswered(format!("service {}: {why}", service.name))),
            Err(error) => Err(Refusal::Unanswered(format!("service {}: {error}", service.name))),
        }
    }

    /// Any error is the end of the process.
    fn exchange(&mut self, question: &[u8], until: Instant) -> io::Result<Vec<u8>> {
        let mut process = match self.process.take() {
            Some(process) => process,
            None => Process::begin()?,
        };
        let answer = process.exchange(question, until)?;
        self.process = Some(process);
        Ok(answer)
    }
}

impl Process {
    fn begin() -> io::Result<Process> {
        let (line, theirs) = UnixStream::pair()?;
        let input = OwnedFd::from(theirs.try_clone()?);
        let output = OwnedFd::from(theirs);
        // Also where the program's file has been replaced since.
        let program =
            if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { std::env::current_exe()? };
        let child = Command::new(program)
            .arg0("weir")
            .arg("pam-helper")
            // What a terminal sends to Weir is not for it.
            .process_group(0)
            .stdin(Stdio::from(input))
            .stdout(Stdio::from(output))
            .spawn()
            .map_err(|error| {
                io::Error::new(error.kind(), format!("cannot start a process for PAM: {error}"))
            })?;
        Ok(Process { child, line })
    }

    fn exchange(&mut self, question: &[u8], until: Instant) -> io::Result<Vec<u8>> {
        let left = || match until.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(late()),
            left => Ok(Some(left)),
        };
        self.line.set_write_timeout(left()?)?;
        self.line.write_all(question).map_err(in_time)?;
        self.line.set_read_timeout(left()?)?;
        read_frame(&mut self.line).map_err(in_time)?.map(|answer| answer.to_vec()).ok_or_else(|| {
            io::Error::new(io::ErrorKind::UnexpectedEof, "its process has ended; a module may have crashed")
        })
    }
}

fn late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "no answer: the time for it is over")
}

fn in_time(error: io::Error) -> io::Error {
    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) { late() } else { error }
}

fn text_of(answer: &[u8]) -> String {
    String::from_utf8_lossy(answer.get(1..).unwrap_or_default()).into_owned()
}

/// Service, user, host, whether its name is wanted, password.
fn question(service: &PamService, vouching: &Vouching) -> Zeroizing<Vec<u8>> {
    let fields: [&[u8]; 5] = [
        service.name.as_bytes(),
        vouching.user.as_bytes(),
        vouching.from.as_bytes(),
        if service.use_hostname { b"1" } else { b"0" },
        vouching.password.bytes(),
    ];
    let length = fields.iter().map(|field| field.len() + 4).sum::<usize>();
    let mut out = Zeroizing::new(Vec::with_capacity(length + 4));
    out.extend_from_slice(&(length as u32).to_be_bytes());
    for field in fields {
        out.extend_from_slice(&(field.len() as u32).to_be_bytes());
        out.extend_from_slice(field);
    }
    out
}

/// What comes next. `None`: the other side has ended.
fn read_frame(from: &mut impl Read) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
    let mut head = [0; 4];
    match from.read_exact(&mut head) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let length = u32::from_be_bytes(head) as usize;
    if length > FRAME_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame is too long"));
    }
    let mut frame = Zeroizing::new(vec![0; length]);
    from.read_exact(&mut frame)?;
    Ok(Some(frame))
}

/// The process that asks PAM: answers on standard output what comes on standard input, until that ends.
pub fn serve() -> ExitCode {
    weir_net::pam::prepare();
    match serve_by(&mut io::stdin().lock(), &mut io::stdout().lock(), &Pam::load()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody talks to it by hand, and whoever does has seen it.
            let _ = writeln!(io::stderr(), "weir pam-helper: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve_by(from: &mut impl Read, to: &mut impl Write, pam: &Result<Pam, String>) -> io::Result<()> {
    while let Some(question) = read_frame(from)? {
        let (verdict, why) = match answer(&question, pam) {
            Answer::Taken => (TAKEN, String::new()),
            Answer::Refused(why) => (REFUSED, why),
            Answer::Unanswered(why) => (UNANSWERED, why),
        };
        let mut frame = ((why.len() + 1) as u32).to_be_bytes().to_vec();
        frame.push(verdict);
        frame.extend_from_slice(why.as_bytes());
        to.write_all(&frame)?;
        to.flush()?;
    }
    Ok(())
}

fn answer(question: &[u8], pam: &Result<Pam, String>) -> Answer {
    let Some([service, user, host, by_name, password]) = fields(question) else {
        return Answer::Unanswered("a question that is none".to_owned());
    };
    let (Ok(service), Ok(user), Ok(host)) =
        (std::str::from_utf8(service), std::str::from_utf8(user), std::str::from_utf8(host))
    else {
        return Answer::Unanswered("a name that is not UTF-8".to_owned());
    };
    if user.is_empty() || password.is_empty() {
        return Answer::Refused("an empty password or user name".to_owned());
    }
    let named = match host.parse::<IpAddr>() {
        Ok(address) if by_name == b"1" => weir_net::pam::name_of(address),
        _ => None,
    };
    match pam {
        Ok(pam) => pam.ask(service, user, named.as_deref().unwrap_or(host), password),
        Err(why) => Answer::Unanswered(why.clone()),
    }
}

fn fields(question: &[u8]) -> Option<[&[u8]; 5]> {
    let mut rest = Reader::new(question);
    let mut found: [&[u8]; 5] = [&[]; 5];
    for field in &mut found {
        let length = rest.u32_be().ok()? as usize;
        *field = rest.take(length).ok()?;
    }
    rest.is_empty().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_auth::Password;
    use weir_config::Voucher;

    fn vouching(user: &str, password: &[u8]) -> Vouching {
        let service = PamService { name: "weir".to_owned(), use_hostname: true };
        Vouching {
            voucher: Voucher::Pam(service),
            user: user.to_owned(),
            password: Password::new(password).unwrap(),
            from: "127.0.0.1".to_owned(),
            patience_ms: 1_000,
        }
    }

    #[test]
    fn a_question_is_read_as_it_was_put() {
        let service = PamService { name: "weir".to_owned(), use_hostname: true };
        let put = question(&service, &vouching("m\u{fc}ller", b"x\xff y"));
        let read = read_frame(&mut &put[..]).unwrap().unwrap();
        let found = fields(&read).unwrap();
        assert_eq!(found, ["weir".as_bytes(), "m\u{fc}ller".as_bytes(), b"127.0.0.1", b"1", b"x\xff y"]);
        for end in 0..read.len() {
            assert_eq!(fields(&read[..end]), None, "{end}");
        }
        assert_eq!(fields(&[&read[..], b"x"].concat()), None);
    }

    #[test]
    fn answers_until_nothing_more_is_asked() {
        let service = PamService { name: "weir".to_owned(), use_hostname: false };
        let asked = [question(&service, &vouching("ann", b"right")).to_vec(), vec![0, 0, 0, 1, 9]].concat();
        let mut said = Vec::new();
        serve_by(&mut &asked[..], &mut said, &Err("cannot load libpam.so.0".to_owned())).unwrap();
        let mut said = &said[..];
        let first = read_frame(&mut said).unwrap().unwrap();
        assert_eq!((first[0], text_of(&first)), (UNANSWERED, "cannot load libpam.so.0".to_owned()));
        let second = read_frame(&mut said).unwrap().unwrap();
        assert_eq!((second[0], text_of(&second)), (UNANSWERED, "a question that is none".to_owned()));
        assert!(read_frame(&mut said).unwrap().is_none());
        let long = [0x7F, 0, 0, 0];
        assert!(serve_by(&mut &long[..], &mut Vec::new(), &Err(String::new())).is_err());
    }
}
