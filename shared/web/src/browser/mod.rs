//! The browser: one warm process, one isolated context a snapshot.
