//! `weir top`: its failures as exit codes.

use super::Failure;
use weir_top::{Args, Failure as Ended};

/// Shows the figures of a running Weir.
///
/// # Errors
/// The arguments are wrong, Weir does not answer, or there is no terminal.
pub fn run(args: &Args) -> Result<(), Failure> {
    weir_top::run(args).map_err(|ended| match ended {
        Ended::Usage(text) => Failure::Usage(text),
        Ended::Runtime(text) => Failure::Runtime(anyhow::anyhow!(text)),
    })
}
