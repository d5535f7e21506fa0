//! Test servers on loopback: origins that behave, and origins that do not.
