//! Limits of this process and those it starts.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// As many open files as allowed (a browser, a pool and a few hundred connections need more than the
/// usual 1,024), and no core dumps: a browser that crashes would leave hundreds of megabytes of a
/// page's memory on the disk.
pub(super) fn prepare_process() {
    let files = getrlimit(Resource::Nofile);
    raise(Resource::Nofile, Rlimit { current: files.maximum, maximum: files.maximum });
    let core = getrlimit(Resource::Core);
    raise(Resource::Core, Rlimit { current: Some(0), maximum: core.maximum });
}

fn raise(resource: Resource, limit: Rlimit) {
    if let Err(error) = setrlimit(resource, limit) {
        tracing::debug!(?resource, %error, "a limit of the process could not be set");
    }
}
