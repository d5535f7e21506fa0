//! The executor: claim, run inside the budget, settle under the fence. The only place that does.
//!
//! `execute` is set-based; a kind that is not works on sets of one. Three thin drivers call it: a
//! Lambda SQS batch (`lambda`), the one-process host (`local`) and the tests (`testing`).
#![warn(missing_docs)]

mod context;
mod execute;
pub mod lambda;
pub mod local;
mod task;
pub mod testing;

pub use context::{Budget, Cx};
pub use execute::{Executed, Executor, Runner};
pub use task::{Item, Outcome, Task, TaskError};

pub use fonds_store::runs::{RunRef, Select, Signal};
