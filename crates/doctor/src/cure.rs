//! Cures: what to change, and the same change in the format of each place where it can be made.
//!
//! Owns: which kernel settings a container may set for itself, and the format of each place's text. Must not
//! do: apply anything.

use crate::numbers::bytes;
use serde::Serialize;
use std::collections::BTreeMap;

/// Something to change.
#[derive(Debug, Clone, PartialEq)]
pub enum Cure {
    /// A kernel setting.
    Sysctl {
        /// Its name with dots.
        key: &'static str,
        /// The value to give it.
        value: String,
    },
    /// Open files of a process.
    OpenFiles(u64),
    /// Threads and processes of a user.
    Processes(u64),
    /// Threads and processes of a unit or container.
    Tasks(u64),
    /// Memory of a unit or container, in bytes.
    Memory(u64),
    /// Cores of a unit or container.
    Cores(u64),
    /// A line for the file of one program.
    Line {
        /// Which.
        place: Place,
        /// The line.
        text: String,
    },
    /// What only a person can do.
    Advice(String),
}

/// Where a text goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Place {
    /// Kernel settings that survive a restart.
    #[serde(rename = "sysctl.d")]
    Sysctl,
    /// Limits of login sessions.
    #[serde(rename = "limits.d")]
    Limits,
    /// A drop-in for the unit.
    #[serde(rename = "systemd")]
    Systemd,
    /// Options of `docker run`.
    #[serde(rename = "docker")]
    Docker,
    /// Pod specification.
    #[serde(rename = "kubernetes")]
    Kubernetes,
    /// weir.toml.
    #[serde(rename = "weir.toml")]
    Weir,
    /// postgresql.conf.
    #[serde(rename = "postgresql.conf")]
    Postgres,
    /// my.cnf.
    #[serde(rename = "my.cnf")]
    Mysql,
    /// Sentences.
    #[serde(rename = "advice")]
    Advice,
}

impl Place {
    /// All of them, in the order of the output.
    pub const ALL: [Place; 9] = [
        Place::Sysctl,
        Place::Limits,
        Place::Systemd,
        Place::Docker,
        Place::Kubernetes,
        Place::Weir,
        Place::Postgres,
        Place::Mysql,
        Place::Advice,
    ];

    /// The word on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Place::Sysctl => "sysctl.d",
            Place::Limits => "limits.d",
            Place::Systemd => "systemd",
            Place::Docker => "docker",
            Place::Kubernetes => "kubernetes",
            Place::Weir => "weir.toml",
            Place::Postgres => "postgresql.conf",
            Place::Mysql => "my.cnf",
            Place::Advice => "advice",
        }
    }

    /// The place of a word.
    pub fn named(name: &str) -> Option<Place> {
        Place::ALL.into_iter().find(|place| place.name() == name)
    }

    /// The file the text goes into and what to do after.
    pub fn file(self, unit: &str) -> String {
        match self {
            Place::Sysctl => "/etc/sysctl.d/90-weir.conf, then: sysctl --system".to_owned(),
            Place::Limits => "/etc/security/limits.d/90-weir.conf, then: log in again".to_owned(),
            Place::Systemd => {
                format!(
                    "/etc/systemd/system/{unit}.d/90-limits.conf, then: systemctl daemon-reload && systemctl restart {unit}"
                )
            }
            Place::Docker => "options of docker run".to_owned(),
            Place::Kubernetes => "the pod's specification".to_owned(),
            Place::Weir => "weir.toml, or --set SECTION.KEY=VALUE".to_owned(),
            Place::Postgres => "postgresql.conf, then restart or pg_reload_conf()".to_owned(),
            Place::Mysql => {
                "my.cnf under [mysqld], then restart (or SET GLOBAL where it is dynamic)".to_owned()
            }
            Place::Advice => "to be done by hand".to_owned(),
        }
    }
}

/// Who may set a kernel setting in a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Each container has its own; a pod may set it.
    PodSafe,
    /// Each container has its own; a pod may only where the kubelet allows it.
    PodUnsafe,
    /// One for the whole machine.
    Machine,
}

/// Kernel settings that belong to a network namespace, as far as Weir proposes them (kernel:
/// Documentation/admin-guide/sysctl/net.rst, networking/ip-sysctl.rst; Kubernetes: "Using sysctls in a
/// Kubernetes cluster", list of safe sysctls as of 1.32).
fn scope(key: &str) -> Scope {
    match key {
        "net.ipv4.ip_local_port_range"
        | "net.ipv4.ip_local_reserved_ports"
        | "net.ipv4.tcp_syncookies"
        | "net.ipv4.tcp_keepalive_time"
        | "net.ipv4.tcp_fin_timeout"
        | "net.ipv4.tcp_rmem"
        | "net.ipv4.tcp_wmem" => Scope::PodSafe,
        "net.core.somaxconn"
        | "net.ipv4.tcp_max_syn_backlog"
        | "net.ipv4.tcp_tw_reuse"
        | "net.ipv4.tcp_max_tw_buckets"
        | "net.ipv4.tcp_abort_on_overflow" => Scope::PodUnsafe,
        _ => Scope::Machine,
    }
}

impl Cure {
    /// A kernel setting.
    pub fn sysctl(key: &'static str, value: impl ToString) -> Cure {
        Cure::Sysctl { key, value: value.to_string() }
    }

    /// A line of weir.toml as `section.key = value`.
    pub fn weir(text: impl Into<String>) -> Cure {
        Cure::Line { place: Place::Weir, text: text.into() }
    }

    /// What only a person can do.
    pub fn advice(text: impl Into<String>) -> Cure {
        Cure::Advice(text.into())
    }

    /// The change in the words of each place.
    pub fn texts(&self) -> Vec<(Place, String)> {
        match self {
            Cure::Sysctl { key, value } => {
                let mut texts = vec![(Place::Sysctl, format!("{key} = {value}"))];
                match scope(key) {
                    Scope::PodSafe | Scope::PodUnsafe => {
                        texts.push((Place::Docker, format!("--sysctl {key}=\"{value}\"")));
                        texts.push((Place::Kubernetes, pod_sysctl(key, value)));
                    }
                    Scope::Machine => texts.push((
                        Place::Kubernetes,
                        format!("# on the node, no pod can set it: sysctl -w {key}=\"{value}\""),
                    )),
                }
                texts
            }
            Cure::OpenFiles(n) => vec![
                (
                    Place::Limits,
                    format!(
                        "* soft nofile {n}\n* hard nofile {n}\nroot soft nofile {n}\nroot hard nofile {n}"
                    ),
                ),
                (Place::Systemd, format!("LimitNOFILE={n}")),
                (Place::Docker, format!("--ulimit nofile={n}:{n}")),
                (
                    Place::Kubernetes,
                    format!(
                        "# on the node, a pod has no setting for it: LimitNOFILE={n} in containerd.service"
                    ),
                ),
            ],
            Cure::Processes(n) => vec![
                (Place::Limits, format!("* soft nproc {n}\n* hard nproc {n}")),
                (Place::Systemd, format!("LimitNPROC={n}")),
                (Place::Docker, format!("--ulimit nproc={n}:{n}")),
            ],
            Cure::Tasks(n) => vec![
                (Place::Systemd, format!("TasksMax={n}")),
                (Place::Docker, format!("--pids-limit {n}")),
                (
                    Place::Kubernetes,
                    format!("# on the node: podPidsLimit: {n} in the kubelet's configuration"),
                ),
            ],
            Cure::Memory(n) => {
                let mb = n.div_ceil(1 << 20);
                vec![
                    (Place::Systemd, format!("MemoryMax={mb}M")),
                    (Place::Docker, format!("--memory {mb}m")),
                    (Place::Kubernetes, format!("limits.memory: {mb}Mi")),
                ]
            }
            Cure::Cores(n) => vec![
                (Place::Systemd, format!("CPUQuota={}%", n.saturating_mul(100))),
                (Place::Docker, format!("--cpus {n}")),
                (Place::Kubernetes, format!("limits.cpu: \"{n}\"")),
            ],
            Cure::Line { place, text } => vec![(*place, text.clone())],
            Cure::Advice(text) => vec![(Place::Advice, text.clone())],
        }
    }

    /// The change in a few words, for one line.
    pub fn short(&self) -> String {
        match self {
            Cure::Sysctl { key, value } => format!("{key} = {value}"),
            Cure::OpenFiles(n) => format!("open files {n} (limits.d, LimitNOFILE, --ulimit nofile)"),
            Cure::Processes(n) => format!("processes of the user {n} (limits.d, LimitNPROC, --ulimit nproc)"),
            Cure::Tasks(n) => format!("tasks {n} (TasksMax, --pids-limit, podPidsLimit)"),
            Cure::Memory(n) => format!("memory {} (MemoryMax, --memory, limits.memory)", bytes(*n)),
            Cure::Cores(n) => format!("{n} cores (CPUQuota, --cpus, limits.cpu)"),
            Cure::Line { place, text } => format!("{text} ({})", place.name()),
            Cure::Advice(text) => text.clone(),
        }
    }
}

fn pod_sysctl(key: &str, value: &str) -> String {
    let remark = if scope(key) == Scope::PodUnsafe {
        "   # unsafe sysctl: kubelet --allowed-unsafe-sysctls must name it"
    } else {
        ""
    };
    format!("sysctl {key}: \"{value}\"{remark}")
}

/// One text to copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sheet {
    /// Which place.
    pub place: Place,
    /// Where it goes and what to do after.
    pub file: String,
    /// The text.
    pub text: String,
}

/// All cures in one text for each place. Of two values for one setting the larger stays.
pub fn sheets<'a>(cures: impl IntoIterator<Item = &'a Cure>, unit: &str) -> Vec<Sheet> {
    let mut lines: BTreeMap<Place, Vec<String>> = BTreeMap::new();
    for cure in strongest(cures) {
        for (place, text) in cure.texts() {
            let of_place = lines.entry(place).or_default();
            if !of_place.contains(&text) {
                of_place.push(text);
            }
        }
    }
    let sheet = |(place, lines): (Place, Vec<String>)| Sheet {
        place,
        file: place.file(unit),
        text: join(place, &lines),
    };
    lines.into_iter().map(sheet).collect()
}

/// One cure of each kind and key.
fn strongest<'a>(cures: impl IntoIterator<Item = &'a Cure>) -> Vec<Cure> {
    let mut kept: Vec<Cure> = Vec::new();
    for cure in cures {
        let same = kept.iter_mut().find_map(|other| merged(other, cure).map(|merged| (other, merged)));
        match same {
            Some((other, merged)) => *other = merged,
            None => kept.push(cure.clone()),
        }
    }
    kept
}

/// One cure for two of the same kind; `None`: they are of different kinds.
fn merged(a: &Cure, b: &Cure) -> Option<Cure> {
    match (a, b) {
        (Cure::Sysctl { key, value }, Cure::Sysctl { key: other, value: second }) if key == other => {
            let larger = match (value.parse::<u64>(), second.parse::<u64>()) {
                (Ok(x), Ok(y)) if y > x => second,
                _ => value,
            };
            Some(Cure::sysctl(key, larger))
        }
        (Cure::OpenFiles(x), Cure::OpenFiles(y)) => Some(Cure::OpenFiles(*x.max(y))),
        (Cure::Processes(x), Cure::Processes(y)) => Some(Cure::Processes(*x.max(y))),
        (Cure::Tasks(x), Cure::Tasks(y)) => Some(Cure::Tasks(*x.max(y))),
        (Cure::Memory(x), Cure::Memory(y)) => Some(Cure::Memory(*x.max(y))),
        (Cure::Cores(x), Cure::Cores(y)) => Some(Cure::Cores(*x.max(y))),
        (a, b) if a == b => Some(a.clone()),
        _ => None,
    }
}

fn join(place: Place, lines: &[String]) -> String {
    match place {
        Place::Systemd => format!("[Service]\n{}", lines.join("\n")),
        Place::Docker => lines.join(" \\\n"),
        Place::Mysql => format!("[mysqld]\n{}", lines.join("\n")),
        Place::Kubernetes => pod(lines),
        Place::Sysctl | Place::Limits | Place::Weir | Place::Postgres | Place::Advice => lines.join("\n"),
    }
}

/// A fragment of a pod's specification, and remarks for what is the node's.
fn pod(lines: &[String]) -> String {
    let mut out = Vec::new();
    let sysctls: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix("sysctl ")).collect();
    if !sysctls.is_empty() {
        out.push("spec:\n  securityContext:\n    sysctls:".to_owned());
        for sysctl in sysctls {
            if let Some((key, value)) = sysctl.split_once(": ") {
                out.push(format!("      - name: {key}\n        value: {value}"));
            }
        }
    }
    let limits: Vec<_> = lines.iter().filter_map(|line| line.strip_prefix("limits.")).collect();
    if !limits.is_empty() {
        let head = if out.is_empty() { "spec:\n" } else { "" };
        out.push(format!("{head}  containers:\n    - name: weir\n      resources:\n        limits:"));
        out.extend(limits.iter().map(|limit| format!("          {limit}")));
    }
    out.extend(lines.iter().filter(|line| line.starts_with('#')).cloned());
    out.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet(cures: &[Cure], place: Place) -> String {
        sheets(cures, "weir.service").into_iter().find(|sheet| sheet.place == place).unwrap().text
    }

    #[test]
    fn a_setting_of_the_namespace_is_for_containers_too() {
        let cures = [
            Cure::sysctl("net.core.somaxconn", 32_768),
            Cure::sysctl("net.ipv4.ip_local_port_range", "4000 65000"),
            Cure::sysctl("fs.file-max", 4_000_000),
            Cure::Memory(3 << 30),
            Cure::sysctl("net.core.somaxconn", 4_096),
        ];
        assert_eq!(
            sheet(&cures, Place::Sysctl),
            "net.core.somaxconn = 32768\nnet.ipv4.ip_local_port_range = 4000 65000\nfs.file-max = 4000000"
        );
        assert_eq!(
            sheet(&cures, Place::Docker),
            "--sysctl net.core.somaxconn=\"32768\" \\\n--sysctl net.ipv4.ip_local_port_range=\"4000 65000\" \\\n--memory 3072m"
        );
        assert_eq!(
            sheet(&cures, Place::Kubernetes),
            "spec:\n  securityContext:\n    sysctls:\n      - name: net.core.somaxconn\n        value: \"32768\"   # unsafe \
             sysctl: kubelet --allowed-unsafe-sysctls must name it\n      - name: net.ipv4.ip_local_port_range\n        \
             value: \"4000 65000\"\n  containers:\n    - name: weir\n      resources:\n        limits:\n          memory: \
             3072Mi\n# on the node, no pod can set it: sysctl -w fs.file-max=\"4000000\""
        );
        assert_eq!(sheet(&cures, Place::Systemd), "[Service]\nMemoryMax=3072M");
    }

    #[test]
    fn places_have_one_name() {
        for place in Place::ALL {
            assert_eq!(Place::named(place.name()), Some(place));
            assert_eq!(serde_json::to_value(place).unwrap(), place.name());
        }
    }
}
