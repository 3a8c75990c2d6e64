//! The root of the system's files: `/`, or a directory that looks like one.
//!
//! Owns: reading files of /proc, /sys and /etc with a bound on their size. Must not know: what they mean.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Longest file that is read whole. /proc/net/netstat has a few kB, a unit file as well.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Larger numbers are read as this: more than anything that is asked for, and small enough to be multiplied
/// by a page.
pub const NUMBER_MAX: u64 = 1 << 50;

/// The root directory that all probing reads below.
#[derive(Debug, Clone)]
pub struct Root {
    path: PathBuf,
    /// The answer to "can a thread have its own descriptor table", where it must not be asked of the kernel.
    split: Option<bool>,
}

/// A file that could not be read, in words for a reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread(pub String);

impl Root {
    /// This machine.
    pub fn real() -> Root {
        Root { path: PathBuf::from("/"), split: None }
    }

    /// A directory with a /proc, /sys and /etc in it; `split` answers for its kernel whether a thread can
    /// have its own descriptor table.
    pub fn at(path: impl Into<PathBuf>, split: bool) -> Root {
        Root { path: path.into(), split: Some(split) }
    }

    fn place(&self, path: &str) -> PathBuf {
        self.path.join(path.trim_start_matches('/'))
    }

    /// The text of a file without spaces at its ends.
    ///
    /// # Errors
    /// The file cannot be read; the text says why.
    pub fn read(&self, path: &str) -> Result<String, Unread> {
        let mut bytes = Vec::new();
        let read = File::open(self.place(path))
            .and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes))
            .map_err(|error| Unread(why(&error)));
        read.map(|_| String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// A file that holds one number, at most [`NUMBER_MAX`].
    ///
    /// # Errors
    /// The file cannot be read, or holds something else than a number.
    pub fn number(&self, path: &str) -> Result<u64, Unread> {
        let text = self.read(path)?;
        let number = text.parse::<u64>().map_err(|_| Unread(format!("not a number: {text}")))?;
        Ok(number.min(NUMBER_MAX))
    }

    /// A file that holds several numbers, each at most [`NUMBER_MAX`].
    ///
    /// # Errors
    /// The file cannot be read, or holds something else than numbers.
    pub fn numbers(&self, path: &str) -> Result<Vec<u64>, Unread> {
        let text = self.read(path)?;
        let numbers: Result<Vec<u64>, _> = text.split_whitespace().map(str::parse).collect();
        let numbers = numbers.map_err(|_| Unread(format!("not numbers: {text}")))?;
        Ok(numbers.into_iter().map(|number| number.min(NUMBER_MAX)).collect())
    }

    /// Lines of a file that may be long, for as long as `more` wants them.
    ///
    /// # Errors
    /// The file cannot be read, or has a line that is not UTF-8. Lines before it have been seen.
    pub fn lines(&self, path: &str, mut more: impl FnMut(&str) -> bool) -> Result<(), Unread> {
        let file = File::open(self.place(path)).map_err(|error| Unread(why(&error)))?;
        for line in BufReader::new(file).lines() {
            let line = line.map_err(|error| Unread(why(&error)))?;
            if !more(&line) {
                break;
            }
        }
        Ok(())
    }

    /// Names in a directory, sorted; none when there is no such directory.
    pub fn names(&self, path: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.place(path)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// There is such a file.
    pub fn has(&self, path: &str) -> bool {
        self.place(path).exists()
    }

    /// Whether a thread of Weir can have a descriptor table of its own here. Asks the kernel by a thread that
    /// ends at once, on this machine only.
    ///
    /// # Errors
    /// The kernel does not allow it, or is not Linux.
    pub fn can_split(&self) -> io::Result<()> {
        match self.split {
            None => weir_net::tables::can_split(),
            Some(true) => Ok(()),
            Some(false) => Err(io::Error::from(io::ErrorKind::PermissionDenied)),
        }
    }

    /// This is the machine itself, not a directory that looks like one.
    pub fn is_real(&self) -> bool {
        self.split.is_none() && self.path == Path::new("/")
    }
}

fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}
