//! The program: parses, runs, exits with the documented code.

use clap::Parser;
use fonds_cli::args::Cli;
use fonds_cli::commands;
use fonds_cli::failure::Failure;
use fonds_cli::output::eprint_line;
use std::process::ExitCode;

fn main() -> ExitCode {
    // clap itself exits with 2 for wrong usage and 0 for help.
    let cli = Cli::parse();
    let json = cli.common.json;
    match start(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if json {
                eprint_line(&failure.json());
            } else {
                eprint_line(&failure.to_string());
            }
            ExitCode::from(failure.exit as u8)
        }
    }
}

fn start(cli: Cli) -> Result<(), Failure> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(|e| Failure::io("the runtime", &e))?;
    let result = runtime.block_on(commands::run(cli));
    // Not waiting for what still blocks (a read of standard input): the answer is given.
    runtime.shutdown_background();
    result
}
