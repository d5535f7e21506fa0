//! `doctor`: names what is missing on this machine and how to get it.

use super::Context;
use crate::failure::Failure;
use crate::home::Home;
use crate::host::cluster::{OLDEST, choose, installed, major_of};
use crate::host::server::{DEFAULT_PORT, listen};
use crate::output::clean;
use crate::units::size;
use crate::user::{BROWSER_USER, POSTGRES_USER, RunAs, am_root, for_browser, lookup};
use rustix::process::{Resource, getrlimit};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;

/// Least free space that lets a few crawls end.
const SPACE: u64 = 2 * 1024 * 1024 * 1024;
/// Fewer open files than this starve a browser.
const FILES: u64 = 4096;
/// The names a browser may have, the best first. The root script knows the same.
const BROWSERS: [&str; 6] = [
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
    "headless_shell",
];

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Good,
    /// Works, but less well or not everything.
    Warning,
    /// fonds cannot run like this.
    Bad,
}

/// One line of the doctor's.
#[derive(Debug, Clone)]
struct Check {
    name: &'static str,
    verdict: Verdict,
    found: String,
    advice: String,
}

fn good(name: &'static str, found: impl Into<String>) -> Check {
    Check { name, verdict: Verdict::Good, found: found.into(), advice: String::new() }
}

fn warning(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Check {
    Check { name, verdict: Verdict::Warning, found: found.into(), advice: advice.into() }
}

fn bad(name: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Check {
    Check { name, verdict: Verdict::Bad, found: found.into(), advice: advice.into() }
}

/// Looks at everything and says what it found.
///
/// # Errors
/// `NOT_READY` when something fonds cannot do without is missing.
pub async fn doctor(cx: &Context) -> Result<(), Failure> {
    let mut checks = vec![postgres(&cx.home)];
    checks.extend(postgres_user());
    checks.extend(browser().await);
    checks.extend(fonts());
    checks.push(space(&cx.home));
    checks.push(files());
    checks.push(core_dumps());
    checks.push(port(&cx.home).await);
    checks.push(service(&cx.home));
    let mut missing = 0;
    for check in &checks {
        let word = match check.verdict {
            Verdict::Good => "ok",
            Verdict::Warning => "warning",
            Verdict::Bad => "missing",
        };
        missing += usize::from(check.verdict == Verdict::Bad);
        cx.out.value(&json!({"check": check.name, "status": word, "found": check.found, "advice": check.advice}));
        cx.out.line(format_args!("{word:<8} {:<12} {}", check.name, check.found));
        if !check.advice.is_empty() {
            cx.out.line(format_args!("{:21} {}", "", check.advice));
        }
    }
    if missing > 0 {
        return Err(Failure::new(
            "NOT_READY",
            format!("{missing} of {} checks name something that fonds cannot do without", checks.len()),
        )
        .advise("On Debian and Ubuntu, `./fonds setup` installs all of it."));
    }
    Ok(())
}

fn postgres(home: &Home) -> Check {
    let all = installed();
    match choose(&all, major_of(&home.cluster())) {
        Ok(found) => good("postgres", format!("PostgreSQL {} in {}", found.major, found.dir.display())),
        Err(error) => bad("postgres", error.to_string(), format!("{} ({OLDEST} or newer)", error.advice())),
    }
}

fn postgres_user() -> Option<Check> {
    if !am_root() {
        return None;
    }
    Some(match lookup(POSTGRES_USER) {
        Some(_) => good("db user", format!("the database runs as {POSTGRES_USER}, not as root")),
        None => bad(
            "db user",
            format!("there is no user {POSTGRES_USER}, and PostgreSQL refuses to run as root"),
            "useradd --system postgres, or start fonds as another user.",
        ),
    })
}

/// The browser to use: the one named in `FONDS_CHROMIUM`, else the best in `PATH`.
fn find_browser() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("FONDS_CHROMIUM").filter(|v| !v.is_empty()) {
        return Some(named.into());
    }
    let dirs: Vec<PathBuf> = std::env::var_os("PATH").iter().flat_map(std::env::split_paths).collect();
    BROWSERS.iter().find_map(|name| dirs.iter().map(|d| d.join(name)).find(|p| p.is_file()))
}

async fn browser() -> Vec<Check> {
    let Some(program) = find_browser() else {
        return vec![warning(
            "browser",
            "no Chromium: screenshots, PDF and everything else that needs a browser fail with TOOL_MISSING",
            "Debian: apt-get install chromium-headless-shell. Elsewhere install Chromium and name it in FONDS_CHROMIUM.",
        )];
    };
    let version = run(&program, &["--version"], None).await.unwrap_or_else(|why| why);
    let user = tokio::task::spawn_blocking(for_browser).await.ok().flatten();
    let mut checks = vec![good("browser", format!("{} ({})", program.display(), clean(&version)))];
    if let Some(user) = &user {
        checks.push(if user.name == BROWSER_USER {
            good("browser user", format!("the browser runs as {BROWSER_USER}, not as root"))
        } else {
            warning(
                "browser user",
                format!("the browser runs as {}, which other programs may use too", user.name),
                format!("useradd --system {BROWSER_USER}"),
            )
        });
    }
    let page = [
        "--headless",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--dump-dom",
        "data:text/html,<p>works",
    ];
    checks.push(match run(&program, &page, user.as_ref()).await {
        Ok(dom) if dom.contains("works") => good("sandbox", "the browser renders a page with its sandbox on"),
        Ok(said) | Err(said) => {
            let plain: Vec<&str> = page.iter().copied().chain(["--no-sandbox"]).collect();
            match run(&program, &plain, user.as_ref()).await {
                Ok(dom) if dom.contains("works") => warning(
                    "sandbox",
                    "the browser works only without its sandbox",
                    "Allow user namespaces: sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0; in a container, a seccomp profile that lets them through.",
                ),
                _ => warning("sandbox", format!("the browser does not render a page: {}", crate::host::cluster::last_lines(&clean(&said), 3)), "Start it by hand to see why."),
            }
        }
    });
    checks
}

/// What a program prints, with a folder of its own as its home, under a limit of time.
async fn run(program: &Path, args: &[&str], user: Option<&RunAs>) -> Result<String, String> {
    let home = tempfile::Builder::new().prefix("fonds-doctor").tempdir_in("/tmp").map_err(|e| e.to_string())?;
    let mut cmd = Command::new(program);
    cmd.args(args)
        .current_dir("/")
        .env("HOME", home.path())
        .env("XDG_CONFIG_HOME", home.path())
        .env("XDG_CACHE_HOME", home.path());
    if args.len() > 1 {
        cmd.arg(format!("--user-data-dir={}", home.path().join("profile").display()));
    }
    if let Some(user) = user {
        std::os::unix::fs::chown(home.path(), Some(user.uid), Some(user.gid)).map_err(|e| e.to_string())?;
        cmd.uid(user.uid).gid(user.gid);
    }
    cmd.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0).kill_on_drop(true);
    let child = cmd.spawn().map_err(|e| e.to_string())?;
    match timeout(Duration::from_secs(20), child.wait_with_output()).await {
        Ok(Ok(out)) if out.status.success() => Ok(String::from_utf8_lossy(&out.stdout).into_owned()),
        Ok(Ok(out)) => Err(format!("{}: {}", out.status, String::from_utf8_lossy(&out.stderr))),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("no answer within 20 s".to_owned()),
    }
}

fn fonts() -> Vec<Check> {
    let mut names = Vec::new();
    let own = std::env::var_os("HOME").map(|h| Path::new(&h).join(".fonts"));
    for dir in ["/usr/share/fonts", "/usr/local/share/fonts"].into_iter().map(PathBuf::from).chain(own) {
        collect_fonts(&dir, 0, &mut names);
    }
    let any = |part: &str| names.iter().any(|n| n.contains(part));
    let mut checks = vec![if names.is_empty() {
        warning(
            "fonts",
            "none: screenshots and PDFs show boxes instead of letters",
            "Debian: apt-get install fonts-dejavu-core fonts-liberation fonts-noto-color-emoji",
        )
    } else {
        good("fonts", format!("{} files", names.len()))
    }];
    if !(names.is_empty() || any("emoji") && any("cjk")) {
        let lack = if any("emoji") { "Chinese, Japanese and Korean" } else { "emoji" };
        let package = if any("emoji") { "fonts-noto-cjk" } else { "fonts-noto-color-emoji" };
        checks.push(warning(
            "more fonts",
            format!("none for {lack}"),
            format!("If you archive pages with them: apt-get install {package}"),
        ));
    }
    checks
}

fn collect_fonts(dir: &Path, depth: usize, names: &mut Vec<String>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().to_lowercase();
        if entry.path().is_dir() && depth < 6 {
            collect_fonts(&entry.path(), depth + 1, names);
        } else if [".ttf", ".ttc", ".otf"].iter().any(|end| name.ends_with(end)) {
            names.push(name);
        }
    }
}

fn space(home: &Home) -> Check {
    let there = home.dir().ancestors().find(|p| p.exists()).unwrap_or(Path::new("/"));
    match rustix::fs::statvfs(there) {
        Ok(fs) => {
            let free = fs.f_bavail.saturating_mul(fs.f_frsize);
            let found = format!("{} free for {}", size(free), home.dir().display());
            if free < SPACE {
                warning("space", found, "A page with all outputs takes 1 to 10 MB. Choose another place with --data.")
            } else {
                good("space", found)
            }
        }
        Err(error) => warning("space", error.to_string(), ""),
    }
}

fn files() -> Check {
    match getrlimit(Resource::Nofile).maximum {
        Some(n) if n < FILES => warning(
            "open files",
            format!("at most {n}"),
            format!("Raise the hard limit to {FILES} or more (ulimit -Hn, LimitNOFILE=)."),
        ),
        Some(n) => good("open files", format!("at most {n}")),
        None => good("open files", "no limit"),
    }
}

fn core_dumps() -> Check {
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    let pattern = clean(&pattern);
    // A limit of zero is not heeded by a program that the kernel pipes the dump to.
    if pattern.starts_with('|') {
        warning(
            "core dumps",
            format!("are handed to {}", pattern.trim_start_matches('|')),
            "A crashed page could be written to the disk by it; fonds turns off the ordinary ones itself.",
        )
    } else {
        good("core dumps", "turned off for everything fonds starts")
    }
}

async fn port(home: &Home) -> Check {
    if home.host().is_some() {
        return good("port", "in use by the running fonds");
    }
    match listen(Some(DEFAULT_PORT)).await {
        Ok(_) => good("port", format!("{DEFAULT_PORT} is free on 127.0.0.1")),
        Err(_) => warning(
            "port",
            format!("{DEFAULT_PORT} is taken on 127.0.0.1"),
            "Another one is taken instead; --port chooses it.",
        ),
    }
}

fn service(home: &Home) -> Check {
    match home.host() {
        Some(host) => good("service", format!("runs at {}", host.url)),
        None => good("service", format!("does not run for {}", home.dir().display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fonts_are_counted_through_folders() {
        let dir = tempfile::tempdir().expect("temp dir");
        std::fs::create_dir_all(dir.path().join("truetype/noto")).expect("made");
        for name in ["a.ttf", "truetype/noto/NotoColorEmoji.TTF", "truetype/readme.txt", "b.otf"] {
            std::fs::write(dir.path().join(name), "").expect("written");
        }
        let mut names = Vec::new();
        collect_fonts(dir.path(), 0, &mut names);
        names.sort();
        assert_eq!(names, ["a.ttf", "b.otf", "notocoloremoji.ttf"]);
    }

    #[tokio::test]
    async fn a_program_that_fails_says_why() {
        let said = run(Path::new("/bin/sh"), &["-c", "echo out; echo why >&2; exit 3"], None).await.expect_err("fails");
        assert!(said.contains("why") && said.contains('3'), "{said}");
        assert!(run(Path::new("/no/such/program"), &["x"], None).await.is_err());
    }
}
