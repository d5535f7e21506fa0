//! `fonds`, the command: the one-process host and the commands that talk to it or to a service elsewhere.
//!
//! `args` is the shape of the command line, `commands` has one module a command, `client` talks to the
//! API, `host` is everything that runs in one process on one machine.

pub mod args;
pub mod assembly;
pub mod client;
pub mod commands;
pub mod demo;
pub mod failure;
pub mod home;
pub mod host;
pub mod output;
pub mod progress;
pub mod units;
pub mod user;
