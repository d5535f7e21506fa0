//! One module a command or family of commands. Each takes what was parsed and returns when it is done.

pub mod add;
pub mod crawl;
pub mod demo;
pub mod doctor;
pub mod export;
pub mod host;
pub mod list;
pub mod maintain;
pub mod open;
pub mod report;
pub mod show;
pub mod wait;

use crate::args::{Cli, Command};
use crate::failure::Failure;
use crate::home::Home;
use crate::output::Out;

/// What every command is given.
#[derive(Debug, Clone)]
pub struct Context {
    /// The data folder.
    pub home: Home,
    /// Where the answer goes.
    pub out: Out,
}

/// Runs the command.
///
/// # Errors
/// What the process exits with.
pub async fn run(cli: Cli) -> Result<(), Failure> {
    let cx = Context { home: Home::resolve(cli.common.data.as_deref())?, out: Out { json: cli.common.json } };
    // Boxed, because the largest of these futures would otherwise be the size of all.
    match cli.command {
        Command::Up(args) => Box::pin(host::up(&cx, args)).await,
        Command::Down => Box::pin(host::down(&cx)).await,
        Command::Status => Box::pin(host::status(&cx)).await,
        Command::Add(args) => Box::pin(add::add(&cx, args)).await,
        Command::Crawl(args) => Box::pin(crawl::crawl(&cx, args)).await,
        Command::List(args) => Box::pin(list::list(&cx, args)).await,
        Command::Search(args) => Box::pin(list::search(&cx, args)).await,
        Command::Show(args) => Box::pin(show::show(&cx, &args.id)).await,
        Command::Open(args) => Box::pin(open::open(&cx, args)).await,
        Command::Export(args) => Box::pin(export::export(&cx, args)).await,
        Command::Tag(args) => Box::pin(maintain::tag(&cx, args)).await,
        Command::Rm(args) => Box::pin(maintain::rm(&cx, args)).await,
        Command::Tasks(args) => Box::pin(list::tasks(&cx, args)).await,
        Command::Sweep(_) => Box::pin(maintain::sweep(&cx)).await,
        Command::Token(args) => Box::pin(maintain::token(&cx, args)).await,
        Command::Doctor => Box::pin(doctor::doctor(&cx)).await,
        Command::Migrate(args) => Box::pin(maintain::migrate(&cx, args)).await,
        Command::Demo(args) => Box::pin(demo::demo(&cx, args)).await,
    }
}
