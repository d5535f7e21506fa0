//! The command line. What a flag means to the service is in `add.rs`; here is only its shape.

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Archives web pages for good.
#[derive(Debug, Parser)]
#[command(name = "fonds", version, propagate_version = true, disable_help_subcommand = false)]
#[command(
    after_help = "Exit codes: 0 done, 1 something failed (and is named), 2 wrong usage, 3 cannot reach the service, \
130 interrupted (the work goes on in the service).
FONDS_URL and FONDS_TOKEN name another service than the one of this data folder; FONDS_HOME names the data folder."
)]
pub struct Cli {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub command: Command,
}

/// Understood by every command.
#[derive(Debug, Args)]
pub struct Common {
    /// Data folder [default: FONDS_HOME, else $XDG_DATA_HOME/fonds, else ~/.local/share/fonds; root: /var/lib/fonds]
    #[arg(long, global = true, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Print JSON lines instead of text
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the archive on this machine: database, functions, API
    Up(Up),
    /// End the archive that runs for the data folder
    Down,
    /// What runs and where, and how much it holds
    Status,
    /// Archive URLs
    Add(Add),
    /// Look at a crawl, or pause, resume or cancel it
    #[command(subcommand)]
    Crawl(Crawl),
    /// Newest snapshots, or crawls
    List(List),
    /// Full-text search
    Search(Search),
    /// One snapshot or crawl with everything known about it
    Show(Id),
    /// Open a file of a snapshot (its single-file page, screenshot, ...) or print its address
    Open(Open),
    /// Write a snapshot or a whole crawl as one WACZ file
    Export(Export),
    /// Change the tags of a snapshot or crawl
    Tag(Tag),
    /// Delete snapshots or crawls
    Rm(Rm),
    /// What the service is working on
    Tasks(Tasks),
    /// Run the recovery sweep now
    Sweep(Sweep),
    /// API tokens
    #[command(subcommand)]
    Token(Token),
    /// Name what is missing on this machine and how to get it
    Doctor,
    /// Bring a database to this version
    Migrate(Migrate),
    /// Archive the bundled site and show what was kept; leaves nothing running
    Demo(Demo),
}

#[derive(Debug, Args)]
pub struct Up {
    /// Port of the API on 127.0.0.1 [default: 8710 or the next that is free]
    #[arg(long, value_name = "N")]
    pub port: Option<u16>,
    /// Return when it is ready and leave it running
    #[arg(long)]
    pub detach: bool,
    /// Let pages on private and loopback addresses be archived
    #[arg(long)]
    pub allow_private: bool,
    /// Use this PostgreSQL database instead of a private one
    #[arg(long, value_name = "URL", env = "FONDS_DATABASE_URL", hide_env_values = true)]
    pub database_url: Option<String>,
    /// Keep blobs here: a folder or s3://bucket/prefix [default: in the data folder]
    #[arg(long, value_name = "DIR|s3://BUCKET/PREFIX", env = "FONDS_BLOBS")]
    pub blobs: Option<String>,
    /// Started by another fonds: leave its terminal
    #[arg(long, hide = true)]
    pub detached: bool,
}

/// How robots.txt is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Robots {
    /// Not read
    Off,
    /// Obeyed, with its crawl delay
    Obey,
    /// Read and reported, not obeyed
    Report,
}

/// Which links of a page are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scope {
    /// Any http or https URL
    Any,
    /// The registrable domain of the page
    Domain,
    /// The same host and port
    Host,
    /// Below the folder of the first URL
    Prefix,
}

#[derive(Debug, Args)]
pub struct Add {
    /// URLs; @FILE reads a file (bookmarks, feed, sitemap, JSON, text), - reads standard input
    #[arg(required = true, value_name = "URL|@FILE|-")]
    pub sources: Vec<String>,
    /// Follow links this far
    #[arg(short = 'd', long, default_value_t = 0, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=64))]
    pub depth: u16,
    /// Archive at most so many pages
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_urls: Option<u64>,
    /// Store at most so much (500k, 45mb, 2g)
    #[arg(long, value_name = "SIZE", value_parser = crate::units::parse_size)]
    pub max_size: Option<u64>,
    /// Go on for at most so long (90s, 30m, 2h)
    #[arg(long, value_name = "TIME", value_parser = crate::units::parse_seconds)]
    pub timeout: Option<u32>,
    /// Tag the pages; may be repeated or a list with commas
    #[arg(short = 't', long, value_name = "TAG", value_delimiter = ',')]
    pub tag: Vec<String>,
    /// Call the crawl something
    #[arg(long, default_value = "", hide_default_value = true)]
    pub label: String,
    /// Skip pages archived before
    #[arg(long)]
    pub only_new: bool,
    /// Only these outputs (screenshot,pdf,warc,...)
    #[arg(short = 'e', long, value_name = "NAME", value_delimiter = ',')]
    pub extract: Vec<String>,
    /// Follow only URLs that match: a domain or a regular expression; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub allow: Vec<String>,
    /// Never follow URLs that match; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub deny: Vec<String>,
    /// Which links are followed
    #[arg(long, value_enum, default_value = "host")]
    pub scope: Scope,
    /// How robots.txt is taken
    #[arg(long, value_enum, default_value = "off")]
    pub robots: Robots,
    /// Format of files and standard input [default: told from their content]
    #[arg(long, value_name = "FORMAT", value_parser = ["auto", "text", "netscape", "rss", "sitemap", "json", "jsonl", "csv", "html", "opml"])]
    pub format: Option<String>,
    /// Wait until everything is archived and show it
    #[arg(short = 'w', long)]
    pub wait: bool,
    /// Let private addresses be archived, if this command starts the service (see `fonds up`)
    #[arg(long)]
    pub allow_private: bool,
}

#[derive(Debug, Subcommand)]
pub enum Crawl {
    /// Newest crawls
    List(Paging),
    /// Show a crawl
    Show(Id),
    /// Start nothing new; what runs ends its stage
    Pause(Id),
    /// Go on with a paused crawl
    Resume(Id),
    /// End a crawl; what is archived stays
    Cancel(Id),
    /// Show progress until a crawl is over
    Wait(Id),
}

#[derive(Debug, Args)]
pub struct Id {
    /// Id of a snapshot or crawl, or its first eight or more characters
    pub id: String,
}

#[derive(Debug, Args)]
pub struct Paging {
    /// Show at most so many
    #[arg(short = 'n', long, default_value_t = 25, value_name = "N")]
    pub limit: usize,
}

#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    pub paging: Paging,
    /// Of this crawl
    #[arg(long, value_name = "ID")]
    pub crawl: Option<String>,
    /// With this tag
    #[arg(short = 't', long)]
    pub tag: Option<String>,
    /// Of this domain and those below it
    #[arg(long)]
    pub domain: Option<String>,
    /// Of exactly this URL
    #[arg(long)]
    pub url: Option<String>,
    /// Whose URL begins with this
    #[arg(long, value_name = "PREFIX")]
    pub url_prefix: Option<String>,
    /// Whose page could not be archived
    #[arg(long)]
    pub failed: bool,
    /// queued, started, paused or sealed
    #[arg(long)]
    pub status: Option<String>,
}

#[derive(Debug, Args)]
pub struct Search {
    /// Words, "phrases", or, -not, begin*
    #[arg(required = true)]
    pub query: Vec<String>,
    /// Show at most so many
    #[arg(short = 'n', long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=100))]
    pub limit: u16,
    /// With this tag
    #[arg(short = 't', long)]
    pub tag: Option<String>,
    /// Of this domain and those below it
    #[arg(long)]
    pub domain: Option<String>,
    /// Of this crawl
    #[arg(long, value_name = "ID")]
    pub crawl: Option<String>,
}

#[derive(Debug, Args)]
pub struct Open {
    /// Id of a snapshot, or its first eight or more characters
    pub id: String,
    /// Which output (singlefile, screenshot, pdf, readability, ...) [default: the first of these that there is]
    pub output: Option<String>,
    /// Only print the address
    #[arg(long)]
    pub print: bool,
}

#[derive(Debug, Args)]
pub struct Export {
    /// Id of a snapshot or crawl, or its first eight or more characters
    pub id: String,
    /// As a WACZ file, which any replay tool opens
    #[arg(long, required = true)]
    pub wacz: bool,
    /// Where to write it; - is standard output [default: a name from the page's host and date]
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Tag {
    /// Id of a snapshot or crawl, or its first eight or more characters
    pub id: String,
    /// Add a tag; may be repeated or a list with commas
    #[arg(short = 'a', long, value_name = "TAG", value_delimiter = ',', required_unless_present = "remove")]
    pub add: Vec<String>,
    /// Remove a tag; may be repeated or a list with commas
    #[arg(short = 'r', long, value_name = "TAG", value_delimiter = ',')]
    pub remove: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Rm {
    /// Ids of snapshots or crawls, or their first eight or more characters
    #[arg(required = true)]
    pub ids: Vec<String>,
    /// Do not ask
    #[arg(short = 'y', long)]
    pub yes: bool,
}

#[derive(Debug, Args)]
pub struct Tasks {
    #[command(flatten)]
    pub paging: Paging,
    /// running, queued, succeeded, failed, cancelled, discarded or all
    #[arg(long, default_value = "running")]
    pub status: String,
    /// Of this kind (snapshot, crawl-setup, ...)
    #[arg(long)]
    pub kind: Option<String>,
    /// Of this crawl
    #[arg(long, value_name = "ID")]
    pub crawl: Option<String>,
}

#[derive(Debug, Args)]
pub struct Sweep {
    /// Once, and wait for its end
    #[arg(long, required = true)]
    pub once: bool,
}

#[derive(Debug, Subcommand)]
pub enum Token {
    /// Make a token; its secret is shown this once
    Create {
        /// What to call it
        name: String,
        /// read, write (includes read) or admin (includes both)
        #[arg(long, default_value = "write", value_parser = ["read", "write", "admin"])]
        scope: String,
        /// Ends after this time (90d, 2w, 1y)
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
    },
    /// List tokens
    List,
    /// Revoke a token
    Revoke {
        /// Its id, or the first eight or more characters
        id: String,
    },
}

#[derive(Debug, Args)]
pub struct Migrate {
    /// The database [default: that of the running service]
    #[arg(long, value_name = "URL", env = "FONDS_DATABASE_URL", hide_env_values = true)]
    pub database_url: Option<String>,
}

#[derive(Debug, Args)]
pub struct Demo {
    /// Leave the service and what was archived for a look
    #[arg(long, action = ArgAction::SetTrue)]
    pub keep: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(std::iter::once("fonds").chain(line.split_whitespace()))
    }

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn documented_lines_are_understood() {
        for line in [
            "up --data /srv/fonds --port 9000 --detach --allow-private",
            "up --database-url postgres://h/db --blobs s3://bucket/prefix",
            "down",
            "status --json",
            "add https://example.org/ -d 2 --max-urls 10 --max-size 45mb --timeout 30m --tag a,b --label x --only-new",
            "add @bookmarks.html --extract screenshot,pdf --allow example.org --deny .*\\.zip --scope domain --robots obey",
            "add - --format jsonl --wait --json --allow-private",
            "crawl pause 01234567",
            "crawl wait 01234567",
            "list -n 5 --tag a --failed",
            "search harbour lamp -n 3",
            "show 01234567",
            "open 01234567 screenshot --print",
            "export 01234567 --wacz -o out.wacz",
            "tag 01234567 --add a --remove b",
            "rm 01234567 89abcdef --yes",
            "tasks --status all",
            "sweep --once",
            "token create laptop --scope read --expires 90d",
            "token revoke 01234567",
            "doctor",
            "migrate --database-url postgres://h/db",
            "demo --keep",
        ] {
            if let Err(error) = parse(line) {
                panic!("{line}: {error}");
            }
        }
    }

    #[test]
    fn wrong_lines_are_refused() {
        for line in [
            "",
            "add",
            "add https://example.org/ -d 65",
            "add https://example.org/ --max-urls 0",
            "add https://example.org/ --max-size lots",
            "add https://example.org/ --robots maybe",
            "add https://example.org/ --format docx",
            "export 01234567",
            "crawl stop 01234567",
            "token create x --scope root",
            "tag 01234567",
            "up --port 70000",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn lists_may_be_split_either_way() {
        let Command::Add(add) = parse("add u -t a,b -t c -e pdf,warc").expect("parses").command else {
            panic!("not add")
        };
        assert_eq!(
            (add.tag, add.extract),
            (vec!["a".into(), "b".into(), "c".into()], vec!["pdf".into(), "warc".into()])
        );
    }
}
