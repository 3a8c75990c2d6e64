//! The process and the operating system: pidfile, user, running in the background, and the notification of
//! the starting process.

use super::Failure;
use anyhow::{Context, anyhow};
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Set for the process in the background, which is the same program with the same arguments.
const BACKGROUND: &str = "WEIR_BACKGROUND";
/// What the process in the background says when it runs.
const RUNS: &[u8] = b"runs\n";

/// Who waits for the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ready {
    /// systemd, if `NOTIFY_SOCKET` is set.
    Systemd,
    /// The process that a user started with `-d`.
    Parent,
}

impl Ready {
    /// Says that Weir runs. Nothing depends on being heard.
    pub fn tell(self) {
        match self {
            Ready::Systemd => notify("READY=1"),
            Ready::Parent => {
                let mut stdout = std::io::stdout();
                let told = stdout.write_all(RUNS).and_then(|()| stdout.flush());
                let quiet = OpenOptions::new().read(true).write(true).open("/dev/null").and_then(|null| {
                    rustix::stdio::dup2_stdout(&null)?;
                    rustix::stdio::dup2_stderr(&null)?;
                    Ok(())
                });
                if let Err(error) = told.and(quiet) {
                    tracing::warn!("cannot leave the terminal: {error}");
                }
            }
        }
    }

    /// Says that Weir reads its configuration again; [`Ready::tell_reloaded`] must follow.
    /// systemd.service(5), `Type=notify-reload`.
    pub fn tell_reloading(self) {
        if self == Ready::Systemd {
            let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
            let now_us = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
            notify(&format!("RELOADING=1\nMONOTONIC_USEC={now_us}"));
        }
    }

    /// Says that this is over: the new configuration is in effect, or the old one stays.
    pub fn tell_reloaded(self) {
        if self == Ready::Systemd {
            notify("READY=1");
        }
    }

    /// Says that Weir is about to end.
    pub fn tell_stopping(self) {
        if self == Ready::Systemd {
            notify("STOPPING=1");
        }
    }
}

/// sd_notify(3).
fn notify(state: &str) {
    use std::os::unix::net::UnixDatagram;
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let sent = UnixDatagram::unbound().and_then(|socket| {
        #[cfg(target_os = "linux")]
        if let Some(name) = path.to_str().and_then(|path| path.strip_prefix('@')) {
            use std::os::linux::net::SocketAddrExt;
            let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
            return socket.send_to_addr(state.as_bytes(), &address);
        }
        socket.send_to(state.as_bytes(), &path)
    });
    if let Err(error) = sent {
        tracing::warn!("cannot tell the service manager {state}: {error}");
    }
}

/// This process is the one in the background.
pub fn is_background() -> bool {
    std::env::var_os(BACKGROUND).is_some()
}

/// Starts this program again, in the background, and waits until it runs or has failed.
///
/// # Errors
/// The process cannot be started, or has ended before it ran; [`Failure::Usage`] if it says that its
/// configuration is wrong.
pub fn start_background() -> Result<(), Failure> {
    use std::os::unix::process::CommandExt;
    let program = std::env::current_exe().context("cannot find the program of this process")?;
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_default();
    let mut child = Command::new(program)
        .arg0(name)
        .args(arguments)
        .env(BACKGROUND, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start a process in the background")?;
    let mut said = Vec::new();
    if let Some(stdout) = child.stdout.as_mut() {
        stdout.read_to_end(&mut said).context("cannot hear from the process in the background")?;
    }
    if said == RUNS {
        return Ok(());
    }
    let status = child.wait().context("cannot wait for the process in the background")?;
    // It has said itself, on our standard error, what is wrong.
    match status.code() {
        Some(2) => Err(Failure::Usage("the process in the background has not started".into())),
        _ => Err(Failure::Runtime(anyhow!("the process in the background has not started ({status})"))),
    }
}

/// Leaves the terminal and its session.
///
/// # Errors
/// The process leads its group already.
pub fn leave_session() -> Result<(), Failure> {
    rustix::process::setsid().context("cannot leave the session of the terminal")?;
    Ok(())
}

/// Goes on if the process belongs to this user; it cannot change that.
///
/// # Errors
/// [`Failure::Usage`]: there is no such user, or the process is another's. [`Failure::Runtime`]: the
/// system's name service cannot tell.
pub fn be_user(name: &str) -> Result<(), Failure> {
    let wanted = nix::unistd::User::from_name(name).with_context(|| format!("cannot look up user {name}"))?;
    match wanted {
        Some(user) if user.uid == nix::unistd::geteuid() => Ok(()),
        Some(_) => Err(Failure::Usage(format!(
            "-u {name}: Weir cannot change its user yet; start it as {name}, for example by `setpriv --reuid={name} \
             --regid={name} --init-groups` or by User={name} in its unit"
        ))),
        None => Err(Failure::Usage(format!("-u {name}: there is no such user"))),
    }
}

/// The process number in a file, removed when this is dropped.
#[derive(Debug)]
pub struct Pidfile {
    path: PathBuf,
}

impl Pidfile {
    /// Writes the file. Another process that lives and is named there is an error.
    ///
    /// # Errors
    /// The file cannot be read or written, or names another process that runs.
    pub fn write(path: &Path) -> Result<Pidfile, Failure> {
        let in_words = || format!("cannot write the pidfile {}", path.display());
        match fs::read_to_string(path) {
            Ok(text) => {
                if let Some(pid) = other_process(&text) {
                    return Err(Failure::Runtime(anyhow!(
                        "{} names process {pid}, which runs",
                        path.display()
                    )));
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Failure::Runtime(anyhow::Error::new(error).context(in_words()))),
        }
        fs::write(path, format!("{}\n", std::process::id())).with_context(in_words)?;
        Ok(Pidfile { path: path.to_owned() })
    }
}

/// The process a pidfile names, if it lives and is not this one.
fn other_process(text: &str) -> Option<i32> {
    let number: i32 = text.trim().parse().ok()?;
    let pid = rustix::process::Pid::from_raw(number)?;
    let lives = match rustix::process::test_kill_process(pid) {
        Ok(()) => true,
        Err(error) => error == rustix::io::Errno::PERM,
    };
    (lives && u32::try_from(number).is_ok_and(|n| n != std::process::id())).then_some(number)
}

impl Drop for Pidfile {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::warn!("cannot remove the pidfile {}: {error}", self.path.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pidfile_of_a_living_process_is_respected() {
        let path = std::env::temp_dir().join(format!("weir-pidfile-test.{}", std::process::id()));
        // A number that no process has: Linux ends at 2^22.
        fs::write(&path, "2000000000\n").unwrap();
        let pidfile = Pidfile::write(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
        drop(pidfile);
        assert!(!path.exists());
        // Process 1 always lives.
        fs::write(&path, "1\n").unwrap();
        let refused = Pidfile::write(&path).unwrap_err().to_string();
        assert!(refused.contains("names process 1, which runs"), "{refused}");
        fs::remove_file(&path).unwrap();
    }
}
