//! A resolver whose answers a test writes.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use crate::dial::Resolver;

/// Answers names from a script: the first look-up gets the first answer, and so on; the last answer
/// repeats. Names not in the script do not exist.
#[derive(Debug, Default)]
pub struct ScriptedResolver {
    names: Mutex<HashMap<String, Script>>,
}

/// Look-ups so far, and the answers in order.
type Script = (usize, Vec<Vec<IpAddr>>);

impl ScriptedResolver {
    /// An empty script.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a name. `answers` are lists of addresses, one list a look-up.
    ///
    /// # Panics
    /// When an address does not parse: the script is wrong.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a wrong script must fail its test")]
    pub fn name(self, name: &str, answers: &[&[&str]]) -> Self {
        let parse = |ip: &&str| ip.parse().expect("an address");
        let answers = answers.iter().map(|answer| answer.iter().map(parse).collect()).collect();
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.insert(name.to_owned(), (0, answers));
        drop(names);
        self
    }

    /// How often a name was looked up.
    pub fn look_ups(&self, name: &str) -> usize {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.get(name).map_or(0, |(count, _)| *count)
    }
}

#[async_trait::async_trait]
impl Resolver for ScriptedResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((count, answers)) = names.get_mut(name) else {
            return Err(io::Error::new(io::ErrorKind::NotFound, "no such name"));
        };
        let answer = answers.get(*count).or(answers.last()).cloned();
        *count += 1;
        Ok(answer.unwrap_or_default())
    }
}
