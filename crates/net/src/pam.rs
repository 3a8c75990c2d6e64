//! libpam: whether the system takes a user's password.
//!
//! Owns: the library, which is loaded when it is first needed, and the calls of one login. Must not know: who
//! wants to know it, and which process this is: PAM's modules block as long as they like.
//!
//! Invariants: a prompt for anything but a password ends the login; what modules say is text for the log, and
//! bounded.
//!
//! Why it is loaded at run time: so that Weir is built without PAM's headers and starts where PAM is not
//! installed. It is loaded as if this program were linked to it (RTLD_GLOBAL): many modules use its functions
//! without naming it.

use std::net::IpAddr;

/// What was said of a password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It is right, and the account may be used.
    Taken,
    /// Not so, in words for the log.
    Refused(String),
    /// Nobody could say, in words for the log.
    Unanswered(String),
}

/// Descriptors that a process needs which does nothing but ask PAM. Modules close all that there could be
/// before they execute a program.
#[cfg(target_os = "linux")]
const DESCRIPTORS: u64 = 1024;

/// Makes this process one that does nothing but ask PAM: it ends with the thread that has begun it, also
/// where a module waits.
pub fn prepare() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{
            Resource, Rlimit, Signal, getrlimit, set_parent_process_death_signal, setrlimit,
        };
        let before = getrlimit(Resource::Nofile);
        let current = before.current.map(|current| current.min(DESCRIPTORS));
        // As it is, it works too.
        let _ = setrlimit(Resource::Nofile, Rlimit { current, ..before });
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
    }
}

/// Ends a process that asks PAM, a child of this one that nobody has waited for yet, with all that its
/// modules have begun: some leave its process group.
pub fn end(process: u32) {
    use rustix::process::{Pid, Signal, kill_process};
    let tell = |process: u32, signal| {
        if let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) {
            // It may have ended.
            let _ = kill_process(process, signal);
        }
    };
    // It begins nothing more, and nobody takes the numbers of its children.
    tell(process, Signal::STOP);
    for one in descendants(process) {
        tell(one, Signal::KILL);
    }
    tell(process, Signal::KILL);
}

/// Processes that a module may have begun, at most.
const DESCENDANTS: usize = 256;

/// The children of a process and theirs, those first that were begun first. Empty where the system does not
/// tell.
fn descendants(process: u32) -> Vec<u32> {
    let mut found = vec![process];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        next += 1;
        let threads = std::fs::read_dir(format!("/proc/{parent}/task"));
        for thread in threads.into_iter().flatten().flatten() {
            let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            found.extend(children.split_whitespace().filter_map(|number| number.parse::<u32>().ok()));
        }
        found.truncate(DESCENDANTS);
    }
    found.split_off(1)
}

/// The name of a host (a lookup in DNS, which blocks). `None`: it has none.
pub fn name_of(address: IpAddr) -> Option<String> {
    let address = socket2::SockAddr::from(std::net::SocketAddr::new(address, 0));
    let mut name = [0 as libc::c_char; 1025];
    let size = libc::socklen_t::try_from(name.len()).ok()?;
    // SAFETY: the address and its length belong together, as socket2 keeps them; the buffer is as long as is
    // said, and the service is not asked for.
    let outcome = unsafe {
        libc::getnameinfo(
            address.as_ptr().cast(),
            address.len(),
            name.as_mut_ptr(),
            size,
            std::ptr::null_mut(),
            0,
            libc::NI_NAMEREQD,
        )
    };
    if outcome != 0 {
        return None;
    }
    let bytes: Vec<u8> = name.iter().take_while(|&&c| c != 0).map(|&c| c as u8).collect();
    String::from_utf8(bytes).ok()
}

#[cfg(target_os = "linux")]
pub use linux::Pam;
#[cfg(not(target_os = "linux"))]
pub use other::Pam;

#[cfg(not(target_os = "linux"))]
mod other {
    use super::Answer;

    /// There is none.
    #[derive(Debug)]
    pub struct Pam(());

    impl Pam {
        /// # Errors
        /// Always: the numbers of PAM's answers are another system's.
        pub fn load() -> Result<Pam, String> {
            Err("Weir asks PAM on Linux only".to_owned())
        }

        /// Nobody is asked.
        pub fn ask(&self, _: &str, _: &str, _: &str, _: &[u8]) -> Answer {
            Answer::Unanswered(String::new())
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use super::Answer;
    use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
    use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
    use std::ptr::null_mut;
    use zeroize::Zeroize;

    /// The name of its interface since 1996.
    const LIBRARY: &str = "libpam.so.0";

    // `_pam_types.h` of Linux-PAM.
    const SUCCESS: c_int = 0;
    const CONV_ERR: c_int = 19;
    const SILENT: c_int = 0x8000;
    const RHOST: c_int = 4;
    const FAIL_DELAY: c_int = 10;
    const PROMPT_ECHO_OFF: c_int = 1;
    const ERROR_MSG: c_int = 3;
    const TEXT_INFO: c_int = 4;
    /// Messages that a module may send at a time.
    const MESSAGES: c_int = 32;

    /// Codes that say something about the user or the password: perm_denied, auth_err, cred_insufficient,
    /// user_unknown, maxtries, new_authtok_reqd, acct_expired, cred_expired, authtok_expired. The others are
    /// about PAM itself.
    const REFUSALS: [c_int; 9] = [6, 7, 8, 10, 11, 12, 13, 16, 27];

    /// Bytes that are kept of what modules say.
    const SAID_BYTES: usize = 400;

    #[repr(C)]
    struct Message {
        style: c_int,
        text: *const c_char,
    }

    #[repr(C)]
    struct Response {
        text: *mut c_char,
        code: c_int,
    }

    #[repr(C)]
    struct Conversation {
        function: unsafe extern "C" fn(c_int, *mut *const Message, *mut *mut Response, *mut c_void) -> c_int,
        data: *mut c_void,
    }

    type Handle = *mut c_void;
    type Start =
        unsafe extern "C" fn(*const c_char, *const c_char, *const Conversation, *mut Handle) -> c_int;
    type End = unsafe extern "C" fn(Handle, c_int) -> c_int;
    type SetItem = unsafe extern "C" fn(Handle, c_int, *const c_void) -> c_int;
    type Step = unsafe extern "C" fn(Handle, c_int) -> c_int;
    type Words = unsafe extern "C" fn(Handle, c_int) -> *const c_char;

    /// The library.
    #[derive(Debug)]
    pub struct Pam {
        start: Start,
        end: End,
        set_item: SetItem,
        authenticate: Step,
        account: Step,
        words: Words,
    }

    /// What the modules are answered, and what they have said.
    struct Talk {
        password: CString,
        said: String,
    }

    impl Pam {
        /// Loads it.
        ///
        /// # Errors
        /// It is not there, or it is another library, as a sentence without its full stop.
        pub fn load() -> Result<Pam, String> {
            let failed = |error: libloading::Error| format!("cannot load {LIBRARY}: {error}");
            // SAFETY: what the library does when it is loaded is what it does in every program that is linked
            // to it: nothing.
            let library = unsafe { Library::open(Some(LIBRARY), RTLD_NOW | RTLD_GLOBAL) }.map_err(failed)?;
            // It and its modules stay for the life of this process.
            std::mem::forget(library);
            // As by a program that is linked to it: a library that was loaded before it may take its place.
            let all = Library::this();
            // SAFETY: the types are those of the functions with these names in `pam_appl.h`.
            unsafe {
                Ok(Pam {
                    start: *all.get::<Start>(c"pam_start").map_err(failed)?,
                    end: *all.get::<End>(c"pam_end").map_err(failed)?,
                    set_item: *all.get::<SetItem>(c"pam_set_item").map_err(failed)?,
                    authenticate: *all.get::<Step>(c"pam_authenticate").map_err(failed)?,
                    account: *all.get::<Step>(c"pam_acct_mgmt").map_err(failed)?,
                    words: *all.get::<Words>(c"pam_strerror").map_err(failed)?,
                })
            }
        }

        /// Asks by the rules of `service` whether this is the password of `user`, who comes from `host`, and
        /// whether the account may be used. Blocks as long as a module does.
        pub fn ask(&self, service: &str, user: &str, host: &str, password: &[u8]) -> Answer {
            let (Ok(service), Ok(user), Ok(host), Ok(password)) =
                (CString::new(service), CString::new(user), CString::new(host), CString::new(password))
            else {
                return Answer::Refused("a NUL in a name or a password".to_owned());
            };
            let mut talk = Talk { password, said: String::new() };
            let conversation = Conversation { function: converse, data: (&raw mut talk).cast() };
            let mut handle: Handle = null_mut();
            // SAFETY: the texts end in NUL and, as the conversation and what it points to, live until the end
            // of this function; the handle is the library's own.
            let code = unsafe {
                (self.start)(service.as_ptr(), user.as_ptr(), &raw const conversation, &raw mut handle)
            };
            if code != SUCCESS || handle.is_null() {
                return Answer::Unanswered(format!("pam_start has failed ({code})"));
            }
            let code = self.steps(handle, &host);
            // SAFETY: the handle is one that `pam_start` has made; the text is the library's, and is copied.
            let words = unsafe {
                let words = (self.words)(handle, code);
                if words.is_null() {
                    String::new()
                } else {
                    CStr::from_ptr(words).to_string_lossy().into_owned()
                }
            };
            // SAFETY: as above; it is not used any more.
            unsafe { (self.end)(handle, code) };
            talk.password.zeroize();
            match code {
                SUCCESS => Answer::Taken,
                code => {
                    let said = if talk.said.is_empty() { String::new() } else { format!(": {}", talk.said) };
                    let why = format!("{words} ({code}){said}");
                    if REFUSALS.contains(&code) { Answer::Refused(why) } else { Answer::Unanswered(why) }
                }
            }
        }

        fn steps(&self, handle: Handle, host: &CStr) -> c_int {
            // SAFETY: the handle is one that `pam_start` has made. The library copies the text of RHOST; the
            // function for delays has the type that `pam_fail_delay(3)` wants, and lives for ever.
            unsafe {
                if !host.is_empty() {
                    (self.set_item)(handle, RHOST, host.as_ptr().cast());
                }
                // Weir delays refusals itself, and nobody else waits meanwhile.
                (self.set_item)(handle, FAIL_DELAY, no_delay as *const c_void);
                match (self.authenticate)(handle, SILENT) {
                    SUCCESS => (self.account)(handle, SILENT),
                    code => code,
                }
            }
        }
    }

    /// Takes the place of the library's own delay.
    unsafe extern "C" fn no_delay(_: c_int, _: c_uint, _: *mut c_void) {}

    /// Answers a module (`pam_conv(3)`).
    ///
    /// # Safety
    /// The arguments are what the library passes: `count` messages behind `messages`, room for a pointer
    /// behind `responses`, and the [`Talk`] behind `data`.
    unsafe extern "C" fn converse(
        count: c_int,
        messages: *mut *const Message,
        responses: *mut *mut Response,
        data: *mut c_void,
    ) -> c_int {
        if !(1..=MESSAGES).contains(&count) || messages.is_null() || responses.is_null() || data.is_null() {
            return CONV_ERR;
        }
        let count = count as usize;
        // SAFETY: it is the `Talk` of the call of `ask` that is under way on this thread, which does not
        // touch it meanwhile.
        let talk = unsafe { &mut *data.cast::<Talk>() };
        // SAFETY: all bits of a response may be zero. The library frees what it gets with `free`.
        let answers = unsafe { libc::calloc(count, size_of::<Response>()) }.cast::<Response>();
        if answers.is_null() {
            return CONV_ERR;
        }
        for number in 0..count {
            // SAFETY: there are `count` messages, each behind a pointer of its own in Linux-PAM.
            let message = unsafe { (*messages.add(number)).as_ref() };
            // SAFETY: the text of a message ends in NUL and lives until this function returns.
            let answer = message.map_or(Err(()), |message| unsafe { reply(talk, message) });
            match answer {
                // SAFETY: there is room for `count` responses.
                Ok(text) => unsafe { (*answers.add(number)).text = text },
                Err(()) => {
                    // SAFETY: they were made above, and nobody else has them.
                    unsafe { release(answers, count) };
                    return CONV_ERR;
                }
            }
        }
        // SAFETY: the library has room for the pointer there.
        unsafe { *responses = answers };
        SUCCESS
    }

    /// What a message is answered; null: nothing.
    ///
    /// # Safety
    /// The message's text is null, or ends in NUL.
    unsafe fn reply(talk: &mut Talk, message: &Message) -> Result<*mut c_char, ()> {
        match message.style {
            PROMPT_ECHO_OFF => {
                // SAFETY: it ends in NUL; the copy is the library's to free.
                let copy = unsafe { libc::strdup(talk.password.as_ptr()) };
                if copy.is_null() { Err(()) } else { Ok(copy) }
            }
            ERROR_MSG | TEXT_INFO => {
                if !message.text.is_null() {
                    // SAFETY: as the caller has promised.
                    let text = unsafe { CStr::from_ptr(message.text) }.to_string_lossy();
                    note(&mut talk.said, &text);
                }
                Ok(null_mut())
            }
            // The client has been asked for one thing.
            _ => Err(()),
        }
    }

    fn note(said: &mut String, text: &str) {
        if !said.is_empty() && said.len() < SAID_BYTES {
            said.push_str("; ");
        }
        for c in text.trim().chars() {
            if said.len() >= SAID_BYTES {
                break;
            }
            said.push(if c.is_control() { ' ' } else { c });
        }
    }

    /// Frees responses that the library will not get.
    ///
    /// # Safety
    /// There are `count` of them, made by `calloc`, with texts made by `strdup` or none.
    unsafe fn release(answers: *mut Response, count: usize) {
        for number in 0..count {
            // SAFETY: as the caller has promised.
            unsafe {
                let text = (*answers.add(number)).text;
                if !text.is_null() {
                    libc::memset(text.cast(), 0, libc::strlen(text));
                    libc::free(text.cast());
                }
            }
        }
        // SAFETY: as the caller has promised.
        unsafe { libc::free(answers.cast()) };
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        fn talk() -> Talk {
            Talk { password: CString::new("right").unwrap(), said: String::new() }
        }

        /// Has a conversation; the code, and what was answered.
        fn conversation(talk: &mut Talk, said: &[(c_int, &CStr)]) -> (c_int, Vec<Option<String>>) {
            let messages: Vec<Message> =
                said.iter().map(|(style, text)| Message { style: *style, text: text.as_ptr() }).collect();
            let mut pointers: Vec<*const Message> =
                messages.iter().map(|message| &raw const *message).collect();
            let mut answers: *mut Response = null_mut();
            let count = c_int::try_from(said.len()).unwrap();
            // SAFETY: this is what the library passes.
            let code =
                unsafe { converse(count, pointers.as_mut_ptr(), &raw mut answers, (&raw mut *talk).cast()) };
            if answers.is_null() {
                return (code, Vec::new());
            }
            let mut texts = Vec::new();
            for number in 0..said.len() {
                // SAFETY: there are as many responses as messages.
                let text = unsafe { (*answers.add(number)).text };
                // SAFETY: it is null or ends in NUL.
                texts.push(
                    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned()),
                );
            }
            // SAFETY: as the library does.
            unsafe { release(answers, said.len()) };
            (code, texts)
        }

        #[test]
        fn a_module_gets_the_password_and_nothing_else() {
            let mut talk = talk();
            let (code, answers) = conversation(
                &mut talk,
                &[(TEXT_INFO, c"Welcome\n"), (PROMPT_ECHO_OFF, c"Password: "), (ERROR_MSG, c"too\x07 old")],
            );
            assert_eq!((code, answers), (SUCCESS, vec![None, Some("right".to_owned()), None]));
            assert_eq!(talk.said, "Welcome; too  old");
            assert_eq!(
                conversation(&mut talk, &[(PROMPT_ECHO_OFF, c""), (2, c"login: ")]),
                (CONV_ERR, vec![])
            );
            assert_eq!(conversation(&mut talk, &[]), (CONV_ERR, vec![]));
        }

        #[test]
        fn modules_do_not_fill_the_memory() {
            let mut talk = talk();
            for _ in 0..100 {
                let text = CString::new(vec![b'x'; 100]).unwrap();
                conversation(&mut talk, &[(ERROR_MSG, &text)]);
            }
            assert!(talk.said.len() <= SAID_BYTES + 2, "{}", talk.said.len());
        }

        #[test]
        fn a_process_ends_with_all_that_it_has_begun() {
            use std::io::BufRead;
            use std::process::{Command, Stdio};
            let script = "setsid sleep 4321 & sh -c 'sleep 4321 & echo $!; wait' & echo $!; wait";
            let mut child = Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
            let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
            let begun: Vec<u32> = (0..2).map(|_| lines.next().unwrap().unwrap().parse().unwrap()).collect();
            let found = super::super::descendants(child.id());
            assert!(
                begun.iter().all(|process| found.contains(process)) && found.len() >= 3,
                "{begun:?} {found:?}"
            );
            super::super::end(child.id());
            child.wait().unwrap();
            // What nobody waits for any more has a parent again, which does.
            assert!(lines.next().is_none(), "nobody has its output open");
        }

        /// Debian's service `other` and this machine's accounts: nobody is called so. Where PAM is not
        /// installed, that is said.
        #[test]
        fn the_library_is_asked() {
            match Pam::load() {
                Ok(pam) => {
                    let said = pam.ask("weir-no-such-service", "no such user", "", b"wrong");
                    assert!(!matches!(said, Answer::Taken), "{said:?}");
                    let said = pam.ask("weir", "a\0b", "", b"wrong");
                    assert!(matches!(&said, Answer::Refused(why) if why.contains("NUL")), "{said:?}");
                }
                Err(why) => assert!(why.contains(LIBRARY), "{why}"),
            }
        }
    }
}
