//! The one-process host as its user meets it: started, asked, killed, started again, ended.
//!
//! Without PostgreSQL these say so and pass, but fail where CI says that everything is there.

mod archive;
mod kill;
mod lifecycle;
mod tour;
