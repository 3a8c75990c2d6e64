//! Workers with descriptor tables of their own.
#![cfg(target_os = "linux")]

mod common;

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread::JoinHandle;

use common::{wait_for, with_limit};
use weir_net::backoff::{AcceptPause, is_exhaustion};
use weir_net::fleet::{Fleet, Seat};
use weir_net::handover::{Exchange, Parcel};
use weir_net::listener::{self, ListenOptions, Listener};
use weir_net::socket::{Socket, SocketOptions};
use weir_net::tables::{self, TablePlan};
use weir_net::{Address, Kernel, KernelWake, Mailbox, Net, Target, Token, Wake, mailbox};

fn private_plan(workers: usize) -> TablePlan {
    TablePlan {
        private: true,
        workers,
        most: workers,
        first_room: 0,
        further_room: 0,
        capacity: 0,
        enough: true,
        text: String::new(),
    }
}

fn private_fleet(workers: usize) -> Fleet {
    Fleet::new(private_plan(workers), &[], SocketOptions::default()).expect("fleet")
}

fn start<R: Send + 'static>(
    seat: Seat,
    work: impl FnOnce(Kernel, Vec<Listener>) -> R + Send + 'static,
) -> JoinHandle<R> {
    std::thread::spawn(move || {
        let (kernel, listeners) = seat.enter().expect("enter");
        work(kernel, listeners)
    })
}

/// Numbers that are open in this thread's table and can be read or written.
fn usable_descriptors() -> usize {
    let entries = std::fs::read_dir("/proc/thread-self/fd").expect("list").collect::<Vec<_>>();
    let numbers = entries.into_iter().filter_map(|entry| {
        entry.ok()?.file_name().to_str()?.parse::<RawFd>().ok().filter(|number| *number > 2)
    });
    numbers.filter(|number| is_usable(*number)).count()
}

/// Whether the number means something in this thread's table.
fn is_usable(number: RawFd) -> bool {
    // SAFETY: fcntl(2) only asks, and a number that is not open is an error.
    let place = std::mem::ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(number) });
    rustix::fs::fcntl_getfl(&*place).is_ok_and(|flags| !flags.contains(rustix::fs::OFlags::PATH))
}

/// Both ends of a connection inside this process.
fn connected() -> (UnixStream, Socket) {
    let (near, far) = UnixStream::pair().expect("pair");
    far.set_nonblocking(true).expect("non-blocking");
    (near, Socket::from(OwnedFd::from(far)))
}

/// What the other end of an [`accepted`] connection is: closed when it reads the end of the stream.
fn is_closed(near: &mut UnixStream) -> bool {
    near.set_read_timeout(Some(std::time::Duration::from_secs(30))).expect("timeout");
    matches!(near.read(&mut [0; 8]), Ok(0))
}

#[test]
fn more_connections_than_one_table_may_hold() {
    with_limit("more_connections_than_one_table_may_hold", 256, || {
        const NEEDED: u64 = 600;
        assert_eq!(tables::raise_limit().soft, 256, "the limit is hard");
        let plan = tables::plan(NEEDED, 2);
        assert!(plan.private && plan.enough && plan.workers > 2, "{plan:?}");
        let workers = plan.workers;
        let each = NEEDED as usize / workers + 1;
        let bound = listener::bind(&Target::Tcp(([127, 0, 0, 1], 0).into()), 1, &ListenOptions::default())
            .expect("bind");
        let local = bound.local.clone();
        let fleet = Fleet::new(plan, &[], SocketOptions::default()).expect("fleet");
        let mut listener = bound.listeners.into_iter().next();
        // Every worker holds its share of one side; worker 0 accepts and hands the other side out.
        let (said, heard) = mpsc::channel();
        let mut ends = Vec::new();
        let threads: Vec<_> = (0..workers)
            .map(|worker| {
                let seat = fleet.seat(worker, Vec::from_iter(listener.take())).expect("seat");
                let (said, local) = (said.clone(), local.clone());
                let (end, until) = mpsc::channel::<()>();
                ends.push(end);
                start(seat, move |mut kernel, listeners| {
                    let mut held = Vec::new();
                    while held.len() < each {
                        held.push(kernel.connect(&local).expect("a table of its own has room"));
                        if let Some(listener) = listeners.first() {
                            // Keeps the queue short; these are closed at once.
                            drop(kernel.accept(listener));
                        }
                    }
                    said.send(held.len()).expect("say");
                    until.recv().expect_err("ends when the test does");
                    drop((held, listeners));
                })
            })
            .collect();
        drop(said);
        // All tables are full at the same time.
        let total: usize = (0..workers).map(|_| heard.recv().expect("every worker")).sum();
        assert!(total >= NEEDED as usize, "{total}");
        drop(ends);
        for thread in threads {
            thread.join().expect("no panic");
        }
    });
}

/// A message between the two workers of the next test.
#[derive(Debug)]
enum Message {
    Moved(u64, Parcel),
    End,
}

/// Takes parcels out of order and returns how many arrived.
fn take_parcels(mut kernel: Kernel, mut mailbox: Mailbox<Message>) -> u64 {
    let before = usable_descriptors();
    let (mut waiting, mut messages) = (Vec::new(), Vec::new());
    let (mut arrived, mut ended) = (0, false);
    while !ended {
        wait_for(&mut kernel, Token::MAIL, |_| true);
        mailbox.drain(100, &mut messages);
        for message in messages.drain(..) {
            match message {
                Message::Moved(number, parcel) => waiting.push((number, parcel)),
                Message::End => ended = true,
            }
        }
        // Newest first, and some of the oldest stay for the next turn: parcels overtake one another.
        let stay = if ended { 0 } else { waiting.len() / 4 };
        while waiting.len() > stay {
            let (number, parcel) = waiting.pop().expect("there is one");
            if number % 17 == 0 {
                drop(parcel);
                arrived += 1;
                continue;
            }
            let socket = kernel.unpack(parcel, Token(number)).expect("unpack");
            let mut buf = [0; 16];
            let count = kernel.recv(&socket, &mut buf).expect("its own bytes");
            assert_eq!(buf[..count], number.to_ne_bytes(), "this parcel held another connection");
            arrived += 1;
        }
    }
    // Dropped parcels are closed at the wake they cause; it may still be under way.
    wait_for_descriptors(&mut kernel, before);
    arrived
}

/// Goes on until as many descriptors are open as before: everything else has been closed.
fn wait_for_descriptors(kernel: &mut Kernel, before: usize) {
    let give_up = std::time::Instant::now() + std::time::Duration::from_secs(30);
    let mut events = Vec::new();
    while usable_descriptors() != before {
        assert!(std::time::Instant::now() < give_up, "{} open, {before} before", usable_descriptors());
        kernel.wait(&mut events, Some(std::time::Duration::from_millis(10))).expect("wait");
    }
}

#[test]
fn ten_thousand_parcels_out_of_order() {
    const PARCELS: u64 = 10_000;
    let fleet = private_fleet(2);
    let (address, mailbox) = mailbox::<Message>(fleet.wake(1), 1 << 20);
    let sender = start(fleet.seat(0, Vec::new()).expect("seat"), move |mut kernel, _| {
        let before = usable_descriptors();
        let mut refused = 0_u64;
        for number in 0..PARCELS {
            let (mut near, socket) = connected();
            near.write_all(&number.to_ne_bytes()).expect("write");
            kernel.register(&socket, Token(number)).expect("register");
            let mut socket = Some(socket);
            while let Some(again) = socket.take() {
                match kernel.pack(again, 1) {
                    Ok(parcel) => address.send(Message::Moved(number, parcel)).expect("room"),
                    Err(kept) => {
                        assert_eq!(kept.error.kind(), ErrorKind::WouldBlock);
                        refused += 1;
                        std::thread::yield_now();
                        socket = Some(kept.socket);
                    }
                }
            }
        }
        address.send(Message::End).expect("room");
        assert_eq!(usable_descriptors(), before, "the sender keeps nothing");
        refused
    });
    let receiver = start(fleet.seat(1, Vec::new()).expect("seat"), |kernel, _| take_parcels(kernel, mailbox));
    let refused = sender.join().expect("no panic");
    assert_eq!(receiver.join().expect("no panic"), PARCELS);
    println!("{refused} times the lane was full");
}

#[test]
fn a_full_lane_gives_the_connection_back_and_it_still_works() {
    let fleet = private_fleet(2);
    let exchange = fleet.exchange().clone();
    start(fleet.seat(0, Vec::new()).expect("seat"), move |mut kernel, _| {
        let mut parcels = Vec::new();
        let mut peers = Vec::new();
        let (mut near, kept) = loop {
            let (near, socket) = connected();
            kernel.register(&socket, Token(7)).expect("register");
            match kernel.pack(socket, 1) {
                Ok(parcel) => {
                    parcels.push(parcel);
                    peers.push(near);
                    assert!(parcels.len() < 100_000, "the lane has no bound");
                }
                Err(kept) => break (near, kept),
            }
        };
        assert_eq!(kept.error.kind(), ErrorKind::WouldBlock);
        println!("{} parcels fit into the lane", parcels.len());
        assert!(parcels.len() >= 100, "only {} fit", parcels.len());
        near.write_all(b"still here").expect("write");
        wait_for(&mut kernel, Token(7), |event| event.readable);
        assert_eq!(kernel.recv(&kept.socket, &mut [0; 16]).expect("recv"), 10);
        // The receiver, which has not even started, makes room by taking one.
        let mut inbox = exchange.inbox(1);
        inbox.unpack(parcels.pop().expect("one")).expect("unpack the newest: all others go to the shelf");
        kernel.pack(kept.socket, 1).expect("room again");
        drop(parcels);
        inbox.sweep();
        for peer in &mut peers {
            assert!(is_closed(peer));
        }
    })
    .join()
    .expect("no panic");
}

#[test]
fn the_sender_hears_nothing_of_a_connection_in_a_lane() {
    let fleet = private_fleet(2);
    // Lanes work within one table too.
    let exchange = fleet.exchange().clone();
    let mut first = Kernel::new(fleet.wake(0), exchange, 0, SocketOptions::default()).expect("kernel");
    let (mut near, socket) = connected();
    first.register(&socket, Token(7)).expect("register");
    wait_for(&mut first, Token(7), |event| event.writable);
    let parcel = first.pack(socket, 1).expect("packed");
    // The lane keeps it open; without an end of its registration it would still be watched here.
    near.write_all(b"for the next worker").expect("write");
    let mut events = Vec::new();
    first.wait(&mut events, Some(std::time::Duration::ZERO)).expect("wait");
    assert_eq!(events, []);
    drop(parcel);
}

#[test]
fn a_receiver_that_goes_closes_what_was_sent_to_it() {
    let fleet = private_fleet(2);
    let exchange = fleet.exchange();
    let (mut first, socket) = connected();
    let inbox = exchange.inbox(1);
    let parcel = exchange.pack(own(socket), 1).expect("packed");
    drop(inbox);
    assert!(is_closed(&mut first), "it lay in the lane");
    drop(parcel);
    let (mut second, socket) = connected();
    let (mut back, error) = exchange.pack(own(socket), 1).map(drop).expect_err("nobody is there");
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    second.write_all(b"alive").expect("write");
    let mut stream = UnixStream::from(std::mem::replace(&mut back, own(connected().1)));
    assert_eq!(stream.read(&mut [0; 8]).expect("read"), 5);
}

fn own(socket: Socket) -> OwnedFd {
    socket.as_fd().try_clone_to_owned().expect("clone")
}

#[test]
fn a_parcel_for_another_worker_is_refused_and_closed() {
    let fleet = private_fleet(2);
    let exchange = fleet.exchange();
    let (mut near, socket) = connected();
    let parcel = exchange.pack(own(socket), 1).expect("packed");
    let mut wrong = exchange.inbox(0);
    let mut right = exchange.inbox(1);
    assert_eq!(wrong.unpack(parcel).expect_err("not for this one").kind(), ErrorKind::InvalidInput);
    right.sweep();
    assert!(is_closed(&mut near));
    assert_eq!(
        exchange.pack(own(connected().1), 2).map(drop).expect_err("no such worker").1.kind(),
        ErrorKind::InvalidInput
    );
    // Workers of a fleet with one table have no lanes.
    let mut stranger = Exchange::shared().inbox(1);
    let parcel = exchange.pack(own(connected().1), 1).expect("packed");
    assert_eq!(stranger.unpack(parcel).expect_err("no lane").kind(), ErrorKind::InvalidInput);
}

#[test]
fn mail_wakes_across_tables_in_every_direction() {
    const ROUNDS: u64 = 2_000;
    let fleet = private_fleet(2);
    let (to_first, mut first) = mailbox::<u64>(fleet.wake(0), 16);
    let (to_second, mut second) = mailbox::<u64>(fleet.wake(1), 16);
    let (to_control, mut control) = mailbox::<u64>(fleet.control_wake(), 16);
    // The token travels control -> first -> second -> control.
    let relay = |mut kernel: Kernel, mailbox: &mut Mailbox<u64>, next: Address<u64>| {
        let mut messages = Vec::new();
        loop {
            wait_for(&mut kernel, Token::MAIL, |_| true);
            mailbox.drain(16, &mut messages);
            for round in messages.drain(..) {
                next.send(round + 1).expect("room");
                if round / 3 == ROUNDS - 1 {
                    return;
                }
            }
        }
    };
    let one = start(fleet.seat(0, Vec::new()).expect("seat"), move |kernel, _| {
        relay(kernel, &mut first, to_second);
    });
    let two = start(fleet.seat(1, Vec::new()).expect("seat"), move |kernel, _| {
        relay(kernel, &mut second, to_control);
    });
    let wake = fleet.control_wake();
    let mut messages = Vec::new();
    for round in 0..ROUNDS {
        to_first.send(round * 3).expect("room");
        while messages.is_empty() {
            let mut ready = [rustix::event::PollFd::new(&*wake, rustix::event::PollFlags::IN)];
            let limit = rustix::time::Timespec { tv_sec: 30, tv_nsec: 0 };
            assert_eq!(rustix::event::poll(&mut ready, Some(&limit)).expect("poll"), 1, "no wake came");
            wake.clear();
            control.drain(16, &mut messages);
        }
        assert_eq!(std::mem::take(&mut messages), [round * 3 + 2]);
    }
    one.join().expect("no panic");
    two.join().expect("no panic");
}

#[test]
fn what_is_not_kept_is_blocked_and_what_is_kept_works() {
    let (mut log, kept) = UnixStream::pair().expect("pair");
    let (mut other, blocked) = UnixStream::pair().expect("pair");
    let fleet = Fleet::new(private_plan(1), &[kept.as_fd()], SocketOptions::default()).expect("fleet");
    let (kept_number, blocked_number) = (kept.as_raw_fd(), blocked.as_raw_fd());
    start(fleet.seat(0, Vec::new()).expect("seat"), move |_kernel, _| {
        assert!(is_usable(kept_number) && !is_usable(blocked_number));
        // SAFETY: never dropped; the kept number belongs to the test's thread in its own table.
        let kept = std::mem::ManuallyDrop::new(unsafe { UnixStream::from_raw_fd(kept_number) });
        (&*kept).write_all(b"a line").expect("the log goes on");
        // SAFETY: as above.
        let blocked = std::mem::ManuallyDrop::new(unsafe { UnixStream::from_raw_fd(blocked_number) });
        let error = (&*blocked).write_all(b"stray").expect_err("not this thread's");
        assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::BADF.raw_os_error()));
        // The number stays taken: no connection of this worker can get it.
        let mut seen = Vec::new();
        for _ in 0..50 {
            seen.push(connected());
        }
        assert!(seen.iter().all(|(_, socket)| socket.as_fd().as_raw_fd() != blocked_number));
    })
    .join()
    .expect("no panic");
    assert_eq!(log.read(&mut [0; 16]).expect("read"), 6);
    drop(blocked);
    assert!(is_closed(&mut other), "the worker held no copy of it");
}

#[test]
fn a_listener_lives_in_its_worker_only() {
    let target = Target::Tcp(([127, 0, 0, 1], 0).into());
    let bound = listener::bind(&target, 2, &ListenOptions::default()).expect("bind");
    let Target::Tcp(local) = bound.local else { panic!("a TCP address") };
    let fleet = private_fleet(2);
    let (said, heard) = mpsc::channel();
    let mut ends = Vec::new();
    let mut threads = Vec::new();
    for (worker, listener) in bound.listeners.into_iter().enumerate() {
        let seat = fleet.seat(worker, vec![listener]).expect("seat");
        let said = said.clone();
        let (end, until) = mpsc::channel::<()>();
        ends.push(end);
        threads.push(start(seat, move |mut kernel, listeners| {
            kernel.watch_listener(&listeners[0], Token(1)).expect("watch");
            assert_eq!(listeners[0].local().expect("address"), Target::Tcp(local));
            said.send(()).expect("say");
            until.recv().expect_err("ends when the test says so");
            let mut accepted = 0;
            while kernel.accept(&listeners[0]).is_ok() {
                accepted += 1;
            }
            accepted
        }));
    }
    for _ in 0..2 {
        heard.recv().expect("both listen");
    }
    let clients: Vec<TcpStream> = (0..64).map(|_| TcpStream::connect(local).expect("connect")).collect();
    drop(ends);
    let accepted: Vec<i32> = threads.into_iter().map(|thread| thread.join().expect("no panic")).collect();
    assert_eq!(accepted.iter().sum::<i32>(), 64);
    assert!(accepted.iter().all(|count| *count > 0), "the kernel spreads them: {accepted:?}");
    drop(clients);
    // Both workers are gone, and nobody else kept a copy open.
    assert_eq!(TcpStream::connect(local).expect_err("nobody listens").kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn a_full_table_fails_to_unpack_and_closes() {
    with_limit("a_full_table_fails_to_unpack_and_closes", 128, || {
        let fleet = private_fleet(1);
        let exchange = fleet.exchange();
        let (mut lost, socket) = connected();
        let first = exchange.pack(own(socket), 0).expect("packed");
        let (mut near, socket) = connected();
        let second = exchange.pack(own(socket), 0).expect("packed");
        let mut inbox = exchange.inbox(0);
        let mut fill = Vec::new();
        while let Ok(file) = std::fs::File::open("/") {
            fill.push(file);
        }
        // The second is in hand first: the first one is taken out of the lane as well, and lost too.
        assert!(is_exhaustion(&inbox.unpack(second).expect_err("no number is free")));
        assert!(is_closed(&mut near));
        assert!(is_closed(&mut lost));
        fill.truncate(10);
        assert!(is_exhaustion(&inbox.unpack(first).expect_err("it was lost then")));
        let (_near, socket) = connected();
        let third = exchange.pack(own(socket), 0).expect("packed");
        inbox.unpack(third).expect("room again");
    });
}

#[test]
fn a_full_table_pauses_accepting_and_loses_nobody() {
    with_limit("a_full_table_pauses_accepting_and_loses_nobody", 64, || {
        const LISTENER: Token = Token(1);
        let mut kernel = Kernel::alone(SocketOptions::default()).expect("kernel");
        let target = Target::Tcp(([127, 0, 0, 1], 0).into());
        let bound = listener::bind(&target, 1, &ListenOptions::default()).expect("bind");
        kernel.watch_listener(&bound.listeners[0], LISTENER).expect("watch");
        let clients: Vec<Socket> = (0..40).map(|_| kernel.connect(&bound.local).expect("connect")).collect();
        let mut pause = AcceptPause::default();
        let mut accepted = 0;
        let mut open = Vec::new();
        let mut now_ms = 0;
        wait_for(&mut kernel, LISTENER, |event| event.readable);
        while accepted < clients.len() {
            match kernel.accept(&bound.listeners[0]) {
                Ok((socket, _)) => {
                    pause.end();
                    accepted += 1;
                    open.push(socket);
                }
                Err(error) => {
                    assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::MFILE.raw_os_error()));
                    assert!(is_exhaustion(&error));
                    now_ms = pause.begin(now_ms);
                    assert!(!pause.is_over(now_ms - 1) && pause.is_over(now_ms));
                    // Somebody leaves during the pause. No event says that others still wait to be accepted:
                    // the worker asks again by itself and finds them.
                    open.pop().expect("somebody was accepted");
                }
            }
        }
        assert!(pause.failures() > 0, "the limit was never met");
        let error = kernel.accept(&bound.listeners[0]).expect_err("nobody is left");
        assert!(error.kind() == ErrorKind::WouldBlock || is_exhaustion(&error), "{error}");
    });
}

#[test]
fn a_fleet_with_one_table_needs_no_lanes() {
    let plan = tables::plan(10, 2);
    assert!(!plan.private && plan.enough, "{plan:?}");
    let target = Target::Tcp(([127, 0, 0, 1], 0).into());
    let bound = listener::bind(&target, 1, &ListenOptions::default()).expect("bind");
    let Target::Tcp(local) = bound.local else { panic!("a TCP address") };
    let fleet = Fleet::new(plan, &[], SocketOptions::default()).expect("fleet");
    let (address, mut mailbox) = mailbox::<Parcel>(fleet.wake(1), 4);
    let mut seats = bound.listeners.into_iter();
    let one = start(fleet.seat(0, vec![seats.next().expect("one")]).expect("seat"), {
        move |mut kernel, listeners| {
            kernel.watch_listener(&listeners[0], Token(1)).expect("watch");
            wait_for(&mut kernel, Token(1), |event| event.readable);
            let (socket, _) = kernel.accept(&listeners[0]).expect("accept");
            kernel.register(&socket, Token(2)).expect("register");
            address.send(kernel.pack(socket, 1).expect("pack")).expect("room");
        }
    });
    let two = start(fleet.seat(1, Vec::new()).expect("seat"), move |mut kernel, _| {
        wait_for(&mut kernel, Token::MAIL, |_| true);
        let mut parcels = Vec::new();
        mailbox.drain(4, &mut parcels);
        let socket = kernel.unpack(parcels.pop().expect("one"), Token(3)).expect("unpack");
        wait_for(&mut kernel, Token(3), |event| event.writable);
        kernel.send(&socket, b"moved").expect("send");
    });
    let mut client = TcpStream::connect(local).expect("connect");
    let mut text = String::new();
    client.read_to_string(&mut text).expect("read");
    assert_eq!(text, "moved");
    one.join().expect("no panic");
    two.join().expect("no panic");
}

#[test]
fn a_wake_from_another_table_is_not_lost_when_nobody_waits_yet() {
    let wake = std::sync::Arc::new(KernelWake::new().expect("wake"));
    let other = std::sync::Arc::clone(&wake);
    std::thread::spawn(move || other.wake()).join().expect("no panic");
    let mut kernel = Kernel::new(wake, Exchange::shared(), 0, SocketOptions::default()).expect("kernel");
    wait_for(&mut kernel, Token::MAIL, |event| event.readable);
    let mut events = Vec::new();
    let outcome: io::Result<()> = kernel.wait(&mut events, Some(std::time::Duration::ZERO));
    outcome.expect("wait");
    assert_eq!(events, []);
}
