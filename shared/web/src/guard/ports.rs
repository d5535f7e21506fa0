//! Ports no web page has business with.

/// The "bad ports" of the WHATWG Fetch standard, section 2.9 (port blocking), sorted.
const BAD_PORTS: [u16; 83] = [
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109,
    110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531,
    532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060,
    5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
];

/// Whether browsers refuse this port: speaking HTTP to it could be mistaken for another protocol.
pub fn is_bad_port(port: u16) -> bool {
    BAD_PORTS.binary_search(&port).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_is_sorted_and_leaves_the_web_alone() {
        assert!(BAD_PORTS.is_sorted());
        for port in [80, 443, 3000, 5432, 8000, 8080, 8443, 49152] {
            assert!(!is_bad_port(port), "{port}");
        }
        for port in BAD_PORTS {
            assert!(is_bad_port(port), "{port}");
        }
    }
}
