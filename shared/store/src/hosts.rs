//! Politeness towards hosts: a gate at the start of requests, pacing of what is admitted, and how a
//! host has behaved. In Postgres, because functions share no memory.

use crate::{Conn, StoreError};
use std::net::IpAddr;
use std::time::Duration;

/// Whether politeness applies. Loopback, private addresses and local names are the operator's own.
#[must_use]
pub fn is_public(host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(
        host,
        |(name, port)| {
            if port.bytes().all(|b| b.is_ascii_digit()) { name } else { host }
        },
    );
    let name = name.trim_start_matches('[').trim_end_matches(']');
    match name.parse::<IpAddr>() {
        Ok(IpAddr::V4(ip)) => !(ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified()),
        Ok(IpAddr::V6(ip)) => !(ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local()),
        Err(_) => name != "localhost" && !name.ends_with(".localhost") && !name.ends_with(".local"),
    }
}

/// Books `count` starts `delay` seconds apart; answers how many seconds from now the first may be.
pub(crate) async fn pace(c: &mut Conn, host: &str, count: i32, delay: f64) -> Result<f64, StoreError> {
    let secs = sqlx::query_scalar!(
        r#"INSERT INTO host AS h (name, paced_until) VALUES ($1, now() + make_interval(secs => $2::int * $3::float8))
           ON CONFLICT (name) DO UPDATE
           SET paced_until = greatest(h.paced_until, now()) + make_interval(secs => $2::int * $3::float8)
           RETURNING extract(epoch FROM h.paced_until - now())::float8 - $2::int * $3::float8 AS "secs!""#,
        host,
        count,
        delay
    )
    .fetch_one(c)
    .await?;
    Ok(secs.max(0.0))
}

/// What the gate of a host says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gate {
    /// Wait this long before the request.
    pub wait: Duration,
    /// Failures in a row so far, over all crawls.
    pub fail_streak: i32,
}

/// Books the next start at a host: `delay` after the one booked before, and not while the host asked
/// to be left alone.
///
/// # Errors
/// When the database fails.
pub async fn gate(c: &mut Conn, host: &str, delay: Duration) -> Result<Gate, StoreError> {
    let row = sqlx::query!(
        r#"INSERT INTO host AS h (name, next_at) VALUES ($1, now() + make_interval(secs => $2))
           ON CONFLICT (name) DO UPDATE
           SET next_at = greatest(h.next_at, now(), h.blocked_until) + make_interval(secs => $2), modified_at = now()
           RETURNING extract(epoch FROM h.next_at - now())::float8 - $2::float8 AS "wait!",
                     -- An old streak says nothing about today: a host gets another chance.
                     CASE WHEN h.failed_at > now() - interval '10 minutes' THEN h.fail_streak ELSE 0 END AS "fail_streak!""#,
        host,
        delay.as_secs_f64()
    )
    .fetch_one(c)
    .await?;
    Ok(Gate { wait: Duration::from_secs_f64(row.wait.clamp(0.0, 86_400.0)), fail_streak: row.fail_streak })
}

/// Records how a request to a host ended: a success ends its streak of failures; a host that asked
/// to be left alone (`retry_after`) is not asked until then.
///
/// # Errors
/// When the database fails.
pub async fn record(
    c: &mut Conn,
    host: &str,
    error: Option<&str>,
    retry_after: Option<Duration>,
) -> Result<(), StoreError> {
    sqlx::query!(
        r#"INSERT INTO host AS h (name, fail_streak, failed_at, last_error, blocked_until)
           VALUES ($1, ($2::text IS NOT NULL)::int, CASE WHEN $2::text IS NOT NULL THEN now() END, $2,
                   now() + make_interval(secs => $3))
           ON CONFLICT (name) DO UPDATE
           SET fail_streak = CASE WHEN $2::text IS NULL THEN 0 ELSE h.fail_streak + 1 END,
               failed_at = CASE WHEN $2::text IS NULL THEN h.failed_at ELSE now() END,
               last_error = coalesce($2, h.last_error), modified_at = now(),
               blocked_until = greatest(h.blocked_until, now() + make_interval(secs => $3))"#,
        host,
        error,
        retry_after.map(|d| d.as_secs_f64()),
    )
    .execute(c)
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::is_public;

    #[test]
    fn the_operators_own_hosts_are_told_from_others() {
        for own in ["127.0.0.1:8080", "localhost", "localhost:1", "10.0.0.8", "[::1]:80", "192.168.1.1", "nas.local"] {
            assert!(!is_public(own), "{own}");
        }
        for public in ["example.org", "example.org:8443", "93.184.216.34", "[2606:2800:220:1::1]:443"] {
            assert!(is_public(public), "{public}");
        }
    }
}
